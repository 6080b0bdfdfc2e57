//! The answer to the question whether a cluster may join.

/// A word on whether a cluster may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may.
    Admit,
    /// It may not.
    Refuse,
}

impl Ruling {
    /// Every ruling and its name.
    pub const ALL: [(&'static str, Self); 2] = [("admit", Self::Admit), ("refuse", Self::Refuse)];

    /// The ruling of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, ruling)| *ruling)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Refuse => "refuse",
        }
    }
}
