//! What a worker's program calls: the part of an operation's signature that the lanes do not show.

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// A sum, a minimum or a maximum.
    Plain,
    /// A mean: the workers divide.
    Mean,
    /// A sum with the same bits in any order.
    ExactSum,
    /// The same, and the workers divide.
    ExactMean,
    /// A broadcast.
    Broadcast {
        /// The rank whose lanes all workers get.
        root: u32,
    },
    /// An all-reduce of an empty array. It has one lane, which means nothing.
    Empty,
    /// A call that the worker has refused, because its protocol lacks it. It has one lane, which means nothing.
    Refused(Lacking),
    /// A kind that this crate does not know.
    Other,
}

/// What a protocol lacks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lacking {
    /// The smallest of each lane.
    Minimum = 0,
    /// The largest of each lane.
    Maximum = 1,
    /// Sums, or means, of the type.
    Type = 2,
    /// Broadcasts.
    Broadcast = 3,
    /// Something else, such as sums with the same bits in any order.
    Else = 4,
}

impl Lacking {
    /// Every value, by its number.
    pub const EACH: [Self; 5] =
        [Self::Minimum, Self::Maximum, Self::Type, Self::Broadcast, Self::Else];

    const fn numbered(number: u16) -> Self {
        match number {
            0 => Self::Minimum,
            1 => Self::Maximum,
            2 => Self::Type,
            3 => Self::Broadcast,
            _ => Self::Else,
        }
    }
}

/// What a program calls, in 16 bits: the kind (the upper 3 bits), and the root of a broadcast, what a refused call lacks,
/// or the caller's tag (the lower 13 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(u16);

const TAG_BITS: u32 = 13;
/// The narrow calls that are refused, and those with a tag.
const FIRST_REFUSED: u8 = 3;
const FIRST_TAG: u8 = 8;
const TAG: u16 = (1 << TAG_BITS) - 1;

impl Call {
    /// The largest tag, and the largest root.
    pub const LARGEST_TAG: u16 = TAG;

    /// The call of that kind. A broadcast has its root in place of the tag.
    #[must_use]
    pub const fn new(kind: CallKind, tag: u16) -> Self {
        let (kind, detail) = match kind {
            CallKind::Plain => (0, tag),
            CallKind::Mean => (1, tag),
            CallKind::Broadcast { root } => (2, root as u16),
            CallKind::Empty => (3, tag),
            CallKind::ExactSum => (4, tag),
            CallKind::ExactMean => (5, tag),
            CallKind::Refused(lacking) => (6, lacking as u16),
            CallKind::Other => (7, tag),
        };
        Self(kind << TAG_BITS | detail & TAG)
    }

    /// The call with these bits.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Its 16 bits. 0: a sum, a minimum or a maximum without a tag.
    #[must_use]
    #[inline]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> CallKind {
        match self.0 >> TAG_BITS {
            0 => CallKind::Plain,
            1 => CallKind::Mean,
            2 => CallKind::Broadcast { root: (self.0 & TAG) as u32 },
            3 => CallKind::Empty,
            4 => CallKind::ExactSum,
            5 => CallKind::ExactMean,
            6 => CallKind::Refused(Lacking::numbered(self.0 & TAG)),
            _ => CallKind::Other,
        }
    }

    /// The same in 4 bits, for formats that have no more of their own: a sum is 0, a mean 1, an empty array 2, and 3 to 7 are
    /// refused calls. A call with a tag is one of 8 others: of those that differ, 1 in 8 looks the same.
    #[must_use]
    pub const fn narrow(self) -> u8 {
        if self.tag() == 0 {
            return match self.kind() {
                CallKind::Plain => 0,
                CallKind::Mean => 1,
                CallKind::Refused(lacking) => FIRST_REFUSED + lacking as u8,
                _ => 2,
            };
        }
        // 2^16 / the golden ratio: neighbours lie far apart.
        let mixed = self.0.wrapping_mul(40_503) >> 4;
        FIRST_TAG + (mixed % 8) as u8
    }

    /// What 4 bits say of a call; its tag is not known.
    #[must_use]
    pub const fn from_narrow(bits: u8) -> Self {
        let kind = match bits {
            0 => CallKind::Plain,
            1 => CallKind::Mean,
            2 => CallKind::Empty,
            FIRST_REFUSED..FIRST_TAG => {
                CallKind::Refused(Lacking::numbered((bits - FIRST_REFUSED) as u16))
            }
            _ => CallKind::Other,
        };
        Self::new(kind, 0)
    }

    /// Returns true if the worker has refused it, because its protocol lacks it.
    #[must_use]
    pub const fn is_refused(self) -> bool {
        matches!(self.kind(), CallKind::Refused(_))
    }

    /// The caller's tag; 0: none.
    #[must_use]
    pub const fn tag(self) -> u16 {
        match self.kind() {
            CallKind::Broadcast { .. } | CallKind::Refused(_) => 0,
            _ => self.0 & TAG,
        }
    }
}

