//! One host of a job as an engine: bytes in, bytes out, around the protocol's machine and the
//! rehearsal of its all-reduces.

use crate::roles::sharing::refusals::Refusals;
use crate::roles::sharing::rehearsal::Rehearsal;
use olaf_engine::drop::Refused;
use olaf_engine::report::{Group, Report, Value};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_sched::JobId;
use olaf_sched::protocol::{Gone, Host, HostTiming, Launch, NotNow, Packet, Party};
use olaf_wire::mina::Here;

/// The host, and the parties that it talks to.
pub(super) struct HostEngine {
    job: JobId,
    rank: u16,
    host: Host,
    rehearsal: Rehearsal,
    controller: PeerId,
    /// By rank.
    hosts: Vec<PeerId>,
    heard: Heard,
    refusals: Refusals,
}

/// When each party was heard last.
struct Heard {
    controller: Option<Instant>,
    /// By rank; of this host never.
    hosts: Vec<Option<Instant>>,
}

impl HostEngine {
    pub(super) fn new(
        job: JobId,
        rank: u16,
        timing: HostTiming,
        controller: PeerId,
        hosts: Vec<PeerId>,
    ) -> Self {
        let count = u16::try_from(hosts.len()).expect("a job has at most 65,535 hosts");
        Self {
            job,
            rank,
            host: Host::new(job, rank, count, timing),
            rehearsal: Rehearsal::new(job, rank, count),
            controller,
            heard: Heard { controller: None, hosts: vec![None; hosts.len()] },
            hosts,
            refusals: Refusals::default(),
        }
    }

    /// Launches the next all-reduce: see [`Host::launch`].
    pub(super) fn launch(&mut self) -> Result<Launch, NotNow> {
        let launch = self.host.launch()?;
        self.rehearsal.launch(launch);
        Ok(launch)
    }

    /// Says to the other hosts what was launched last.
    pub(super) fn say_here(&mut self) {
        self.rehearsal.say();
    }

    /// The first host that has not launched this all-reduce.
    pub(super) fn missing(&self, index: u64) -> Option<u16> {
        self.rehearsal.missing(index)
    }

    /// All-reduces that another host launched in another mode.
    pub(super) const fn mixed(&self) -> u64 {
        self.rehearsal.mixed
    }

    /// All hosts have launched the current all-reduce: see [`Host::began`].
    pub(super) fn began(&mut self, step_age_ns: u64) {
        self.host.began(step_age_ns);
    }

    /// The current all-reduce has ended: see [`Host::done`].
    pub(super) fn done(&mut self, index: u64) {
        self.host.done(index);
    }

    /// Leaves: see [`Host::leave`].
    pub(super) fn leave(&mut self, now: Instant) {
        self.host.leave(now.0);
    }

    /// See [`Host::takes_leave`].
    pub(super) const fn takes_leave(&self) -> bool {
        self.host.takes_leave()
    }

    /// The controller has heard the leave.
    pub(super) const fn dismissed(&self) -> bool {
        self.host.dismissed()
    }

    /// The grant is being changed: nothing is launched.
    pub(super) const fn locked(&self) -> bool {
        self.host.locked()
    }

    /// The job cannot go on.
    pub(super) const fn failed(&self) -> Option<Gone> {
        self.host.failed()
    }

    fn take_in(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused> {
        if bytes.starts_with(&Here::MAGIC) {
            let here = Here::parse(bytes).map_err(Refused::Malformed)?;
            self.check_sender(from, Party::Host(here.rank))?;
            if here.job != self.job {
                return Err(Refused::UnknownJob);
            }
            self.heard.note(now, Party::Host(here.rank));
            if !self.rehearsal.handle(&here) {
                return Err(Refused::TooEarly);
            }
        } else {
            let packet = Packet::parse(bytes).map_err(Refused::Malformed)?;
            self.check_sender(from, packet.from)?;
            self.heard.note(now, packet.from);
            self.host.handle_packet(now.0, &packet);
        }
        Ok(())
    }

    fn check_sender(&self, from: PeerId, party: Party) -> Result<(), Refused> {
        if self.peer(party) == Some(from) { Ok(()) } else { Err(Refused::UnknownPeer) }
    }

    fn peer(&self, party: Party) -> Option<PeerId> {
        match party {
            Party::Controller => Some(self.controller),
            Party::Host(rank) => self.hosts.get(usize::from(rank)).copied(),
        }
    }
}

impl Engine for HostEngine {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let result = self.take_in(now, from.peer, bytes);
        self.refusals.count(result)
    }

