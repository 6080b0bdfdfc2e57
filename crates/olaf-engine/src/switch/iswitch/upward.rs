//! A switch below another one: its sums go up, results come down (iSwitch §3.4).

use super::job::{End, Here, Job};
use super::{Message, Outbox, Switch};
use crate::blocks::by_index::State;
use crate::drop::DropReason;
use crate::engine::Verdict;
use crate::ids::JobId;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::iswitch::{
    ANY, Ack, Action, Control, DataPacket, Halt, Join, Outcome, Packets, Sender,
};
use olaf_wire::reduce::Reason;

impl Switch {
    /// Asks the switch above to begin a generation with the workers here.
    pub(super) fn join_above(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.lobby.is_empty() {
            return;
        }
        let floats = job.lobby.values().map(|candidate| candidate.wish.packet_floats).min();
        let before = job.current.as_ref().and_then(|current| current.above);
        let operations = job.operations();
        let contributors = job.lobby.contributors();
        let nonce = job.upward.joins_for(contributors);
        let join = Join {
            generation: before.unwrap_or(0),
            sender: Sender::Switch,
            job: id,
            session: job.upward.session,
            rank: ANY,
            workers: job.workers,
            contributors,
            packet_floats: floats.unwrap_or(1).min(self.uplink_floats),
            operations: operations.unwrap_or(ANY),
            program: u32::try_from(job.owner.program()).unwrap_or(u32::MAX),
            nonce,
        };
        self.out.tell_above(now, Message::Control(Control::Join(join)));
    }

    /// Asks the switch above to end the generation.
    pub(super) fn halt_above(&mut self, now: Instant, id: JobId) {
        let Some(current) = self.jobs.get(&id).and_then(|job| job.current.as_ref()) else { return };
        if let (Some(generation), Some((reason, culprit, calls))) = (current.above, current.halting)
        {
            let halt = Halt { generation, reason, culprit, index: 0, calls };
            self.out.tell_above(now, Message::Control(Control::Halt(halt)));
        }
    }

