//! A job may have vectors up to a length. Packets do not say it: switches count.

use super::job::*;
use core::time::Duration;
use olaf_engine::party::{Tenant, Tenants};
use olaf_engine::switch::iswitch::{Config as SwitchConfig, Switch};
use olaf_host::collective::{Failure, Reduction};
use olaf_sim::Wire;
use olaf_wire::JobId;
use olaf_wire::reduce::Reason;

const MS: Duration = Duration::from_millis(1);
const MOST: usize = 20_000;

fn limited(setting: Setting) -> Setting {
    let tenant = Tenant { max_parameters: Some(MOST as u32), ..Tenant::default() };
    let tenants = Tenants::only([(JobId(1), tenant)]);
    Setting { switch: SwitchConfig { tenants, ..setting.switch }, ..setting }
}

fn sum(lanes: usize, number: u32) -> Task {
    Task { reduction: Reduction::Sum, lanes, number }
}

#[test]
fn vectors_up_to_the_limit_are_exact_and_a_longer_one_is_refused_by_name() {
    for leaves in [vec![], vec![Some(0), Some(1), Some(0)]] {
        for (seed, loss) in [(1, 0.0), (2, 0.02)] {
            let wire = Wire {
                loss,
                reordering: loss,
                late: MS,
                delay: Duration::from_micros(200),
                ..Wire::default()
            };
            let setting = Setting { seed, wire, leaves: leaves.clone(), ..Setting::default() };
            let mut job = Job::new(limited(setting));
            // Several at once, of the full length and shorter: each counts for itself.
            let tasks: Vec<Task> =
                (0..).zip([MOST, 1, MOST, 700, MOST]).map(|(at, lanes)| sum(lanes, at)).collect();
            tasks.iter().for_each(|task| job.begin_all(*task));
            job.run_until_done(20_000 * MS);
            job.all_are_right(&tasks);
            job.begin_all(sum(MOST + 1, 9));
            job.run_until_done(10_000 * MS);
            for end in 0..3 {
                let Err(Failure::Closed { reason, .. }) = job.outcome(end, 5).outcome else {
                    panic!("{:?}", job.outcome(end, 5).outcome)
                };
                assert_eq!(reason, Reason::Refused, "end {end}");
            }
            let counted = |at| {
                let switch = job.net.node::<Switch>(at).expect("it lives");
                switch.statistics(job.net.now()).refused.contains_key("too_many_parameters")
            };
            assert!(job.switches().into_iter().any(counted), "{}", job.state());
            // The job goes on with vectors that it may have.
            job.run_for(1000 * MS);
            let last = sum(MOST, 10);
            job.begin_all(last);
            job.run_until_done(10_000 * MS);
            for end in 0..3 {
                let ended = job.outcome(end, 6);
                assert!(ended.outcome.is_ok(), "{:?}", ended.outcome);
                assert!(ended.lanes == last.expected(&[0, 1, 2]));
            }
            job.accounts();
        }
    }
}
