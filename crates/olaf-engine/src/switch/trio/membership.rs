//! How a job record comes to be, and how a term ends.
//!
//! differs: in the paper jobs are configured by hand, before they begin (§4). Here a worker says how
//! many workers its job has. The job record comes to be once they are all there.

use super::Switch;
use super::job::{Candidate, Job, Member, Term, bounded, later};
use super::outbox::Message;
use crate::blocks::records::JobSpec;
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, Session};
use crate::party::Draws;
use crate::sums::{Dead, Entry, Evicted, Fit, Knock, Look, Presence, Step, contributors};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{ANY, Closed, Hello, Leave, Straggling, TrioPacket, Welcome};
use olaf_wire::{Refusal, Sides};

/// Generations between two terms. A worker sends blocks of at most half as many at once: no piece of
/// the term before fits the next one.
const GENERATIONS_APART: u16 = 128;

impl Switch {
    /// A worker, or a lower switch, wants to take part.
    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let hello = Hello::parse(packet)?;
        self.counters.hellos += 1;
        let patience = self.patience;
        let knock = Knock {
            id: hello.job,
            job: JobId(hello.job.into()),
            peer: from.peer,
            nonce: hello.nonce,
            behind: hello.sources.into(),
            workers: hello.workers.into(),
            fit: self.fit(now, &hello),
        };
        let held = self.jobs.iter().map(|(id, job)| job.held(*id, now, patience));
        match self.door.enter(now, &knock, held) {
            Entry::ProveFirst { nonce, verdict } => {
                self.answer_with(now, from, &hello, WelcomeCode::Waiting, 0, nonce);
                return Ok(verdict);
            }
            Entry::TooOften => return Ok(Verdict::Drop(DropReason::TooOften)),
            Entry::Refused => return Ok(self.turn_away(now, from, &hello, WelcomeCode::Refused)),
            Entry::Full => return Ok(self.turn_away(now, from, &hello, WelcomeCode::Full)),
            Entry::Contested => {
                return Ok(self.turn_away(now, from, &hello, WelcomeCode::Contested));
            }
            Entry::OtherProgram => return Ok(self.meet_stranger(now, from, &hello)),
            Entry::Come { evicted, .. } => {
                if let Some(evicted) = evicted {
                    self.evict(evicted);
                }
            }
        }
        let owner = self.door.owner(hello.program);
        let next_session = &mut self.next_session;
        let job = self.jobs.entry(hello.job).or_insert_with(|| {
            let session = Session(*next_session);
            *next_session = session.0.checked_add(1).unwrap_or(1);
            Job::new(&hello, owner, session)
        });
        if job.is_deserted(now, patience) {
            job.owner.begin_anew();
        }
        job.workers = hello.workers;
        if !self.config.agree(job.timeout_ms, hello.timeout_ms) {
            if job.has_others(now, from.peer, patience) {
                // One worker must not change when the others' blocks age out.
                return Ok(self.turn_away(now, from, &hello, WelcomeCode::Refused));
            }
            job.timeout_ms = hello.timeout_ms;
        }
        // What was said to an earlier life of the switch must not fit a term of this one.
        self.numbers.pass_over(hello.term);
        if job.has_open_term() && !self.replaces_a_member(now, from, &hello) {
            return Ok(Verdict::Absorb);
        }
        Ok(self.wait(now, from, &hello))
    }

    /// How a hello fits its job. Nobody waits in a job whose term is closed and whose lobby is empty: it may have
    /// another number of workers from now on.
    fn fit(&self, now: Instant, hello: &Hello) -> Fit {
        let Some(job) = self.jobs.get(&hello.job) else { return Fit::New };
        let is_deserted = job.is_deserted(now, self.patience);
        let is_in_use = job.has_open_term() || !job.lobby.is_empty();
        let contradicts = job.workers != hello.workers && (is_deserted || is_in_use);
        job.owner.fit(now, hello.program, contradicts, is_deserted)
    }

    /// The job belongs to another program.
    fn meet_stranger(&mut self, now: Instant, from: Source, hello: &Hello) -> Verdict {
        let job = self.jobs.get_mut(&hello.job).expect("the door has seen its workers");
        let heard = job.lobby.last_heard(job.members());
        let code = job.owner.meet_stranger(now, hello.session, heard);
        self.decline(now, from, hello, code)
    }

    /// Answers a hello that goes no further.
    fn decline(&mut self, now: Instant, from: Source, hello: &Hello, code: WelcomeCode) -> Verdict {
        if code == WelcomeCode::Contested {
            self.end_contest(now, hello.job);
        }
        if code.is_refusal() {
            return self.turn_away(now, from, hello, code);
        }
        // It may yet take the place of a worker that has died.
        let here = self.jobs.get(&hello.job).map_or(0, |job| job.lobby.contributors());
        self.answer(now, from, hello, code, u8::try_from(here).unwrap_or(u8::MAX).max(1));
        Verdict::Absorb
    }

    /// Turns all workers of a job away: nobody can say which of them belong together.
    fn end_contest(&mut self, now: Instant, id: u8) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        for candidate in job.lobby.take().into_values() {
            let (peer, hello) = (candidate.peer, candidate.wish.hello);
            let welcome = without_term(&hello, WelcomeCode::Contested);
            self.out.tell(now, peer, Message::Welcome(welcome));
        }
        self.close(now, id, Reason::Refused, None);
    }

    /// A hello while a term lasts: whether its sender takes the place of a member, and the term ends.
    fn replaces_a_member(&mut self, now: Instant, from: Source, hello: &Hello) -> bool {
        let patience = self.patience;
        let Some(job) = self.jobs.get_mut(&hello.job) else { return true };
        let workers = job.workers;
        let Some(term) = job.open_term() else { return true };
        let number = term.number;
        let itself = term.members.iter_mut().find(|(_, one)| one.session == hello.session);
        if let Some((source, member)) = itself {
            let source = *source;
            if member.peer != from.peer && !patience.is_silent(now, member.heard) {
                // A session is no secret: a worker that lives keeps its place.
                self.answer(now, from, hello, WelcomeCode::Waiting, workers);
                return false;
            }
            if hello.term != number {
                // Its welcome was lost.
                (member.heard, member.sent_at_us) = (now, hello.sent_at_us);
                if member.peer != from.peer {
                    member.peer = from.peer;
                    term.everyone = term.members.values().map(|member| member.peer).collect();
                }
                let member = Receivers::One(from.peer);
                if let Some(welcome) = term.welcome(hello.job, workers, source) {
                    self.out.send(now, member, Message::Welcome(welcome));
                }
                return false;
            }
            // It has given an operation of this term up.
            self.close(now, hello.job, Reason::Left, Some(source));
            return true;
        }
        // Anybody may want a worker's `src_id`: a worker that lives keeps it.
        let gives_way = |one: &Member| one.peer == from.peer || patience.is_silent(now, one.heard);
        let given = term.members.iter().filter(|(_, one)| gives_way(one));
        let replaced = given.map(|(source, _)| *source).min_by_key(|one| *one != hello.source);
        if let Some(source) = replaced {
            // Whoever was there before is gone: its process, or its path.
            self.close(now, hello.job, Reason::Dead, Some(source));
            return true;
        }
        let holder = term.members.get(&hello.source).map(|one| one.heard);
        let oldest = term.members.values().map(|one| one.heard).min().unwrap_or_default();
        let owner = &mut job.owner;
        let code = match holder {
            Some(heard) => owner.meet_rival(now, hello.session, heard),
            None => owner.meet_members(now, hello.session, oldest),
        };
        if code.is_refusal() {
            self.decline(now, from, hello, code);
            return false;
        }
        // It may yet take the place of a worker that has died.
        let here = workers;
        self.answer(now, from, hello, WelcomeCode::Waiting, here);
        false
    }

    /// Puts a candidate into the lobby, and begins the term once all are there.
    fn wait(&mut self, now: Instant, from: Source, hello: &Hello) -> Verdict {
        let patience = self.patience;
        let Some(job) = self.jobs.get_mut(&hello.job) else { return Verdict::Absorb };
        // An earlier life of the same worker, and those that have not been heard again.
        job.lobby.prune(now, patience);
        let candidate = job.believed(now, from.peer, hello);
        job.lobby.retain_others(hello.session, |other| other.peer != from.peer);
        if let Some(heard) = job.lobby.rival(hello.session, candidate.wanted) {
            let code = job.owner.meet_rival(now, hello.session, heard);
            return self.decline(now, from, hello, code);
        }
        let others = contributors(job.lobby.others(hello.session));
        if others.saturating_add(candidate.contributors) > job.workers.into() {
            // The term would begin with more workers than the job has.
            let heard = job.lobby.oldest_heard(hello.session);
            let code = job.owner.meet_surplus(now, hello.session, heard);
            return self.decline(now, from, hello, code);
        }
        job.lobby.insert(hello.session, candidate);
        let here = u8::try_from(job.lobby.contributors()).unwrap_or(u8::MAX);
        if self.out.above().is_some() {
            self.answer(now, from, hello, WelcomeCode::Waiting, here);
            self.join_above(now, hello.job);
        } else if job.may_begin(now, patience) {
            self.begin(now, hello.job, None);
        } else {
            self.answer(now, from, hello, WelcomeCode::Waiting, here);
        }
        Verdict::Absorb
    }

    /// Begins a term with all who wait. A lower switch begins that of the switch above.
    pub(super) fn begin(&mut self, now: Instant, id: u8, above: Option<&Welcome>) {
        let tenant = self.config.tenants.of(JobId(id.into()));
        let most_gradients = tenant.map_or(0, |tenant| tenant.most_parameters());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.owner.begins(now, job.lobby.values().count());
        let first = job.newest_of_all().wrapping_add(GENERATIONS_APART);
        let before = job.term.as_ref().map(|term| term.number);
        let candidates: Vec<Candidate> = job.lobby.take().into_values().collect();
        let hellos = || candidates.iter().map(|candidate| candidate.wish.hello);
        let gradients = hellos().map(|hello| hello.gradients).min().unwrap_or(1);
        let window = hellos().map(|hello| hello.window).min().unwrap_or(1);
        let timeout_ms = hellos().map(|hello| hello.timeout_ms).max().unwrap_or(0);
        let visits = self.config.visits(timeout_ms);
        let window = window.min(self.config.room(gradients)).max(1);
        let (number, first, gradients, window) = match above {
            Some(above) => {
                let window = window.min(above.window);
                (above.term, above.first, gradients.min(above.gradients), window)
            }
            None => (self.numbers.next(before), first, gradients, window),
        };
        let is_restarted = job.term.is_none();
        let members = seats(now, &candidates, above, is_restarted);
        let spec = JobSpec {
            sources: members.keys().copied().collect(),
            block_cnt_max: window,
            block_grad_max: gradients,
            visits,
            first,
        };
        self.records.add_job(id, &spec);
        self.risen_again.retain(|key, _| key.job != id);
        job.newest = Some(first);
        let everyone = members.values().map(|member| member.peer).collect();
        let above = above.map(super::upward::above);
        let term = Term {
            number,
            first,
            gradients,
            most_gradients,
            window,
            visits,
            members,
            everyone,
            disputed: None,
            closed: None,
            above,
        };
        for (source, member) in &term.members {
            if let Some(welcome) = term.welcome(id, job.workers, *source) {
                self.out.tell(now, member.peer, Message::Welcome(welcome));
            }
        }
        let workers = u32::from(job.workers);
        job.term = Some(term);
        self.counters.terms += 1;
        self.next_straggler_check = self.next_straggler_check.max(now);
        self.event(id, SumEvent::GenerationBegan { generation: number, workers });
    }

    /// A worker leaves, or a lower switch ends its term.
    pub(super) fn handle_leave(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Result<Verdict, Refusal> {
        let leave = Leave::parse(packet)?;
        let Some(job) = self.jobs.get_mut(&leave.job) else {
            return Ok(Verdict::Drop(DropReason::UnknownJob));
        };
        self.counters.leaves += 1;
        // A session is no secret: a leave counts from the worker's own address alone.
        if job.lobby.get(leave.session).is_some() && !job.lobby.leaves(leave.session, from.peer) {
            return Ok(Verdict::Drop(DropReason::WrongSender));
        }
        let Some(term) = job.term.as_mut().filter(|term| term.number == leave.term) else {
            // It was in no term yet, or the next one has begun without it: nobody waits for it.
            return Ok(Verdict::Absorb);
        };
        let member = term.members.iter_mut().find(|(_, one)| one.session == leave.session);
        let Some((source, member)) = member else {
            return Ok(Verdict::Drop(DropReason::NotAMember));
        };
        if member.peer != from.peer {
            return Ok(Verdict::Drop(DropReason::WrongSender));
        }
        let source = *source;
        member.has_left |= leave.reason == Reason::Left;
        if let Some(closed) = term.closed {
            // The leave comes again: the Closed that confirms it was lost.
            self.out.tell(now, from.peer, Message::Closed(closed));
            return Ok(Verdict::Absorb);
        }
        if leave.reason == Reason::Left {
            let left = SumEvent::WorkerLeft { rank: source.into(), peer: from.peer };
            self.event(leave.job, left);
        }
        self.close(now, leave.job, leave.reason, Some(source));
        Ok(Verdict::Absorb)
    }

    /// Ends a term. A lower switch asks the switch above to end it: only the uppermost knows which
    /// generations are finished.
    pub(super) fn close(&mut self, now: Instant, id: u8, reason: Reason, culprit: Option<u8>) {
        self.close_between(now, id, reason, culprit, Sides::default());
    }

    /// The same. It is known what the culprit and the others call.
    pub(super) fn close_between(
        &mut self,
        now: Instant,
        id: u8,
        reason: Reason,
        culprit: Option<u8>,
        sides: Sides,
    ) {
        let session = self.jobs.get(&id).map(|job| job.upward.session);
        let Some(term) = self.jobs.get_mut(&id).and_then(Job::open_term) else { return };
        if let Some(above) = &mut term.above {
            if above.leaves.is_none() {
                let session = session.unwrap_or_default();
                let source = above.source;
                let leave = Leave { job: id, term: term.number, source, session, reason };
                above.leaves = Some(leave);
                self.out.tell_above(now, Message::Leave(leave));
            }
            return;
        }
        let (generation, mask) = self.records.finished(id).unwrap_or_default();
        let culprit = culprit.unwrap_or(ANY);
        let term = term.number;
        let closed = Closed { job: id, term, culprit, generation, mask, reason, sides };
        self.end(now, &closed);
    }

    /// The term has ended.
    pub(super) fn end(&mut self, now: Instant, closed: &Closed) {
        let id = closed.job;
        let Some(term) = self.jobs.get_mut(&id).and_then(Job::open_term) else { return };
        term.closed = Some(*closed);
        let everyone = Receivers::Many(term.everyone.clone());
        self.out.send(now, everyone, Message::Closed(*closed));
        let culprit = term.members.get(&closed.culprit);
        let culprit = culprit.map(|member| (u32::from(closed.culprit), member.peer));
        *self.counters.closed.entry(closed.reason.name()).or_default() += 1;
        let ended = SumEvent::GenerationClosed {
            generation: closed.term,
            operation: closed.generation.into(),
            reason: closed.reason,
            culprit,
        };
        self.event(id, ended);
    }

    /// A job gives its place, or its name, to another one.
    fn evict(&mut self, evicted: Evicted<u8>) {
        let full = DropReason::SumJoinRefused(WelcomeCode::Full);
        (0..evicted.turned_away).for_each(|_| self.counters.refuse(full));
        self.forget(evicted.id);
    }

    /// Removes a job with its records.
    pub(super) fn forget(&mut self, id: u8) {
        self.jobs.remove(&id);
        self.records.remove_job(id);
        self.risen_again.retain(|key, _| key.job != id);
    }

    fn answer(&mut self, now: Instant, from: Source, hello: &Hello, code: WelcomeCode, here: u8) {
        self.answer_with(now, from, hello, code, here, 0);
    }

    fn answer_with(
        &mut self,
        now: Instant,
        from: Source,
        hello: &Hello,
        code: WelcomeCode,
        here: u8,
        nonce: u32,
    ) {
        let workers = self.jobs.get(&hello.job).map_or(hello.workers, |job| job.workers);
        let welcome = Welcome { workers, here, nonce, ..without_term(hello, code) };
        self.out.tell(now, from.peer, Message::Welcome(welcome));
    }

    fn turn_away(
        &mut self,
        now: Instant,
        from: Source,
        hello: &Hello,
        code: WelcomeCode,
    ) -> Verdict {
        self.answer(now, from, hello, code, 0);
        self.event(hello.job, SumEvent::WorkerRefused { peer: from.peer, code });
        Verdict::Drop(DropReason::SumJoinRefused(code))
    }

    /// Ends terms whose workers have died, and forgets jobs without workers.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let patience = self.patience;
        let ids: Vec<u8> = self.jobs.keys().copied().collect();
        for id in ids {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            job.lobby.prune(now, patience);
            let look = Look {
                lobby_is_empty: job.lobby.is_empty(),
                // The switch above has to hear first that a term ends: it waits for all workers of this one.
                may_go: (self.out.above().is_none() || !job.has_open_term())
                    && !job.owner.is_contested(now),
                dead: self.dead(now, id),
            };
            match patience.step(now, look, self.jobs[&id].members()) {
                Step::Stay => {}
                Step::Close(dead) => self.close(now, id, dead.reason, dead.rank),
                Step::Forget => self.forget(id),
            }
        }
    }

    /// The first member that is dead.
    fn dead(&self, now: Instant, id: u8) -> Option<Dead<Option<u8>>> {
        let term = self.jobs.get(&id)?.term.as_ref().filter(|term| term.closed.is_none())?;
        let lacking = self.records.lacking(id);
        // Blocks of a job with a time-out go without a straggler.
        let lacks = |source: Option<u8>| {
            term.visits == 0 && source.is_some_and(|source| lacking.contains(source))
        };
        let members = || term.members.values().map(Member::presence);
        let numbered = term.members.keys().copied().map(Some).zip(members());
        let dead = self.patience.dead(now, numbered, false, lacks);
        // Workers at other switches may wait, and no message says so.
        let is_over = |one: Presence| one.has_left || self.patience.is_overdue(now, one.heard);
        let is_over_here = term.above.is_some() && members().all(is_over);
        dead.or_else(|| is_over_here.then_some(Dead { rank: None, reason: Reason::Dead }))
    }
}

