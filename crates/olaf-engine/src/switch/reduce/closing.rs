//! How generations end, and in whose name.

use super::Switch;
use super::generation::{End, Generation};
use super::job::hear;
use super::outbox::Message;
use super::upward::above_address;
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, Session};
use crate::time::Instant;
use olaf_wire::Refusal;
use olaf_wire::reduce::{ALL, Address, Closed, Reason, ReducePacket};

/// The end of a generation because of that worker; the caller says why and where.
pub(super) fn culprit_is(rank: Option<u32>, at: Instant) -> End {
    End { operation: 0, culprit: rank.unwrap_or(ALL), reason: Reason::Refused, at, clash: None }
}

impl Switch {
    /// Ends a generation, and tells its members. A generation that has ended ends again only at an
    /// earlier operation.
    pub(super) fn close(&mut self, now: Instant, job: JobId, number: u32, end: End) {
        let known = self.jobs.get_mut(&job);
        let Some(generation) = known.and_then(|known| known.generation(number)) else { return };
        if !generation.has(end.operation) {
            return;
        }
        generation.close(end);
        if let Some(above) = generation.above.as_ref().filter(|above| !above.is_closed) {
            let closed = generation.closed(above_address(job, above)).expect("it has just ended");
            self.out.tell_above(now, Message::Closed(closed));
        }
        let everyone = Address {
            job: generation.job,
            generation: generation.number,
            rank: ALL,
            session: Session(0),
        };
        let closed = generation.closed(everyone).expect("it has just ended");
        let mut members = (0..).zip(&generation.members);
        let culprit = members.find(|(rank, _)| generation.name(*rank) == end.culprit);
        let culprit = culprit.map(|(_, member)| member.peer);
        let group = Receivers::Many(generation.group.clone());
        self.out.send(now, group, Message::Closed(closed));
        *self.counters.closed.entry(end.reason.name()).or_default() += 1;
        let event = SumEvent::GenerationClosed {
            generation: number,
            operation: closed.operation,
            reason: end.reason,
            culprit: culprit.map(|peer| (end.culprit, peer)),
        };
        self.event(job, event);
        self.plan(job);
    }

    /// A lower switch has ended its generation.
    pub(super) fn handle_closed(
        &mut self,
        now: Instant,
        from: Source,
        packet: &ReducePacket<'_>,
    ) -> Verdict {
        let closed = match Closed::parse(packet) {
            Ok(closed) => closed,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Closed { address, operation, culprit, reason, clash } = closed;
        let generation = match hear(self.jobs.get_mut(&address.job), now, from, &address) {
            Ok(generation) => generation,
            Err(why) => return self.handle_unheard(now, from, &address, why),
        };
        let Some(culprit) = generation.culprit_of(address.rank, culprit) else {
            return Verdict::Drop(DropReason::Malformed(Refusal::BadField("culprit")));
        };
        if let Some(known) = generation.closed(address).filter(|known| known.operation <= operation)
        {
            // It is known; perhaps the lower switch has not heard so.
            self.out.tell(now, from.peer, Message::Closed(known));
        }
        let operation = match reason {
            // The lower switch says which operation has no result.
            Reason::SwitchSilent | Reason::Mismatch => operation,
            _ => operation.max(generation.first_incomplete()),
        };
        self.close(
            now,
            address.job,
            address.generation,
            End { operation, culprit, reason, at: now, clash },
        );
        Verdict::Absorb
    }

    /// A message that no member of its generation has sent. Where the generation is not known, this switch was restarted
    /// or forgot the job: the sender has to hear so.
    #[cold]
    pub(super) fn handle_unheard(
        &mut self,
        now: Instant,
        from: Source,
        address: &Address,
        why: DropReason,
    ) -> Verdict {
        if why == DropReason::UnknownGeneration {
            let (address, reason) = (*address, Reason::Unknown);
            let closed = Closed { address, operation: 0, culprit: ALL, reason, clash: None };
            self.out.tell(now, from.peer, Message::Closed(closed));
        }
        Verdict::Drop(why)
    }
}

impl Generation {
    /// Whom an end names that the member of that rank has sent; none: the member may not say so. The
    /// ranks behind a lower switch are not known here.
    fn culprit_of(&self, rank: u32, said: u32) -> Option<u32> {
        let member = &self.members[rank as usize];
        let is_worker = member.contributors == 1 && member.wanted.is_some();
        if is_worker {
            return (said == self.name(rank)).then_some(said);
        }
        if said == ALL {
            return Some(ALL);
        }
        if !self.is_fixed {
            // A lower switch counts its workers from 0: their ranks say nothing here.
            return Some(rank);
        }
        let is_here = self.members.iter().any(|other| other.wanted == Some(said));
        Some(if is_here { ALL } else { said })
    }
}
