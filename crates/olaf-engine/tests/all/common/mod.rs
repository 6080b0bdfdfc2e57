//! A switch between made-up workers and servers, in words that make traces.
#![allow(dead_code, reason = "each test file uses a part")]

use olaf_engine::drop::DropReason;
use olaf_engine::engine::{Source, Verdict};
use olaf_engine::event::Event;
use olaf_engine::switch::native::Config;
use olaf_engine::{Engine, Instant, PeerId, PortId, Switch};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::update::read_lanes;
use olaf_wire::{
    Address, Answer, ClusterId, JobId, Join, Kind, Leave, Notice, Packet, Session, Update, Welcome,
    WelcomeCode, WorkerId,
};

pub(crate) const JOB: u32 = 1;
pub(crate) const SERVER: PeerId = PeerId(1000);
pub(crate) const PARAMETERS: u32 = 2;
pub(crate) const LANES: u32 = 2;
pub(crate) const EPOCH: u32 = 77;
pub(crate) const SERVER_EPOCH: u32 = 99;

pub(crate) fn ms(milliseconds: u64) -> Instant {
    Instant(milliseconds * 1_000_000)
}

/// A worker; its peer is numbered as it is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct W {
    pub(crate) job: u32,
    pub(crate) cluster: u32,
    pub(crate) worker: u32,
    pub(crate) session: u32,
    pub(crate) peer: u32,
}

pub(crate) const fn w(cluster: u32, worker: u32) -> W {
    W { job: JOB, cluster, worker, session: 500 + worker, peer: worker }
}

impl W {
    pub(crate) fn address(self) -> Address {
        Address {
            job: JobId(self.job),
            cluster: ClusterId(self.cluster),
            worker: WorkerId(self.worker),
            session: Session(self.session),
        }
    }

    pub(crate) fn source(self) -> Source {
        Source::new(PortId::DOWNLINK, PeerId(self.peer))
    }
}

/// A whole update of one segment.
pub(crate) fn update(who: W, sequence: u32) -> Update {
    let generated = 10 + u64::from(sequence);
    Update {
        generated_oldest_ns: generated,
        generated_newest_ns: generated,
        ..olaf_samples::update(who.address(), sequence)
    }
}

pub(crate) fn join(who: W, parameters: u32) -> Join {
    Join {
        clock_error_us: u32::MAX,
        sent_at_ns: 5,
        ..olaf_samples::join(who.address(), parameters, LANES)
    }
}

pub(crate) fn welcome(who: W, code: WelcomeCode) -> Welcome {
    Welcome {
        code,
        epoch: SERVER_EPOCH,
        received_at_ns: 6,
        sent_at_ns: 7,
        ..olaf_samples::welcome(&join(who, PARAMETERS))
    }
}

pub(crate) fn answer(cluster: u32, acknowledges: u32) -> Answer {
    Answer {
        model_version: 2,
        parameters: PARAMETERS,
        epoch: SERVER_EPOCH,
        delivered_newest_ns: 10,
        server_time_ns: 20,
        ..olaf_samples::answer(olaf_samples::address(JOB, cluster, 0), acknowledges)
    }
}

/// What came out of the switch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    Update(Update, Vec<f32>),
    Answer(Answer, Vec<f32>),
    Join(Join),
    Welcome(Welcome),
    Leave(Leave),
    Notice(Notice),
    Other(Vec<u8>),
}

pub(crate) fn read(bytes: &[u8]) -> Out {
    let Ok(packet) = Packet::new_checked(bytes) else { return Out::Other(bytes.to_vec()) };
    if packet.kind() == Kind::Layout {
        return Out::Other(bytes.to_vec());
    }
    let mut lanes = vec![0.0; packet.lanes().len() / 4];
    read_lanes(packet.lanes(), &mut lanes);
    match packet.kind() {
        Kind::Update => Out::Update(Update::parse(&packet).unwrap(), lanes),
        Kind::Acknowledgement | Kind::Model => Out::Answer(Answer::parse(&packet).unwrap(), lanes),
        Kind::Join => Out::Join(Join::parse(&packet).unwrap()),
        Kind::Welcome => Out::Welcome(Welcome::parse(&packet).unwrap()),
        Kind::Leave => Out::Leave(Leave::parse(&packet).unwrap()),
        Kind::Notice => Out::Notice(Notice::parse(&packet).unwrap()),
        Kind::Fetch | Kind::Layout | Kind::Signature | Kind::AskSignature => {
            Out::Other(bytes.to_vec())
        }
    }
}

/// The switch under test. After every input its accounts are looked at.
pub(crate) struct Bench {
    pub(crate) switch: Switch,
    pub(crate) now: Instant,
    buf: Vec<u8>,
}

impl Bench {
    pub(crate) fn new(config: Config) -> Self {
        let mut switch = Switch::new(config, EPOCH).unwrap();
        switch.set_default_server(SERVER);
        Self { switch, now: Instant(0), buf: vec![0; MAX_DATAGRAM] }
    }

