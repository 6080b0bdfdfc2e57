//! A stranger who knows the sessions of all workers says good-bye for them.

use super::job::*;
use olaf_engine::switch::trio::Switch;
use olaf_engine::{Engine, PeerId, PortId, Source};
use olaf_host::collective::trio::Worker;
use olaf_wire::Session;
use olaf_wire::reduce::Reason;
use olaf_wire::trio::Leave;

const STRANGER: PeerId = PeerId(66);

/// A good-bye for each worker and for each lower switch, at every switch.
fn says_good_bye(job: &mut Job) {
    let now = job.net.now();
    for end in 0..job.setting.workers {
        let of = job.net.node::<Worker>(peer(end)).expect("it lives").statistics(now);
        let leave = Leave {
            job: u8::try_from(of.job).expect("a job of Trio-ML"),
            term: of.term.unwrap_or(0),
            source: of.rank.map_or(0, |rank| rank as u8),
            session: Session(of.session),
            reason: Reason::Left,
        };
        let mut buf = [0; 64];
        let len = leave.emit(&mut buf);
        let at = job.switch_of(end);
        job.net.with(at, |switch: &mut Switch, now| {
            switch.handle_packet(now, Source::new(PortId::DOWNLINK, STRANGER), &buf[..len])
        });
    }
}

#[test]
fn good_byes_of_a_stranger_end_no_term() {
    for lower in [vec![], vec![2, 1]] {
        let mut job = Job::new(Setting { seed: 2, lower: lower.clone(), ..Setting::default() });
        says_good_bye(&mut job);
        job.run_for(200 * MS);
        let tasks = [Task::sum(20_000, 0), Task::sum(64_000, 1)];
        tasks.iter().for_each(|task| job.begin_all(*task));
        let mut said = 0;
        while job.open() > 0 && said < 1000 {
            says_good_bye(&mut job);
            said += 1;
            job.run_for(MS / 4);
        }
        job.run_until_done(1000 * MS);
        assert!(said > 2, "in the middle of the operations");
        job.all_are_right(&tasks, &[0, 1, 2]);
        job.accounts();
        for at in lower.iter().enumerate().map(|(at, _)| super::job::lower(at)).chain([SWITCH]) {
            let of = job.net.node::<Switch>(at).expect("it lives").statistics(job.net.now());
            assert_eq!((of.terms, of.closed_terms.len()), (1, 0), "{at:?}");
            let is_first = lower.is_empty() || at != SWITCH;
            assert_eq!(of.refused.contains_key("wrong_sender"), is_first, "{:?}", of.refused);
        }
    }
}
