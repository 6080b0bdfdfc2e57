//! The figures of the hardware: the traffic of OLAF §8.1 (what leaves, what merges, what is lost, and how old the
//! models at the server are), and cycles of an update. Nothing is compared here; `tests/` do that.
//!
//! Time is that of a clock of 250 MHz. Each cycle is simulated, idle ones too.

mod datagram;
mod link;
mod queue;
mod rate;
mod tally;

pub use queue::through_queue;
pub use rate::{Cycles, Updates, measure};
pub use tally::Outcome;

use datagram::Sent;
use serde::Deserialize;

/// Length of a cycle at 250 MHz (OLAF §7).
pub const CYCLE_NS: u64 = 4;

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
    pub bytes: usize,
    /// Bits a second of the link behind the queue.
    pub rate_bps: u64,
    /// False: every update is a flow of its own, so that the queue is a FIFO.
    pub merging: bool,
    /// Begins the registers that have no value.
    pub seed: u64,
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
        if self.bytes < 100 || self.bytes > queue::LONGEST || !self.bytes.is_multiple_of(4) {
            return Err(format!("bytes: a multiple of 4, 100 to {}", queue::LONGEST));
        }
        if self.rate_bps == 0 {
            return Err("rate_bps: above 0".into());
        }
        Ok(self)
    }

    fn updates(&self) -> impl Iterator<Item = Sent> + '_ {
        (0u32..).zip(&self.at_ns).map(|(index, at_ns)| Sent {
            cluster: self.cluster[index as usize],
            segment: if self.merging { 0 } else { index },
            worker: self.worker[index as usize],
            at_ns: *at_ns,
        })
    }
}
