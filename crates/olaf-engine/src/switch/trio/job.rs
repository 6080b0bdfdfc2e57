//! A job at the switch: the workers that wait, and the term that they are in.

use super::calls::Disputed;
use crate::ids::{PeerId, Session};
use crate::party::Draws;
use crate::sums::{self, Held, Lobby, Owner, Patience, Presence, Upward};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use olaf_wire::trio::{ANY, Closed, Hello, Straggling, Welcome};

/// Generations that a worker may have begun without a piece of them having come here.
const MOST_UNSEEN: u16 = 1024;

/// What a hello says, as far as it is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// With its generations as the job's last term numbers them.
    pub(super) hello: Hello,
    /// What the worker adds to its own numbers of generations to get these.
    pub(super) shift: u16,
}

/// A worker, or a lower switch, that waits for a term to begin.
pub(super) type Candidate = sums::Candidate<Wish>;

/// A worker, or a lower switch, in a term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) peer: PeerId,
    pub(super) session: Session,
    /// Workers behind it.
    pub(super) sources: u8,
    pub(super) heard: Instant,
    pub(super) straggling: Straggling,
    /// Its events and pieces at the last look.
    pub(super) seen: (u64, u64),
    /// Since when blocks have gone without it, and it has contributed nothing.
    pub(super) absent_since: Option<Instant>,
    pub(super) sent_at_us: u32,
    /// See [`Welcome::newest`].
    pub(super) newest: u16,
    /// The results that it alone got.
    pub(super) draws: Draws,
    pub(super) has_left: bool,
}

impl Member {
    /// The member, as far as its life goes.
    pub(super) const fn presence(&self) -> Presence {
        Presence { heard: self.heard, has_left: self.has_left }
    }
}

/// The time in which a job has the same workers.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) number: u32,
    pub(super) first: u16,
    pub(super) gradients: u16,
    /// Gradients that a generation may have.
    pub(super) most_gradients: u64,
    pub(super) window: u16,
    /// Looks of the timers after which a block ages out; 0: never.
    pub(super) visits: u16,
    pub(super) members: BTreeMap<u8, Member>,
    pub(super) everyone: Arc<[PeerId]>,
    /// A block on which the members' calls differ.
    pub(super) disputed: Option<Disputed>,
    /// How it ended.
    pub(super) closed: Option<Closed>,
    /// Of a lower switch: its place in the term above.
    pub(super) above: Option<Above>,
}

/// A lower switch's place in the term above, which has the same number.
#[derive(Clone, Debug)]
pub(super) struct Above {
    pub(super) source: u8,
    pub(super) session: Session,
    /// What the switch above was told that all members hold.
    pub(super) told: (u16, u32),
    /// A worker here ended the term: the switch above is told until it says so itself.
    pub(super) leaves: Option<olaf_wire::trio::Leave>,
}

/// A job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) workers: u8,
    /// The time-out of its blocks that was asked for first.
    pub(super) timeout_ms: u16,
    pub(super) owner: Owner,
    pub(super) lobby: Lobby<Wish>,
    pub(super) term: Option<Term>,
    /// The newest generation that a piece came of.
    pub(super) newest: Option<u16>,
    pub(super) upward: Upward,
}

impl Job {
    pub(super) fn new(hello: &Hello, owner: Owner, session: Session) -> Self {
        Self {
            workers: hello.workers,
            timeout_ms: hello.timeout_ms,
            owner,
            lobby: Lobby::default(),
            term: None,
            newest: None,
            upward: Upward::new(session),
        }
    }

    /// Returns true if the next term begins now with the workers in the lobby.
    pub(super) fn may_begin(&mut self, now: Instant, patience: Patience) -> bool {
        let is_complete = self.lobby.contributors() == u32::from(self.workers);
        if self.workers == 1 {
            // It waits for nobody whom it could take for its own.
            return is_complete;
        }
        self.owner.may_begin(now, is_complete, |heard| patience.is_silent(now, heard))
    }

    /// The members of the newest term, as far as their lives go.
    pub(super) fn members(&self) -> impl Iterator<Item = Presence> + Clone {
        self.term.iter().flat_map(|term| term.members.values().map(Member::presence))
    }

    /// Returns true if nobody takes part or waits.
    pub(super) fn is_deserted(&self, now: Instant, patience: Patience) -> bool {
        self.lobby.is_deserted(now, patience, self.members())
    }

