//! Whatever comes in whatever order: nothing panics, every contribution has one fate, and what
//! leaves is what came.

use crate::common::*;
use core::time::Duration;
use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::event::{Event, WorkerSeen};
use olaf_engine::switch::native::{Admission, AnswerTo, Config, Pacing, QueueKind, Ruling};
use olaf_engine::{BitsPerSecond, Engine, JobId, PeerId, PortId};
use olaf_wire::offsets::{MAGIC, MAX_DATAGRAM, VERSION};
use olaf_wire::{Answer, Fetch, Leave, Packet, Update, WelcomeCode};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Join(Who, u8),
    Welcome(Who, u8),
    Update(Who, Sent),
    Answer {
        cluster: u32,
        acknowledges: u32,
        segment: u32,
        version: u32,
        to: Option<Who>,
        epoch: u32,
    },
    Leave(Who),
    Fetch(Who),
    /// The word on whatever cluster it is that was asked about.
    Decide(Option<bool>),
    Wait(u64),
    DrainUp(usize),
    DrainDown(usize),
    Garbage(bool, Vec<u8>),
    /// The bytes of the next step's datagram, with some of them changed.
    Damage(Vec<(prop::sample::Index, u8)>),
}

#[derive(Clone, Copy, Debug)]
struct Who {
    job: u32,
    cluster: u32,
    worker: u32,
    session: u32,
    peer: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    sequence: u32,
    segment: u32,
    segments: u32,
    contributors: u32,
    reward: f64,
    bad_lane: bool,
    hops: u8,
}

const SHAPE: (u32, u32) = (5, 2);

