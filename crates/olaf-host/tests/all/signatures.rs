//! Whose signatures a worker believes, and how often: each rule by itself. All of them together, in any
//! weather and with switches that lie, are in `olaf-sim/tests/all/signed.rs`.

use olaf_engine::seal::Signer;
use olaf_engine::{
    DropReason, Engine, Event, Instant, PeerId, PortId, Source, Verdict, WorkerEvent,
};
use olaf_host::push_pull::worker::{SignatureCounts, Standing};
use olaf_host::{Refused, Server, ServerConfig, Worker, WorkerConfig};
use olaf_samples::Toy;
use olaf_wire::{Address, AskSignature, JobId, Kind, Packet, Signature};
use std::time::Duration;

const SERVER: PeerId = PeerId(1000);
const WORKER: PeerId = PeerId(7);
const SECRET: u64 = 5;

/// A server that signs and a worker that checks, directly connected. The network may keep signatures.
struct Pair {
    now: Instant,
    server: Server,
    worker: Worker,
    /// Whether signatures that answer no question are kept, and those that do.
    keeps: (bool, bool),
    kept: Vec<Signature>,
    hops: u32,
}

fn address() -> Address {
    olaf_samples::address(1, 0, 7)
}

/// A life of the server.
fn server(epoch: u32) -> Server {
    // Of one version alone is anything known: whoever asks for an older one hears of the newest.
    let config = ServerConfig { keep_versions: 1, ..ServerConfig::default() };
    let mut server = Server::new(config, epoch).unwrap();
    server.sign_models(Toy::with_secret(SECRET, epoch));
    server
}

impl Pair {
    fn new(keeps: (bool, bool)) -> Self {
        let mut worker = Worker::new(WorkerConfig::new(address(), SERVER));
        worker.check_models(Toy::with_secret(SECRET, 2));
        let now = Instant(1_000_000_000);
        worker.join(now, &[&[1.0]]).unwrap();
        Self { now, server: server(9), worker, keeps, kept: Vec::new(), hops: 0 }
    }

    fn joined() -> Self {
        let mut pair = Self::new((false, false));
        pair.run(100);
        assert_eq!(pair.worker.standing(), Standing::Joined);
        pair
    }

    fn run(&mut self, milliseconds: u64) {
        let mut buf = vec![0; 65_536];
        for _ in 0..milliseconds {
            while let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) {
                self.server.handle_packet(self.now, Source::end(WORKER), &buf[..sent.len]);
            }
            while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
                let bytes = &buf[..sent.len];
                if sent.to.one() == Some(WORKER) && !self.keeps_back(bytes) {
                    self.worker.handle_packet(self.now, Source::end(SERVER), bytes);
                }
            }
            self.now = self.now + Duration::from_millis(1);
            for engine in [&mut self.worker as &mut dyn Engine, &mut self.server] {
                if engine.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    engine.handle_timeout(self.now);
                }
            }
        }
    }

    fn keeps_back(&mut self, bytes: &[u8]) -> bool {
        let packet = Packet::new_checked(bytes).unwrap();
        if packet.kind() != Kind::Signature {
            return false;
        }
        let signature = Signature::parse(&packet).unwrap();
        self.kept.push(signature);
        if signature.question == 0 { self.keeps.0 } else { self.keeps.1 }
    }

    fn gives(&mut self, signature: &Signature) -> Result<(), Refused> {
        let mut buf = [0; 512];
        let len = signature.emit(&mut buf);
        taken(self.worker.handle_packet(self.now, Source::end(SERVER), &buf[..len]))
    }

    /// Another worker, at another address, changes the model.
    fn another_worker_pushes(&mut self) {
        let mut buf = [0; 512];
        let other = olaf_samples::address(1, 1, 8);
        self.hops += 1;
        let mut update = olaf_samples::update(other, self.hops);
        update.hop_sequence = self.hops;
        let join = olaf_samples::join(other, 1, 2208).emit(&mut buf);
        self.server.handle_packet(self.now, Source::end(PeerId(8)), &buf[..join]);
        let len = update.emit(&[1.0], &mut buf);
        let verdict = self.server.handle_packet(self.now, Source::end(PeerId(8)), &buf[..len]);
        assert_eq!(verdict, Verdict::Absorb);
    }

    /// The worker's push makes that version of the model, which the worker gets without its signature.
    fn pushes_and_waits_for_the_signature(&mut self, version: u32) {
        let now = self.now;
        self.worker.push(now, &[&[1.0]], 0.0, 1.0).unwrap();
        self.run(1);
        assert_eq!(self.server.model(JobId(1)).unwrap().0, version);
    }

    /// The server's signature under that version, as it was sent without a question.
    fn kept_of(&self, version: u32) -> Signature {
        let of = |kept: &&Signature| (kept.version, kept.question) == (version, 0);
        *self.kept.iter().find(of).expect("the server signed it")
    }

    fn version(&self) -> u32 {
        self.worker.model().map_or(0, |model| model.version)
    }

    fn counts(&self) -> SignatureCounts {
        self.worker.statistics(self.now).signatures
    }
}

