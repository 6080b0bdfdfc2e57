//! What becomes of an update in the queue while the link sends it.

/// The three views of the head of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Head {
    /// The update keeps its slot and takes nothing in: the hardware's text (OLAF §12.1), and our
    /// switch.
    #[default]
    Locked,
    /// The update keeps its slot and takes others in until its last bit has left. differs: no link
    /// can do this; it shows what the lock costs.
    Open,
    /// The update leaves its slot with its first bit, as in a simulator whose device has a buffer.
    Gone,
}

impl Head {
    /// Every view and its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("locked", Self::Locked), ("open", Self::Open), ("gone", Self::Gone)];

    /// The view of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, head)| *head)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Open => "open",
            Self::Gone => "gone",
        }
    }
}
