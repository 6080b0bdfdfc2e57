//! One host of a job: what its synchronisation thread answers, and how its execution thread may
//! launch the next all-reduce (MINA §IV-B).

use super::doubt::Promise;
use super::timing::{Bug, HostTiming, has};
use super::{Ballot, Body, Grant, Packet, Party, Progress};
use crate::JobId;
use std::collections::VecDeque;
use std::fmt;

/// The next all-reduce, and how it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// How many of the job came before it.
    pub index: u64,
    /// The switches sum; the hosts if not.
    pub in_network: bool,
}

/// Why the next all-reduce does not start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The grant is being changed: for as long as that takes, which is bounded by [`HostTiming`].
    Locked,
    /// The one before it runs (MINA §IV-C: one at a time).
    Runs(u64),
    /// Never: this host has left.
    Left,
    /// Never: another host of the job does not answer.
    Failed(Gone),
}

/// A host that did not say in time what became of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gone {
    /// Its rank.
    pub host: u16,
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked => f.write_str("the grant is being changed"),
            Self::Runs(index) => write!(f, "operation {index} runs"),
            Self::Left => f.write_str("this host has left the job"),
            Self::Failed(gone) => write!(
                f,
                "host {} of the job did not say in time whether the grant was changed; \
                 submit the job again without it",
                gone.host
            ),
        }
    }
}

impl std::error::Error for NotNow {}

/// See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub(super) job: JobId,
    pub(super) rank: u16,
    pub(super) hosts: u16,
    pub(super) timing: HostTiming,
    pub(super) bug: Bug,
    next: u64,
    running: Option<Launch>,
    grant: Grant,
    /// The ballot that brought the grant.
    pub(super) applied: Ballot,
    /// What every ballot up to here came to is known here; of all but `applied`: nothing, or
    /// something that a later one replaced.
    pub(super) settled: Ballot,
    /// The lock.
    pub(super) promise: Option<Promise>,
    pub(super) failed: Option<Gone>,
    left: bool,
    farewell: Option<Farewell>,
    /// The controller has heard the leave.
    dismissed: bool,
    /// The largest epoch heard of.
    pub(super) epoch: u64,
    pub(super) out: VecDeque<Packet>,
}

/// A leave that the controller has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Farewell {
    /// When it is said again.
    at: u64,
    /// When it is given up.
    until: u64,
}

impl Host {
    /// The host with `rank` in a job of `hosts` hosts that starts now. A host that died does not
    /// come back: its job is submitted again, under another name.
    #[must_use]
    pub fn new(job: JobId, rank: u16, hosts: u16, timing: HostTiming) -> Self {
        Self {
            job,
            rank,
            hosts,
            timing,
            bug: Bug::None,
            next: 0,
            running: None,
            grant: Grant::default(),
            applied: Ballot::default(),
            settled: Ballot::default(),
            promise: None,
            failed: None,
            left: false,
            farewell: None,
            dismissed: false,
            epoch: 0,
            out: VecDeque::new(),
        }
    }

    /// Starts the next all-reduce. Never waits.
    ///
    /// # Errors
    /// Why not now: only a round in progress, or the end of the job, is a reason for long.
    pub fn launch(&mut self) -> Result<Launch, NotNow> {
        if let Some(gone) = self.failed {
            return Err(NotNow::Failed(gone));
        }
        if let Some(running) = self.running {
            return Err(NotNow::Runs(running.index));
        }
        if self.left {
            return Err(NotNow::Left);
        }
        if self.promise.is_some() && !has!(self.bug, SkipLock) {
            return Err(NotNow::Locked);
        }
        let launch = Launch { index: self.next, in_network: self.grant.covers(self.next) };
        self.next += 1;
        self.running = Some(launch);
        Ok(launch)
    }

    /// Tells the controller that all hosts have launched the current all-reduce. Its step began
    /// here `step_age_ns` ago.
    pub fn began(&mut self, step_age_ns: u64) {
        if let Some(Launch { in_network, .. }) = self.running {
            let progress = Progress { next: self.next, in_network, step_age_ns };
            self.reply(Ballot::default(), Body::Progress(progress));
        }
    }

    /// The all-reduce that runs has ended here.
    ///
    /// # Panics
    /// If it is not the one that runs.
    pub fn done(&mut self, index: u64) {
        let running = self.running.take().filter(|running| running.index == index);
        let running = running.expect("an operation ends once, after it was launched");
        if self.left {
            self.send_leave();
        } else if running.in_network && !self.held() {
            // At once, so that no job waits for the controller to ask.
            self.reply(self.settled, self.settled_body());
        }
    }

