//! Workers and a server over a network that does as the input says: datagrams are delivered in any
//! order, again, damaged, to the wrong end, or not at all, and others are made up. Nothing panics,
//! every contribution has one fate, and no model holds a number that is not finite.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::seal::Signer;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source};
use olaf_host::push_pull::server::Aggregate;
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::offsets::{MAGIC, MAX_DATAGRAM, VERSION};
use olaf_wire::{Address, Answer, ClusterId, Hash, JobId, Packet, Session, Update, WorkerId};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
enum Step {
    /// Everything that waits to be sent is sent, and everything on its way arrives.
    Flow,
    /// An end says what it has to say.
    Poll(u8),
    /// A datagram arrives, for the end it was meant for or another.
    Deliver {
        which: u8,
        at: u8,
        keep: bool,
        damage: Option<(u16, u8)>,
    },
    Push(u8, i8, u8),
    Take(u8),
    Join(u8, u8),
    Leave(u8),
    Wait(u16),
    Raw {
        at: u8,
        kind: u8,
        bytes: Vec<u8>,
    },
    /// A server begins a new life.
    Reborn,
}

const WORKERS: u8 = 3;
const SERVER: PeerId = PeerId(100);
const PARAMETERS: usize = 5;

/// Tags that the input can guess, so that it gets behind them. The last worker checks models.
struct Weak(u64);

impl Weak {
    fn sum(bytes: impl Iterator<Item = u8>) -> u8 {
        bytes.fold(1u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte)) & 3
    }
}

impl Signer for Weak {
    fn signs(&self, job: u32) -> bool {
        job == 1
    }
    fn draw(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
    fn hash_lanes(&self, lanes: &[f32]) -> Hash {
        [Self::sum(lanes.iter().flat_map(|lane| lane.to_le_bytes())); 32]
    }
    fn hash_hashes(&self, hashes: &[Hash]) -> Hash {
        [Self::sum(hashes.iter().flatten().copied()); 32]
    }
    fn tag(&self, _: u32, bytes: &[u8]) -> [u8; 16] {
        [Self::sum(bytes.iter().copied()); 16]
    }
    fn verify(&self, job: u32, bytes: &[u8], tag: &[u8; 16]) -> bool {
        self.tag(job, bytes)[0] == tag[0] & 3
    }
}

struct Run {
    now: Instant,
    workers: Vec<Worker>,
    server: Server,
    lives: u32,
    /// From whom, to whom, what.
    flying: Vec<(PeerId, PeerId, Vec<u8>)>,
    damaged: bool,
}

impl Run {
    fn poll(&mut self, at: u8, buf: &mut [u8]) {
        let at = at % (WORKERS + 1);
        loop {
            let (from, sent) = match self.workers.get_mut(usize::from(at)) {
                Some(worker) => {
                    (PeerId(u32::from(at)), worker.poll_transmit(self.now, PortId(0), buf))
                }
                None => (SERVER, self.server.poll_transmit(self.now, PortId(0), buf)),
            };
            let Some(sent) = sent else { break };
            assert!(Packet::new_checked(&buf[..sent.len]).is_ok(), "what is sent is well-formed");
            if self.flying.len() < 256 {
                self.flying.push((
                    from,
                    sent.to.one().expect("one receiver"),
                    buf[..sent.len].to_vec(),
                ));
            }
        }
    }

    fn arrive(&mut self, from: PeerId, to: u32, bytes: &[u8]) {
        let _ = match self.workers.get_mut(to as usize) {
            Some(worker) => worker.handle_packet(self.now, Source::end(from), bytes),
            None => self.server.handle_packet(self.now, Source::end(from), bytes),
        };
    }

