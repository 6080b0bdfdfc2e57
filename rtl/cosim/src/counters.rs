//! Reads a block of counters (`axil_counters`) over AXI4-Lite.

use crate::mismatch::same;

/// What the reader puts on the pins: `struct Ask` of `shim/shim.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask {
    araddr: u16,
    arvalid: bool,
    rready: bool,
}

/// What the hardware says: `struct Answer` of `shim/shim.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    rdata: u32,
    arready: bool,
    rvalid: bool,
    rresp: u8,
}

/// Words before the counters: type, version, next, number of counters. A counter has two words.
const HEAD: usize = 4;

/// Reads the whole block, a word at a time.
#[derive(Default)]
pub(crate) struct Reader {
    words: Vec<u32>,
    /// The address was taken, the answer not.
    asked: bool,
}

impl Reader {
    /// Offers the next address, or takes the answer if `ready`.
    pub(crate) fn drive(&self, ready: bool) -> Ask {
        Ask { araddr: 4 * self.words.len() as u16, arvalid: !self.asked, rready: ready }
    }

    /// After [`Reader::drive`]; gives the counters when all have been read. The block must be of type `kind`.
    pub(crate) fn observe<const COUNTERS: usize>(
        &mut self,
        kind: u32,
        ask: Ask,
        answer: Answer,
    ) -> Result<Option<[u64; COUNTERS]>, String> {
        if ask.arvalid && answer.arready {
            self.asked = true;
        }
        if ask.rready && answer.rvalid {
            if answer.rresp != 0 {
                return Err(format!("word {} of the counters: an error", self.words.len()));
            }
            self.asked = false;
            self.words.push(answer.rdata);
        }
        if self.words.len() < HEAD + 2 * COUNTERS {
            return Ok(None);
        }
        if [self.words[0], self.words[3]] != [kind, COUNTERS as u32] {
            return Err(format!(
                "the block of counters says that it is {:x?}",
                &self.words[..HEAD]
            ));
        }
        let mut counters = [0; COUNTERS];
        for (counter, halves) in counters.iter_mut().zip(self.words[HEAD..].chunks_exact(2)) {
            *counter = u64::from(halves[0]) | u64::from(halves[1]) << 32;
        }
        Ok(Some(counters))
    }
}

/// Each counter of the hardware is that of the engine.
pub(crate) fn same_counters<const COUNTERS: usize>(
    names: &[&str; COUNTERS],
    hardware: [u64; COUNTERS],
    engine: [u64; COUNTERS],
) -> Result<(), String> {
    for ((name, hardware), engine) in names.iter().zip(hardware).zip(engine) {
        same(&format!("counter `{name}`"), hardware, engine)?;
    }
    Ok(())
}