    /// Launches nothing more, and leaves: at once, or when the all-reduce that runs has
    /// ended, as the controller gives on what it uses then. Repeats it until the host is
    /// [dismissed](Self::dismissed), or [`HostTiming::farewells_ns`] are over.
    pub fn leave(&mut self, now: u64) {
        self.left = true;
        let (at, until) = (now + self.timing.farewell_ns, now + self.timing.farewells_ns);
        self.farewell = (at < until && !self.dismissed).then_some(Farewell { at, until });
        self.send_leave();
    }

    /// Takes in a packet; what is not for this host, or too late, changes nothing.
    pub fn handle_packet(&mut self, now: u64, packet: &Packet) {
        if packet.job != self.job || packet.to != Party::Host(self.rank) || self.failed.is_some() {
            return;
        }
        self.epoch = self.epoch.max(packet.ballot.epoch);
        match (packet.from, packet.body) {
            (Party::Controller, Body::Prepare) => self.prepare(now, packet.ballot),
            (Party::Controller, Body::Commit(grant)) => {
                self.outcome(packet.ballot, Some(grant), false);
            }
            (Party::Controller, Body::Abort) => self.outcome(packet.ballot, None, false),
            (Party::Controller, Body::Bye) if self.left => {
                (self.dismissed, self.farewell) = (true, None);
            }
            (Party::Host(from), body) if from < self.hosts && from != self.rank => {
                self.handle_peer(now, from, packet.ballot, body);
            }
            _ => {}
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let farewell = self.farewell.map(|farewell| farewell.at);
        self.asks_at().into_iter().chain(farewell).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.asks_at().is_some_and(|at| at <= now) {
            self.doubt(now);
        }
        if let Some(farewell) = self.farewell.filter(|farewell| farewell.at <= now) {
            let at = now + self.timing.farewell_ns;
            self.farewell = (at < farewell.until).then_some(Farewell { at, ..farewell });
            self.send_leave();
        }
    }

    /// When this host, which is locked, asks the others.
    fn asks_at(&self) -> Option<u64> {
        self.promise.as_ref().filter(|_| self.failed.is_none()).map(Promise::at)
    }

    /// What runs is waited for: its end leaves.
    fn send_leave(&mut self) {
        if self.running.is_none() {
            self.reply(self.settled, Body::Bye);
        }
    }

    /// How many were launched.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The all-reduce that runs.
    #[must_use]
    pub const fn running(&self) -> Option<Launch> {
        self.running
    }

    /// The controller has heard the leave. Who ends before may be taken for dead, and its job is fenced.
    #[must_use]
    pub const fn dismissed(&self) -> bool {
        self.dismissed
    }

    /// This host still leaves: the controller has not answered.
    #[must_use]
    pub const fn takes_leave(&self) -> bool {
        self.farewell.is_some()
    }

    /// A round is in progress: nothing is launched.
    #[must_use]
    pub const fn locked(&self) -> bool {
        self.promise.is_some()
    }

    /// The job cannot go on.
    #[must_use]
    pub const fn failed(&self) -> Option<Gone> {
        self.failed
    }

    /// An operation that uses the switches runs, or may still be launched.
    #[must_use]
    pub fn held(&self) -> bool {
        self.grant.has_left(self.next) || self.running.is_some_and(|running| running.in_network)
    }

    fn prepare(&mut self, now: u64, ballot: Ballot) {
        if self.knows(ballot) {
            return self.reply(ballot, self.settled_body());
        }
        match &mut self.promise {
            Some(promise) if promise.ballot == ballot => {
                if promise.takes_late() {
                    self.ready(ballot);
                }
            }
            // Another round while this host is locked for the first. It must not forget the first:
            // another host may have heard that its outcome was a grant. So it asks the other hosts
            // now, and takes part in the new round when that is sent again.
            Some(promise) if !has!(self.bug, ForgetDoubt) => promise.hurry(now),
            _ => {
                self.promise = Some(Promise::new(ballot, now + self.timing.doubt_ns));
                self.ready(ballot);
            }
        }
    }

    /// Takes in what became of `ballot`, from the controller or from another host: the grant, or
    /// nothing.
    ///
    /// Three checks come first, in this order:
    /// 1. The outcome is known already: a repeated packet. The controller gets its answer again.
    /// 2. This host is in doubt and has told others so. They may have concluded that all hosts are
    ///    in doubt and nothing was granted; a late grant from the controller would then make this
    ///    host run in the switches alone. It follows only the other hosts from here on.
    /// 3. This host never promised this ballot. A grant would take it by surprise in the middle of
    ///    an operation; an abort of a later ballot must wait for the outcome of the promised one.
    pub(super) fn outcome(&mut self, ballot: Ballot, grant: Option<Grant>, by_host: bool) {
        if self.knows(ballot) {
            if !by_host {
                self.reply(ballot, self.settled_body());
            }
            return;
        }
        let promised = self.promise.as_ref().filter(|promise| promise.ballot == ballot);
        let doubts = promised.is_some_and(|promise| !promise.takes_late());
        if grant.is_some() && !by_host && doubts && !has!(self.bug, TakeLate) {
            return;
        }
        if promised.is_none() && (grant.is_some() || self.promise.is_some()) {
            // The controller sends it again if it still matters.
            return;
        }
        if let Some(grant) = grant {
            self.grant = grant;
            self.applied = ballot;
        }
        self.promise = None;
        self.settled = ballot;
        self.reply(ballot, self.settled_body());
    }

    /// Returns true if the outcome of `ballot` is known here: it is settled, or it is older than
    /// the promised one. This host promises one ballot at a time and none twice. It will therefore
    /// never promise the older one, and a ballot needs the promise of every host: it came to
    /// nothing.
    pub(super) fn knows(&self, ballot: Ballot) -> bool {
        ballot <= self.settled
            || self.promise.as_ref().is_some_and(|promise| ballot < promise.ballot)
    }

    /// What to tell a host that asks about a ballot that is known here.
    pub(super) const fn told(&self, ballot: Ballot) -> Body {
        if ballot.epoch == self.applied.epoch && ballot.round == self.applied.round {
            Body::Commit(self.grant)
        } else {
            Body::Abort
        }
    }

    fn ready(&mut self, ballot: Ballot) {
        self.reply(ballot, Body::Ready { next: self.next, held: self.held() });
    }

    fn settled_body(&self) -> Body {
        Body::Settled { next: self.next, held: self.held(), epoch: self.epoch }
    }

    fn reply(&mut self, ballot: Ballot, body: Body) {
        self.send(Party::Controller, ballot, body);
    }

    pub(super) fn send(&mut self, to: Party, ballot: Ballot, body: Body) {
        let from = Party::Host(self.rank);
        self.out.push_back(Packet { job: self.job, ballot, from, to, body });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_when_what_runs_has_ended() {
        let mut host = Host::new(JobId(1), 0, 2, HostTiming::default());
        let launch = host.launch().expect("nothing is in its way");
        host.leave(0);
        assert_eq!(host.poll_transmit(), None);
        assert_eq!(host.launch(), Err(NotNow::Runs(0)));
        host.done(launch.index);
        let bye = host.poll_transmit().expect("it leaves");
        assert_eq!((bye.body, bye.to), (Body::Bye, Party::Controller));
        assert_eq!(host.launch(), Err(NotNow::Left));
        assert!(!host.dismissed());
        host.handle_packet(0, &Packet { from: bye.to, to: bye.from, ..bye });
        assert!(host.dismissed());
    }

    #[test]
    fn a_host_that_plays_on_is_not_dismissed() {
        let mut host = Host::new(JobId(1), 0, 2, HostTiming::default());
        let (from, to) = (Party::Controller, Party::Host(0));
        let ballot = Ballot::default();
        host.handle_packet(0, &Packet { job: JobId(1), ballot, from, to, body: Body::Bye });
        host.leave(0);
        assert!(!host.dismissed());
    }

    #[test]
    fn it_leaves_again_until_the_controller_answers_or_the_time_is_over() {
        let timing = HostTiming { farewell_ns: 10, farewells_ns: 45, ..HostTiming::default() };
        let mut lonely = Host::new(JobId(1), 0, 2, timing);
        lonely.leave(100);
        let mut said = Vec::new();
        let mut now = 100;
        loop {
            while let Some(bye) = lonely.poll_transmit() {
                assert_eq!(bye.body, Body::Bye);
                said.push(now);
            }
            let Some(at) = lonely.poll_timeout() else { break };
            now = at;
            lonely.handle_timeout(now);
        }
        assert_eq!(said, [100, 110, 120, 130, 140]);
        assert!(!lonely.takes_leave() && !lonely.dismissed());

        let mut heard = Host::new(JobId(1), 0, 2, timing);
        heard.leave(100);
        assert!(heard.takes_leave());
        let bye = heard.poll_transmit().expect("it leaves");
        heard.handle_packet(105, &Packet { from: bye.to, to: bye.from, ..bye });
        assert!(!heard.takes_leave() && heard.dismissed());
        heard.handle_timeout(110);
        assert_eq!((heard.poll_transmit(), heard.poll_timeout()), (None, None));
    }

    #[test]
    fn a_host_that_leaves_waits_for_what_runs_and_for_an_answer_to_its_leave() {
        let timing = HostTiming { farewell_ns: 10, farewells_ns: 45, ..HostTiming::default() };
        let mut host = Host::new(JobId(1), 0, 2, timing);
        let launch = host.launch().expect("nothing is in its way");
        host.leave(0);
        host.handle_timeout(10);
        assert_eq!((host.poll_transmit(), host.poll_timeout()), (None, Some(20)));
        host.done(launch.index);
        assert_eq!(host.poll_transmit().map(|packet| packet.body), Some(Body::Bye));
        host.handle_timeout(20);
        assert_eq!(host.poll_transmit().map(|packet| packet.body), Some(Body::Bye));
    }
}
