//! The aggregation switch: the protocol around the queue.
//!
//! Updates come up and meet the uplink's [`Link`](crate::link::Link); answers come down, take the
//! queue's status along and fan out to the workers concerned; joins and the like pass through, and
//! the switch learns its workers and servers from them. One switch serves any number of
//! jobs, which share the queue's slots.

mod admission;
mod answers;
mod config;
mod counters;
mod ends;
mod flows;
mod job;
mod meetings;
mod membership;
mod neighbours;
mod newcomers;
mod notices;
mod ports;
mod screening;
mod signatures;
mod statistics;
#[cfg(test)]
mod tests;
mod updates;

pub use crate::keys::ConfigError;
pub use crate::party::Ruling;
pub use crate::queue::kind::QueueKind;
pub use admission::Counts as AdmissionCounts;
pub use config::{Admission, AnswerTo, Config, LARGEST_MODEL, Pacing};
pub use counters::{ClippedCounts, Fates};
pub use statistics::{Datagrams, Statistics};

use crate::contribution::{Contribution, datagram_bytes};
use crate::drop::DropReason;
use crate::engine::{Engine, Source, Transmit, Verdict, Why};
use crate::event::{Event, MEMBERSHIP_LINES};
use crate::ids::{ClusterId, JobId, PeerId, PortId};
use crate::party::active::{Activity, Hearings, activity_by};
use crate::party::{Arrivals, Bucket, Chance, Proofs};
use crate::queue::Arrival;
use crate::report::{self, Report};
use crate::table::Table;
use crate::time::Instant;
use admission::Questions;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;
use counters::{Counters, Departed};
use flows::Flows;
use job::Job;
use meetings::Meetings;
use olaf_wire::{Kind, Packet, QueueStatus, Refusal, Update, WelcomeCode, join_of_another_version};
use ports::{Message, Place, Ports};

/// How often parties are looked at for silence.
const SILENCE_CHECK: Duration = Duration::from_millis(100);
/// Events kept for a driver that does not fetch them; the oldest give way.
const EVENT_LIMIT: usize = 4096;

/// The switch.
pub struct Switch {
    config: Config,
    epoch: u32,
    ports: Ports,
    jobs: Table<JobId, Job>,
    default_server: Option<PeerId>,
    /// Peers that may be switches; none: each peer may.
    switches: Option<BTreeSet<PeerId>>,
    /// Peers whose datagrams of other protocols go up.
    passes_on: BTreeSet<PeerId>,
    /// Which peers below have proved their addresses.
    proofs: Proofs<(JobId, PeerId)>,
    /// When each cluster was heard last.
    hearings: Hearings<(JobId, ClusterId)>,
    /// Where the maps have what belongs to a flow.
    flows: Flows,
    /// Whose updates met in each waiting entry.
    meetings: Meetings,
    asking: Questions,
    counters: Counters,
    events: VecDeque<Event>,
    next_silence_check: Instant,
    /// Highest hop sequence of a job that was forgotten: one that comes again counts on from here,
    /// for its server may still remember the numbers of this life of the switch.
    forgotten_hop_sequence: u32,
    /// Which datagrams came from each party below.
    arrivals: Arrivals,
    /// What left for each job. It outlives the job, because the accounts of a run ask for it at its end.
    departed: BTreeMap<JobId, Departed>,
    /// When a rejection of an unknown worker was last told.
    told_of_strangers: Option<Instant>,
    /// When a loop was last told.
    told_of_loops: Option<Instant>,
    /// The time of the last input.
    clock: Instant,
    /// Events about workers' coming and going, which strangers can cause.
    lines: Bucket,
}

impl Switch {
    /// A switch without jobs. `epoch` names this life of it: draw it at random.
    ///
    /// # Errors
    /// The key of `config` that cannot be, and why.
    pub fn new(config: Config, epoch: u32) -> Result<Self, ConfigError> {
        let config = config.check()?;
        Ok(Self {
            ports: Ports::new(&config),
            epoch: epoch.max(1),
            jobs: Table::new(),
            default_server: None,
            switches: None,
            passes_on: BTreeSet::new(),
            proofs: Proofs::default(),
            hearings: Hearings::default(),
            clock: Instant(0),
            lines: Bucket::default(),
            flows: Flows::default(),
            meetings: Meetings::default(),
            asking: Questions::default(),
            counters: Counters::default(),
            events: VecDeque::new(),
            next_silence_check: Instant(0),
            forgotten_hop_sequence: 0,
            arrivals: Arrivals::new(2 * config.max_workers),
            departed: BTreeMap::new(),
            told_of_strangers: None,
            told_of_loops: None,
            config,
        })
    }