fn taken(verdict: Verdict) -> Result<(), Refused> {
    match verdict {
        Verdict::Absorb => Ok(()),
        Verdict::Drop(DropReason::End(refused)) => Err(refused),
        other => panic!("an end neither passes on nor screens: {other:?}"),
    }
}

/// Signed again, as the server would.
fn signed(said: Signature) -> Signature {
    let tag = Toy::with_secret(SECRET, 3).tag(said.address.job.0, &said.signed());
    Signature { tag, ..said }
}

#[test]
fn a_signature_for_another_job_or_worker_says_nothing_of_this_one_s_model() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    let own = pair.kept_of(2);
    // The same server's word for the version 2 of another model.
    let other = Signature { hash: [3; 32], ..own };
    let of_job = Address { job: JobId(2), ..own.address };
    let of_worker = olaf_samples::address(1, 0, 8);
    for (address, why) in [(of_job, Refused::UnknownJob), (of_worker, Refused::NotForMe)] {
        assert_eq!(pair.gives(&signed(Signature { address, ..other })), Err(why));
    }
    let counts = pair.counts();
    assert_eq!((counts.held, counts.forged, counts.wrong), (1, 0, 0), "its own model waits on");
    pair.gives(&own).unwrap();
    assert_eq!((pair.version(), pair.counts().held), (2, 0));
}

#[test]
fn a_signature_with_another_s_tag_is_refused_and_the_model_waits_on() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    let own = pair.kept_of(2);
    let stranger = Toy::with_secret(SECRET + 1, 3).tag(1, &own.signed());
    let forged = Signature { tag: stranger, ..own };
    assert_eq!(pair.gives(&forged), Err(Refused::WrongSignature));
    let counts = pair.counts();
    assert_eq!((counts.held, counts.wrong, pair.version()), (1, 1, 1));
    pair.gives(&own).unwrap();
    assert_eq!(pair.version(), 2);
}

#[test]
fn of_a_flood_of_forged_signatures_a_few_are_told_and_all_are_counted() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    let own = pair.kept_of(2);
    let forged = Signature { tag: Toy::with_secret(SECRET + 1, 3).tag(1, &own.signed()), ..own };
    let mut told = || {
        let refused = (0..1_000).filter(|_| pair.gives(&forged).is_err()).count();
        let events = std::iter::from_fn(|| pair.worker.poll_event());
        let is_told = |event: &Event| {
            matches!(event, Event::Worker(_, _, WorkerEvent::SignatureForged { .. }))
        };
        let told = events.filter(is_told).count();
        pair.now = pair.now + Duration::from_secs(2);
        (refused, told)
    };
    assert_eq!([told(), told()], [(1_000, 4), (1_000, 2)], "four at once, and one a second");
    assert_eq!(pair.counts().wrong, 2_000);
}

#[test]
fn the_answer_to_a_question_counts_once_and_ends_the_questions_before_it() {
    let mut pair = Pair::new((true, true));
    pair.run(400);
    // The worker asked again and again, and nothing of the answers came.
    let answers: Vec<Signature> = pair.kept.iter().copied().filter(|s| s.question != 0).collect();
    let [.., first, second, third] = answers[..] else { panic!("{} answers", answers.len()) };
    assert_eq!(pair.gives(&second), Ok(()));
    for again in [second, first] {
        assert_eq!(pair.gives(&again), Err(Refused::NotAsked));
    }
    assert_eq!(pair.gives(&third), Ok(()));
    assert_eq!(pair.gives(&third), Err(Refused::NotAsked));
}

#[test]
fn a_version_that_the_server_has_given_up_is_dropped_and_no_switch_is_blamed_for_it() {
    let mut pair = Pair::joined();
    pair.keeps = (true, false);
    pair.pushes_and_waits_for_the_signature(2);
    let missed = pair.worker.statistics(pair.now).models_missed;
    // The server has version 3 alone, when the worker asks for the signature under 2.
    pair.another_worker_pushes();
    assert_eq!(pair.server.model(JobId(1)).unwrap().0, 3);
    let asked = pair.counts().asked;
    for _ in 0..100 {
        if pair.counts().asked == asked {
            pair.run(1);
        }
    }
    assert_eq!(pair.worker.statistics(pair.now).models_missed, missed + 1);
    let late = pair.kept_of(2);
    assert_eq!(pair.gives(&late), Err(Refused::OldVersion));
    // The newest one comes instead, with an answer to a question.
    pair.run(3_000);
    assert_eq!((pair.version(), pair.counts().held, pair.counts().unsigned), (3, 0, 0));
}

#[test]
fn with_a_newer_version_the_older_one_that_waits_is_of_no_use() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    pair.pushes_and_waits_for_the_signature(3);
    assert_eq!(pair.counts().held, 2);
    pair.gives(&pair.kept_of(3)).unwrap();
    assert_eq!((pair.version(), pair.counts().held), (3, 0));
    assert_eq!(pair.gives(&pair.kept_of(2)), Err(Refused::OldVersion));
}

