//! A switch that asks before a cluster joins, with workers, a server and a network: which clusters
//! get in, what the others learn, and that no worker waits for ever.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::{Admission, Ruling};
use olaf_engine::{ClusterId, Event, Instant, PeerId, Switch, WorkerEvent};
use olaf_host::Worker;
use olaf_host::push_pull::worker::Standing;
use olaf_sim::Wire;
use olaf_wire::WelcomeCode;
use std::collections::{BTreeMap, BTreeSet};

const POLICY: Admission = Admission {
    timeout: Duration::from_secs(1),
    unanswered: Ruling::Refuse,
    refused_for: Duration::from_secs(1),
    max_questions: 16,
};
const TURNED_AWAY: Standing = Standing::TurnedAway(WelcomeCode::NotAdmitted);

/// The answerer: after a delay it gives the set answer, and none about clusters that it does not
/// know.
struct Verifier {
    thinks: Duration,
    says: BTreeMap<u32, Ruling>,
    read: usize,
    due: Vec<(Instant, PeerId, Event)>,
    asked: Vec<(PeerId, u32)>,
}

impl Verifier {
    fn new(thinks: Duration, says: impl IntoIterator<Item = (u32, Ruling)>) -> Self {
        let says = says.into_iter().collect();
        Self { thinks, says, read: 0, due: Vec::new(), asked: Vec::new() }
    }

    /// Lets the job train, and answers what is asked meanwhile.
    fn train(&mut self, job: &mut Job, duration: Duration) {
        let end = job.net.now() + duration;
        while job.net.now() < end {
            job.train_for(ms(1));
            for (at, switch, notice) in &job.net.events()[self.read..] {
                if let event @ Event::AdmissionWanted(who, _) = notice {
                    self.asked.push((*switch, who.cluster.0));
                    self.due.push((*at + self.thinks, *switch, event.clone()));
                }
            }
            self.read = job.net.events().len();
            let now = job.net.now();
            let (due, later) = self.due.drain(..).partition(|(at, _, _)| *at <= now);
            self.due = later;
            self.answer(job, due);
        }
    }

    fn answer(&self, job: &mut Job, due: Vec<(Instant, PeerId, Event)>) {
        for (_, switch, event) in due {
            let Event::AdmissionWanted(who, _) = event else { continue };
            let Some(ruling) = self.says.get(&who.cluster.0).copied() else { continue };
            job.net.with(switch, |switch: &mut Switch, now| {
                switch.decide(now, who.job, who.cluster, Some(ruling))
            });
        }
    }
}

fn asking(setting: Setting) -> Job {
    Job::new(Setting { segment_lanes: 2000, every: ms(15), ..setting })
}

fn setting(policy: Admission, link: Wire) -> Setting {
    Setting { admission: Some(policy), edge: link, core: link, ..Setting::default() }
}

fn standing(job: &Job, worker: PeerId) -> Standing {
    job.net.node::<Worker>(worker).unwrap().standing()
}

fn standings(job: &Job, cluster: u32) -> Vec<Standing> {
    let workers = job.workers().into_iter();
    workers
        .filter(|worker| worker.0 % job.setting.clusters == cluster)
        .map(|worker| standing(job, worker))
        .collect()
}

fn said(job: &Job, is: impl Fn(&Event) -> bool) -> BTreeSet<PeerId> {
    job.net.events().iter().filter(|(_, _, n)| is(n)).map(|(_, who, _)| *who).collect()
}

fn usual() -> Wire {
    Setting::default().edge
}

#[test]
fn who_is_admitted_trains_and_who_is_refused_hears_it() {
    for link in [usual(), bad_link()] {
        let mut job = asking(setting(POLICY, link));
        let says = [(0, Ruling::Admit), (1, Ruling::Refuse), (2, Ruling::Admit)];
        let mut verifier = Verifier::new(ms(120), says);
        verifier.train(&mut job, ms(900));
        assert_eq!(standings(&job, 0), [Standing::Joined; 2]);
        assert_eq!(standings(&job, 1), [TURNED_AWAY; 2]);
        assert_eq!(standings(&job, 2), [Standing::Joined; 2]);
        let asked: BTreeSet<u32> = verifier.asked.iter().map(|(_, cluster)| *cluster).collect();
        assert_eq!((verifier.asked.len(), asked.len()), (3, 3), "each cluster once");
        // Who waited for the word took neither switch nor server for dead.
        let silent = |n: &Event| {
            matches!(
                n,
                Event::Worker(_, _, WorkerEvent::SwitchSilent)
                    | Event::Worker(_, _, WorkerEvent::ServerSilent)
            )
        };
        assert_eq!(said(&job, silent), BTreeSet::new());
        verifier.train(&mut job, ms(500));
        job.settle();
        everything_is_accounted_for(&job);
        assert!(job.pushed > 50);
    }
}

