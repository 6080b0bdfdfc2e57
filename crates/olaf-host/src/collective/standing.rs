//! Where an end stands with its job.

use olaf_wire::reduce::WelcomeCode;

/// Where an end stands with its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It asks to be let in, or waits for other workers.
    Joining {
        /// Workers that are here, as the switch said last.
        here: u32,
        /// Workers that the generation waits for; 0 where it does not say.
        workers: u32,
    },
    /// It is in a generation.
    In {
        /// The generation.
        generation: u32,
        /// The rank in it.
        rank: u32,
        /// Its workers.
        workers: u32,
    },
    /// The switch turned it away.
    Refused(WelcomeCode),
    /// It has not tried, or has left.
    Left,
}