#[test]
fn of_the_versions_that_wait_the_first_and_the_last_stay() {
    for (signed, others) in [(2, [3, 4]), (4, [2, 3])] {
        let mut pair = Pair::joined();
        pair.keeps = (true, true);
        (2..5).for_each(|version| pair.pushes_and_waits_for_the_signature(version));
        assert_eq!((pair.counts().held, pair.worker.statistics(pair.now).models_missed), (2, 1));
        pair.gives(&pair.kept_of(signed)).unwrap();
        assert_eq!(pair.version(), signed, "not one of {others:?}");
    }
}

#[test]
fn a_signature_of_another_life_or_another_cut_is_refused() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    let own = pair.kept_of(2);
    for (said, why) in [
        (Signature { epoch: 8, ..own }, Refused::UnknownEpoch),
        (Signature { segment_lanes: 1, ..own }, Refused::WrongSize),
        (Signature { parameters: 2, ..own }, Refused::WrongSize),
        (Signature { question: 77, ..own }, Refused::NotAsked),
    ] {
        assert_eq!(pair.gives(&signed(said)), Err(why), "{said:?}");
        assert_eq!((pair.version(), pair.counts().held), (1, 1));
    }
    pair.gives(&own).unwrap();
    assert_eq!(pair.version(), 2);
}

#[test]
fn an_address_that_proved_nothing_gets_no_signature() {
    let mut server = server(9);
    let mut drawn = 0;
    server.demand_proofs(Box::new(move || {
        drawn += 1;
        drawn
    }));
    let now = Instant(1_000_000_000);
    let mut buf = [0; 512];
    let victim = Source::end(PeerId(8));
    let join = olaf_samples::join(olaf_samples::address(1, 1, 8), 1, 2208).emit(&mut buf);
    assert_eq!(server.handle_packet(now, victim, &buf[..join]), Verdict::Absorb);
    while server.poll_transmit(now, PortId(0), &mut buf).is_some() {}
    let ask = AskSignature { address: olaf_samples::address(1, 1, 8), version: 0, question: 3 };
    let len = ask.emit(&mut buf);
    let asked = taken(server.handle_packet(now, victim, &buf[..len]));
    assert_eq!(asked, Err(Refused::NotProven));
    assert!(server.poll_transmit(now, PortId(0), &mut buf).is_none());
}

#[test]
fn a_model_of_the_server_s_former_life_that_waits_is_not_taken_for_one_of_the_new_life() {
    let mut pair = Pair::joined();
    pair.keeps = (true, true);
    pair.pushes_and_waits_for_the_signature(2);
    pair.server = server(10);
    pair.keeps = (false, false);
    pair.run(1_500);
    // The new life has the worker's model of version 1, as a version 2 of its own.
    assert_eq!(pair.server.model(JobId(1)).unwrap().0, 2);
    assert_eq!(pair.worker.model().unwrap().lanes, [1.0]);
    let counts = pair.counts();
    assert_eq!((pair.version(), counts.held, counts.forged, counts.unsigned), (2, 0, 0, 0));
}

#[test]
fn joining_again_gives_no_further_questions() {
    let mut pair = Pair::joined();
    let mut buf = [0; 512];
    let other = olaf_samples::address(1, 1, 8);
    let mut answered = 0;
    for question in 1..=100 {
        let join = olaf_samples::join(other, 1, 2208).emit(&mut buf);
        pair.server.handle_packet(pair.now, Source::end(PeerId(8)), &buf[..join]);
        let len = AskSignature { address: other, version: 0, question }.emit(&mut buf);
        let verdict = pair.server.handle_packet(pair.now, Source::end(PeerId(8)), &buf[..len]);
        match taken(verdict) {
            Ok(()) => answered += 1,
            refused => assert_eq!(refused, Err(Refused::TooOften)),
        }
    }
    assert_eq!(answered, 16);
}

#[test]
fn a_worker_that_gets_new_keys_before_its_server_takes_models_of_both_for_half_a_minute() {
    const NEW: u64 = SECRET + 1;
    let mut pair = Pair::joined();
    pair.worker.take_signer(pair.now, Toy::with_secret(NEW, 3));
    for version in 2..5 {
        pair.pushes_and_waits_for_the_signature(version);
        pair.run(20);
        assert_eq!(pair.version(), version);
    }
    assert_eq!(pair.counts().wrong, 0);
    pair.run(30_000);
    pair.pushes_and_waits_for_the_signature(5);
    pair.run(20);
    assert_eq!(pair.version(), 4, "the server still has the key before");
    assert!(pair.counts().wrong > 0);
    pair.server.take_signer(pair.now, Toy::with_secret(NEW, 4));
    pair.run(5_000);
    assert_eq!(pair.version(), 5);
}
