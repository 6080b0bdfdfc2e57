//! The first switch fails at any moment, in any way, on any wire.

use super::program::{PATIENCE, Programs, some_calls};
use crate::common::sums::{Draws, some_wire};
use crate::sums::faults::bad;
use crate::sums::job::{MS, Setting, peer};
use crate::sums::protocol::TOP;
use core::time::Duration;
use olaf_sim::Wire;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(5);

/// What happens to the first switch, or to the ways to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It dies.
    Death,
    /// It dies, and lives again soon, or late.
    Restart,
    /// One worker does not hear it for some time, and moves alone: its machine is busy, or its way is cut.
    Deaf,
    /// The same, and then the switch dies.
    DeafAndDeath,
    /// Some workers lose the last results before it dies.
    LostResults,
    /// All that is on one worker's way from the switch comes late.
    Late,
}

const FAULTS: [Fault; 6] = [
    Fault::Death,
    Fault::Restart,
    Fault::Deaf,
    Fault::DeafAndDeath,
    Fault::LostResults,
    Fault::Late,
];

/// An operation waits for a move as long as `own`.
fn some_programs(seed: u64, draws: &mut Draws, own: Duration) -> Programs {
    let wire = if draws.below(3) == 0 { bad(0.05) } else { some_wire(draws) };
    let workers = 2 + draws.below(4) as u32;
    let calls = some_calls(draws, workers, 30);
    let at_once = [1, 3, 8][draws.below(3) as usize];
    let setting = Setting { seed, workers, wire, own, ..Setting::default() };
    Programs::new(setting, calls, at_once)
}

fn happen(fault: Fault, programs: &mut Programs, draws: &mut Draws) {
    let end = draws.below(programs.workers().into()) as u32;
    let deaf_for = PATIENCE / 2 * (1 + draws.below(8) as u32);
    let soon = MS * draws.below(300) as u32;
    match fault {
        Fault::Death => {}
        Fault::Restart => {
            programs.job.kill(TOP);
            let after = [20, 500, 3000][draws.below(3) as usize];
            let at = programs.job.net.now() + MS * draws.below(after) as u32;
            return programs.job.net.start_at(at, TOP);
        }
        Fault::Deaf => {
            programs.mute(TOP, end);
            programs.run_for(draws, deaf_for);
            return programs.mend(end);
        }
        Fault::DeafAndDeath => {
            programs.mute(TOP, end);
            programs.run_for(draws, deaf_for / 2);
        }
        Fault::LostResults => {
            for end in 0..programs.workers() {
                if draws.below(2) == 0 {
                    programs.mute(TOP, end);
                }
                programs.run_for(draws, soon / 30);
            }
        }
        Fault::Late => {
            let wire = Wire { delay: deaf_for, ..programs.job.setting.wire };
            return programs.job.net.join_one_way(TOP, peer(end), wire);
        }
    }
    programs.job.kill(TOP);
}

/// No operation is lost, and none is computed twice.
#[test]
fn whatever_becomes_of_the_first_switch_all_operations_end_well() {
    let (mut moved, mut taken, mut again) = ([0; FAULTS.len()], 0, 0);
    let seeds = u64::from(olaf_samples::cases(120));
    for seed in 0..seeds {
        let draws = &mut Draws(7000 + seed);
        let fault = FAULTS[seed as usize % FAULTS.len()];
        let mut programs = some_programs(seed, draws, LONG);
        let before = [1, 20, 200][draws.below(3) as usize];
        let before = MS / 10 * draws.below(10 * before) as u32;
        programs.run_for(draws, before);
        happen(fault, &mut programs, draws);
        programs.run_and_leave(draws, Duration::from_secs(60));
        let of: Vec<_> = (0..programs.workers()).map(|end| programs.of(end)).collect();
        programs.all_are_right();
        moved[seed as usize % FAULTS.len()] += u64::from(of[0].left_because.is_some());
        taken += of.iter().map(|of| of.taken).sum::<u64>();
        again += of.iter().map(|of| of.again).sum::<u64>();
    }
    let is_mixed =
        moved.iter().all(|moved| *moved > seeds / 30) && taken > seeds / 4 && again > seeds;
    assert!(is_mixed, "{moved:?} moves, {taken} taken, {again} again: this tests little");
}

/// The others wait for it as long as an operation may take, and no longer.
#[test]
fn a_worker_that_dies_while_the_job_moves_costs_errors_and_no_wrong_sum() {
    let mut failed = 0;
    let seeds = u64::from(olaf_samples::cases(40));
    for seed in 0..seeds {
        let draws = &mut Draws(9000 + seed);
        let mut programs = some_programs(seed, draws, SHORT);
        let before = MS * draws.below(100) as u32;
        programs.run_for(draws, before);
        let fault = FAULTS[seed as usize % FAULTS.len()];
        happen(fault, &mut programs, draws);
        let victim = draws.below(programs.workers().into()) as u32;
        let then = MS * draws.below(1500) as u32;
        programs.run_for(draws, then);
        programs.job.kill(peer(victim));
        programs.run_and_leave(draws, Duration::from_secs(4000));
        failed += u64::from(programs.check() > 0);
    }
    assert!(failed > seeds / 4, "{failed} of {seeds} jobs: this tests little");
}

/// Nothing from it comes through, and nothing to it: the first switch takes the worker for dead.
#[test]
fn a_worker_whose_way_to_the_first_switch_is_cut_costs_errors_and_no_wrong_sum() {
    for seed in 0..u64::from(olaf_samples::cases(30)) {
        let draws = &mut Draws(11_000 + seed);
        let mut programs = some_programs(seed, draws, SHORT);
        let before = MS * draws.below(100) as u32;
        programs.run_for(draws, before);
        let end = draws.below(programs.workers().into()) as u32;
        let cut = Wire { loss: 1.0, ..Wire::default() };
        programs.job.net.join(TOP, peer(end), cut);
        programs.run_and_leave(draws, Duration::from_secs(4000));
        programs.check();
    }
}
