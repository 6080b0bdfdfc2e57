//! Other switches: those that workers joined through, and the one on the way to the server.

use super::Switch;
use super::counters::Account;
use super::job::Job;
use super::ports::Place;
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::event::Event;
use crate::ids::{JobId, PeerId, PortId, Session, WorkerId};
use crate::party::Liveness;
use crate::rejection::Rejection;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::{Address, Join, Packet, WelcomeCode};

/// Members are asked to join again at most so often: one lost question costs this long.
const ASK_AGAIN_EVERY: Duration = Duration::from_millis(100);
/// Shortest time between two events about loops.
const TELL_LOOP_EVERY: Duration = Duration::from_secs(1);

/// A switch below this one: workers joined through it, and the server let them in.
pub(super) struct Below {
    /// The port on which it was last heard.
    pub(super) port: PortId,
    /// When a worker last joined through it or a datagram came from it. It outlives its workers for a
    /// while: what they pushed last may still wait in it when they have left.
    pub(super) liveness: Liveness,
    pub(super) lives: Lives,
    pub(super) account: Account,
    /// When a rejection of each kind was last reported.
    pub(super) told: [Option<Instant>; Rejection::ALL.len()],
}

/// A party's life and the one before it, 0 where none is known: what the old one still had on the
/// way is no news.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lives {
    now: u32,
    before: u32,
}

impl Lives {
    /// Returns true if nothing was heard of that life before.
    pub(super) const fn is_news(self, life: u32) -> bool {
        life != 0 && life != self.now && life != self.before
    }

    /// Notes the life that something was signed with; whether another one is over.
    pub(super) fn heard(&mut self, life: u32) -> bool {
        if !self.is_news(life) {
            return false;
        }
        self.before = core::mem::replace(&mut self.now, life);
        self.before != 0
    }

    pub(super) const fn is_known(self) -> bool {
        self.now != 0
    }
}

impl Below {
    pub(super) fn at(port: PortId) -> Self {
        Self {
            port,
            liveness: Liveness::default(),
            lives: Lives::default(),
            account: Account::default(),
            told: [None; Rejection::ALL.len()],
        }
    }
}

impl Switch {
    /// Notes that a switch below lives, where it is, and which life of it.
    pub(super) fn heard_below(&mut self, now: Instant, id: JobId, from: Source, life: Session) {
        let peer = from.peer;
        let Some(below) = self.jobs.get_mut(&id).and_then(|job| job.below.get_mut(&peer)) else {
            return;
        };
        below.port = from.port;
        below.liveness.note(now);
        let was_silent = below.liveness.comes_back();
        if below.lives.heard(life.0) {
            self.event(Event::SwitchRestarted(id, peer));
        } else if was_silent {
            self.event(Event::SwitchBack(id, peer));
        }
    }

    /// Asks all workers of a job to join again, because the party above has forgotten them. A
    /// switch below is asked once, for all of its own.
    pub(super) fn ask_again(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.asked_again.is_some_and(|asked| now.since(asked) < ASK_AGAIN_EVERY) {
            return;
        }
        job.asked_again = Some(now);
        let mut asked: Vec<(Place, Address)> = Vec::new();
        let mut switches = BTreeSet::new();
        for (worker, member) in job.members.iter() {
            let (cluster, session) = (member.cluster, member.session);
            if !member.behind_switch {
                asked
                    .push((member.place(), Address { job: id, cluster, worker: *worker, session }));
            } else if switches.insert(member.peer) {
                asked.push((member.place(), everyone(id)));
            }
        }
        for (place, address) in asked {
            let welcome = self.welcome(now, address, 0, WelcomeCode::JoinAgain);
            self.reply(now, place, welcome);
        }
    }

    /// A join that came from the servers' side: the party above has this switch above itself. Or it is this switch's own join as
    /// it left: another program has the server's port, and sends back what it gets. That is no answer of a server, and counts as silence.
    pub(super) fn handle_join_from_above(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
    ) -> Verdict {
        match Join::parse(packet) {
            Ok(join) if self.is_reflected(&join) => Verdict::Drop(DropReason::WrongDirection),
            Ok(join) => self.refuse_loop(now, from.peer, from.into(), &join),
            Err(refusal) => Verdict::Drop(DropReason::Malformed(refusal)),
        }
    }

    /// Returns true if a join is as this switch has sent it up. Each switch of a circle would have counted itself.
    fn is_reflected(&self, join: &Join) -> bool {
        let Address { job, worker, session, .. } = join.address;
        let member = self.jobs.get(&job).and_then(|job| job.members.get(&worker));
        member.is_some_and(|member| member.session == session && join.hops == member.joined.1 + 1)
    }

    /// Refuses a join that goes in a circle. An event names the neighbour that it came back from.
    /// The worker, reached through `towards`, learns that no server is at the end of its path.
    pub(super) fn refuse_loop(
        &mut self,
        now: Instant,
        came_from: PeerId,
        towards: Place,
        join: &Join,
    ) -> Verdict {
        let code = WelcomeCode::Loop;
        let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
        self.reply(now, towards, welcome);
        if self.told_of_loops.is_none_or(|told| now.since(told) >= TELL_LOOP_EVERY) {
            self.told_of_loops = Some(now);
            self.event(Event::Loop(join.address.job, came_from));
        }
        Verdict::Drop(DropReason::JoinRefused(code))
    }
}

impl Job {
    /// Looks for switches below that should have been heard, and returns those that fell silent.
    /// Forgets switches without a worker behind them.
    pub(super) fn check_switches(&mut self, now: Instant, silent_after: Duration) -> Vec<PeerId> {
        let behind = self.members.values().filter(|member| member.behind_switch);
        let needed: BTreeSet<PeerId> = behind.map(|member| member.peer).collect();
        // What they merged last may still wait there when the last of their workers has left.
        self.below.retain(|peer, below| {
            needed.contains(peer) || !below.liveness.is_gone(now, silent_after)
        });
        let mut fell_silent = Vec::new();
        for (peer, below) in &mut self.below {
            if needed.contains(peer) && below.liveness.fell_silent(now, silent_after) {
                fell_silent.push(*peer);
            }
        }
        fell_silent
    }
}

/// Stands for all of a job's workers behind a switch.
pub(super) fn everyone(job: JobId) -> Address {
    Address { job, worker: WorkerId::ALL, ..Address::default() }
}
