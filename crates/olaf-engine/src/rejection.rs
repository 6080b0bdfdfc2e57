//! The reasons for which a contribution is turned away, by the queue or by screening.

use crate::queue;

/// Why a contribution is turned away, always with its worker's name. The queue says three of the
/// reasons ([`queue::Rejection`]); screening, which looks at the sender first, says the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// Queue: the contribution, its reward, or the sum with it, is not a finite number.
    NonFinite,
    /// Queue and screening: its lanes are not as many as the segment has.
    WrongSize,
    /// Screening: the same contribution came before.
    Duplicate,
    /// Screening: a newer contribution of its worker came before.
    Superseded,
    /// Screening: its worker is not known here, or has not been let in yet.
    UnknownWorker,
    /// Screening: it came from another address than its worker's, or with another session.
    WrongSender,
    /// Screening: it names another cluster than its worker joined.
    WrongCluster,
    /// Screening: it has passed as many switches as may be: a loop.
    TooManyHops,
    /// Queue: counts or weights would overflow.
    Overflow,
    /// Screening: it says that it has passed a switch, and its sender is none.
    NotASwitch,
    /// Screening: it says to hold more contributions than one worker may carry.
    TooManyContributors,
    /// Screening: its worker sends far more updates than the other workers of its job.
    TooOften,
}

impl Rejection {
    /// All reasons, in the order of [`Rejection::index`].
    pub const ALL: [Self; 12] = [
        Self::NonFinite,
        Self::WrongSize,
        Self::Duplicate,
        Self::Superseded,
        Self::UnknownWorker,
        Self::WrongSender,
        Self::WrongCluster,
        Self::TooManyHops,
        Self::Overflow,
        Self::NotASwitch,
        Self::TooManyContributors,
        Self::TooOften,
    ];

    /// Position in [`Rejection::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The number of contributions that are counted as rejected. A sender with a false name, or
    /// with an impossible claim, counts as one: its claim must not inflate the counters.
    #[must_use]
    pub const fn counts(self, claimed: u32) -> u32 {
        match self {
            Self::UnknownWorker
            | Self::WrongSender
            | Self::NotASwitch
            | Self::TooManyContributors => 1,
            _ => claimed,
        }
    }

    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NonFinite => queue::Rejection::NonFinite.name(),
            Self::WrongSize => queue::Rejection::WrongSize.name(),
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::UnknownWorker => "unknown_worker",
            Self::WrongSender => "wrong_sender",
            Self::WrongCluster => "wrong_cluster",
            Self::TooManyHops => "too_many_hops",
            Self::Overflow => queue::Rejection::Overflow.name(),
            Self::NotASwitch => "not_a_switch",
            Self::TooManyContributors => "too_many_contributors",
            Self::TooOften => "too_often",
        }
    }
}

impl From<queue::Rejection> for Rejection {
    fn from(rejection: queue::Rejection) -> Self {
        match rejection {
            queue::Rejection::NonFinite => Self::NonFinite,
            queue::Rejection::WrongSize => Self::WrongSize,
            queue::Rejection::Overflow => Self::Overflow,
        }
    }
}
