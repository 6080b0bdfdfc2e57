//! A job of `reduce` with two switches, whose first one fails, or seems to.
//!
//! The lanes are numbers whose sum depends on the order of its terms: a result that one worker has, and that the others
//! computed again, would have other bits.

mod chaos;
mod one_by_one;
mod program;

use crate::sums::protocols::TwoSwitches;

// With a first switch that works, nothing differs from a job with one switch.
use crate::sums::faults::{
    sums_are_exact_on_a_path_without_faults, sums_are_exact_on_a_slow_path,
    sums_are_exact_whatever_is_lost, sums_are_exact_whatever_is_repeated_and_overtaken,
};

#[test]
fn a_second_switch_changes_nothing_while_the_first_one_works() {
    sums_are_exact_on_a_path_without_faults::<TwoSwitches>();
    sums_are_exact_whatever_is_lost::<TwoSwitches>();
    sums_are_exact_whatever_is_repeated_and_overtaken::<TwoSwitches>();
    sums_are_exact_on_a_slow_path::<TwoSwitches>();
}