    /// A switch that lets nothing go up before it is asked, with its workers in.
    pub(crate) fn with(config: Config, workers: &[W]) -> Self {
        let mut bench = Self::new(config);
        for who in workers {
            bench.enters(*who);
        }
        bench
    }

    /// Every contribution has one fate: in all, in each cluster, and the clusters of all together.
    #[track_caller]
    pub(crate) fn accounts_are_in_order(&self) {
        let statistics = self.switch.statistics(self.now);
        let fates = &statistics.fates;
        let sum = fates.sent_alone
            + fates.merged
            + fates.replaced
            + fates.filtered
            + fates.dropped.values().sum::<u64>()
            + fates.rejected.values().sum::<u64>()
            + fates.waiting;
        assert_eq!(statistics.received, sum, "{fates:?}");
        let mut all = 0;
        for cluster in &statistics.clusters {
            let sum = cluster.sent_alone
                + cluster.merged
                + cluster.replaced
                + cluster.filtered
                + cluster.dropped
                + cluster.rejected
                + cluster.waiting;
            assert_eq!(cluster.received, sum, "{cluster:?}");
            all += sum;
        }
        assert!(all <= statistics.received, "{all} of {}", statistics.received);
        assert!(statistics.queue.used <= statistics.queue.slots);
        let downlinks = statistics.downlinks.iter().map(|link| &link.datagrams);
        for link in downlinks.clone().chain([&statistics.uplink.datagrams]) {
            assert_eq!(link.forwarded, link.sent + link.waiting, "{link:?}");
        }
        assert_eq!(statistics.forwarded.up, statistics.uplink.datagrams.forwarded);
        let down = downlinks.clone().map(|link| link.forwarded).sum::<u64>();
        assert_eq!(statistics.forwarded.down, down);
        let dropped = downlinks.chain([&statistics.uplink.datagrams]);
        let dropped = dropped.map(|link| link.dropped["link_full"]).sum::<u64>();
        assert_eq!(self.refused("link_full"), dropped);
    }

    #[track_caller]
    /// Returns true if a driver must keep the address of that peer.
    pub(crate) fn keeps(&self, wanted: PeerId) -> bool {
        let mut kept = false;
        self.switch.peers(&mut |peer| kept |= peer == wanted);
        kept
    }

    pub(crate) fn recv(&mut self, from: Source, bytes: &[u8]) -> Verdict {
        let verdict = self.switch.handle_packet(self.now, from, bytes);
        self.accounts_are_in_order();
        verdict
    }

    fn emit(&mut self, emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let len = emit(&mut buf);
        buf.truncate(len);
        buf
    }

    #[track_caller]
    pub(crate) fn joins(&mut self, who: W) -> Verdict {
        self.joins_with(who, PARAMETERS)
    }

    #[track_caller]
    pub(crate) fn joins_with(&mut self, who: W, parameters: u32) -> Verdict {
        let bytes = self.emit(|buf| join(who, parameters).emit(buf));
        self.recv(who.source(), &bytes)
    }

    #[track_caller]
    pub(crate) fn welcomes(&mut self, welcome: Welcome) -> Verdict {
        self.welcomes_from(SERVER, welcome)
    }

    #[track_caller]
    pub(crate) fn welcomes_from(&mut self, peer: PeerId, welcome: Welcome) -> Verdict {
        let bytes = self.emit(|buf| welcome.emit(buf));
        self.recv(Source::new(PortId::UPLINK, peer), &bytes)
    }

    /// Joins and is let in; whatever passed on the way is taken off both links.
    #[track_caller]
    pub(crate) fn enters(&mut self, who: W) {
        assert_eq!(self.joins(who), Verdict::Absorb);
        let server = loop {
            if let Some((peer, _)) = self.up().last() {
                break *peer;
            }
            // The join is on a slow link.
            self.until(Instant(self.now.0 + 1_000_000));
        };
        let welcome = welcome(who, WelcomeCode::Welcome);
        assert_eq!(self.welcomes_from(server, welcome), Verdict::Absorb);
        self.down();
        self.events();
    }

    /// A join that has passed `hops` switches, the last of them at the worker's peer.
    #[track_caller]
    pub(crate) fn joins_through(&mut self, who: W, hops: u8, sent_at_ns: u64) -> Verdict {
        let join = Join { hops, sent_at_ns, ..join(who, PARAMETERS) };
        let bytes = self.emit(|buf| join.emit(buf));
        self.recv(who.source(), &bytes)
    }

    /// As [`Bench::enters`], behind a switch at the worker's peer.
    #[track_caller]
    pub(crate) fn enters_behind(&mut self, who: W) {
        assert_eq!(self.joins_through(who, 1, 5), Verdict::Absorb);
        self.up();
        assert_eq!(self.welcomes(welcome(who, WelcomeCode::Welcome)), Verdict::Absorb);
        self.down();
        self.events();
    }

