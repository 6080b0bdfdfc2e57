//! What is sent next.

use super::Reducer;
use super::blocks::State;
use crate::collective::path::micros;
use olaf_engine::{Instant, TrafficClass, Transmit};
use olaf_wire::reduce::{Marks, Piece};

impl Reducer {
    /// Writes the next datagram.
    pub(super) fn emit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let len = self.write(now, buf)?;
        let class = TrafficClass::with_ecn(self.config.options.ecn);
        Some(Transmit { class, ..Transmit::to(self.config.switch, len) })
    }

    fn write(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if let Some(len) = self.emit_leave(now, buf) {
            return Some(len);
        }
        if let Some(len) = self.emit_join(now, buf) {
            return Some(len);
        }
        if let Some(block) = self.generation.as_mut()?.blocks.next_to_resend() {
            self.counts.pieces_resent += 1;
            return Some(self.emit_piece(now, block, true, buf));
        }
        if let Some(len) = self.emit_protest(now, buf) {
            return Some(len);
        }
        if let Some(len) = self.emit_ask(now, buf) {
            return Some(len);
        }
        if let Some(block) = self.next_piece() {
            self.window.on_sent();
            self.counts.pieces += 1;
            self.counts.in_flight += 1;
            return Some(self.emit_piece(now, block, false, buf));
        }
        self.emit_acknowledgement(now, buf)
    }

    /// The next piece that window and slots allow.
    fn next_piece(&mut self) -> Option<u32> {
        let block = self.generation.as_mut()?.next_to_send()?;
        (self.window.room() > 0).then_some(block)
    }

    /// Writes this end's piece of a block.
    fn emit_piece(&mut self, now: Instant, block: u32, resent: bool, buf: &mut [u8]) -> usize {
        let generation = self.generation.as_mut().expect("emit() found the block in a generation");
        let sent_at_us = micros(now);
        let entry = generation.blocks.entry_mut(block);
        (entry.state, entry.at_us) = (State::Sent, sent_at_us);
        if !resent {
            generation.blocks.next = block + 1;
        }
        let holds = generation.blocks.holds();
        let address = generation.address;
        let open = generation.open_of_mut(block).expect("the block of an open operation");
        let described = open.block(block);
        let piece = Piece {
            address,
            block: described,
            contributors: 1,
            holds,
            sent_at_us,
            marks: Marks { resent, not_finite: open.is_not_finite(block), ..Marks::default() },
        };
        let bytes = open.piece_bytes(block);
        let start = piece.emit_header(&[], bytes / described.lane_type.bytes(), buf);
        let end = start + bytes;
        open.write_piece(block, &mut buf[start..end]);
        self.asking.told(now, holds, self.config.options.keepalive);
        self.quiet.expect(now);
        end
    }
}
