//! Which datagrams of an association have come already.

/// Numbers behind the newest that are still told apart.
pub(super) const WINDOW: u64 = 1024;
const WORDS: usize = (WINDOW / 64) as usize;

/// A window over the newest numbers: each is taken once.
///
/// Example: after 5, number 3 is taken and 5 is not; after 2000, number 976 is too old.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The number behind the newest one; 0 before the first.
    next: u64,
    /// Bit `n % 1024` of number `n`, for the numbers of the window.
    seen: [u64; WORDS],
}

impl Window {
    /// Returns true if the number has not come yet, as far as the window knows. The caller verifies
    /// the datagram before it [takes](Window::take) the number.
    pub(super) fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        self.next - number <= WINDOW && !self.bit(number)
    }

    /// Notes that the number has come.
    pub(super) fn take(&mut self, number: u64) {
        if number >= self.next {
            // The places of the numbers between belong to older ones: none of these came yet.
            let first = self.next.max((number + 1).saturating_sub(WINDOW));
            for between in first..=number {
                self.seen[word(between)] &= !(1 << (between % 64));
            }
            self.next = number + 1;
        }
        self.seen[word(number)] |= 1 << (number % 64);
    }

    fn bit(&self, number: u64) -> bool {
        self.seen[word(number)] >> (number % 64) & 1 == 1
    }
}

const fn word(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// Numbers that come in bursts, again, late, and after large gaps.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let number = prop_oneof![4 => 0..3000_u64, 1 => 0..1_000_000_u64, 1 => Just((1 << 48) - 1)];
        proptest::collection::vec(number, 1..400)
    }

    use alloc::vec::Vec;

    /// Numbers around the newest one: on by a few, on by nearly a window, and back as far as the window and a
    /// little farther.
    fn steps() -> impl Strategy<Value = Vec<i64>> {
        let far = WINDOW as i64;
        let step = prop_oneof![
            8 => 1..4_i64,
            3 => -40..1_i64,
            1 => far - 200..far + 200,
            3 => -far - 4..-far + 4,
        ];
        proptest::collection::vec(step, 1..600)
    }

    /// A window, and a set of all numbers that came.
    #[derive(Default)]
    struct Both {
        window: Window,
        all: BTreeSet<u64>,
    }

    impl Both {
        fn comes(&mut self, number: u64) {
            let newest = self.all.last().copied();
            let too_old = newest.is_some_and(|newest: u64| number + WINDOW <= newest);
            let is_new = !too_old && !self.all.contains(&number);
            assert_eq!(self.window.is_new(number), is_new, "{number} after {newest:?}");
            if is_new {
                self.window.take(number);
                self.all.insert(number);
            }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_numbers(numbers in numbers()) {
            let mut both = Both::default();
            numbers.into_iter().for_each(|number| both.comes(number));
        }

        #[test]
        fn it_agrees_with_a_set_at_its_own_edges(steps in steps()) {
            let mut both = Both::default();
            both.comes(5000);
            for step in steps {
                let newest = both.all.last().copied().unwrap_or_default();
                both.comes(newest.saturating_add_signed(step));
            }
        }
    }
}
