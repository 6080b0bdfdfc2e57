//! Any datagrams in any order at a switch, well-formed, odd and raw: nothing panics, every
//! contribution has one fate, and what leaves is what came.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::engine::Source;
use olaf_engine::switch::native::{Admission, AnswerTo, Config, Pacing, QueueKind, Ruling};
use olaf_engine::{BitsPerSecond, Engine, Instant, JobId, PeerId, PortId, Switch};
use olaf_wire::offsets::{MAGIC, MAX_DATAGRAM, VERSION};
use olaf_wire::{
    Address, Answer, ClusterId, Ends, Fetch, Join, JoinPath, Leave, Packet, QueueStatus, Session,
    Update, Welcome, WelcomeCode, WorkerId,
};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Setting {
    queue: u8,
    slots: u8,
    gate: Option<u8>,
    pacing: u16,
    to_cluster: bool,
    limit: u8,
    /// Whether it asks before a cluster joins, and for how long.
    asks: Option<(u8, bool)>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Join(Who),
    Welcome(Who, u8),
    Update(Who, u8, u8, u8, i8, bool),
    Answer(Who, u8, u8, u8, bool),
    Leave(Who),
    Decide(Who, Option<bool>),
    Fetch(Who, u32),
    Wait(u16),
    Drain(bool, u8),
    Raw(bool, u8, Vec<u8>),
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

/// Mostly a worker as it is: `odd` changes one thing about it.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Who {
    worker: u8,
    odd: u8,
}

const PARAMETERS: u32 = 5;
const LANES: u32 = 2;

impl Who {
    fn worker(self) -> u32 {
        u32::from(self.worker % 4)
    }
    fn job(self) -> u32 {
        1 + u32::from(self.worker / 4 % 2)
    }
    fn peer(self) -> u32 {
        self.job() * 10 + self.worker() + u32::from(self.odd == 1)
    }
    fn behind(self) -> u8 {
        u8::from(self.worker() % 2 == 1)
    }
    fn server(self) -> u32 {
        1000 + self.job()
    }
    fn address(self) -> Address {
        Address {
            job: JobId(self.job()),
            cluster: ClusterId((self.worker() + u32::from(self.odd == 2)) % 3),
            worker: if self.odd == 3 { WorkerId::ALL } else { WorkerId(self.worker()) },
            session: Session(7 + u32::from(self.odd == 4)),
        }
    }
}

struct Run {
    switch: Switch,
    now: Instant,
    damage: Option<(u8, u8)>,
    damaged: bool,
    left: u64,
}

impl Run {
    fn recv(&mut self, up: bool, peer: u32, bytes: &mut [u8]) {
        if let (Some((at, with)), false) = (self.damage.take(), bytes.is_empty()) {
            bytes[usize::from(at) % bytes.len()] = with;
            self.damaged = true;
        }
        let port = if up { PortId::UPLINK } else { PortId::DOWNLINK };
        let _ = self.switch.handle_packet(self.now, Source::new(port, PeerId(peer)), bytes);
    }

    fn accounts(&mut self) {
        // Checks the sum of all by itself when it is asked, in a build with debug assertions.
        let statistics = self.switch.statistics(self.now);
        for c in &statistics.clusters {
            let sum = c.sent_alone
                + c.merged
                + c.replaced
                + c.filtered
                + c.dropped
                + c.rejected
                + c.waiting;
            assert_eq!(c.received, sum, "{c:?}");
        }
        let (fates, waiting) = self.switch.fates();
        assert_eq!(fates.received, fates.settled() + waiting);
        assert_eq!(self.left, fates.sent_alone + fates.merged);
        assert!(statistics.queue.used <= statistics.queue.slots);
    }

    fn drain(&mut self, up: bool, most: usize, buf: &mut [u8]) {
        let port = if up { PortId::UPLINK } else { PortId::DOWNLINK };
        for _ in 0..most {
            let Some(sent) = self.switch.poll_transmit(self.now, port, buf) else { break };
            let Ok(packet) = Packet::new_checked(&buf[..sent.len]) else {
                panic!("what leaves is well-formed")
            };
            if let Ok(update) = Update::parse(&packet) {
                self.left += u64::from(update.contributors);
                let first = f32::from_le_bytes(packet.lanes()[..4].try_into().expect("a lane"));
                assert!(first.is_finite() && update.reward.is_finite());
                // The first lane of each contribution is how many it says it is.
                assert!(self.damaged || first == update.contributors as f32);
            }
        }
    }
}

