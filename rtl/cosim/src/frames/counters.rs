//! The counters of `olaf_queue_counters`, read over AXI4-Lite.

use crate::frames::pins::{In, Out};

/// Their number.
pub const COUNTERS: usize = 23;

/// By counter.
pub type Counters = [u64; COUNTERS];

/// By counter.
pub const NAMES: [&str; COUNTERS] = [
    "framing",
    "too_long",
    "refused",
    "passed",
    "no_room",
    "stamped",
    "appended",
    "merged",
    "replaced",
    "filtered",
    "dropped",
    "rejected: not finite",
    "rejected: wrong size",
    "rejected: overflow",
    "departed",
    "contributors appended",
    "contributors merged",
    "contributors replacing",
    "contributors filtered",
    "contributors dropped",
    "contributors rejected",
    "contributors of replaced entries",
    "contributors departed",
];

/// Type of the block: "OLAQ".
const TYPE: u32 = 0x4f4c_4151;
/// Type, version, next, number of counters; then two words a counter.
const WORDS: usize = 4 + 2 * COUNTERS;

/// Reads the whole block, a word at a time.
#[derive(Default)]
pub(super) struct Reader {
    words: Vec<u32>,
    /// The address was taken, the answer not.
    asked: bool,
}

impl Reader {
    /// Offers the next address, or takes the answer if `ready`.
    pub(super) fn drive(&self, pins: &mut In, ready: bool) {
        pins.arvalid = !self.asked;
        pins.araddr = 4 * self.words.len() as u16;
        pins.rready = ready;
    }

    /// After [`Reader::drive`]; gives the counters when all have been read.
    pub(super) fn observe(&mut self, pins: &In, out: &Out) -> Result<Option<Counters>, String> {
        if pins.arvalid && out.arready {
            self.asked = true;
        }
        if pins.rready && out.rvalid {
            if out.rresp != 0 {
                return Err(format!("word {} of the counters: an error", self.words.len()));
            }
            self.asked = false;
            self.words.push(out.rdata);
        }
        if self.words.len() < WORDS {
            return Ok(None);
        }
        if [self.words[0], self.words[3]] != [TYPE, COUNTERS as u32] {
            return Err(format!("the block of counters says that it is {:x?}", &self.words[..4]));
        }
        let mut counters = [0; COUNTERS];
        for (counter, halves) in counters.iter_mut().zip(self.words[4..].chunks_exact(2)) {
            *counter = u64::from(halves[0]) | u64::from(halves[1]) << 32;
        }
        Ok(Some(counters))
    }
}
