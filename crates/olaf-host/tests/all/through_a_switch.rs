//! Workers, a switch and a server, wired by hand without loss or delay.

use olaf_engine::engine::{Engine, Source};
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{Instant, PeerId, PortId, Switch, Verdict};
use olaf_host::push_pull::server::{RuleConfig, RuleKind};
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::{
    Address, AggregateKind, ClusterId, JobId, ServerGate, Session, Step, Welcome, WelcomeCode,
    WorkerId,
};
use std::time::Duration;

const SERVER: PeerId = PeerId(1000);
const SWITCH: PeerId = PeerId(2000);

struct Net {
    now: Instant,
    switch: Switch,
    server: Server,
    workers: Vec<Worker>,
}

/// Every update at full strength, so that sums can be read off the model.
fn plain() -> RuleConfig {
    RuleConfig { step: Step::Mean, staleness_power: 0.0, ..RuleConfig::default() }
}

impl Net {
    fn new(workers: u32, segment_lanes: u32, pacing: Pacing) -> Self {
        let mut switch = Switch::new(Config::default().paced(pacing), 7).unwrap();
        switch.set_default_server(SERVER);
        let workers = (0..workers).map(|id| Self::worker(1, id, segment_lanes));
        Self {
            now: Instant(1_000_000),
            server: Server::new(ServerConfig { rule: plain(), ..ServerConfig::default() }, 9)
                .unwrap(),
            workers: workers.collect(),
            switch,
        }
    }

    /// A worker in one of its lives.
    fn worker(life: u32, id: u32, segment_lanes: u32) -> Worker {
        let address = Address {
            job: JobId(1),
            cluster: ClusterId(id / 2),
            worker: WorkerId(id),
            session: Session(100 * life + id),
        };
        Worker::new(WorkerConfig { segment_lanes, ..WorkerConfig::new(address, SWITCH) })
    }

    /// Lets everything travel, then a millisecond pass; `rounds` times.
    fn run(&mut self, rounds: usize) {
        let mut buf = vec![0; 65_536];
        for _ in 0..rounds {
            loop {
                let mut quiet = true;
                for (id, worker) in self.workers.iter_mut().enumerate() {
                    let peer = PeerId(u32::try_from(id).unwrap());
                    while let Some(t) = worker.poll_transmit(self.now, PortId(0), &mut buf) {
                        quiet = false;
                        let from = Source::new(PortId::DOWNLINK, peer);
                        self.switch.handle_packet(self.now, from, &buf[..t.len]);
                    }
                }
                while let Some(t) = self.switch.poll_transmit(self.now, PortId::UPLINK, &mut buf) {
                    quiet = false;
                    assert_eq!(t.to.one(), Some(SERVER));
                    let _ = self.server.handle_packet(self.now, Source::end(SWITCH), &buf[..t.len]);
                }
                while let Some(t) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
                    quiet = false;
                    let from = Source::new(PortId::UPLINK, SERVER);
                    self.switch.handle_packet(self.now, from, &buf[..t.len]);
                }
                while let Some(t) = self.switch.poll_transmit(self.now, PortId::DOWNLINK, &mut buf)
                {
                    quiet = false;
                    let worker = &mut self.workers[t.to.one().expect("one receiver").0 as usize];
                    let _ = worker.handle_packet(self.now, Source::end(SWITCH), &buf[..t.len]);
                }
                if quiet {
                    break;
                }
            }
            self.now = self.now + Duration::from_millis(1);
            self.switch.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.workers.iter_mut().for_each(|worker| worker.handle_timeout(self.now));
        }
    }
}

#[test]
fn the_first_worker_s_weights_start_the_job_and_everyone_gets_them() {
    let mut net = Net::new(4, 2, Pacing::Unlimited);
    let now = net.now;
    for (id, worker) in net.workers.iter_mut().enumerate() {
        worker.join(now, &[&[id as f32; 5]]).unwrap();
    }
    net.run(60);
    for worker in &net.workers {
        assert_eq!(worker.model().unwrap().lanes, [0.0; 5]);
        assert_eq!(worker.model().unwrap().version, 1);
    }
}