fn config(setting: &Setting) -> Config {
    let pacing = match setting.pacing % 3 {
        0 => Pacing::Unlimited,
        1 => BitsPerSecond::new(u64::from(setting.pacing) * 100 + 1)
            .map_or(Pacing::Unlimited, Pacing::Rate),
        _ => Pacing::Credits {
            credits: usize::from(setting.pacing % 5) + 1,
            timeout: Duration::from_millis(u64::from(setting.pacing) + 1),
        },
    };
    let admission = setting.asks.map(|(timeout, admit)| Admission {
        timeout: Duration::from_millis(u64::from(timeout) + 1),
        unanswered: if admit { Ruling::Admit } else { Ruling::Refuse },
        refused_for: Duration::from_millis(u64::from(timeout)),
        max_questions: 2,
    });
    let config = Config {
        queue: QueueKind::ALL[usize::from(setting.queue) % QueueKind::ALL.len()].1,
        slots: usize::from(setting.slots % 8) + 1,
        gate: setting.gate.map(f64::from),
        answer_to: if setting.to_cluster { AnswerTo::Cluster } else { AnswerTo::Shared },
        control_limit: usize::from(setting.limit) + 1,
        downlink_limit: usize::from(setting.limit) + 1,
        max_workers: 8,
        ..Config::default()
    };
    config.paced(pacing).asking(admission)
}