    /// Peers below have to prove their addresses before anything but answers to their joins goes to them.
    /// Without it addresses are believed.
    pub fn demand_proofs(&mut self, chance: Chance) {
        self.proofs.demand(chance);
    }

    /// Names the server of every job that has none of its own.
    pub fn set_default_server(&mut self, peer: PeerId) {
        self.default_server = Some(peer);
    }

    /// Lets that peer be a switch below. From the first call on no other peer may.
    pub fn allow_switch(&mut self, peer: PeerId) {
        self.switches.get_or_insert_default().insert(peer);
    }

    /// Passes datagrams of other protocols from that peer on to the default server.
    pub fn pass_on_from(&mut self, peer: PeerId) {
        self.passes_on.insert(peer);
    }

    /// Names the server of one job.
    pub fn set_server(&mut self, job: JobId, peer: PeerId) {
        let job = self.job(job, peer);
        (job.server, job.configured) = (peer, true);
    }

    /// The queue's state as it goes into answers (OLAF §5).
    #[must_use]
    pub fn queue_status(&self, now: Instant) -> QueueStatus {
        let activity = self.activity(now);
        QueueStatus {
            active_clusters: u16::try_from(activity.clusters).unwrap_or(u16::MAX),
            slots: u16::try_from(self.ports.up.slots()).unwrap_or(u16::MAX),
            used: u16::try_from(self.ports.up.used()).unwrap_or(u16::MAX),
            switches: 1,
            round_us: u32::try_from(activity.round.as_micros()).unwrap_or(u32::MAX),
        }
    }

    /// The active clusters of all jobs, and how long a round of them takes the uplink.
    fn activity(&self, now: Instant) -> Activity {
        let heard = |since| self.hearings.since(since);
        activity_by(heard, now, self.config.active, self.ports.up.service())
    }

    fn job(&mut self, id: JobId, server: PeerId) -> &mut Job {
        let hop_sequence = self.forgotten_hop_sequence;
        self.jobs.get_or_insert(id, || Job { hop_sequence, ..Job::new(server) })
    }