    fn poll_transmit(&mut self, _: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        while let Some(packet) = self.host.poll_transmit() {
            if let Some(to) = self.peer(packet.to) {
                return Some(written(&packet.emit(), to, buf));
            }
        }
        while let Some((rank, here)) = self.rehearsal.poll_transmit() {
            if let Some(to) = self.peer(Party::Host(rank)) {
                return Some(written(&here.emit(), to, buf));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.host.poll_timeout().map(|at| (Instant(at), Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now.0);
    }

    /// Never any: the execution thread learns of everything by asking.
    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(self.controller);
        self.hosts.iter().copied().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        to.value("job", Value::Count(self.job.0));
        to.value("rank", Value::Count(self.rank.into()));
        to.value("launches", Value::Count(self.host.next()));
        to.value("held", Value::Flag(self.host.held()));
        to.value("locked", Value::Flag(self.host.locked()));
        to.value("mixed", Value::Count(self.mixed()));
        let gone = self.failed().map(|gone| Value::Count(gone.host.into()));
        to.value("gone", gone.unwrap_or(Value::Nothing));
        to.open("controller", Group::Map);
        party(self.controller, self.heard.controller, now, to);
        to.close();
        to.open("peers", Group::List);
        for ((rank, peer), heard) in (0..).zip(&self.hosts).zip(&self.heard.hosts) {
            if rank != self.rank {
                to.open("", Group::Map);
                to.value("rank", Value::Count(rank.into()));
                party(*peer, *heard, now, to);
                to.close();
            }
        }
        to.close();
        self.refusals.report(to);
    }
}

impl Heard {
    fn note(&mut self, now: Instant, party: Party) {
        let heard = match party {
            Party::Controller => Some(&mut self.controller),
            Party::Host(rank) => self.hosts.get_mut(usize::from(rank)),
        };
        if let Some(heard) = heard {
            *heard = Some(now);
        }
    }
}

/// Where a party is, and for how long it was silent.
fn party(peer: PeerId, heard: Option<Instant>, now: Instant, to: &mut dyn Report) {
    to.value("address", Value::Peer(peer));
    to.value("heard", Value::Flag(heard.is_some()));
    let silent = heard.map(|at| Value::Count(now.0.saturating_sub(at.0)));
    to.value("silent_ns", silent.unwrap_or(Value::Nothing));
}

fn written(bytes: &[u8], to: PeerId, buf: &mut [u8]) -> Transmit {
    buf[..bytes.len()].copy_from_slice(bytes);
    Transmit::to(to, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use olaf_engine::DropReason;
    use olaf_wire::mina::{Ballot, Body};

    const CONTROLLER: PeerId = PeerId(0);
    const OTHER: PeerId = PeerId(2);
    const JOB: JobId = JobId(1);

    fn engine() -> HostEngine {
        HostEngine::new(JOB, 0, HostTiming::default(), CONTROLLER, vec![PeerId(1), OTHER])
    }

    fn hears(engine: &mut HostEngine, from: PeerId, bytes: &[u8]) -> Verdict {
        engine.handle_packet(Instant(0), Source::end(from), bytes)
    }

    fn says(engine: &mut HostEngine) -> Option<(PeerId, Vec<u8>)> {
        let mut buf = [0; 128];
        let sent = engine.poll_transmit(Instant(0), PortId(0), &mut buf)?;
        Some((sent.to.one().expect("one receiver"), buf[..sent.len].to_vec()))
    }

    #[test]
    fn a_packet_counts_only_from_the_address_of_its_sender() {
        let mut engine = engine();
        let prepare = Packet {
            job: JOB,
            ballot: Ballot { epoch: 1, round: 1 },
            from: Party::Controller,
            to: Party::Host(0),
            body: Body::Prepare,
        };
        let unknown = Verdict::Drop(DropReason::End(Refused::UnknownPeer));
        assert_eq!(hears(&mut engine, OTHER, &prepare.emit()), unknown);
        assert_eq!(says(&mut engine), None);
        assert_eq!(hears(&mut engine, CONTROLLER, &prepare.emit()), Verdict::Absorb);
        let (to, bytes) = says(&mut engine).expect("it is ready");
        let body = Packet::parse(&bytes).map(|packet| packet.body);
        assert_eq!((to, body), (CONTROLLER, Ok(Body::Ready { next: 0, held: false })));
        assert_eq!(engine.launch(), Err(NotNow::Locked));
        assert!(matches!(hears(&mut engine, OTHER, b"noise"), Verdict::Drop(_)));
    }

    #[test]
    fn an_all_reduce_is_complete_when_the_other_host_says_so() {
        let mut engine = engine();
        let launch = engine.launch().expect("nothing is in its way");
        engine.say_here();
        let (to, bytes) = says(&mut engine).expect("it says so");
        assert_eq!((to, Here::parse(&bytes).map(|here| here.index)), (OTHER, Ok(launch.index)));
        assert_eq!(engine.missing(launch.index), Some(1));
        let here = Here { job: JOB, rank: 1, index: 0, in_network: false, answer: true };
        let elsewhere = Here { job: JobId(2), ..here };
        let unknown_job = Verdict::Drop(DropReason::End(Refused::UnknownJob));
        assert_eq!(hears(&mut engine, OTHER, &elsewhere.emit()), unknown_job);
        assert_eq!(hears(&mut engine, OTHER, &here.emit()), Verdict::Absorb);
        assert_eq!((engine.missing(launch.index), engine.mixed()), (None, 0));
    }
}
