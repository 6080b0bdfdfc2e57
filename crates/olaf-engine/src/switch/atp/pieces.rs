//! Gradient fragment packets up, parameter packets down (ATP Figures 7 and 17).

use super::Switch;
use super::places::place_of;
use super::seats::Whose;
use crate::blocks::hashed::{Aggregator, Id, Met, Piece};
use crate::drop::DropReason;
use crate::engine::{Ecn, Source, Verdict};
use crate::lanes::saturating;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use olaf_wire::atp::offsets::VALUE;
use olaf_wire::atp::{AtpPacket, Header};

/// What a packet does after a level.
enum Next {
    /// It is in a sum, or was dropped.
    Stays,
    /// It goes on with its values.
    Goes,
    /// The sum in the aggregator of that index goes on.
    Complete(u32),
    /// The sum that the packet took along goes on.
    Flushed(Box<Aggregator>),
}

fn id_of(header: &Header, place: u32, values: &[u8]) -> Id {
    Id {
        job: header.job,
        server: header.server,
        place,
        sequence: header.sequence,
        key: header.key,
        tensor_length: header.tensor_length,
        values: u16::try_from(values.len() / VALUE).unwrap_or(u16::MAX),
    }
}

fn write(open: &Aggregator, sum: &mut Vec<u8>) {
    sum.resize(open.value.len() * VALUE, 0);
    saturating::write(&open.value, sum);
}

/// The packet is behind this switch.
fn leave(header: &mut Header) {
    loop {
        let level = header.level();
        header.set_level(level + 1);
        if !header.same_switch_after(level) {
            return;
        }
    }
}

/// The fan-in of a sum. Packets that contradict each other may leave more in a sum than the last one
/// says; the server refuses what its seating does not have.
fn at_least(fan_in: u8, bitmap: u32) -> u8 {
    fan_in.max(u8::try_from(bitmap.count_ones()).unwrap_or(u8::MAX))
}

