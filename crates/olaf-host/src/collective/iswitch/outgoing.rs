//! What is sent next, and when results are asked for.
//!
//! iSwitch §3.3 leaves the recovery of lost packets to the workers, and names two verbs for it. This is the
//! protocol that we found:
//!
//! 1. A worker misses a result when results of three later packets have come, or when the time-out of the path
//!    has passed. It sends a Help with the indices of all results that it misses.
//! 2. The switch sends each result that it has. It answers with a Help where the worker's own packet is missing:
//!    the worker sends that packet again. It answers with an Ack where other workers' packets are missing: their
//!    workers ask for themselves. So every question has an answer, and only lost packets are sent again.
//! 3. With a deadline, a worker sends an FBcast for each packet that has no result within it.

use super::generation::State;
use super::{Wish, Worker};
use crate::collective::path::micros;
use core::time::Duration;
use olaf_engine::{Ecn, Instant, TrafficClass, Transmit};
use olaf_wire::iswitch::{
    ANY, Ack, Action, CONTROL_CLASS, Control, DATA_CLASS, Halt, Outcome, Packets, Seg, emit_seg,
};
use olaf_wire::reduce::Reason;

/// SetH, Halt and Reset are repeated after this time.
const REPEAT: Duration = Duration::from_millis(20);

impl Worker {
    /// Writes the next datagram.
    pub(super) fn emit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let (len, class, ecn) = match self.next_control(now) {
            Some(message) => (message.emit(buf), CONTROL_CLASS, false),
            None => (self.emit_data(now, buf)?, DATA_CLASS, self.config.options.ecn),
        };
        if self.joining.standing().is_part() {
            self.quiet.expect(now);
        }
        let ecn = if ecn { Ecn::Capable0 } else { Ecn::NotCapable };
        let class = TrafficClass::new(class, ecn);
        Some(Transmit { class, ..Transmit::to(self.config.switch, len) })
    }

    /// The next control message that is due.
    fn next_control(&mut self, now: Instant) -> Option<Control> {
        if let Some(leave) = self.leaving.take(now) {
            return Some(Control::Leave(leave));
        }
        if self.leaving.at().is_some() {
            // A join could overtake the leave.
            return None;
        }
        if let Some(join) = self.next_join(now) {
            return Some(Control::Join(join));
        }
        let patience = self.path.patience();
        let generation = self.generation.as_mut()?;
        let number = generation.number;
        if let Some((wish, at)) = &mut self.wish
            && *at <= now
        {
            *at = now + REPEAT;
            return Some(match wish {
                Wish::Reset => Control::Reset { generation: number },
                Wish::Halt | Wish::Mismatch => {
                    let is_odd = *wish == Wish::Mismatch;
                    let reason = if is_odd { Reason::Mismatch } else { Reason::Left };
                    let refused = generation.open.front().and_then(|open| open.refused());
                    Control::Halt(Halt {
                        generation: number,
                        reason,
                        culprit: generation.rank,
                        index: 0,
                        calls: refused.filter(|_| is_odd).unwrap_or_default(),
                    })
                }
            });
        }
        if generation.set_h_at.is_some_and(|at| at <= now) {
            generation.set_h_at = Some(now + REPEAT);
            return Some(Control::SetH {
                generation: number,
                h: self.own.threshold.unwrap_or(ANY),
            });
        }
        let packets =
            |(index, mask)| Packets { generation: number, sent_at_us: micros(now), index, mask };
        if generation.ask_at.is_some_and(|at| at <= now)
            && let Some(missing) = generation.overdue(now, patience)
        {
            self.counts.helps += 1;
            self.counts.helped_packets += u64::from(missing.1.count_ones());
            return Some(Control::Help(packets(missing)));
        }
        if let Some(deadline) = self.config.options.deadline
            && generation.force_at.is_some_and(|at| at <= now)
            && let Some(missing) = generation.forced(now, deadline, patience)
        {
            self.counts.fbcasts += 1;
            return Some(Control::FBcast(packets(missing)));
        }
        self.next_heartbeat(now)
    }

    /// A heartbeat, or word of the results that are here where no packet says it.
    fn next_heartbeat(&mut self, now: Instant) -> Option<Control> {
        let generation = self.generation.as_mut()?;
        if !generation.owes_heartbeat(now) {
            return None;
        }
        generation.heartbeat_at = now + self.config.options.keepalive;
        generation.told = generation.holds;
        self.counts.acks += 1;
        Some(Control::Ack(Ack {
            generation: generation.number,
            action: Action::Ack,
            outcome: Outcome::Success,
            sent_at_us: micros(now),
            index: generation.holds,
            admission: None,
        }))
    }

    /// Writes a packet again that the switch lacks, or the next one.
    fn emit_data(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if self.leaving.at().is_some() {
            return None;
        }
        let deadline = self.config.options.deadline;
        let patience = self.path.patience();
        let generation = self.generation.as_mut()?;
        generation.repeat_vectors(now);
        let has_room = self.window.room() > 0;
        let of_operations = generation.next_to_send().filter(|_| has_room);
        let (index, vector) = if let Some((index, vector)) = generation.resend.pop_first() {
            let entry = generation.entry(index)?;
            (entry.resent, entry.asked) = (true, Some(now));
            self.counts.packets_resent += 1;
            (index, vector)
        } else if let Some((index, vector)) = generation.next_of_vectors(has_room) {
            self.counts.packets += 1;
            if generation.sent_of_vector(now, index, vector) {
                self.window.on_sent();
            }
            (index, vector)
        } else {
            let index = of_operations?;
            let entry = generation.entry(index)?;
            (entry.state, entry.at) = (State::Sent, now);
            self.counts.packets += 1;
            self.window.on_sent();
            (index, 0)
        };
        let number = generation.number;
        generation.sent(now, index, patience, deadline, self.config.options.keepalive);
        let open = generation.open_of(index)?;
        let last = open.is_last(index);
        let seg = Seg { generation: number, last, missing: vector as u16, index };
        let start = emit_seg(seg, buf);
        Some(start + open.write(index, vector, &mut buf[start..]))
    }

    /// When something is to be sent although nothing comes in.
    pub(super) fn sends_at(&self) -> Option<Instant> {
        if let Some(at) = self.leaving.at() {
            return Some(at);
        }
        let Some(generation) = &self.generation else { return self.joining.at() };
        let wish = self.wish.map(|(_, at)| at);
        let force_at = self.config.options.deadline.and(generation.force_at);
        let repeats_at = generation.repeats_at();
        let times = [wish, generation.set_h_at, generation.ask_at, force_at, repeats_at];
        times.into_iter().flatten().chain([generation.heartbeat_at]).min()
    }
}
