//! The answer to the question whether a cluster may join.

use crate::keys::Named;

/// A word on whether a cluster may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may.
    Admit,
    /// It may not.
    Refuse,
}

impl Ruling {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Refuse => "refuse",
        }
    }
}

impl Named for Ruling {
    const NAMES: &'static [(&'static str, Self)] =
        &[("admit", Self::Admit), ("refuse", Self::Refuse)];
}
