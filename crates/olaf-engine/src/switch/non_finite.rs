//! What a switch that sums does with numbers that are none.

use crate::keys::Named;

/// What becomes of a piece with a lane that is no finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// It is summed, and the result shows it. An event names the worker.
    Pass,
    /// It is refused: what follows, each engine's configuration says. An event names the worker.
    Refuse,
}

impl Named for NonFinite {
    const NAMES: &'static [(&'static str, Self)] =
        &[("pass", Self::Pass), ("refuse", Self::Refuse)];
}