    /// The job as the door looks at it.
    pub(super) fn held(&self, id: u8, now: Instant, patience: Patience) -> Held<u8> {
        let members = self.term.as_ref().map(|_| self.members());
        self.lobby.held(id, now, patience, members)
    }

    /// Returns true if somebody at another address is in the job, and lives.
    pub(super) fn has_others(&self, now: Instant, peer: PeerId, patience: Patience) -> bool {
        let waiting = self.lobby.values().map(|one| (one.peer, one.heard));
        let open = self.term.iter().filter(|term| term.closed.is_none());
        let members = open.flat_map(|term| term.members.values()).map(|one| (one.peer, one.heard));
        waiting.chain(members).any(|(at, heard)| at != peer && !patience.is_silent(now, heard))
    }

    /// The term, while it lasts.
    pub(super) fn open_term(&mut self) -> Option<&mut Term> {
        self.term.as_mut().filter(|term| term.closed.is_none())
    }

    /// Returns true if a term lasts.
    pub(super) fn has_open_term(&self) -> bool {
        self.term.as_ref().is_some_and(|term| term.closed.is_none())
    }

    /// The worker that says hello, as far as it is believed. A worker of the last term says which generations it has
    /// begun, and none that could not be. Who was not in it is a newcomer. A switch that was restarted has no term to compare
    /// with.
    pub(super) fn believed(&self, now: Instant, peer: PeerId, hello: &Hello) -> Candidate {
        let wanted = Some(hello.source.into()).filter(|_| hello.source != ANY);
        let contributors = hello.sources.into();
        let candidate = |hello, shift| {
            let wish = Wish { hello, shift };
            Candidate { peer, wanted, contributors, heard: now, wish }
        };
        let Some(term) = &self.term else { return candidate(*hello, 0) };
        let is_it = |one: &&Member| one.session == hello.session || one.peer == peer;
        let member = term.members.values().find(is_it).filter(|_| hello.term != 0);
        let Some(member) = member else { return candidate(Hello { term: 0, ..*hello }, 0) };
        // One that never heard that the term began still numbers generations as before.
        let is_behind = hello.term != term.number;
        let shift = if is_behind { term.shift_of(member) } else { 0 };
        let newest = hello.newest.wrapping_add(shift);
        let newest = bounded(newest, self.newest.unwrap_or(term.first));
        candidate(Hello { newest, term: term.number, ..*hello }, shift)
    }

    /// The newest generation that anybody has used, in serial order. A newcomer has used none.
    pub(super) fn newest_of_all(&self) -> u16 {
        let hellos = self.lobby.values().map(|candidate| candidate.wish.hello);
        let candidates = hellos.filter(|hello| hello.term > 0).map(|hello| hello.newest);
        let mut all = self.newest.into_iter().chain(candidates);
        let first = all.next().unwrap_or_default();
        all.fold(first, later)
    }

    pub(super) fn note_newest(&mut self, generation: u16) {
        self.newest = Some(self.newest.map_or(generation, |newest| later(newest, generation)));
    }
}

/// The later of two generations, in serial order.
pub(super) fn later(a: u16, b: u16) -> u16 {
    if b.wrapping_sub(a) < 1 << 15 { b } else { a }
}

/// A claimed generation that is not too far behind a known one.
pub(super) fn bounded(claimed: u16, known: u16) -> u16 {
    let last = known.wrapping_add(MOST_UNSEEN);
    if later(last, claimed) == last { claimed } else { last }
}

impl Term {
    /// What a member that did not hear of the term adds to its own numbers to get the term's. It is as far behind the
    /// beginning as it would have been told.
    ///
    /// Example: it had begun 7 generations, and others 9. Operations of the term begin with 137. So its 7 is 134.
    fn shift_of(&self, member: &Member) -> u16 {
        self.first.wrapping_sub(1).wrapping_sub(member.newest)
    }

    pub(super) fn welcome(&self, job: u8, workers: u8, source: u8) -> Option<Welcome> {
        let member = self.members.get(&source)?;
        Some(Welcome {
            job,
            term: self.number,
            source,
            workers,
            first: self.first,
            session: member.session,
            code: olaf_wire::reduce::WelcomeCode::Welcome,
            gradients: self.gradients,
            here: workers,
            window: self.window,
            newest: member.newest,
            sent_at_us: member.sent_at_us,
            nonce: 0,
        })
    }
}
