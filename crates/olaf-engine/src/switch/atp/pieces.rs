//! Gradient fragment packets up, parameter packets down (ATP Figures 7 and 17).

use super::Switch;
use crate::blocks::hashed::{Aggregator, Id, Met, Piece};
use crate::drop::DropReason;
use crate::engine::{Ecn, Source, Verdict};
use crate::lanes::saturating;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::atp::offsets::VALUE;
use olaf_wire::atp::{AtpPacket, BITS, Header, datagram_len};

/// Place of the second level in an [`Id`]; those below are the groups of the first level.
const SECOND: u8 = BITS as u8;

/// What a packet does next.
enum Next {
    /// It is in a sum, or was dropped.
    Stays,
    /// It leaves with these values; none: its own.
    Goes(Option<Vec<u8>>),
}

/// Where a fragment of a place meets, from the aggregator index that its packets name.
///
/// differs: the paper has one place a switch. Groups at one switch must not meet each other, and both
/// levels may be at one switch: each has the cell that many behind the named one.
fn index_of(place: u8, index: u16) -> u32 {
    u32::from(index) + u32::from(place)
}

fn id_of(header: &Header, place: u8, values: &[u8]) -> Id {
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

fn bytes_of(open: &Aggregator) -> Vec<u8> {
    let mut bytes = alloc::vec![0; open.value.len() * VALUE];
    saturating::write(&open.value, &mut bytes);
    bytes
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
        let known = self.jobs.get(&(header.job, header.server));
        let next = if !known.is_some_and(|job| job.has_peer(from.peer)) {
            // No state for strangers: the server decides about them.
            self.counters.strangers += 1;
            (header.edge, header.resend) = (true, true);
            Next::Goes(None)
        } else if header.overflow {
            self.counters.floats += 1;
            header.edge = true;
            Next::Goes(None)
        } else {
            self.climb(now, &mut header, values)
        };
        if let Next::Goes(sum) = next {
            let values = sum.as_deref().unwrap_or(values);
            let mut bytes = alloc::vec![0; datagram_len(values.len() / VALUE)];
            header.emit(values, &mut bytes);
            self.out.send_up(now, server, bytes);
        }
        Verdict::Absorb
    }

    /// A packet goes through the levels that this switch has for it.
    fn climb(&mut self, now: Instant, header: &mut Header, values: &[u8]) -> Next {
        let mut sum = None;
        if !header.edge {
            match self.first_level(now, header, values) {
                Next::Stays => return Next::Stays,
                Next::Goes(leaves) => sum = leaves,
            }
            header.edge = true;
            if !header.same_switch {
                return Next::Goes(sum);
            }
        }
        match self.second_level(now, header, sum.as_deref().unwrap_or(values)) {
            Next::Goes(None) => Next::Goes(sum),
            next => next,
        }
    }

    fn first_level(&mut self, now: Instant, header: &mut Header, values: &[u8]) -> Next {
        if header.fan_in0 == 1 {
            // A sum of one needs no aggregator.
            self.counters.alone += 1;
            return Next::Goes(None);
        }
        let group = u8::try_from(header.bitmap1.trailing_zeros()).unwrap_or(0) % SECOND;
        let met = self.meet(now, header, group, values);
        match met {
            Met::Complete => {
                let Some(open) = self.table.aggregator(index_of(group, header.index)) else {
                    return Next::Stays;
                };
                (header.bitmap0, header.ecn) = (open.bitmap, open.ecn);
                header.fan_in0 = at_least(header.fan_in0, open.bitmap);
                Next::Goes(Some(bytes_of(open)))
            }
            Met::Flushed(sum) => {
                header.bitmap0 = sum.bitmap;
                header.fan_in0 = at_least(header.fan_in0, sum.bitmap);
                header.ecn |= sum.ecn;
                Next::Goes(Some(bytes_of(&sum)))
            }
            met => rest(&met, header),
        }
    }

    fn second_level(&mut self, now: Instant, header: &mut Header, values: &[u8]) -> Next {
        let groups = header.bitmap1.count_ones();
        if groups >= u32::from(header.fan_in1) {
            self.counters.alone += 1;
            return Next::Goes(None);
        }
        let is_part = header.bitmap0.count_ones() < u32::from(header.fan_in0) || groups > 1;
        if !header.resend && is_part {
            // A bit of this level stands for a whole group (ATP §3.7): no part of one is added.
            self.counters.parts += 1;
            header.resend = true;
        }
        match self.meet(now, header, SECOND, values) {
            Met::Complete => {
                let Some(open) = self.table.aggregator(index_of(SECOND, header.index)) else {
                    return Next::Stays;
                };
                // All workers of all these groups.
                (header.bitmap0, header.bitmap1, header.ecn) = (0, open.bitmap, open.ecn);
                header.fan_in1 = at_least(header.fan_in1, open.bitmap);
                Next::Goes(Some(bytes_of(open)))
            }
            met => rest(&met, header),
        }
    }

    fn meet(&mut self, now: Instant, header: &Header, place: u8, values: &[u8]) -> Met {
        if let Some(job) = self.jobs.get_mut(&(header.job, header.server)) {
            job.places |= 1 << place;
        }
        let is_first_level = place < SECOND;
        let (bitmap, fan_in) = if is_first_level {
            (header.bitmap0, header.fan_in0)
        } else {
            (header.bitmap1, header.fan_in1)
        };
        let piece = Piece {
            id: id_of(header, place, values),
            index: index_of(place, header.index),
            bitmap,
            fan_in,
            ecn: header.ecn,
            resend: header.resend,
            is_first_level,
            values,
        };
        self.table.meet(now, &piece)
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
        let mut places = job.places;
        while places != 0 {
            let place = places.trailing_zeros() as u8;
            places &= places - 1;
            let id = id_of(&header, place, packet.values());
            self.table.release(now, index_of(place, header.index), &id);
        }
        let mut copy = bytes.to_vec();
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

/// What a packet does that leaves as it came, or not at all.
fn rest(met: &Met, header: &mut Header) -> Next {
    match met {
        Met::Occupied => {
            // The switch downstream must not add it, and the server may choose another index.
            (header.resend, header.collision) = (true, true);
            Next::Goes(None)
        }
        Met::Pass => {
            header.resend = true;
            Next::Goes(None)
        }
        _ => Next::Stays,
    }
}