/// What the worker calls that is named at the end of a generation, and what the others call: 4 bits each
/// ([`Call::narrow`]), in a byte. Equal ones say nothing, as a byte of 0 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sides(u8);

impl Sides {
    /// What the worker calls, and what the others call.
    #[must_use]
    pub const fn new(named: u8, others: u8) -> Self {
        Self(named << 4 | others & 0xf)
    }

    /// The sides in this byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Its byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// What the worker calls, and what the others call; none: it is not known.
    #[must_use]
    pub const fn calls(self) -> Option<(Call, Call)> {
        let (named, others) = (self.0 >> 4, self.0 & 0xf);
        if named == others {
            return None;
        }
        Some((Call::from_narrow(named), Call::from_narrow(others)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_keeps_its_kind_and_its_root_or_tag() {
        let root = CallKind::Broadcast { root: 8191 };
        let exact = [CallKind::ExactSum, CallKind::ExactMean];
        for kind in [CallKind::Plain, CallKind::Mean, CallKind::Empty].into_iter().chain(exact) {
            let call = Call::new(kind, 77);
            assert_eq!((call.kind(), call.tag()), (kind, 77));
            assert_eq!(Call::from_bits(call.to_bits()), call);
        }
        assert_eq!((Call::new(root, 5).kind(), Call::new(root, 5).tag()), (root, 0));
        assert_eq!(Call::new(CallKind::Plain, 0), Call::default());
        assert_eq!(Call::from_bits(u16::MAX).kind(), CallKind::Other);
    }

    #[test]
    fn four_bits_tell_kinds_apart_and_most_tags() {
        let refused = Lacking::EACH.map(CallKind::Refused);
        for kind in [CallKind::Plain, CallKind::Mean, CallKind::Empty].into_iter().chain(refused) {
            let call = Call::new(kind, 0);
            assert_eq!(Call::from_narrow(call.narrow()), call);
            assert_eq!(
                (call.kind(), Call::new(kind, 5).narrow() == call.narrow()),
                (kind, {
                    // A refused call has no tag.
                    matches!(kind, CallKind::Refused(_))
                })
            );
        }
        let tags = 1..=Call::LARGEST_TAG;
        let narrow = |tag| Call::new(CallKind::Mean, tag).narrow();
        assert!(tags.clone().all(|tag| (8..16).contains(&narrow(tag))));
        let alike = tags.clone().filter(|tag| narrow(*tag) == narrow(77)).count();
        assert!(alike < usize::from(Call::LARGEST_TAG) / 7, "{alike}");
    }

    #[test]
    fn sides_keep_both_calls_and_equal_ones_say_nothing() {
        let maximum = Call::new(CallKind::Refused(Lacking::Maximum), 0);
        let sides = Sides::new(maximum.narrow(), Call::default().narrow());
        assert_eq!(Sides::from_byte(sides.byte()).calls(), Some((maximum, Call::default())));
        assert_eq!(Sides::default().calls(), None);
        assert_eq!(Sides::new(1, 1).calls(), None);
    }
}
