//! The numbers of generations, where the field for them has 32 bits.

use crate::party::Chance;

/// Gives generations their numbers: no packet of an earlier generation fits a later one, and who knows the numbers of one
/// job does not know those of another.
pub struct Numbers {
    /// Draws what others must not guess; none: numbers count up.
    chance: Option<Chance>,
    next: u32,
}

impl Numbers {
    /// Numbers count up from `epoch`, which names this life of the authority: draw it at random.
    #[must_use]
    pub fn new(epoch: u32) -> Self {
        Self { chance: None, next: epoch.max(1) }
    }

    /// From now on each job has numbers of its own, which `chance` draws. Messages go to all members, and have no other
    /// secret.
    pub fn draw(&mut self, chance: Chance) {
        self.chance = Some(chance);
    }

    /// A number that others must not guess, beside those of generations. Without chance: none.
    pub fn secret(&mut self) -> Option<u32> {
        self.chance.as_mut().map(|chance| chance())
    }

    /// Somebody knows this number from an earlier life of the authority: numbers that count up pass it over.
    pub fn pass_over(&mut self, number: u32) {
        // Anybody may say so: the numbers must not run out.
        self.next = self.next.max(number.saturating_add(1).min(u32::MAX / 2));
    }

    /// The number of a job's next generation; `before` is that of its last one. It is never 0, which stands for "none
    /// yet" in a join. Workers know a later generation by its higher number, also over some that they missed.
    pub fn next(&mut self, before: Option<u32>) -> u32 {
        let number = match (&mut self.chance, before) {
            (Some(chance), None) => chance(),
            (Some(chance), Some(before)) => before.wrapping_add(1 + (chance() >> 8)),
            (None, _) => {
                let number = self.next;
                self.next = number.checked_add(1).unwrap_or(1);
                number
            }
        };
        number.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    #[test]
    fn without_chance_numbers_count_up_and_pass_0_over() {
        let mut numbers = Numbers::new(u32::MAX);
        assert_eq!([None, Some(7)].map(|before| numbers.next(before)), [u32::MAX, 1]);
        assert_eq!(Numbers::new(0).next(None), 1);
        assert_eq!(numbers.secret(), None);
    }

    #[test]
    fn numbers_of_an_earlier_life_are_passed_over_and_do_not_run_out() {
        let mut numbers = Numbers::new(10);
        numbers.pass_over(40);
        assert_eq!(numbers.next(None), 41);
        numbers.pass_over(u32::MAX);
        assert_eq!(numbers.next(None), u32::MAX / 2);
    }

    #[test]
    fn drawn_numbers_of_a_job_grow_and_say_nothing_of_another_job() {
        let mut numbers = Numbers::new(1);
        let mut last = 0;
        numbers.draw(Box::new(move || {
            last += 0x1000_0000;
            last
        }));
        let first = numbers.next(None);
        let other = numbers.next(None);
        let second = numbers.next(Some(first));
        assert_eq!((first, other), (0x1000_0000, 0x2000_0000));
        assert!(second > first + 1, "{second}");
        assert_eq!(numbers.secret(), Some(0x4000_0000));
    }
}
