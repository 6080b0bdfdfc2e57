//! The third and the fourth level of switches.

use super::frame::Header;
use super::offsets::{HEADER, LEVELS, SHORT_LEVELS, more, upper as at};
use crate::packet::Writer;

/// Bitmaps and fan-in degrees of the third and the fourth level (ATP §A.2).
///
/// differs: the paper prints no format for more than two levels. A packet of a job with more levels has
/// this part between its header and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// Positions at the third and the fourth level, one bit a group.
    pub bitmaps: [u32; LEVELS - SHORT_LEVELS],
    /// Groups that meet there, 1 to 32.
    pub fan_ins: [u8; LEVELS - SHORT_LEVELS],
    /// Levels that the packet has passed beside the first one, 0 to 3. 0 of a packet that is on its way
    /// to the first one.
    pub passed: u8,
    /// Whether the second and the third level, and the third and the fourth, are in the same switch.
    pub same_switch: [bool; LEVELS - SHORT_LEVELS],
}

/// A level that a job does not use.
impl Default for Upper {
    fn default() -> Self {
        Self { bitmaps: [1; 2], fan_ins: [1; 2], passed: 0, same_switch: [false; 2] }
    }
}

impl Upper {
    pub(super) fn parse(bytes: &[u8; at::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, fan_in2, fan_in3, place, _] = *bytes;
        Self {
            bitmaps: [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])],
            fan_ins: [fan_in2, fan_in3],
            passed: place & at::PASSED,
            same_switch: [place & at::SAME_SWITCH1 != 0, place & at::SAME_SWITCH2 != 0],
        }
    }

    pub(super) fn emit(&self, start: usize, writer: &mut Writer<'_>) {
        let [first, second] = self.same_switch;
        let same = if first { at::SAME_SWITCH1 } else { 0 };
        let same = same | if second { at::SAME_SWITCH2 } else { 0 };
        writer.put(start + at::BITMAP2, self.bitmaps[0].to_be_bytes());
        writer.put(start + at::BITMAP3, self.bitmaps[1].to_be_bytes());
        writer.put(start + at::FAN_IN2, self.fan_ins);
        writer.put(start + at::PLACE, [self.passed & at::PASSED | same]);
        writer.put(start + at::UNUSED, [0]);
    }
}

/// Levels alike, whichever part of the packet has them.
impl Header {
    /// Levels that the packet has fields for.
    #[must_use]
    pub const fn levels(&self) -> usize {
        if self.upper.is_some() { LEVELS } else { SHORT_LEVELS }
    }

    /// The level that the packet is on its way to. Behind the last one it is that of the server.
    #[must_use]
    pub fn level(&self) -> usize {
        match self.upper {
            _ if !self.edge => 0,
            None => 1,
            Some(upper) => 1 + usize::from(upper.passed),
        }
    }

    /// The packet is on its way to that level from now on, the last one at most.
    pub fn set_level(&mut self, level: usize) {
        self.edge = level > 0;
        if let Some(upper) = &mut self.upper {
            upper.passed =
                u8::try_from(level.saturating_sub(1)).unwrap_or(at::PASSED).min(at::PASSED);
        }
    }

    /// The bitmap of a level; of one that the packet has not: a single bit.
    #[must_use]
    pub fn bitmap(&self, level: usize) -> u32 {
        match (level, &self.upper) {
            (0, _) => self.bitmap0,
            (1, _) => self.bitmap1,
            (_, upper) => upper.and_then(|of| of.bitmaps.get(level - 2).copied()).unwrap_or(1),
        }
    }

    /// The fan-in degree of a level; of one that the packet has not: 1.
    #[must_use]
    pub fn fan_in(&self, level: usize) -> u8 {
        match (level, &self.upper) {
            (0, _) => self.fan_in0,
            (1, _) => self.fan_in1,
            (_, upper) => upper.and_then(|of| of.fan_ins.get(level - 2).copied()).unwrap_or(1),
        }
    }

    /// Sets the bitmap of a level that the packet has.
    pub fn set_bitmap(&mut self, level: usize, bitmap: u32) {
        match level {
            0 => self.bitmap0 = bitmap,
            1 => self.bitmap1 = bitmap,
            _ => {
                let place = self.upper.as_mut().and_then(|upper| upper.bitmaps.get_mut(level - 2));
                place.into_iter().for_each(|place| *place = bitmap);
            }
        }
    }

    /// Sets the fan-in degree of a level that the packet has.
    pub fn set_fan_in(&mut self, level: usize, fan_in: u8) {
        match level {
            0 => self.fan_in0 = fan_in,
            1 => self.fan_in1 = fan_in,
            _ => {
                let place = self.upper.as_mut().and_then(|upper| upper.fan_ins.get_mut(level - 2));
                place.into_iter().for_each(|place| *place = fan_in);
            }
        }
    }

    /// Returns true if the level after this one is in the same switch.
    #[must_use]
    pub fn same_switch_after(&self, level: usize) -> bool {
        match (level, &self.upper) {
            (0, _) => self.same_switch,
            (level, Some(upper)) => upper.same_switch.get(level - 1).copied().unwrap_or(false),
            _ => false,
        }
    }

    /// The second byte of flags.
    pub(super) const fn more(&self) -> u8 {
        let edge = if self.edge { more::EDGE } else { 0 };
        let same = if self.same_switch { more::SAME_SWITCH } else { 0 };
        let upper = if self.upper.is_some() { more::UPPER } else { 0 };
        edge | same | upper
    }

    /// Where the values begin.
    pub(super) const fn values_at(&self) -> usize {
        if self.upper.is_some() { HEADER + at::LEN } else { HEADER }
    }
}