#[test]
fn updates_that_meet_in_the_queue_are_merged_applied_once_and_answered_to_those_who_shared() {
    // One byte takes 10 us: an update of 96 + 20 bytes a little over a millisecond.
    let rate = olaf_engine::BitsPerSecond::parse("800kbit").unwrap();
    let mut net = Net::new(4, 2208, Pacing::Rate(rate));
    let now = net.now;
    net.workers.iter_mut().for_each(|worker| worker.join(now, &[&[0.0; 5]]).unwrap());
    net.run(100);
    let now = net.now;
    for (id, worker) in net.workers.iter_mut().enumerate() {
        worker.push(now, &[&[(id + 1) as f32; 5]], 0.0, 1.0).unwrap();
    }
    net.run(20);
    let (fates, waiting) = net.switch.fates();
    // Worker 0's left at once and was locked; 1 waited alone; 2 and 3, of cluster 1, merged.
    assert_eq!((fates.received, fates.sent_alone, fates.merged, waiting), (4, 2, 2, 0));
    // 1 + 2 + (3 + 4) / 2.
    assert!(
        net.workers
            .iter()
            .all(|w| w.model().unwrap().version == 4 || w.model().unwrap().version >= 2)
    );
    let (version, mut segments) = net.server.model(JobId(1)).unwrap();
    assert_eq!(version, 4);
    let lanes = segments.next().unwrap();
    assert!(lanes.iter().all(|w| (w - 6.5).abs() < 1e-5), "{lanes:?}");
    let newest: Vec<u32> = net.workers.iter().map(|w| w.model().unwrap().version).collect();
    assert_eq!(&newest[2..], [4, 4]);
    assert!(net.workers.iter().all(|w| w.statistics(net.now).acknowledged == 1));
}

#[test]
fn the_rule_comes_with_the_server_s_welcome_and_not_with_the_switch_s() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    assert_eq!(net.workers[0].rule(), None);
    let now = net.now;
    net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
    net.run(5);
    let told = net.workers[0].rule().unwrap();
    assert_eq!((told.kind, told.aggregate), (RuleKind::Delta, AggregateKind::Each));
    assert_eq!((told.step, told.gate), (Step::Mean, ServerGate::None));
    assert_eq!((told.factor, told.staleness_power), (1.0, 0.0));

    let again = Welcome {
        code: WelcomeCode::JoinAgain,
        ready: false,
        switch_epoch: 1,
        ..olaf_samples::welcome(&olaf_samples::join(olaf_samples::address(1, 0, 0), 0, 0))
    };
    let mut buf = vec![0; 65_536];
    let len = again.emit(&mut buf);
    let verdict = net.workers[0].handle_packet(net.now, Source::end(SWITCH), &buf[..len]);
    assert_eq!(verdict, Verdict::Absorb);
    assert_eq!(net.workers[0].rule(), Some(told));
}

#[test]
fn names_of_arrays_go_up_through_a_switch() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    let now = net.now;
    let layout = r#"[{"name": "w", "shape": [2, 2]}, {"name": "b", "shape": []}]"#;
    net.workers[0].describe(layout, 5).unwrap();
    net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
    net.run(5);
    let arrays = net.server.layout(JobId(1)).unwrap().arrays();
    assert_eq!((arrays[0].name.as_str(), &arrays[0].shape[..]), ("w", &[2, 2][..]));
    assert_eq!(arrays.len(), 2);
}

#[test]
fn a_model_of_many_segments_comes_down_whole() {
    let mut net = Net::new(2, 3, Pacing::Unlimited);
    let now = net.now;
    let start: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    net.workers.iter_mut().for_each(|worker| worker.join(now, &[&start]).unwrap());
    net.run(100);
    assert_eq!(net.workers[1].model().unwrap().lanes, start);
    // 334 segments do not fit 8 slots: those that found the queue full are counted, and the
    // others are applied all the same.
    let now = net.now;
    net.workers[0].push(now, &[&[1000.0; 1000]], 0.0, 1.0).unwrap();
    net.run(100);
    let (fates, _) = net.switch.fates();
    assert_eq!(fates.received, 334);
    assert_eq!(fates.sent_alone + fates.dropped, 334);
    let model = net.workers[0].model().unwrap();
    assert_eq!(model.version, 2);
    let moved = model.lanes.iter().zip(&start).filter(|(new, old)| *new != *old).count();
    assert!((3..1000).contains(&moved), "{moved}");
}

#[test]
fn an_update_that_the_server_s_gate_keeps_out_is_answered_all_the_same() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    net.server = Server::new(
        ServerConfig {
            rule: RuleConfig { kind: RuleKind::PaperLiteral, ..RuleConfig::default() },
            ..ServerConfig::default()
        },
        9,
    )
    .unwrap();
    let now = net.now;
    net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
    net.run(60);
    for reward in [5.0, 1.0, 0.0] {
        let now = net.now;
        net.workers[0].push(now, &[&[1.0; 5]], reward, 1.0).unwrap();
        net.run(2);
    }
    let statistics = net.workers[0].statistics(net.now);
    assert_eq!((statistics.acknowledged, statistics.model_version), (3, 2));
    let server = net.server.statistics(net.now);
    assert_eq!((server.jobs[0].fates.delivered_alone, server.jobs[0].fates.gated), (1, 2));
}