/// The answer to a hello whose sender is in no term.
const fn without_term(hello: &Hello, code: WelcomeCode) -> Welcome {
    Welcome {
        job: hello.job,
        term: 0,
        source: ANY,
        workers: hello.workers,
        first: 0,
        session: hello.session,
        code,
        gradients: 0,
        here: 0,
        window: 0,
        newest: hello.newest,
        sent_at_us: hello.sent_at_us,
        nonce: 0,
    }
}

/// Gives each candidate the `src_id` that it wants, and the others those that are free.
fn seats(
    now: Instant,
    candidates: &[Candidate],
    above: Option<&Welcome>,
    is_restarted: bool,
) -> BTreeMap<u8, Member> {
    let mut seats: BTreeMap<u8, Member> = BTreeMap::new();
    let (wanting, rest): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|candidate| candidate.wanted.is_some());
    for candidate in wanting.into_iter().chain(rest) {
        let member = Member {
            peer: candidate.peer,
            session: candidate.wish.hello.session,
            sources: candidate.wish.hello.sources,
            heard: now,
            straggling: Straggling::Not,
            seen: (0, 0),
            absent_since: None,
            sent_at_us: candidate.wish.hello.sent_at_us,
            newest: newest_with(candidate, candidates, above, is_restarted)
                .wrapping_sub(candidate.wish.shift),
            draws: Draws::default(),
            has_left: false,
        };
        let wanted = candidate.wish.hello.source;
        let is_free = wanted != ANY && !seats.contains_key(&wanted);
        let free = || (0..ANY).find(|source| !seats.contains_key(source));
        if let Some(source) = if is_free { Some(wanted) } else { free() } {
            seats.insert(source, member);
        }
    }
    seats
}

/// The newest generation of the term in which a candidate was last, as any of its workers has begun
/// it. A worker that has begun fewer fails the operations between: they have failed at the others.
fn newest_with(
    one: &Candidate,
    all: &[Candidate],
    above: Option<&Welcome>,
    is_restarted: bool,
) -> u16 {
    let Hello { newest: own, term, .. } = one.wish.hello;
    if term == 0 {
        return own;
    }
    let others = all.iter().map(|other| other.wish.hello).filter(|hello| hello.term == term);
    let others = others.map(|hello| hello.newest);
    // A switch that was restarted does not know who was in the term.
    let others = others.map(|newest| if is_restarted { bounded(newest, own) } else { newest });
    others.chain(above.map(|above| above.newest)).fold(own, later)
}
