//! What a message from the switch changes.

use super::flow::Answered;
use super::{Closing, Standing, Worker};
use crate::collective::Failure;
use crate::collective::path::since;
use olaf_engine::{Ecn, Instant, Refused, Source, WorkerEvent};
use olaf_wire::atp::offsets::TENSOR_BITS;
use olaf_wire::atp::{
    ANY, AtpPacket, Closed, Header, Kind, Left, Welcome, other_version_of, widen,
};
use olaf_wire::reduce::{Clash, Reason, WelcomeCode};

impl Worker {
    pub(super) fn take_packet(
        &mut self,
        now: Instant,
        from: Source,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        if from.peer != self.config.switch {
            return Err(Refused::UnknownPeer);
        }
        let packet = match AtpPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                self.note_version(now, bytes);
                return Err(Refused::Malformed(refusal));
            }
        };
        if packet.job() != self.job {
            return Err(Refused::UnknownJob);
        }
        let at = usize::from(packet.server());
        if at >= self.flows.len() {
            return Err(Refused::NotForMe);
        }
        match packet.kind() {
            Kind::Parameters => {
                self.counts.results += 1;
                let taken = self.handle_parameters(now, from, at, &packet);
                self.counts.results_refused += u64::from(taken.is_err());
                taken
            }
            Kind::Welcome => self.handle_welcome(now, at, &packet),
            Kind::Closed => self.handle_closed(now, at, &packet),
            Kind::Left => {
                let left = Left::parse(&packet).map_err(Refused::Malformed)?;
                if left.session != self.config.session {
                    return Err(Refused::NotForMe);
                }
                let leaving = &mut self.leaving[at];
                leaving.at().ok_or(Refused::NotAsked)?;
                leaving.stop();
                Ok(())
            }
            Kind::Gradient | Kind::Join | Kind::Leave => Err(Refused::WrongDirection),
        }
    }

    /// A switch or a server of another version answers a join in its own version.
    fn note_version(&mut self, now: Instant, bytes: &[u8]) {
        let Some(version) = other_version_of(bytes, self.job, self.config.session) else { return };
        // What is left of a life ends first, and its switch speaks this version.
        let asks = matches!(self.standing, Standing::Joining { .. }) && self.open.is_empty();
        if asks && self.flows.iter().all(|flow| flow.seat.is_none()) {
            self.other_version = Some(version);
            self.turned_away(now, WelcomeCode::OtherVersion);
        }
    }

    fn heard(&mut self, at: usize) {
        self.flows[at].owed = None;
        if core::mem::take(&mut self.is_silent) {
            self.events.tell(WorkerEvent::SwitchBack);
        }
    }

    fn handle_parameters(
        &mut self,
        now: Instant,
        from: Source,
        at: usize,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        let header = Header::parse(packet).map_err(Refused::Malformed)?;
        let flow = &mut self.flows[at];
        let seat = flow.seat.ok_or(Refused::NotReady)?;
        if header.key.generation != seat.generation {
            return Err(Refused::OtherGeneration);
        }
        let sequence = header.key.sequence(header.sequence, flow.expected());
        self.heard(at);
        let flow = &mut self.flows[at];
        match flow.awaits(sequence) {
            Answered::TooEarly => return Err(Refused::TooEarly),
            Answered::Repeated => {
                self.counts.results_again += 1;
                return Ok(());
            }
            Answered::New => {}
        }
        if header.overflow {
            self.counts.float_requests += 1;
            flow.wants_floats(sequence);
            return Ok(());
        }
        let open = self.open.iter_mut().find(|open| open.has(at, sequence));
        let open = open.ok_or(Refused::NotReady)?;
        let tensor = open.number + flow.skipped;
        let is_same = header.key.tensor_near(tensor) == tensor
            && header.key.call == open.call
            && header.tensor_length as usize == open.lanes();
        if !is_same || !open.take(at, sequence, packet.values(), seat.workers) {
            return Err(Refused::Mismatch);
        }
        self.counts.taken += 1;
        flow.change_place(&header, sequence);
        let ecn = header.ecn || from.class.ecn() == Ecn::Marked;
        self.counts.marked += u64::from(ecn);
        let longest = self.config.options.longest_wait();
        self.counts.losses += u64::from(flow.answered(now, sequence, ecn, longest));
        self.end_complete(now);
        Ok(())
    }

    fn handle_welcome(
        &mut self,
        now: Instant,
        at: usize,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        let welcome = Welcome::parse(packet).map_err(Refused::Malformed)?;
        if welcome.session != self.config.session {
            return Err(Refused::NotForMe);
        }
        if matches!(self.standing, Standing::Left | Standing::Refused(_)) {
            return Err(Refused::NotAsked);
        }
        let flow = &mut self.flows[at];
        if welcome.nonce != 0 {
            // The party that asks lets this end in, or goes on knowing it, once it joins with that number.
            flow.joins.prove(now, welcome.nonce);
            self.heard(at);
            return Ok(());
        }
        let seat = flow.seat;
        match welcome.code {
            WelcomeCode::Welcome => {}
            WelcomeCode::Waiting => {
                if let Standing::Joining { here, workers } = &mut self.standing {
                    (*here, *workers) = (welcome.here, welcome.workers);
                }
                self.heard(at);
                return Ok(());
            }
            code => {
                self.turned_away(now, code);
                return Ok(());
            }
        }
        match seat {
            Some(seat) if seat.generation == welcome.generation => {
                self.heard(at);
                let keepalive = self.config.options.keepalive;
                let flow = &mut self.flows[at];
                flow.joins.begin(now + keepalive);
                if welcome.sent_at_us == flow.asked_us {
                    flow.path.sample(since(now, flow.asked_us));
                }
            }
            Some(seat) if seat.life == welcome.life => {
                // Generations count up, and wrap.
                if welcome.generation.wrapping_sub(seat.generation) > u16::MAX / 2 {
                    return Err(Refused::OtherGeneration);
                }
                self.heard(at);
                self.counts.moved += 1;
                self.flows[at].move_to(&welcome, &self.own);
            }
            Some(_) => return Err(Refused::OtherGeneration),
            None if welcome.life == self.flows[at].closed => return Err(Refused::OtherGeneration),
            None => {
                self.heard(at);
                if self
                    .flows
                    .iter()
                    .flat_map(|flow| flow.seat)
                    .any(|other| (other.values, other.rank) != (welcome.values, welcome.rank))
                    || welcome.values > self.values
                {
                    self.turned_away(now, WelcomeCode::Refused);
                    return Ok(());
                }
                let scale = self.scale_of_join();
                self.flows[at].begin(&welcome, &self.own, scale);
                let keepalive = self.config.options.keepalive;
                self.flows[at].joins.begin(now + keepalive);
                self.begin_life(now);
            }
        }
        Ok(())
    }

    fn handle_closed(
        &mut self,
        now: Instant,
        at: usize,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        let closed = Closed::parse(packet).map_err(Refused::Malformed)?;
        let flow = &mut self.flows[at];
        let seat = flow.seat.ok_or(Refused::NotReady)?;
        if closed.life != seat.life && closed.life != seat.generation {
            return Err(Refused::OtherGeneration);
        }
        let is_unknown = closed.reason == Reason::Unknown;
        if closed.life != seat.life && !is_unknown {
            return Err(Refused::OtherGeneration);
        }
        self.heard(at);
        let flow = &mut self.flows[at];
        if flow.ends_at.is_some() {
            return Ok(());
        }
        let culprit = (closed.culprit != ANY).then_some(closed.culprit);
        let failure = Failure::Closed { reason: closed.reason, culprit };
        let near = self.open.front().map_or(self.next_operation, |open| open.number);
        let tensor = widen(closed.tensor.into(), TENSOR_BITS, near + flow.skipped);
        let number = if is_unknown { 0 } else { tensor.saturating_sub(flow.skipped) };
        flow.ends_at = Some(number);
        if closed.reason == Reason::Mismatch {
            self.clash = Clash::of(closed.sides);
        }
        self.events.tell(WorkerEvent::GenerationClosed {
            generation: seat.life.into(),
            operation: u32::try_from(number).unwrap_or(u32::MAX),
            reason: closed.reason,
            culprit,
        });
        let first = self.open.iter().find(|open| open.number >= number && open.has_part(at));
        match first.map(|open| open.number) {
            Some(first) => self.close(now, Closing { number: first, failure, dooms_next: false }),
            // What is open ends before the generation does.
            None if self.closing.is_some() => {}
            None => {
                // That operation fails at the workers that have begun it, and so it does here. A server
                // that knows nothing of it names none.
                let number = self.next_operation;
                self.close(now, Closing { number, failure, dooms_next: !is_unknown });
            }
        }
        Ok(())
    }
}
