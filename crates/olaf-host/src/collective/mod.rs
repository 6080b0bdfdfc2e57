//! The ends of a sum: workers that all reduce the same operations through a switch.
//!
//! A program hands an [`Operation`] with its lanes to a [`Collective`], and takes them back with the
//! result. Results arrive in place. `reduce` is our own protocol (`docs/design/028-reduce.md`).

pub mod atp;
mod buffer;
mod config;
mod fall_back;
pub mod iswitch;
mod member;
mod operation;
mod path;
mod reduce;
mod standing;
pub mod trio;
mod window;

pub use atp::{AtpServer, Worker as AtpWorker};
pub use buffer::Buffer;
pub use config::{Config, Options, Recovery};
pub use fall_back::{At, FAREWELL, FallBack, NoWay, Off, SecondSwitch};
pub use iswitch::pipeline::Commit;
pub use iswitch::{Options as IswitchOptions, Worker as IswitchWorker};
pub use member::Operations;
pub use operation::{Done, Failure, Label, Operation, OperationId, Reduction, Sum};
pub use reduce::{Reducer, ReducerStatistics};
pub use standing::Standing;
pub use trio::Worker as TrioWorker;
pub use window::{Aimd, Fixed, Window};

use alloc::boxed::Box;
use olaf_engine::{Engine, Instant};
use olaf_wire::reduce::Clash;

/// An end that reduces: what every protocol's end offers to a driver.
pub trait Collective: Engine {
    /// Begins to join. The end goes on until the switch lets it in or turns it away.
    fn join(&mut self, now: Instant);

    /// Leaves the job, before the next operation. Open operations fail.
    fn leave(&mut self, now: Instant);

    /// Where this end stands.
    fn standing(&self) -> Standing;

    /// Cores of the switch, once it has said so: each has a port of its own, which follow each other.
    fn switch_cores(&self) -> u32 {
        1
    }

    /// The generation in which an operation that begins now has its place; none while that is open.
    fn begins_in(&self) -> Option<u32> {
        None
    }

    /// The version of the switch's messages, if it is another one than this end's.
    fn other_version(&self) -> Option<u8> {
        None
    }

    /// What the culprit and the others called when a generation last ended because workers called different operations.
    fn clash(&self) -> Option<Clash> {
        None
    }

    /// Begins an operation. Every worker of the job begins the same operations in the same order.
    ///
    /// # Errors
    /// The reason, and the operation with its lanes.
    fn begin(
        &mut self,
        now: Instant,
        operation: Operation,
    ) -> Result<OperationId, (Failure, Operation)>;

    /// Sends a vector for the first sum of [`Reduction::Pipelined`] that is open, and returns what becomes of it.
    /// `began`: sums in the weights that the vector was computed with (t_w of iSwitch's Algorithm 1).
    /// `bound`: a vector to whose weights more sums than this number have come since is not sent (S).
    ///
    /// # Errors
    /// The vector has another size than the sum, or the protocol has no such sums.
    fn contribute(
        &mut self,
        now: Instant,
        began: u64,
        bound: u64,
        vector: Box<dyn Buffer>,
    ) -> Result<Commit, Failure> {
        let _ = (now, began, bound, vector);
        Err(Failure::BadOperation("the protocol has no pipelined sums"))
    }

    /// This worker takes part in pipelined sums no more: those without a result fail at all workers.
    fn end_pipeline(&mut self, now: Instant) {
        let _ = now;
    }

    /// The next operation that has ended, with its lanes. Operations may end in any order.
    fn poll_done(&mut self) -> Option<Done>;

    /// Gives an operation up: it ends with [`Failure::TimedOut`], for this worker and, because this
    /// worker's pieces will be missing, for all others.
    fn give_up(&mut self, now: Instant, operation: OperationId);

    /// The time limits of operations that began earlier count from then on; none: they stand still, because the job moves
    /// to its second switch.
    fn limits_since(&self) -> Option<Instant> {
        Some(Instant::default())
    }

    /// Begins a last operation, if other workers may still need something of this one: it leaves when that has ended.
    fn say_farewell(&mut self, now: Instant) -> Option<OperationId> {
        let _ = now;
        None
    }

    /// How this end stands with its two switches; none: it has one.
    fn second_switch(&self) -> Option<SecondSwitch> {
        None
    }
}
