//! What is sent next.

use super::Worker;
use super::operations::State;
use olaf_engine::{Instant, TrafficClass, Transmit};
use olaf_wire::trio::{Block, datagram_len};

impl Worker {
    /// Writes the next datagram.
    pub(super) fn emit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let len = self.write(now, buf)?;
        let class = TrafficClass::with_ecn(self.config.options.ecn);
        Some(Transmit { class, ..Transmit::to(self.config.switch, len) })
    }

    fn write(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if let Some(leave) = self.leaving.take(now) {
            self.counts.leaves += 1;
            return Some(leave.emit(buf));
        }
        if let Some(len) = self.emit_hello(now, buf) {
            return Some(len);
        }
        let term = self.term.as_mut()?;
        let mut open = term.open.iter_mut().map(|open| (open.generation, open.next_wanted()));
        if let Some((generation, block)) = open.find_map(|(at, block)| Some((at, block?))) {
            self.counts.pieces_resent += 1;
            return Some(self.emit_piece(now, generation, block, State::Again, buf));
        }
        if let Some(len) = self.emit_ask(now, buf) {
            return Some(len);
        }
        if let Some(len) = self.emit_urgent_acknowledgement(now, buf) {
            return Some(len);
        }
        if let Some((generation, block)) = self.next_piece() {
            self.window.on_sent();
            self.counts.pieces += 1;
            return Some(self.emit_piece(now, generation, block, State::Sent, buf));
        }
        self.emit_acknowledgement(now, buf)
    }

    /// The next piece that the window allows. A block is at most one window of the term ahead of the
    /// first result that is missing: the switch keeps as many results.
    fn next_piece(&mut self) -> Option<(u16, u32)> {
        let term = self.term.as_mut()?;
        let (_, _, held) = term.holds();
        let window = term.window;
        let mut open = term.open.iter_mut();
        let next = open.find_map(|open| {
            let block = open.next_to_send()?;
            Some((open.generation, block, open.base + u64::from(block)))
        });
        let (generation, block, position) = next?;
        let fits = position - held < window && self.window.room() > 0;
        fits.then_some((generation, block))
    }

    /// Writes this end's piece of a block.
    fn emit_piece(
        &mut self,
        now: Instant,
        generation: u16,
        block: u32,
        state: State,
        buf: &mut [u8],
    ) -> usize {
        let job = u8::try_from(self.config.job.0).unwrap_or(u8::MAX);
        let term = self.term.as_mut().expect("write() found the block in a term");
        let source = term.source;
        let open = term.open_of(generation).expect("write() found the block in an operation");
        let header = Block {
            job,
            block,
            aged: false,
            is_final: open.is_last(block),
            degraded: false,
            source,
            sources: 1,
            generation,
            call: open.call(),
        };
        let gradients = open.gradients_of(block);
        let start = header.emit_header(gradients, buf);
        let end = datagram_len(gradients);
        open.write(block, &mut buf[start..end]);
        let slot = &mut open.slots[block as usize];
        (slot.state, slot.at) = (state, now);
        if state == State::Sent {
            open.next = block + 1;
        }
        end
    }
}
