//! Where an end stands with its job.

use super::Failure;
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

impl Standing {
    /// Returns true if the end takes part, or wants to.
    pub(super) const fn is_part(&self) -> bool {
        matches!(self, Self::Joining { .. } | Self::In { .. })
    }

    pub(super) const fn is_joining(&self) -> bool {
        matches!(self, Self::Joining { .. })
    }

    /// Why no operation can begin.
    pub(super) const fn refusal(&self) -> Option<Failure> {
        match *self {
            Self::Left => Some(Failure::NotJoined),
            Self::Refused(code) => Some(Failure::Refused(code)),
            Self::Joining { .. } | Self::In { .. } => None,
        }
    }

    /// Its name in statistics.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Joining { .. } => "joining",
            Self::In { .. } => "in",
            Self::Refused(_) => "refused",
            Self::Left => "left",
        }
    }

    /// Why the switch turned the end away.
    pub(super) const fn turned_away(&self) -> Option<&'static str> {
        match self {
            Self::Refused(code) => Some(code.name()),
            _ => None,
        }
    }

    /// Workers that are here, and workers that belong to the generation: `configured`, where the switch says nothing else.
    pub(super) const fn here(&self, configured: u32) -> (u32, u32) {
        match *self {
            Self::Joining { here, workers } => (here, workers),
            Self::In { workers, .. } => (workers, workers),
            Self::Refused(_) | Self::Left => (0, configured),
        }
    }
}