    fn check(&mut self) {
        for job in self.server.statistics(self.now).jobs {
            let rejected: u64 = job.fates.rejected.values().sum();
            let delivered = job.fates.delivered_alone + job.fates.delivered_merged;
            let held = job.fates.gated + job.fates.waiting;
            assert_eq!(job.received, delivered + held + rejected);
        }
        if let Some((_, mut segments)) = self.server.model(JobId(1)) {
            assert!(segments.all(|segment| segment.iter().all(|lane| lane.is_finite())));
        }
        for worker in &mut self.workers {
            while worker.poll_event().is_some() {}
            let statistics = worker.statistics(self.now);
            assert_eq!(
                statistics.contributions,
                statistics.sent + statistics.replaced_unsent + statistics.unsent
            );
            if let Some(model) = worker.model() {
                assert_eq!(model.lanes.len(), PARAMETERS);
                assert!(self.damaged || model.lanes.iter().all(|lane| lane.is_finite()));
            }
        }
        while self.server.poll_event().is_some() {}
    }
}

/// Each life of a server changes the model at another time.
fn server(life: u32) -> Server {
    let after = Duration::from_millis(20);
    let aggregate = match life % 3 {
        0 => Aggregate::Each,
        1 => Aggregate::Periodic { contributions: Some(3), after },
        _ => Aggregate::Round { deadline: after },
    };
    let mut server = Server::new(
        ServerConfig {
            max_workers: 8,
            max_jobs: 4,
            max_parameters: 1 << 16,
            ..ServerConfig::default()
        }
        .aggregating(aggregate),
        50 + life,
    )
    .expect("these settings can be");
    server.sign_models(Box::new(Weak(0)));
    server
}

fn take(run: &mut Run, step: &Step, buf: &mut [u8]) {
    let now = run.now;
    match step {
        Step::Flow => {
            for _ in 0..4 {
                (0..=WORKERS).for_each(|at| run.poll(at, buf));
                for (from, to, bytes) in std::mem::take(&mut run.flying) {
                    run.arrive(from, to.0, &bytes);
                }
            }
        }
        Step::Poll(at) => run.poll(*at, buf),
        Step::Deliver { which, at, keep, damage } => {
            if run.flying.is_empty() {
                return;
            }
            let which = usize::from(*which) % run.flying.len();
            let (from, to, mut bytes) = run.flying[which].clone();
            if !keep {
                run.flying.remove(which);
            }
            if let Some((at, with)) = damage {
                let at = usize::from(*at) % bytes.len();
                bytes[at] = *with;
                run.damaged = true;
            }
            let to = if *at < 200 { to.0 } else { u32::from(at % (WORKERS + 1)) };
            run.arrive(from, to, &bytes);
        }
        Step::Push(at, value, weight) => {
            let worker = &mut run.workers[usize::from(at % WORKERS)];
            let value = if *value == i8::MAX { f32::MAX } else { f32::from(*value) };
            let _ = worker.push(
                now,
                &[&[value; 2], &[value; 3]],
                f64::from(*weight),
                f64::from(*weight),
            );
        }
        Step::Take(at) => {
            let worker = &mut run.workers[usize::from(at % WORKERS)];
            let version = worker.model().map(|model| model.version);
            version.into_iter().for_each(|version| worker.taken(version));
        }
        Step::Join(at, odd) => {
            let parameters = if *odd == 7 { PARAMETERS + 1 } else { PARAMETERS };
            if parameters == PARAMETERS {
                let _ = run.workers[usize::from(at % WORKERS)].join(now, &[&vec![1.0; parameters]]);
            }
        }
        Step::Leave(at) => run.workers[usize::from(at % WORKERS)].leave(),
        Step::Wait(milliseconds) => {
            run.now = now + Duration::from_millis(u64::from(*milliseconds));
            run.workers.iter_mut().for_each(|worker| worker.handle_timeout(run.now));
            run.server.handle_timeout(run.now);
        }
        Step::Raw { at, kind, bytes } => {
            let to = u32::from(at % (WORKERS + 1));
            let from =
                if to < u32::from(WORKERS) { SERVER } else { PeerId(u32::from(at / 4 % WORKERS)) };
            run.damaged = true;
            run.arrive(from, to, bytes);
            let ours = [MAGIC.as_slice(), &[VERSION, kind % 12, 0, 0], bytes].concat();
            run.arrive(from, to, &ours);
            if let Ok(packet) = Packet::new_checked(&ours) {
                let _ = (Update::parse(&packet), Answer::parse(&packet));
            }
        }
        Step::Reborn => {
            run.lives += 1;
            run.server = server(run.lives);
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut buf = vec![0; MAX_DATAGRAM];
    let workers = (0..WORKERS).map(|id| {
        let address = Address {
            job: JobId(1),
            cluster: ClusterId(u32::from(id % 2)),
            worker: WorkerId(u32::from(id)),
            session: Session(10 + u32::from(id)),
        };
        let config = WorkerConfig { segment_lanes: 2, ..WorkerConfig::new(address, SERVER) };
        let mut worker = Worker::new(config);
        if id == WORKERS - 1 {
            worker.check_models(Box::new(Weak(0)));
        }
        worker
    });
    let mut run = Run {
        now: Instant(1_000_000_000),
        workers: workers.collect(),
        server: server(0),
        lives: 0,
        flying: Vec::new(),
        damaged: false,
    };
    for at in 0..WORKERS {
        take(&mut run, &Step::Join(at, 0), &mut buf);
    }
    take(&mut run, &Step::Flow, &mut buf);
    for step in &steps {
        take(&mut run, step, &mut buf);
        run.check();
    }
});