#[test]
fn a_verifier_that_says_nothing_gets_nobody_stuck_whichever_answer_is_stated() {
    for (unanswered, expected) in [(Ruling::Admit, Standing::Joined), (Ruling::Refuse, TURNED_AWAY)]
    {
        let mut job = asking(setting(Admission { unanswered, ..POLICY }, bad_link()));
        let mut verifier = Verifier::new(ms(10), []);
        // One question after the other: three clusters take three times as long.
        verifier.train(&mut job, ms(3500));
        for cluster in 0..3 {
            assert_eq!(standings(&job, cluster), [expected; 2], "{cluster}");
        }
        let unanswered = |n: &&Event| matches!(n, Event::AdmissionUnanswered(..));
        let notices: Vec<Event> = job.net.events().iter().map(|(_, _, n)| n.clone()).collect();
        assert_eq!(notices.iter().filter(unanswered).count(), 3);
    }
}

#[test]
fn a_worker_that_dies_and_starts_again_is_let_in_with_its_cluster_or_asked_about_anew() {
    let mut job = asking(setting(POLICY, usual()));
    let says = (0..3).map(|cluster| (cluster, Ruling::Admit));
    let mut verifier = Verifier::new(ms(50), says);
    // While the question is open: whatever life waits is the one that gets in.
    let start = job.net.now();
    job.net.kill_at(start + ms(20), PeerId(0));
    job.net.start_at(start + ms(25), PeerId(0));
    verifier.train(&mut job, ms(800));
    assert_eq!(verifier.asked.len(), 3);
    assert!(job.workers().into_iter().all(|w| standing(&job, w) == Standing::Joined));
    // In a cluster that is in, nobody is asked; after all of it was forgotten, somebody is.
    let now = job.net.now();
    job.net.kill_at(now, PeerId(0));
    job.net.start_at(now + ms(100), PeerId(0));
    verifier.train(&mut job, ms(1000));
    assert_eq!((verifier.asked.len(), standing(&job, PeerId(0))), (3, Standing::Joined));
    let now = job.net.now();
    for worker in [0, 3] {
        job.net.kill_at(now, PeerId(worker));
        job.net.start_at(now + SILENT_AFTER * 31, PeerId(worker));
    }
    verifier.train(&mut job, SILENT_AFTER * 31 + ms(500));
    assert_eq!(verifier.asked[3..], [(SWITCH, 0)]);
    assert_eq!(standings(&job, 0), [Standing::Joined; 2]);
}

#[test]
fn a_switch_that_starts_again_asks_anew_and_training_goes_on() {
    let mut job = asking(setting(POLICY, usual()));
    let mut verifier = Verifier::new(ms(30), (0..3).map(|cluster| (cluster, Ruling::Admit)));
    verifier.train(&mut job, ms(400));
    let now = job.net.now();
    job.net.kill_at(now, SWITCH);
    job.net.start_at(now + ms(50), SWITCH);
    verifier.train(&mut job, ms(1000));
    assert_eq!(verifier.asked.len(), 6);
    let before = job.server_version();
    verifier.train(&mut job, ms(300));
    assert!(job.server_version() > before + 10);
    for cluster in 0..3 {
        assert_eq!(standings(&job, cluster), [Standing::Joined; 2]);
    }
}

#[test]
fn every_switch_on_the_way_is_asked_for_its_own_uplink() {
    let setting = setting(POLICY, usual());
    let tree = Tree::chain(&setting, 2);
    let mut job = Job::in_tree(Setting { segment_lanes: 2000, every: ms(15), ..setting }, tree);
    let mut verifier = Verifier::new(ms(60), [(0, Ruling::Admit), (2, Ruling::Admit)]);
    verifier.train(&mut job, ms(2500));
    let by = |switch| {
        let asked = verifier.asked.iter().filter(|(by, _)| *by == switch);
        asked.map(|(_, cluster)| *cluster).collect::<BTreeSet<u32>>()
    };
    assert_eq!(by(switch(0)), BTreeSet::from([0, 1, 2]));
    assert_eq!(by(switch(1)), BTreeSet::from([0, 2]), "what the first refused never got there");
    assert_eq!(standings(&job, 0), [Standing::Joined; 2]);
    assert_eq!(standings(&job, 1), [TURNED_AWAY; 2]);
    let running = |place| {
        let switch = job.net.node::<Switch>(place).unwrap();
        let running = switch.running().into_iter();
        running.map(|(_, cluster)| cluster).collect::<Vec<ClusterId>>()
    };
    let both = [ClusterId(0), ClusterId(2)];
    assert_eq!((running(switch(0)), running(switch(1))), (both.to_vec(), both.to_vec()));
}