    fn event(&mut self, event: Event) {
        if event.is_of_membership() && !self.lines.take(self.clock, MEMBERSHIP_LINES) {
            self.counters.events_forgotten += 1;
            return;
        }
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
            self.counters.events_forgotten += 1;
        }
        self.events.push_back(event);
    }

    fn handle_below(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        if packet.kind() != Kind::Update {
            return self.handle_control(now, from, packet, bytes);
        }
        // By reference: an update that is moved out of a result is copied.
        match &Update::parse(packet) {
            Ok(update) => {
                let lanes = packet.lanes();
                // Before the update is written to memory: the processor waits where two numbers
                // that it has just written one by one are read as one.
                let contribution = Contribution::of_update(update, datagram_bytes(lanes));
                self.handle_update(now, from, update, &mut Arrival { contribution, lanes })
            }
            Err(refusal) => Verdict::Drop(DropReason::Malformed(*refusal)),
        }
    }

    /// Everything from below but updates. It is kept out of the code of an update.
    #[inline(never)]
    fn handle_control(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        match packet.kind() {
            Kind::Join => self.handle_join(now, from, packet),
            Kind::Leave => self.handle_leave(now, from, packet, bytes),
            // An offer of a first model, a wish for segments of the newest, names of arrays.
            // And a question for the signature under a model.
            Kind::Model | Kind::Fetch | Kind::Layout | Kind::AskSignature => {
                self.pass_up(now, from, packet, bytes)
            }
            Kind::Update
            | Kind::Acknowledgement
            | Kind::Welcome
            | Kind::Notice
            | Kind::Signature => Verdict::Drop(DropReason::WrongDirection),
        }
    }

    #[inline(never)]
    fn handle_above(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        match packet.kind() {
            Kind::Acknowledgement | Kind::Model => self.handle_answer(now, from, packet),
            Kind::Signature => self.handle_signature(now, from, packet, bytes),
            Kind::Welcome => self.handle_welcome(now, from, packet),
            Kind::Join => self.handle_join_from_above(now, from, packet),
            _ => Verdict::Drop(DropReason::WrongDirection),
        }
    }

    /// A datagram that is no message of this version.
    #[cold]
    fn handle_refused(
        &mut self,
        now: Instant,
        from: Source,
        bytes: &[u8],
        refusal: Refusal,
    ) -> Verdict {
        let below = from.port != PortId::UPLINK;
        if refusal == Refusal::NotOurs {
            return self.handle_foreign(now, from, bytes);
        }
        if below && let Some(address) = join_of_another_version(bytes) {
            let welcome = self.welcome(now, address, 0, WelcomeCode::UnknownJob);
            self.reply(now, from, welcome);
        }
        Verdict::Drop(DropReason::Malformed(refusal))
    }

    /// A datagram of another protocol (OLAF §7: other traffic passes untouched). It goes up through the
    /// link and its pacer, where a list names its sender; one datagram in is one datagram out.
    ///
    /// differs: without a list nothing passes. A switch that passed everything on would be an open
    /// relay, whose traffic no pacer holds back.
    fn handle_foreign(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let passes = from.port != PortId::UPLINK && self.passes_on.contains(&from.peer);
        let Some(server) = self.default_server.filter(|_| passes) else {
            return Verdict::Drop(DropReason::Foreign);
        };
        self.counters.forwarded_untouched += 1;
        self.send_up(now, from, server, Message::Untouched(bytes.into()))
    }

    /// Passes a member's control datagram on to its job's server.
    fn pass_up(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let address = packet.address();
        // The server would answer it with more than came, and the answer would not be passed down.
        let asks = matches!(packet.kind(), Kind::Fetch | Kind::AskSignature);
        let proven = !asks || self.proofs.is_proven(&(address.job, from.peer));
        let server = match self.jobs.get_mut(&address.job) {
            Some(job) => {
                let server = job.server;
                match job.members.get_mut(&address.worker) {
                    Some(member) if member.is(from.peer, address.session) => {
                        member.liveness.note(now);
                        server
                    }
                    _ => return Verdict::Drop(DropReason::UnknownReceiver),
                }
            }
            None => return Verdict::Drop(DropReason::UnknownJob),
        };
        if !proven {
            return Verdict::Drop(DropReason::NotProven);
        }
        self.send_up(now, from, server, Message::Untouched(bytes.into()))
    }

    /// Passes a message on to a server, in the class that it came with.
    fn send_up(&mut self, now: Instant, from: Source, server: PeerId, message: Message) -> Verdict {
        let place = Place { port: PortId::UPLINK, peer: server };
        self.send(now, place, from.class, message)
    }
}

impl Engine for Switch {
    fn comes_from(&mut self, address: crate::engine::Place) {
        self.proofs.comes_from(address);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.clock = now;
        let below = from.port != PortId::UPLINK;
        let verdict = match &Packet::new_checked(bytes) {
            Ok(packet) if below => self.handle_below(now, from, packet, bytes),
            Ok(packet) => self.handle_above(now, from, packet, bytes),
            Err(refusal) => self.handle_refused(now, from, bytes, *refusal),
        };
        if let Verdict::Drop(reason) = verdict {
            self.counters.refuse(reason);
        }
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let departure = self.ports.next_departure().map(|at| (at, Why::Departure));
        let expiry = self.ports.up.next_expiry().map(|at| (at, Why::CreditExpiry));
        let silence =
            (!self.jobs.is_empty()).then_some((self.next_silence_check, Why::SilenceCheck));
        let admission = self.asking.deadline().map(|at| (at, Why::AdmissionDeadline));
        [departure, expiry, silence, admission].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        self.ports.up.expire(now);
        self.check_deadline(now);
        if now >= self.next_silence_check {
            self.check_silence(now);
            self.next_silence_check = now + SILENCE_CHECK;
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn ports(&self) -> u16 {
        self.ports.count()
    }

    /// A paced link must have sent what is due before anything merges with it. Without a pacer the
    /// datagrams of one batch have waited together in the socket, and they merge, as long as the
    /// queue has room: on such a link nothing is ever dropped.
    fn must_drain(&self) -> bool {
        let up = &self.ports.up;
        self.config.pacing() != Pacing::Unlimited || up.used() >= up.slots()
    }

    /// Workers and switches below, and senders of joins that still wait for an answer.
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        let members = self.jobs.values().flat_map(|job| job.members.values());
        let switches = self.jobs.values().flat_map(|job| job.below.keys());
        members.map(|member| member.peer).chain(switches.copied()).for_each(&mut *keep);
        self.asking.peers().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        olaf_wire::packet::job_of(message)
    }
}