fn take(run: &mut Run, step: &Step, buf: &mut [u8]) {
    match step {
        Step::Join(who) => {
            let len = Join {
                address: who.address(),
                have_version: 0,
                parameters: PARAMETERS + u32::from(who.odd == 5),
                segment_lanes: LANES,
                clock_error_us: 0,
                sent_at_ns: run.now.0,
                clock_offset_ns: 0,
                // One worker in two is behind a switch, and what comes of it has passed one.
                hops: who.behind(),
                wants_notices: who.odd % 2 == 0,
                path: JoinPath {
                    asks: who.odd == 3,
                    round_trip_us: 0,
                    padded_to: if who.odd == 3 { 200 } else { 0 },
                },
                nonce: u32::from(who.odd == 4),
            }
            .emit(buf);
            run.recv(false, who.peer(), &mut buf[..len]);
        }
        Step::Welcome(who, code) => {
            use WelcomeCode as Code;
            let codes = [
                Code::WorkerIdInUse,
                Code::WrongModelSize,
                Code::ServerSilent,
                Code::JoinAgain,
                Code::NotAdmitted,
                Code::AdmissionPending,
            ];
            let len = Welcome {
                address: who.address(),
                code: codes.get(usize::from(*code)).copied().unwrap_or(Code::Welcome),
                ready: true,
                version: 1,
                parameters: PARAMETERS,
                segment_lanes: LANES,
                epoch: 5 + u32::from(who.odd == 6),
                first_missing: 0,
                echoed_sent_at_ns: 0,
                received_at_ns: 0,
                sent_at_ns: 0,
                switch_epoch: 0,
                silent_ms: 0,
                rule: None,
                layout_missing: u32::MAX,
                missing: 0,
                padded_to: 0,
                // Two that a host echoes, and none.
                nonce: u32::from(*code % 3),
            }
            .emit(buf);
            run.recv(true, who.server(), &mut buf[..len]);
        }
        Step::Update(who, sequence, segment, contributors, reward, bad) => {
            let segment = u32::from(segment % 3);
            let contributors = u32::from(contributors % 4).max(1);
            let mut lanes = vec![contributors as f32; if segment == 2 { 1 } else { 2 }];
            if *bad {
                lanes.fill(f32::NAN);
            }
            let len = Update {
                address: who.address(),
                sequence: u32::from(*sequence),
                hop_sequence: u32::from(*sequence) + 1,
                flow_sequence: u32::from(*sequence),
                segment,
                segments: 3,
                generated_oldest_ns: 0,
                generated_newest_ns: 1,
                version_oldest: 0,
                version_newest: 1,
                contributors,
                weight: f64::from(contributors),
                reward: if *reward == i8::MIN { f64::NAN } else { f64::from(*reward) },
                hops: who.odd % 32 + who.behind(),
            }
            .emit(&lanes, buf);
            run.recv(false, who.peer(), &mut buf[..len]);
        }
        Step::Answer(who, acknowledges, version, segment, all) => {
            let address = who.address();
            let address = if *all { Address { worker: WorkerId::ALL, ..address } } else { address };
            let lanes = [1.0, 2.0];
            let len = Answer {
                address,
                acknowledges: u32::from(*acknowledges),
                segment: u32::from(segment % 3),
                segments: 3,
                model_version: u32::from(*version),
                parameters: PARAMETERS,
                epoch: 5 + u32::from(who.odd == 6),
                delivered_version: 0,
                delivered_newest_ns: 0,
                server_time_ns: 0,
                queue: QueueStatus {
                    active_clusters: u16::from(who.odd),
                    slots: 1,
                    used: 0,
                    switches: *segment,
                    round_us: u32::from(*version),
                },
                ages: olaf_wire::Ages::default(),
                ends: Ends {
                    newest: u32::from(*acknowledges),
                    delivered: u64::from(*version),
                    ended: u64::from(!*version),
                },
            }
            .emit(&lanes[..usize::from(version % 3)], buf);
            run.recv(true, who.server(), &mut buf[..len]);
        }
        Step::Leave(who) => {
            let len = Leave { address: who.address() }.emit(buf);
            run.recv(false, who.peer(), &mut buf[..len]);
        }
        Step::Decide(who, admit) => {
            let ruling = admit.map(|yes| if yes { Ruling::Admit } else { Ruling::Refuse });
            let address = who.address();
            run.switch.decide(run.now, address.job, address.cluster, ruling);
        }
        Step::Fetch(who, first) => {
            let len = Fetch {
                address: who.address(),
                version: 0,
                first: *first,
                mask: u64::MAX,
                have_version: 0,
            }
            .emit(buf);
            run.recv(false, who.peer(), &mut buf[..len]);
        }
        Step::Wait(milliseconds) => {
            run.now = run.now + Duration::from_millis(u64::from(*milliseconds));
            run.switch.handle_timeout(run.now);
            while run.switch.poll_event().is_some() {}
        }
        Step::Drain(up, most) => run.drain(*up, usize::from(*most), buf),
        Step::Raw(up, peer, bytes) => {
            run.recv(*up, u32::from(*peer), &mut bytes.clone());
            let mut ours = [MAGIC.as_slice(), &[VERSION], bytes].concat();
            run.recv(*up, u32::from(*peer), &mut ours);
            // What may be an update with any first lane.
            run.damaged = true;
        }
        Step::Damage(at, with) => run.damage = Some((*at, *with)),
    }
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let mut buf = vec![0; MAX_DATAGRAM];
    let mut switch = Switch::new(config(&setting), 3).expect("these settings can be");
    switch.set_server(JobId(1), PeerId(1001));
    switch.set_server(JobId(2), PeerId(1002));
    let mut run = Run { switch, now: Instant(0), damage: None, damaged: false, left: 0 };
    for worker in 0..8 {
        let who = Who { worker, odd: 0 };
        let steps = [Step::Join(who), Step::Decide(who, Some(true)), Step::Welcome(who, 9)];
        for step in steps.iter().chain(&[Step::Wait(1000), Step::Drain(true, 9)]) {
            take(&mut run, step, &mut buf);
        }
    }
    for step in &steps {
        take(&mut run, step, &mut buf);
        run.accounts();
    }
    for _ in 0..50 {
        take(&mut run, &Step::Wait(u16::MAX), &mut buf);
        run.drain(true, usize::MAX, &mut buf);
        run.drain(false, usize::MAX, &mut buf);
    }
    run.accounts();
    assert_eq!(run.switch.fates().1, 0, "nothing waits for ever");
});