    #[track_caller]
    pub(crate) fn sends(&mut self, who: W, sequence: u32, lanes: &[f32]) -> Verdict {
        self.sends_update(who.source(), &update(who, sequence), lanes)
    }

    #[track_caller]
    pub(crate) fn sends_update(&mut self, from: Source, update: &Update, lanes: &[f32]) -> Verdict {
        let bytes = self.emit(|buf| update.emit(lanes, buf));
        self.recv(from, &bytes)
    }

    #[track_caller]
    pub(crate) fn leaves(&mut self, who: W) -> Verdict {
        let bytes = self.emit(|buf| Leave { address: who.address() }.emit(buf));
        self.recv(who.source(), &bytes)
    }

    #[track_caller]
    pub(crate) fn answers(&mut self, answer: Answer, lanes: &[f32]) -> Verdict {
        let bytes = self.emit(|buf| answer.emit(lanes, buf));
        self.recv(Source::new(PortId::UPLINK, SERVER), &bytes)
    }

    /// Everything that has left for the servers by now.
    #[track_caller]
    pub(crate) fn up(&mut self) -> Vec<(PeerId, Out)> {
        self.drain(PortId::UPLINK)
    }

    /// The next datagram for the servers.
    #[track_caller]
    pub(crate) fn next_up(&mut self) -> Option<(PeerId, Out)> {
        let sent = self.switch.poll_transmit(self.now, PortId::UPLINK, &mut self.buf)?;
        self.accounts_are_in_order();
        Some((sent.to.one().expect("one receiver"), read(&self.buf[..sent.len])))
    }

    /// Everything that has left for the workers by now.
    #[track_caller]
    pub(crate) fn down(&mut self) -> Vec<(PeerId, Out)> {
        self.drain(PortId::DOWNLINK)
    }

    fn drain(&mut self, port: PortId) -> Vec<(PeerId, Out)> {
        let mut out = Vec::new();
        while let Some(sent) = self.switch.poll_transmit(self.now, port, &mut self.buf) {
            out.push((sent.to.one().expect("one receiver"), read(&self.buf[..sent.len])));
            self.accounts_are_in_order();
        }
        out
    }

    pub(crate) fn all_events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.switch.poll_event()).collect()
    }

    /// The same; of a question only the worker that it is about.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let bare = |event| match event {
            Event::AdmissionWanted(who, _) => Event::AdmissionWanted(who, Vec::new()),
            other => other,
        };
        self.all_events().into_iter().map(bare).collect()
    }

    /// Lets time pass, with every timeout on the way.
    pub(crate) fn until(&mut self, then: Instant) {
        while let Some((at, _)) = self.switch.poll_timeout().filter(|(at, _)| *at <= then) {
            self.now = self.now.max(at);
            self.switch.handle_timeout(self.now);
            let after = self.switch.poll_timeout();
            if after.is_some_and(|(next, _)| next <= self.now) {
                break; // A departure, for the test to fetch.
            }
        }
        self.now = then;
        self.switch.handle_timeout(then);
    }

    pub(crate) fn fate(&self, name: &str) -> u64 {
        let statistics = self.switch.statistics(self.now);
        let fates = &statistics.fates;
        match name {
            "received" => statistics.received,
            "sent_alone" => fates.sent_alone,
            "merged" => fates.merged,
            "replaced" => fates.replaced,
            "filtered" => fates.filtered,
            "waiting" => fates.waiting,
            "dropped" => fates.dropped.values().sum(),
            reason => fates.rejected.get(reason).copied().unwrap_or(0),
        }
    }

    pub(crate) fn refused(&self, name: &str) -> u64 {
        self.switch.statistics(self.now).refused.get(name).copied().unwrap_or(0)
    }
}

pub(crate) fn dropped(reason: olaf_engine::Rejection) -> Verdict {
    Verdict::Drop(DropReason::Contribution(reason))
}

pub(crate) const W1: W = w(0, 1);
pub(crate) const W2: W = w(0, 2);
pub(crate) const W3: W = w(0, 3);
pub(crate) const V1: W = w(7, 11);

pub(crate) fn default() -> Bench {
    Bench::with(Config::default(), &[W1, W2, W3, V1])
}

pub(crate) fn one_update(out: Vec<(PeerId, Out)>) -> (olaf_wire::Update, Vec<f32>) {
    match out.as_slice() {
        [(SERVER, Out::Update(update, lanes))] => (*update, lanes.clone()),
        other => panic!("one update to the server, not {other:?}"),
    }
}

pub(crate) fn answers(out: Vec<(PeerId, Out)>) -> Vec<(u32, Answer)> {
    out.into_iter()
        .map(|(peer, out)| match out {
            Out::Answer(answer, _) => (peer.0, answer),
            other => panic!("an answer, not {other:?}"),
        })
        .collect()
}