fn who() -> impl Strategy<Value = Who> {
    // Mostly a worker as it is: its cluster, session and peer follow from its number.
    let odd = prop_oneof![9 => Just(0u32), 1 => 1u32..3];
    (1u32..3, 0u32..5, odd.clone(), odd.clone(), odd).prop_map(|(job, worker, c, s, p)| Who {
        job,
        cluster: (worker + c) % 3,
        worker,
        session: 500 + worker + s,
        peer: 10 * job + worker + p,
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let segment =
        prop_oneof![9 => (0u32..3).prop_map(|s| (s, 3)), 1 => (0u32..2).prop_map(|s| (s, 2))];
    let contributors = prop_oneof![8 => Just(1u32), 2 => 2u32..4];
    let reward = prop_oneof![9 => (-3i8..3).prop_map(f64::from), 1 => Just(f64::NAN)];
    let hops = prop_oneof![8 => Just(0u8), 8 => Just(1u8), 1 => 2u8..17];
    (0u32..12, segment, contributors, reward, prop::bool::weighted(0.05), hops).prop_map(
        |(sequence, (segment, segments), contributors, reward, bad_lane, hops)| Sent {
            sequence,
            segment,
            segments,
            contributors,
            reward,
            bad_lane,
            hops,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let answer = (0u32..3, 0u32..40, 0u32..3, 0u32..5, prop::option::weighted(0.2, who()), 1u32..3);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    prop_oneof![
        4 => (who(), prop_oneof![3 => Just(0u8), 1 => 1u8..18]).prop_map(|(who, hops)| Step::Join(who, hops)),
        4 => (who(), prop_oneof![8 => Just(0u8), 1 => 0u8..12]).prop_map(|(who, code)| Step::Welcome(who, code)),
        20 => (who(), sent()).prop_map(|(who, sent)| Step::Update(who, sent)),
        4 => answer.prop_map(|(cluster, acknowledges, segment, version, to, epoch)| Step::Answer {
            cluster, acknowledges, segment, version, to, epoch
        }),
        1 => who().prop_map(Step::Leave),
        1 => who().prop_map(Step::Fetch),
        2 => prop::option::weighted(0.8, prop::bool::weighted(0.7)).prop_map(Step::Decide),
        4 => prop_oneof![6 => 0u64..5, 1 => 900u64..1100, 1 => 1900u64..70_000].prop_map(Step::Wait),
        5 => (1usize..4).prop_map(Step::DrainUp),
        3 => (1usize..9).prop_map(Step::DrainDown),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)).prop_map(|(up, b)| Step::Garbage(up, b)),
        2 => damage.prop_map(Step::Damage),
    ]
}

fn configs() -> impl Strategy<Value = Config> {
    let pacing = prop_oneof![
        Just(Pacing::Unlimited),
        (10_000u64..10_000_000).prop_map(|rate| Pacing::Rate(BitsPerSecond::new(rate).unwrap())),
        (1usize..4)
            .prop_map(|credits| Pacing::Credits { credits, timeout: Duration::from_millis(200) }),
    ];
    let gate = prop_oneof![Just(None), Just(Some(1.5))];
    let queue = prop::sample::select(QueueKind::ALL).prop_map(|(_, kind)| kind);
    let answer_to = prop_oneof![Just(AnswerTo::Shared), Just(AnswerTo::Cluster)];
    let admission = prop::option::of((1u64..500, any::<bool>(), 1usize..4)).prop_map(|asks| {
        asks.map(|(timeout, admit, max_questions)| Admission {
            timeout: Duration::from_millis(timeout),
            unanswered: if admit { Ruling::Admit } else { Ruling::Refuse },
            refused_for: Duration::from_millis(timeout),
            max_questions,
        })
    });
    (pacing, gate, queue, answer_to, admission, 1usize..8, 1usize..20).prop_map(
        |(pacing, gate, queue, answer_to, admission, slots, limit)| {
            let config = Config {
                gate,
                queue,
                answer_to,
                slots,
                control_limit: limit,
                downlink_limit: limit,
                max_workers: 8,
                ..Config::default()
            };
            config.paced(pacing).asking(admission)
        },
    )
}

/// The switch, and what is known of it from outside.
struct Run {
    bench: Bench,
    /// Contributions that should have been counted.
    received: u64,
    left: u64,
    /// Whom the question is about that is put.
    put: Option<WorkerSeen>,
    damage: Vec<(prop::sample::Index, u8)>,
}

impl Run {
    fn recv(&mut self, up: bool, peer: u32, mut bytes: Vec<u8>) {
        for (at, with) in std::mem::take(&mut self.damage) {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = with;
            }
        }
        let port = if up { PortId::UPLINK } else { PortId::DOWNLINK };
        let verdict = self.bench.recv(Source::new(port, PeerId(peer)), &bytes);
        let update =
            Packet::new_checked(&bytes).ok().and_then(|packet| Update::parse(&packet).ok());
        let Some(update) = update.filter(|_| !up) else { return };
        self.received += match verdict {
            Verdict::Drop(DropReason::Contribution(rejection)) => {
                u64::from(rejection.counts(update.contributors))
            }
            Verdict::Drop(DropReason::Malformed(_)) => 0,
            _ => u64::from(update.contributors),
        };
        assert_eq!(self.received, self.bench.fate("received"));
    }

    fn emitted(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
        let mut buf = vec![0; 1024];
        let len = emit(&mut buf);
        buf.truncate(len);
        buf
    }

    fn drain(&mut self, port: PortId, most: usize) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for _ in 0..most {
            let Some(sent) = self.bench.switch.poll_transmit(self.bench.now, port, &mut buf) else {
                break;
            };
            self.bench.accounts_are_in_order();
            if let Out::Update(update, lanes) = read(&buf[..sent.len]) {
                assert_eq!(port, PortId::UPLINK);
                self.left += u64::from(update.contributors);
                // The first lane of each contribution is 1 for each contributor it claims.
                assert_eq!(lanes[0], update.contributors as f32, "{update:?}");
                assert!(lanes.iter().all(|lane| lane.is_finite()) && update.reward.is_finite());
            }
        }
        assert_eq!(self.left, self.bench.fate("sent_alone") + self.bench.fate("merged"));
    }

    /// A question is put only while none is, and about a cluster that is not here.
    fn listen(&mut self) {
        for event in self.bench.events() {
            match event {
                Event::AdmissionWanted(who, _) => {
                    assert_eq!(self.put.replace(who), None);
                    assert!(!self.bench.switch.running().contains(&(who.job, who.cluster)));
                }
                Event::AdmissionUnanswered(who, _) => {
                    let put = self.put.take().map(|put| (put.job, put.cluster));
                    assert_eq!(put, Some((who.job, who.cluster)));
                }
                _ => {}
            }
        }
        let Some(admission) = self.bench.switch.statistics(self.bench.now).admission else {
            return;
        };
        let counts = admission.counts;
        let settled = counts.admitted + counts.refused + counts.unanswered;
        assert_eq!(counts.asked, settled + u64::from(self.put.is_some()));
        assert_eq!(admission.open > 0, self.put.is_some());
    }

    fn decide(&mut self, admit: Option<bool>) {
        let Some(who) = self.put else { return };
        let ruling = admit.map(|yes| if yes { Ruling::Admit } else { Ruling::Refuse });
        // Without an answer the switch says itself that there was none.
        self.put = self.put.filter(|_| ruling.is_none());
        assert!(self.bench.switch.decide(self.bench.now, who.job, who.cluster, ruling));
    }

    fn take(&mut self, step: &Step) {
        let as_w = |who: &Who| W {
            job: who.job,
            cluster: who.cluster,
            worker: who.worker,
            session: who.session,
            peer: who.peer,
        };
        let server = |job: u32| 1000 + job;
        match step {
            Step::Join(who, hops) => {
                let join = olaf_wire::Join {
                    segment_lanes: SHAPE.1,
                    hops: *hops,
                    sent_at_ns: self.bench.now.0,
                    ..join(as_w(who), SHAPE.0)
                };
                self.recv(false, who.peer, Self::emitted(|buf| join.emit(buf)));
            }
            Step::Welcome(who, code) => {
                let code = CODES[usize::from(*code)];
                let welcome = olaf_wire::Welcome {
                    parameters: SHAPE.0,
                    segment_lanes: SHAPE.1,
                    ..welcome(as_w(who), code)
                };
                self.recv(true, server(who.job), Self::emitted(|buf| welcome.emit(buf)));
            }
            Step::Update(who, sent) => {
                let update = Update {
                    segment: sent.segment,
                    segments: sent.segments,
                    contributors: sent.contributors,
                    weight: f64::from(sent.contributors),
                    reward: sent.reward,
                    hops: sent.hops,
                    ..update(as_w(who), sent.sequence)
                };
                let mut lanes =
                    vec![sent.contributors as f32; if sent.segment == 2 { 1 } else { 2 }];
                if sent.bad_lane {
                    *lanes.last_mut().unwrap() = f32::NAN;
                }
                // A damaged lane would make the sums wrong, as it would in life: damage headers.
                if !self.damage.is_empty() {
                    lanes.fill(sent.contributors as f32);
                    self.damage.clear();
                }
                self.recv(false, who.peer, Self::emitted(|buf| update.emit(&lanes, buf)));
            }
            Step::Answer { cluster, acknowledges, segment, version, to, epoch } => {
                let to_one = to.as_ref().map(|who| as_w(who).address());
                let base = answer(*cluster, *acknowledges);
                let answer = Answer {
                    address: to_one.unwrap_or(base.address),
                    segment: *segment,
                    segments: 3,
                    model_version: *version,
                    parameters: SHAPE.0,
                    epoch: *epoch,
                    ..base
                };
                let lanes: &[f32] = if *version == 0 { &[] } else { &[1.0] };
                let peer = server(answer.address.job.0);
                self.recv(true, peer, Self::emitted(|buf| answer.emit(lanes, buf)));
            }
            Step::Leave(who) => {
                let leave = Leave { address: as_w(who).address() };
                self.recv(false, who.peer, Self::emitted(|buf| leave.emit(buf)));
            }
            Step::Fetch(who) => {
                let fetch = Fetch {
                    address: as_w(who).address(),
                    version: 0,
                    first: 0,
                    mask: 7,
                    have_version: 0,
                };
                self.recv(false, who.peer, Self::emitted(|buf| fetch.emit(buf)));
            }
            Step::Decide(admit) => self.decide(*admit),
            Step::Wait(milliseconds) => {
                self.bench.now = self.bench.now + Duration::from_millis(*milliseconds);
                self.bench.switch.handle_timeout(self.bench.now);
            }
            Step::DrainUp(most) => self.drain(PortId::UPLINK, *most),
            Step::DrainDown(most) => self.drain(PortId::DOWNLINK, *most),
            Step::Garbage(up, bytes) => {
                self.recv(*up, 1, bytes.clone());
                let mut ours = [MAGIC.as_slice(), &[VERSION]].concat();
                ours.extend(bytes);
                self.recv(*up, 1, ours);
            }
            Step::Damage(damage) => self.damage = damage.clone(),
        }
    }
}

