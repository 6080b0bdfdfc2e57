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
    /// Whether the number has not come yet, as far as the window knows. The caller verifies the
    /// datagram before it [takes](Window::take) the number.
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

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_numbers(numbers in numbers()) {
            let (mut window, mut all) = (Window::default(), BTreeSet::new());
            for number in numbers {
                let newest = all.last().copied();
                let too_old = newest.is_some_and(|newest: u64| number + WINDOW <= newest);
                prop_assert_eq!(window.is_new(number), !too_old && !all.contains(&number));
                if window.is_new(number) {
                    window.take(number);
                    all.insert(number);
                }
            }
        }
    }
}