#[test]
fn what_a_worker_pushed_last_counts_although_it_has_left_when_it_arrives() {
    let rate = olaf_engine::BitsPerSecond::parse("80kbit").unwrap();
    let mut net = Net::new(1, 2208, Pacing::Rate(rate));
    let now = net.now;
    net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
    net.run(400);
    let now = net.now;
    for _ in 0..2 {
        net.workers[0].push(now, &[&[1.0; 5]], 0.0, 1.0).unwrap();
        net.run(1);
    }
    net.workers[0].leave();
    net.run(200);
    let server = net.server.statistics(net.now);
    assert_eq!(server.jobs[0].fates.delivered_alone, 2);
    assert!(server.jobs[0].fates.rejected.is_empty(), "{:?}", server.jobs[0].fates.rejected);
    assert_eq!(server.jobs[0].clusters[0].workers, 0);
}

#[test]
fn a_worker_that_asked_nothing_is_brought_in_by_nobody() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    let unasked = Welcome {
        code: WelcomeCode::JoinAgain,
        ready: false,
        first_missing: 0,
        switch_epoch: 1,
        ..olaf_samples::welcome(&olaf_samples::join(olaf_samples::address(1, 0, 0), 0, 0))
    };
    let mut buf = vec![0; 65_536];
    let len = unasked.emit(&mut buf);
    let now = net.now;
    for _ in 0..2 {
        // Before it joins, and after it has left.
        let verdict = net.workers[0].handle_packet(now, Source::end(SWITCH), &buf[..len]);
        assert!(matches!(verdict, Verdict::Drop(_)), "{verdict:?}");
        assert!(net.workers[0].poll_transmit(now, PortId(0), &mut [0; 65_536]).is_none());
        net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
        net.run(60);
        net.workers[0].leave();
        net.run(1);
    }
}

#[test]
fn what_the_server_refuses_gives_its_credit_back_at_once() {
    let timeout = Duration::from_secs(3600);
    let mut net = Net::new(1, 2208, Pacing::Credits { credits: 1, timeout });
    let now = net.now;
    net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
    net.run(60);
    // A server in its next life has no model to apply an update to, but it has arrived.
    let rule = plain();
    net.server = Server::new(ServerConfig { rule, ..ServerConfig::default() }, 10).unwrap();
    for _ in 0..3 {
        let now = net.now;
        net.workers[0].push(now, &[&[1.0; 5]], 0.0, 1.0).unwrap();
        net.run(5);
    }
    net.run(600);
    assert_eq!(net.switch.statistics(net.now).uplink.outstanding, 0);
    assert_eq!(net.switch.fates().1, 0, "nothing waits for a credit");
}

#[test]
fn a_worker_moves_to_another_cluster_while_it_runs() {
    let mut net = Net::new(2, 2208, Pacing::Unlimited);
    let now = net.now;
    net.workers.iter_mut().for_each(|worker| worker.join(now, &[&[0.0; 5]]).unwrap());
    net.run(60);
    let now = net.now;
    net.workers[1].move_to(now, ClusterId(9));
    net.workers[1].push(now, &[&[1.0; 5]], 0.0, 1.0).unwrap();
    net.run(3);
    let (fates, _) = net.switch.fates();
    assert_eq!((fates.received, fates.sent_alone), (1, 1));
    let server = net.server.statistics(net.now);
    let ninth = server.jobs[0].clusters.iter().find(|c| c.cluster == 9).unwrap();
    assert_eq!((ninth.workers, ninth.deliveries), (1, 1));
    assert_eq!(net.workers[1].statistics(net.now).acknowledged, 1);
}

#[test]
fn weights_that_are_no_numbers_start_no_job() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    let now = net.now;
    let refused = net.workers[0].join(now, &[&[0.0, f32::NAN]]);
    assert_eq!(refused, Err(olaf_host::push_pull::worker::PushError::NonFinite { index: 1 }));
}

#[test]
fn a_job_that_was_forgotten_and_comes_again_is_not_taken_for_a_repetition() {
    let mut net = Net::new(1, 2208, Pacing::Unlimited);
    for round in 1..=2 {
        let now = net.now;
        net.workers = vec![Net::worker(u32::try_from(round).unwrap(), 0, 2208)];
        net.workers[0].join(now, &[&[0.0; 5]]).unwrap();
        net.run(60);
        let now = net.now;
        net.workers[0].push(now, &[&[1.0; 5]], 0.0, 1.0).unwrap();
        net.run(3);
        let server = net.server.statistics(net.now);
        assert_eq!(server.jobs[0].fates.delivered_alone, round, "{:?}", server.refused);
        net.workers[0].leave();
        net.run(1);
        // The switch forgets the job; the server, asked nothing, does not look at its own.
        net.now = net.now + Duration::from_secs(61);
        net.switch.handle_timeout(net.now);
        assert!(net.switch.statistics(net.now).clusters.is_empty());
    }
}