const CODES: [WelcomeCode; 14] = [
    WelcomeCode::Welcome,
    WelcomeCode::WorkerIdInUse,
    WelcomeCode::WrongModelSize,
    WelcomeCode::WrongSegmentLanes,
    WelcomeCode::UnknownJob,
    WelcomeCode::ModelTooLarge,
    WelcomeCode::Full,
    WelcomeCode::ServerSilent,
    WelcomeCode::JoinAgain,
    WelcomeCode::Loop,
    WelcomeCode::NotAdmitted,
    WelcomeCode::AdmissionPending,
    WelcomeCode::JobFull,
    WelcomeCode::TooManyClusters,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(800), ..ProptestConfig::default() })]
    #[test]
    fn every_contribution_has_one_fate_whatever_comes(
        config in configs(), steps in prop::collection::vec(step(), 0..250),
    ) {
        let mut bench = Bench::new(config);
        bench.switch.set_server(JobId(1), PeerId(1001));
        bench.switch.set_server(JobId(2), PeerId(1002));
        let mut run = Run { bench, received: 0, left: 0, put: None, damage: Vec::new() };
        // Most workers are in from the start, or little would happen.
        for job in 1..3 {
            for worker in 0..4 {
                let who = Who { job, cluster: worker % 3, worker, session: 500 + worker, peer: 10 * job + worker };
                // One in two is behind a switch.
                run.take(&Step::Join(who, u8::from(worker % 2 == 1)));
                run.listen();
                run.take(&Step::Decide(Some(true)));
                run.listen();
                run.take(&Step::Welcome(who, 0));
                run.bench.now = run.bench.now + Duration::from_secs(1);
                run.drain(PortId::UPLINK, 9);
            }
        }
        for step in &steps {
            run.take(step);
            run.listen();
        }
        // In the end everything leaves: nothing is kept for ever by a credit nobody returns.
        for _ in 0..100 {
            run.take(&Step::Wait(1000));
            run.drain(PortId::UPLINK, usize::MAX);
            run.drain(PortId::DOWNLINK, usize::MAX);
        }
        prop_assert_eq!(run.bench.fate("waiting"), 0);
    }

    #[test]
    fn damaged_updates_never_panic(
        steps in prop::collection::vec((who(), sent(), any::<prop::sample::Index>(), any::<u8>()), 0..60),
    ) {
        let mut bench = Bench::new(Config::default());
        for who in [w(0, 0), w(1, 1), w(2, 2)] {
            bench.enters(who);
        }
        for (who, sent, at, with) in steps {
            let who = W { job: JOB, cluster: who.cluster, worker: who.worker, session: who.session, peer: who.worker };
            let update = Update { reward: sent.reward, ..update(who, sent.sequence) };
            let mut bytes = vec![0; 200];
            let len = update.emit(&[1.0, 2.0], &mut bytes);
            bytes[at.index(len)] = with;
            bench.recv(who.source(), &bytes[..len]);
            if with % 8 == 0 {
                bench.up();
            }
        }
    }
}
