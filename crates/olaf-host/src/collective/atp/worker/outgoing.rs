//! What is sent next.

use super::{Standing, Worker};
use crate::collective::atp::{Factor, Overflow, fixed};
use crate::collective::path::micros;
use olaf_engine::{Instant, TrafficClass, Transmit};
use olaf_wire::atp::offsets::{TRAILER, VALUE};
use olaf_wire::atp::{ANY, Join, Key, LEVELS, Leave};
use olaf_wire::reduce::Reason;

impl Worker {
    /// Writes the next datagram.
    pub(super) fn emit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let len = self.write(now, buf)?;
        let class = TrafficClass::with_ecn(self.config.options.ecn);
        Some(Transmit { class, ..Transmit::to(self.config.switch, len) })
    }

    fn write(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if let Some((server, life)) = self.leaving.iter_mut().find_map(|one| one.take(now)) {
            let (job, session, reason) = (self.job, self.config.session, Reason::Left);
            let leave = Leave { job, server, session, life, reason };
            self.counts.leaves += 1;
            return Some(leave.emit(buf));
        }
        if let Some(len) = self.emit_join(now, buf) {
            return Some(len);
        }
        if !matches!(self.standing, Standing::In { .. }) {
            // What was sent before the generation ended may still be answered, and is sent again.
            self.settled()?;
        }
        let flows = self.flows.len();
        for at in 0..flows {
            let flow = (self.turn + at) % flows;
            if let Some((sequence, in_floats)) = self.flows[flow].take_again(now) {
                self.turn = flow + 1;
                self.counts.resent += 1;
                return self.emit_fragment(now, flow, sequence, Some(in_floats), buf);
            }
        }
        for at in 0..flows {
            let flow = (self.turn + at) % flows;
            let longest = self.config.options.longest_wait();
            if let Some(sequence) = self.flows[flow].take_next(now, longest) {
                self.turn = flow + 1;
                self.counts.sent += 1;
                return self.emit_fragment(now, flow, sequence, None, buf);
            }
        }
        None
    }

    /// Returns true if operations of a life still wait for answers.
    fn settled(&self) -> Option<()> {
        (!self.open.is_empty()).then_some(())
    }

    fn emit_join(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let at = self.flows.iter().position(|flow| due(flow.joins.at()))?;
        let server = u8::try_from(at).ok()?;
        let keepalive = self.config.options.keepalive;
        let scale = self.scale_of_join();
        let count = self.progress.begun_and_doomed();
        self.progress.tell(count);
        let flow = &mut self.flows[at];
        // A server that does not answer is asked again soon, and then more and more seldom.
        flow.joins.sent(now, keepalive);
        flow.owed.get_or_insert(now);
        flow.asked_us = micros(now);
        let join = Join {
            job: self.job,
            server,
            session: self.config.session,
            rank: self.config.rank.unwrap_or(ANY),
            workers: self.config.workers,
            generation: flow.seat.map_or(0, |seat| seat.generation),
            closed: flow.closed,
            values: self.values,
            aggregators: 0,
            switches: [0; LEVELS],
            sent_at_us: flow.asked_us,
            scale,
            servers: self.own.servers,
            window: u16::try_from(self.own.most_packets).unwrap_or(u16::MAX),
            nonce: flow.joins.nonce(),
            operations: count.unwrap_or(ANY),
            program: self.config.options.program,
        };
        self.counts.joins += 1;
        Some(join.emit(buf))
    }

    /// The factor as a join says it.
    pub(super) fn scale_of_join(&self) -> f64 {
        if self.own.factor == Factor::Dynamic { -self.scale } else { self.scale }
    }

    /// Writes a fragment; `again`: it was sent before, as f32 or not.
    fn emit_fragment(
        &mut self,
        now: Instant,
        at: usize,
        sequence: u64,
        again: Option<bool>,
        buf: &mut [u8],
    ) -> Option<usize> {
        let is_proactive = self.own.overflow == Overflow::Proactive;
        let flow = &mut self.flows[at];
        flow.owed.get_or_insert(now);
        let server = u8::try_from(at).ok()?;
        let scale = flow.factor(sequence);
        let mut header = flow.header(self.job, server, sequence);
        let seat = flow.seat?;
        let open = self.open.iter().find(|open| open.has(at, sequence))?;
        let key = Key::new(seat.generation, open.number + flow.skipped, sequence);
        header.key = key.calling(open.call);
        header.tensor_length = u32::try_from(open.lanes()).ok()?;
        header.resend |= again.is_some();
        header.overflow = again == Some(true);
        let lanes = open.fragment(at, sequence);
        if is_proactive && !header.overflow {
            let largest = fixed::largest(lanes);
            if largest > fixed::bound(seat.workers, scale) {
                self.counts.too_large += u64::from(again.is_none());
                header.resend = true;
                // differs: the paper does not say what becomes of a value that does not fit on its own.
                // The server learns of it and asks the others for f32, too.
                header.overflow = largest * scale >= f64::from(i32::MAX);
            }
        }
        let place = header.emit_around(lanes.len() / VALUE, buf);
        let end = place.end;
        if header.overflow {
            fixed::swap(lanes, &mut buf[place]);
        } else {
            fixed::quantize(lanes, scale, &mut buf[place]);
        }
        Some(end + TRAILER)
    }
}