impl Switch {
    pub(super) fn handle_gradient(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
    ) -> Verdict {
        let mut header = match Header::parse(packet) {
            Ok(header) => header,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Some(server) = self.server(header.server) else {
            return Verdict::Drop(DropReason::UnknownReceiver);
        };
        header.ecn |= from.class.ecn() == Ecn::Marked;
        let values = packet.values();
        // The server sees this switch's address alone: what goes up counts as of the workers that it names.
        let job = self.jobs.get(&(header.job, header.server));
        let whose = job.map_or(Whose::Unknown, |job| job.whose(&header, from.peer));
        let is_member = job.is_some_and(|job| job.has_peer(from.peer));
        let is_known = is_member && whose == Whose::Senders;
        self.counters.strangers += u64::from(!is_known);
        if !is_member && self.cookies.are_demanded() {
            return Verdict::Drop(DropReason::NotAMember);
        }
        match whose {
            Whose::Others => return Verdict::Drop(DropReason::WrongSender),
            Whose::Unknown if self.cookies.are_demanded() => {
                return Verdict::Drop(DropReason::NotAMember);
            }
            _ => {}
        }
        let mut sum = core::mem::take(&mut self.sum);
        sum.clear();
        let goes = if !is_known {
            // No state for strangers: the server decides about them.
            leave(&mut header);
            header.resend = true;
            true
        } else if header.overflow {
            self.counters.floats += 1;
            leave(&mut header);
            true
        } else {
            self.climb(now, &mut header, values, &mut sum)
        };
        if goes {
            let values = if sum.is_empty() { values } else { &sum };
            let mut bytes = self.buffers.take(header.datagram_len(values.len() / VALUE));
            header.emit(values, &mut bytes);
            self.out.send_up(now, server, bytes);
        }
        self.sum = sum;
        Verdict::Absorb
    }

    /// A packet goes through the levels that this switch has for it; whether it goes on. `sum` has
    /// the values it goes on with; empty: its own.
    fn climb(
        &mut self,
        now: Instant,
        header: &mut Header,
        values: &[u8],
        sum: &mut Vec<u8>,
    ) -> bool {
        loop {
            let level = header.level();
            if level >= header.levels() {
                // It has passed all levels.
                return true;
            }
            let current = if sum.is_empty() { values } else { &**sum };
            match self.add(now, header, level, current) {
                Next::Stays => return false,
                Next::Goes => {}
                Next::Complete(index) => {
                    let Some(open) = self.table.aggregator(index) else { return false };
                    write(open, sum);
                }
                Next::Flushed(open) => write(&open, sum),
            }
            header.set_level(level + 1);
            if !header.same_switch_after(level) {
                return true;
            }
        }
    }

    /// A packet at a level (ATP Figures 7 and 17). Levels above the second follow the logic of the
    /// second (ATP §3.4).
    fn add(&mut self, now: Instant, header: &mut Header, level: usize, values: &[u8]) -> Next {
        let named = header.bitmap(level).count_ones();
        if named >= u32::from(header.fan_in(level)) {
            // A sum of one needs no aggregator.
            self.counters.alone += 1;
            return Next::Goes;
        }
        let is_first_level = level == 0;
        if !is_first_level && !header.resend && (named > 1 || is_part(header, level)) {
            // A bit of this level stands for a whole group (ATP §3.7): no part of one is added.
            self.counters.parts += 1;
            header.resend = true;
        }
        let place = place_of(header, level);
        let job = self.jobs.get_mut(&(header.job, header.server));
        let Some(number) = job.and_then(|job| job.places.number(place)) else {
            self.counters.too_many_groups += 1;
            header.resend = true;
            return Next::Goes;
        };
        // differs: the paper has one place a switch. Groups at one switch must not meet each other, and
        // several levels may be at one switch: each place has the cell that many behind the named one.
        let index = u32::from(header.index) + number;
        let piece = Piece {
            id: id_of(header, place, values),
            index,
            bitmap: header.bitmap(level),
            fan_in: header.fan_in(level),
            ecn: header.ecn,
            resend: header.resend,
            is_first_level,
            values,
        };
        match self.table.meet(now, &piece) {
            Met::Complete => {
                let Some(open) = self.table.aggregator(index) else { return Next::Stays };
                name_all(header, level, open);
                header.ecn = open.ecn;
                Next::Complete(index)
            }
            Met::Flushed(open) => {
                name_all(header, level, &open);
                header.ecn |= open.ecn;
                Next::Flushed(open)
            }
            Met::Occupied => {
                // The switch downstream must not add it, and the server may choose another index.
                (header.resend, header.collision) = (true, true);
                Next::Goes
            }
            Met::Pass => {
                header.resend = true;
                Next::Goes
            }
            Met::Kept | Met::Repeated | Met::Late => Next::Stays,
        }
    }

    /// A parameter packet frees its aggregators and goes on to everyone below.
    pub(super) fn handle_parameters(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let mut header = match Header::parse(packet) {
            Ok(header) => header,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let Some(job) = self.jobs.get_mut(&(header.job, header.server)) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        for (place, number) in job.places.each() {
            let id = id_of(&header, place, packet.values());
            self.table.release(now, u32::from(header.index) + number, &id);
        }
        let mut copy = self.buffers.take(bytes.len());
        copy.copy_from_slice(bytes);
        if from.class.ecn() == Ecn::Marked {
            header.ecn = true;
            header.emit(packet.values(), &mut copy);
        }
        self.counters.parameters += 1;
        let to = job.group();
        self.out.send(now, to, copy);
        Verdict::Absorb
    }
}

/// Returns true if a group below that level is not whole.
fn is_part(header: &Header, level: usize) -> bool {
    let named = |below: usize| header.bitmap(below).count_ones();
    // A packet names nobody below the level where it was added up last: all of them are in it.
    (0..level).any(|below| {
        let named = named(below);
        named > 0 && named < u32::from(header.fan_in(below))
    })
}

/// The packet carries the sum of that level from now on.
fn name_all(header: &mut Header, level: usize, open: &Aggregator) {
    (0..level).for_each(|below| header.set_bitmap(below, 0));
    header.set_bitmap(level, open.bitmap);
    header.set_fan_in(level, at_least(header.fan_in(level), open.bitmap));
}
