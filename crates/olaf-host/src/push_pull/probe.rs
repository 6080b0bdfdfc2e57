//! What a path does to datagrams: round trip, loss, size, clocks. Measured without joining a job.
//!
//! A probe sends joins that only ask ([`JoinPath::asks`]). Switches pass them on, and the server
//! answers each with a datagram as long as the question. In order: questions until one is answered;
//! short questions at a steady rate, which give round trip, loss and clocks; long questions, which
//! give the path's size.

use super::round_trip::RoundTrip;
use super::worker::PATH_PACKETS;
use super::worker::clock::Clock;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::report::{self, Report};
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Refused, Source, Transmit, Verdict, Why,
};
use olaf_wire::offsets::{self, MAX_DATAGRAM, common};
use olaf_wire::{Address, Join, JoinPath, Leave, Packet, Refusal, Welcome, WelcomeCode};
use serde::Serialize;

/// Before the first answer a question is repeated after this long, then after twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(50);
/// But no later than this.
const LAST_RETRY: Duration = Duration::from_secs(1);
/// A size that got no answer so often does not pass.
const TRIES: u32 = 4;
/// The last short question is waited for this long beyond the longest round trip.
const SETTLE: Duration = Duration::from_millis(200);

/// What a probe asks.
#[derive(Clone, Debug)]
pub struct ProbeConfig {
    /// The worker that it would be; no such worker is let in.
    pub address: Address,
    /// The peer that is asked.
    pub peer: PeerId,
    /// Parameters of the model that it would have.
    pub parameters: u32,
    /// Number of short questions. The loss is that of these.
    pub questions: u32,
    /// Time between two of them.
    pub every: Duration,
    /// The probe gives up after this time without an answer.
    pub patience: Duration,
    /// The longest datagram that the system lets out, its UDP payload.
    pub largest: u32,
    /// Bytes of the IP and UDP headers in front of it, and of the seal.
    pub headers: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was answered yet.
    Opening,
    /// Short questions at a steady rate.
    Counting,
    /// The last of them are on their way.
    Settling,
    /// Long questions.
    Sizing,
    Done,
}

/// A question on its way, or answered.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    is_counted: bool,
    is_answered: bool,
}

/// What was found, in the names of `docs/doctor.md`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Counted questions that were sent.
    asked: u64,
    /// Counted questions that were answered in time.
    answered: u64,
    /// Answers that came twice.
    duplicates: u64,
    round_trip_min_ns: Option<u64>,
    round_trip_median_ns: Option<u64>,
    round_trip_max_ns: Option<u64>,
    /// Server's clock minus this one; an offset within the error is 0.
    clock_offset_ns: i64,
    clock_error_ns: Option<u64>,
    /// The longest IP packet that passed in both directions.
    mtu_bytes: Option<u32>,
    /// The longest IP packet that this machine lets out.
    system_mtu_bytes: u32,
    /// Version of the format of the answers.
    wire_version: Option<u8>,
    /// Version of the format that this end speaks.
    own_wire_version: u8,
    /// Why the job would not let this worker in.
    refused: Option<&'static str>,
    /// Time for which the switch has not heard its server, as the switch says.
    server_silent_ms: Option<u32>,
    /// A switch is on the way.
    through_switch: bool,
    /// The server has a model of this job.
    job_has_model: bool,
    /// Parameters of the job's model; 0: there is no such job.
    job_parameters: u32,
    /// Lanes of a segment of it.
    job_segment_lanes: u32,
}

/// Measures the path to a server. Lets no worker in.
#[derive(Debug)]
pub struct Probe {
    config: ProbeConfig,
    phase: Phase,
    begun: Option<Instant>,
    next: Option<Instant>,
    retry: Duration,
    due: Vec<u32>,
    leaves: bool,
    asked: BTreeMap<u64, Asked>,
    newest: u64,
    counted: u32,
    /// Volleys of long questions so far.
    tries: u32,
    proven: u32,
    /// Nothing longer is tried: the system would not send it.
    ceiling: u32,
    samples: Vec<u64>,
    round_trip: RoundTrip,
    clock: Clock,
    found: Findings,
}

