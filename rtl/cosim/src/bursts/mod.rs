//! The traffic of OLAF §8.1 through the hardware: what leaves, what merges, what is lost, and how old the
//! models at the server are. Nothing is compared here; `tests/` do that.
//!
//! Time is that of a clock of 250 MHz. Each cycle is simulated, idle ones too.

mod control;
mod link;
mod tally;

pub use control::through_control;
pub use tally::Outcome;

use serde::Deserialize;

/// Length of a cycle at 250 MHz (OLAF §7).
pub const CYCLE_NS: u64 = 4;
/// Bytes of a beat.
pub const BEAT: u64 = 64;

/// Updates of equal length, the queue, and the link behind it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// When the first byte of each update comes in, nanoseconds, in order.
    pub at_ns: Vec<u64>,
    /// The worker of each update.
    pub worker: Vec<u32>,
    /// The cluster of each update.
    pub cluster: Vec<u32>,
    /// Bytes of an update.
    pub bytes: u64,
    /// Bits a second of the link behind the queue.
    pub rate_bps: u64,
    /// False: every update is a flow of its own, so that the queue is a FIFO.
    pub merging: bool,
    /// Begins the registers that have no value.
    pub seed: u64,
}

/// One update.
#[derive(Clone, Copy, Debug)]
struct Update {
    at_ns: u64,
    worker: u32,
    cluster: u32,
    /// What updates must have in common to merge.
    flow: u32,
}

impl Bursts {
    /// # Errors
    /// If the lists are not of one length, or a number cannot be.
    pub fn check(self) -> Result<Self, String> {
        let updates = self.at_ns.len();
        if updates == 0 || self.worker.len() != updates || self.cluster.len() != updates {
            return Err("at_ns, worker and cluster: lists of one length, not empty".into());
        }
        if !self.at_ns.is_sorted() {
            return Err("at_ns: in order".into());
        }
        if self.bytes == 0 || self.rate_bps == 0 {
            return Err("bytes, rate_bps: above 0".into());
        }
        Ok(self)
    }

    fn beats(&self) -> u64 {
        self.bytes.div_ceil(BEAT)
    }

    fn updates(&self) -> impl Iterator<Item = Update> + '_ {
        (0u32..).zip(&self.at_ns).map(|(index, at_ns)| {
            let cluster = self.cluster[index as usize];
            Update {
                at_ns: *at_ns,
                worker: self.worker[index as usize],
                cluster,
                flow: if self.merging { cluster } else { index },
            }
        })
    }
}