    /// Heartbeats, and what is repeated until the switch above answers.
    pub(super) fn keep_up(&mut self, now: Instant) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            let job = self.jobs.get_mut(&id).expect("its key is here");
            let Some(current) = job.current.as_ref().filter(|current| current.end.is_none()) else {
                self.join_above(now, id);
                continue;
            };
            if current.halting.is_some() {
                self.halt_above(now, id);
                continue;
            }
            let Some(generation) = current.above else { continue };
            let ack = Ack {
                generation,
                action: Action::Ack,
                outcome: Outcome::Success,
                sent_at_us: 0,
                index: current.table.first_incomplete(),
                admission: None,
            };
            self.out.tell_above(now, Message::Control(Control::Ack(ack)));
        }
    }

    pub(super) fn handle_data_from_above(&mut self, now: Instant, bytes: &[u8]) -> Verdict {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let seg = packet.seg;
        let Some(here) = of_above(&mut self.jobs, now, seg.generation) else {
            return Verdict::Drop(DropReason::UnknownGeneration);
        };
        let (id, current) = (here.id, &mut *here.current);
        let (contributors, is_numbered) = seg.vectors_of(current.workers);
        let fits = packet.floats.len() <= current.packet_floats as usize * 4;
        if fits && current.table.finish(seg.index, seg.last, contributors, packet.floats) {
            self.counters.results_above += 1;
            current.note_numbered(seg.index, is_numbered);
            if seg.last {
                // Members may not have sent it, where the switch above went without this one.
                current.vectors.end_at(seg.index, current.table.first_incomplete());
            }
            let is_too_long = current.length.is_exceeded(&current.table);
            here.broadcast(&mut self.out, now, seg.index);
            if is_too_long {
                self.close(now, id, Reason::Refused, ANY);
            }
        } else {
            self.counters.results_above_again += 1;
        }
        Verdict::Absorb
    }

    pub(super) fn handle_control_from_above(&mut self, now: Instant, message: &Control) -> Verdict {
        match message {
            Control::Ack(ack) if ack.action == Action::Join => {
                self.handle_join_answer(now, ack);
                Verdict::Absorb
            }
            Control::Ack(ack) => match of_above(&mut self.jobs, now, ack.generation) {
                Some(_) => Verdict::Absorb,
                None => Verdict::Drop(DropReason::UnknownGeneration),
            },
            Control::Help(asked) => {
                let Some(mut here) = of_above(&mut self.jobs, now, asked.generation) else {
                    return Verdict::Drop(DropReason::UnknownGeneration);
                };
                for index in asked.iter() {
                    let cell = here.current.table.cell(index);
                    if cell.is_some_and(|cell| cell.state() == State::Summed) {
                        here.complete(&mut self.out, now, index, true);
                    }
                }
                Verdict::Absorb
            }
            Control::Halt(halt) => {
                let Some(here) = of_above(&mut self.jobs, now, halt.generation) else {
                    return Verdict::Drop(DropReason::UnknownGeneration);
                };
                let (id, own) = (here.id, here.current.table.first_incomplete());
                // A switch that does not know the generation cannot say which results exist.
                let index = if halt.reason == Reason::Unknown { own } else { halt.index };
                let Halt { reason, culprit, calls, .. } = *halt;
                self.close_at(now, id, End { index, reason, culprit, calls });
                Verdict::Absorb
            }
            Control::Join(_)
            | Control::Leave(_)
            | Control::Reset { .. }
            | Control::SetH { .. }
            | Control::FBcast(_) => Verdict::Drop(DropReason::WrongDirection),
        }
    }

    fn handle_join_answer(&mut self, now: Instant, ack: &Ack) {
        let Some(admission) = ack.admission else { return };
        let session = admission.session;
        let mut jobs = self.jobs.iter_mut();
        let Some((id, job)) = jobs.find(|(_, job)| job.upward.session == session) else { return };
        let id = *id;
        job.upward.hear(now);
        let waits = ack.outcome == Outcome::Waiting && !job.is_open();
        if waits && job.upward.is_to_prove(admission.nonce) {
            return self.join_above(now, id);
        }
        if ack.outcome.of_join().is_refusal() && !job.is_open() {
            return self.refuse_lobby(now, id, ack.outcome);
        }
        let known = job.current.as_ref().and_then(|current| current.above);
        if ack.outcome != Outcome::Success || job.is_open() || known == Some(ack.generation) {
            return;
        }
        if job.upward.is_for(job.lobby.contributors()) {
            return self.begin(now, id, Some((ack.generation, admission)));
        }
        // A worker went away, or came, between the join and its answer.
        let (generation, reason) = (ack.generation, Reason::Left);
        let halt = Halt { generation, reason, culprit: ANY, index: 0, calls: 0 };
        self.out.tell_above(now, Message::Control(Control::Halt(halt)));
    }
}

/// The generation that has that number at the switch above, which is heard now.
fn of_above(jobs: &mut BTreeMap<JobId, Job>, now: Instant, number: u8) -> Option<Here<'_>> {
    let has_it =
        |job: &Job| job.current.as_ref().is_some_and(|current| current.above == Some(number));
    let (id, job) = jobs.iter_mut().find(|(_, job)| has_it(job))?;
    job.upward.hear(now);
    job.here(*id)
}

impl Here<'_> {
    /// Passes a Help or an FBcast on. Of a generation that has ended, the results before its end can still be had.
    pub(super) fn ask_above(&self, out: &mut Outbox, now: Instant, verb: Action, asked: &Packets) {
        let current = &*self.current;
        if asked.mask == 0 || out.above().is_none() {
            return;
        }
        let is_over = verb == Action::FBcast && current.end.is_some();
        let Some(generation) = current.above.filter(|_| !is_over) else { return };
        let own = current.table.first_incomplete();
        let base = asked.index.max(own);
        let shift = base - asked.index;
        let mask = if shift < 64 { asked.mask >> shift } else { 0 };
        if mask == 0 {
            return;
        }
        let packets = Packets { generation, sent_at_us: 0, index: base, mask };
        let message = match verb {
            Action::FBcast => Control::FBcast(packets),
            _ => Control::Help(packets),
        };
        out.tell_above(now, Message::Control(message));
    }
}