impl Probe {
    /// A probe that has asked nothing yet.
    #[must_use]
    pub fn new(config: ProbeConfig) -> Self {
        let ceiling = config.largest;
        Self {
            config,
            phase: Phase::Opening,
            begun: None,
            next: None,
            retry: FIRST_RETRY,
            due: Vec::new(),
            leaves: false,
            asked: BTreeMap::new(),
            newest: 0,
            counted: 0,
            tries: 0,
            proven: 0,
            ceiling,
            samples: Vec::new(),
            round_trip: RoundTrip::default(),
            clock: Clock::default(),
            found: Findings { own_wire_version: offsets::VERSION, ..Findings::default() },
        }
    }

    /// Begins to ask.
    pub fn begin(&mut self, now: Instant) {
        (self.begun, self.next) = (Some(now), Some(now));
    }

    /// Returns true if all was asked, and the leave has been sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done && !self.leaves
    }

    /// What was found so far.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        Findings {
            round_trip_min_ns: sorted.first().copied(),
            round_trip_median_ns: sorted.get(sorted.len() / 2).copied(),
            round_trip_max_ns: sorted.last().copied(),
            clock_offset_ns: self.clock.offset_ns(),
            clock_error_ns: self.clock.error_ns(),
            mtu_bytes: (self.proven > 0).then(|| self.proven + self.config.headers),
            system_mtu_bytes: self.ceiling + self.config.headers,
            ..self.found.clone()
        }
    }

    /// What is due now: the next volley, or the next phase.
    fn go_on(&mut self, now: Instant) {
        match self.phase {
            Phase::Opening => {
                let waited = self.begun.map_or(Duration::ZERO, |begun| now.since(begun));
                if waited >= self.config.patience {
                    return self.end();
                }
                self.due.push(0);
                self.next = Some(now + self.retry);
                self.retry = (self.retry * 2).min(LAST_RETRY);
            }
            Phase::Counting if self.counted < self.config.questions => {
                self.due.push(0);
                self.next = Some(now + self.config.every);
            }
            Phase::Counting => {
                let longest = self.samples.iter().copied().max().unwrap_or(0);
                self.phase = Phase::Settling;
                self.next = Some(now + Duration::from_nanos(longest) + SETTLE);
            }
            Phase::Settling => {
                self.phase = Phase::Sizing;
                self.next = Some(now);
            }
            Phase::Sizing => {
                self.due = self.sizes();
                if self.tries == TRIES || self.due.is_empty() {
                    return self.end();
                }
                self.tries += 1;
                self.next = Some(now + self.round_trip.retry_after() + FIRST_RETRY);
            }
            Phase::Done => self.next = None,
        }
    }

    fn end(&mut self) {
        // A switch on the way has noted a worker: it need not wait for its silence.
        self.leaves = self.found.answered > 0 || self.found.wire_version.is_some();
        (self.phase, self.next) = (Phase::Done, None);
        self.due.clear();
    }

    /// Sizes that may still pass and are longer than what has passed, the longest first.
    fn sizes(&self) -> Vec<u32> {
        let headers = self.config.headers;
        let usual = PATH_PACKETS.into_iter().filter_map(|packet| packet.checked_sub(headers));
        let all = usual.chain([self.ceiling]);
        let mut sizes: Vec<u32> =
            all.filter(|size| *size > self.proven && *size <= self.ceiling).collect();
        sizes.sort_unstable_by_key(|size| core::cmp::Reverse(*size));
        sizes.dedup();
        sizes
    }

    fn write_question(&mut self, now: Instant, padded_to: u32, buf: &mut [u8]) -> usize {
        self.newest = now.0.max(self.newest + 1);
        let is_counted = self.phase == Phase::Counting;
        if is_counted {
            self.counted += 1;
            self.found.asked += 1;
        }
        let asked = Asked { at: now, is_counted, is_answered: false };
        self.asked.insert(self.newest, asked);
        Join {
            address: self.config.address,
            have_version: 0,
            parameters: self.config.parameters,
            segment_lanes: offsets::DEFAULT_SEGMENT_LANES as u32,
            clock_error_us: self.clock.error_us(),
            sent_at_ns: self.newest,
            clock_offset_ns: self.clock.offset_ns(),
            hops: 0,
            wants_notices: false,
            path: JoinPath { asks: true, round_trip_us: self.round_trip.as_micros(), padded_to },
            nonce: 0,
        }
        .emit(buf)
    }

    fn take(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused> {
        if from != self.config.peer {
            return Err(Refused::UnknownPeer);
        }
        let packet = match Packet::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                if let Refusal::WrongVersion { have, .. } = refusal {
                    self.found.wire_version = Some(have);
                    self.end();
                }
                return Err(Refused::Malformed(refusal));
            }
        };
        let welcome = Welcome::parse(&packet).map_err(Refused::Malformed)?;
        if welcome.address != self.config.address {
            return Err(Refused::NotForMe);
        }
        let Some(asked) = self.asked.get_mut(&welcome.echoed_sent_at_ns) else {
            return Err(Refused::NotAsked);
        };
        self.found.wire_version = Some(bytes[common::VERSION]);
        self.found.through_switch |= welcome.switch_epoch != 0;
        match welcome.code {
            WelcomeCode::ServerSilent => {
                self.found.server_silent_ms = Some(welcome.silent_ms);
                return Ok(());
            }
            WelcomeCode::AdmissionPending | WelcomeCode::JoinAgain => return Ok(()),
            WelcomeCode::WrongModelSize if welcome.parameters > 0 => {
                // The job runs with another model: the path is measured with questions of that size.
                self.config.parameters = welcome.parameters;
                self.found.job_parameters = welcome.parameters;
                self.found.job_segment_lanes = welcome.segment_lanes;
                self.found.job_has_model |= welcome.ready;
                if self.phase == Phase::Opening {
                    self.next = Some(now);
                }
                return Ok(());
            }
            WelcomeCode::Path => {}
            code => {
                self.found.refused = Some(code.name());
                self.end();
                return Err(Refused::TurnedAway(code));
            }
        }
        if asked.is_answered {
            self.found.duplicates += 1;
            return Err(Refused::Duplicate);
        }
        asked.is_answered = true;
        let asked = *asked;
        self.found.job_parameters = welcome.parameters;
        self.found.job_segment_lanes = welcome.segment_lanes;
        self.found.job_has_model = welcome.ready;
        self.found.server_silent_ms = None;
        let held = welcome.sent_at_ns.saturating_sub(welcome.received_at_ns);
        let passed = now.since(asked.at).saturating_sub(Duration::from_nanos(held));
        self.proven = self.proven.max(u32::try_from(bytes.len()).unwrap_or(0));
        if asked.is_counted {
            self.found.answered += 1;
            self.samples.push(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
        }
        if asked.is_counted || self.phase == Phase::Sizing {
            self.round_trip.sample(passed);
            // The shortest round trip says most. A clock forgets old exchanges; a probe is too short for drift.
            let is_shortest =
                self.clock.error_ns().is_none_or(|known| passed.as_nanos() / 2 < known.into());
            if is_shortest {
                let there = (welcome.received_at_ns, welcome.sent_at_ns);
                self.clock.exchange(asked.at.0, there.0, there.1, now.0);
            }
        }
        if self.phase == Phase::Opening {
            // This first answer may have waited for a handshake of keys: it measures nothing.
            (self.phase, self.next) = (Phase::Counting, Some(now));
        } else if self.phase == Phase::Sizing && self.proven >= self.ceiling {
            self.end();
        }
        Ok(())
    }
}

impl Engine for Probe {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        match self.take(now, from.peer, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(refused) => Verdict::refused(refused),
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let peer = self.config.peer;
        if let Some(size) = self.due.pop() {
            return Some(Transmit::to(peer, self.write_question(now, size, buf)));
        }
        if core::mem::take(&mut self.leaves) {
            return Some(Transmit::to(peer, Leave { address: self.config.address }.emit(buf)));
        }
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.next.map(|at| (at, Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|at| at <= now) {
            self.go_on(now);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(self.config.peer);
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        report::walk(&self.findings(), to);
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        let bytes = u32::try_from(bytes).unwrap_or(MAX_DATAGRAM as u32);
        let below = bytes.saturating_sub(1);
        self.ceiling = self.ceiling.min(largest.unwrap_or(below).min(below));
        if self.phase == Phase::Sizing {
            // The sizes below are tried at once.
            self.tries = 0;
            self.next = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
