//! Who takes part: joins, leaves, and the beginning and the end of generations.

use super::closing::culprit_is;
use super::generation::{Beginning, End, Generation, Member};
use super::job::{Candidate, Job, Wish};
use super::outbox::Message;
use super::silence::Replaced;
use super::upward::above;
use super::{NonFinite, Switch};
use crate::blocks::Pool;
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, PeerId, Session};
use crate::party::{Draws, Tenant};
use crate::sums::{Entry, Fit, Knock, contributors};
use crate::time::Instant;
use core::time::Duration;
use olaf_wire::reduce::{
    ALL, Address, Closed, Join, Leave, MAX_RANKS, Reason, ReducePacket, Welcome, WelcomeCode,
    offsets::{HEADER, WORD},
};

/// Lanes of a block begin and end with a cache line.
const LINE: u32 = 64;

impl Switch {
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        from: Source,
        packet: &ReducePacket<'_>,
    ) -> Verdict {
        let join = match Join::parse(packet) {
            Ok(join) => join,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        self.counters.joins += 1;
        let id = join.address.job;
        let patience = self.patience;
        let knock = Knock {
            id,
            job: id,
            peer: from.peer,
            nonce: join.nonce,
            behind: join.contributors,
            workers: join.contributors.max(join.workers),
            fit: self.fit(now, &join),
        };
        let held = self.jobs.iter().map(|(id, job)| job.held(*id, now, patience));
        let tenant = match self.door.enter(now, &knock, held) {
            Entry::ProveFirst { nonce, verdict } => {
                self.tell_waiting(now, from.peer, &join, WelcomeCode::Waiting, nonce);
                return verdict;
            }
            Entry::TooOften => return Verdict::Drop(DropReason::TooOften),
            Entry::Refused => return self.turn_away(now, from, &join, WelcomeCode::Refused),
            Entry::Full => return self.turn_away(now, from, &join, WelcomeCode::Full),
            Entry::Contested => {
                return self.turn_away(now, from, &join, WelcomeCode::Contested);
            }
            Entry::OtherProgram => return self.meet_stranger(now, from, &join),
            Entry::Come { tenant, evicted } => {
                if let Some(evicted) = evicted {
                    self.evict(evicted);
                }
                tenant
            }
        };
        match self.admit(now, from, &join, &tenant) {
            Ok(()) => {
                self.begin_if_complete(now, id);
                Verdict::Absorb
            }
            Err(code) if code.is_refusal() => {
                if code == WelcomeCode::Contested {
                    self.end_contest(now, id);
                }
                self.turn_away(now, from, &join, code)
            }
            Err(code) => {
                self.answer(now, from.peer, &join, code);
                Verdict::Absorb
            }
        }
    }

    /// How a join fits its job.
    fn fit(&self, now: Instant, join: &Join) -> Fit {
        if self.out.above().is_some() && join.workers > 0 && wanted_by(join).is_none() {
            // Nobody here knows which ranks are behind other switches.
            return Fit::Impossible;
        }
        if block_bytes([wish_of(join)].into_iter(), join.workers.max(1) as usize).is_none() {
            // A partial result names each of the job's workers beside its lanes.
            return Fit::Impossible;
        }
        match self.jobs.get(&join.address.job) {
            None => Fit::New,
            Some(job) => {
                let contradicts = job.contradicts(join.workers, join.deadline_us);
                let is_deserted = job.is_deserted(now, self.patience);
                job.owner.fit(now, join.program, contradicts, is_deserted)
            }
        }
    }

    /// The job belongs to another program.
    fn meet_stranger(&mut self, now: Instant, from: Source, join: &Join) -> Verdict {
        let job = self.jobs.get_mut(&join.address.job);
        let job = job.expect("the door has seen its workers");
        let heard = job.lobby.last_heard(job.members());
        match job.owner.meet_stranger(now, join.address.session, heard) {
            code if code.is_refusal() => self.turn_away(now, from, join, code),
            code => {
                self.answer(now, from.peer, join, code);
                Verdict::Absorb
            }
        }
    }

    /// Turns all workers of a job away: nobody can say which of them belong together.
    fn end_contest(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let lobby = job.lobby.take();
        let open = job.current.as_ref().filter(|current| current.end.is_none());
        let open = open.map(|current| (current.number, current.first_incomplete()));
        for (session, candidate) in lobby {
            let address = Address { job: id, generation: 0, rank: ALL, session };
            let sent_at_us = candidate.wish.sent_at_us;
            let welcome = self.without_place(address, WelcomeCode::Contested, sent_at_us);
            self.out.tell(now, candidate.peer, Message::Welcome(welcome));
        }
        if let Some((number, operation)) = open {
            let end = End { operation, reason: Reason::Refused, ..culprit_is(None, now) };
            self.close(now, id, number, end);
        }
    }

    /// The answer to a sender that has no place in a generation.
    fn without_place(&self, address: Address, code: WelcomeCode, sent_at_us: u32) -> Welcome {
        Welcome {
            address: Address { rank: ALL, ..address },
            code,
            operation: 0,
            workers: 0,
            here: 0,
            slots: 0,
            block_bytes: 0,
            cores: self.config.cores,
            sent_at_us,
            nonce: 0,
        }
    }

    /// Answers a join that is refused.
    fn turn_away(&mut self, now: Instant, from: Source, join: &Join, code: WelcomeCode) -> Verdict {
        self.answer(now, from.peer, join, code);
        self.event(join.address.job, SumEvent::WorkerRefused { peer: from.peer, code });
        Verdict::Drop(DropReason::SumJoinRefused(code))
    }

    /// Lets a worker into the lobby of its job. The error is the answer to a join that goes no
    /// further.
    fn admit(
        &mut self,
        now: Instant,
        from: Source,
        join: &Join,
        tenant: &Tenant,
    ) -> Result<(), WelcomeCode> {
        let Address { job: id, session, .. } = join.address;
        let (wanted, wish) = (wanted_by(join), wish_of(join));
        let patience = self.patience;
        let job = self.jobs.entry(id);
        let owner = self.door.owner(join.program);
        let job = job.or_insert_with(|| Job::new(join.workers, join.deadline_us, owner));
        if job.is_deserted(now, patience) {
            job.owner.begin_anew();
            if job.fixed == 0 {
                // Nobody is left who asked for another one.
                job.deadline_us = join.deadline_us;
            }
        }
        if job.fixed > 0 && wanted.is_some_and(|rank| rank >= job.fixed) {
            // No worker of the job has that rank.
            return Err(WelcomeCode::Refused);
        }
        if job.is_elsewhere(now, session, from.peer, patience) {
            // A session is no secret: who repeats it from another address must not get the place of a worker that lives.
            return Err(WelcomeCode::Waiting);
        }
        if let Some(current) = job.current.as_mut().filter(|current| current.end.is_none()) {
            if let Some(rank) = current.rank_of(session) {
                // Its welcome was lost, or it sends from another address now.
                let member = &mut current.members[rank as usize];
                (member.peer, member.heard) = (from.peer, now);
                current.regroup();
                return Err(WelcomeCode::Welcome);
            }
            let replaced = current.replaced_by(now, from.peer, wanted, patience);
            let end = match (job.fixed > 0, replaced) {
                // All ranks have workers that live, and none of them is the one that it asks for.
                (true, Replaced::Nobody) => return Err(WelcomeCode::Full),
                // Its rank may be free when the other one falls silent.
                (_, Replaced::StillAlive(heard)) => {
                    return Err(job.owner.meet_rival(now, session, heard));
                }
                (true, Replaced::Dead(rank)) => {
                    let operation = current.first_incomplete();
                    let culprit = Some(current.name(rank));
                    End { operation, reason: Reason::Dead, ..culprit_is(culprit, now) }
                }
                (false, _) => {
                    let (operation, _) = current.shapes.next();
                    End { operation, reason: Reason::Joined, ..culprit_is(None, now) }
                }
            };
            let number = current.number;
            self.close(now, id, number, end);
        }
        let job = self.jobs.get_mut(&id).expect("it has just been there");
        job.lobby.prune(now, patience);
        if let Some(heard) = job.lobby.rival(session, wanted) {
            return Err(job.owner.meet_rival(now, session, heard));
        }
        let others = job.lobby.others(session);
        let most = if job.fixed > 0 { job.fixed } else { MAX_RANKS };
        let most = tenant.max_workers.map_or(most, |workers| workers.min(most));
        if contributors(others.clone()).saturating_add(join.contributors) > most {
            // The generation would begin with more workers than the job has, or than a bitmap can name.
            let heard = job.lobby.oldest_heard(session);
            return Err(job.owner.meet_surplus(now, session, heard));
        }
        let wishes =
            others.clone().map(|other| (other.wish.datagram_bytes, other.wish.block_bytes));
        if block_bytes(wishes.chain([wish]), others.count() + 1).is_none() {
            // A partial result names all workers, and the datagrams of one of them have no room for that.
            return Err(WelcomeCode::Full);
        }
        let candidate = Candidate {
            peer: from.peer,
            wanted,
            contributors: join.contributors,
            heard: now,
            wish: Wish {
                block_bytes: join.block_bytes,
                datagram_bytes: join.datagram_bytes,
                sent_at_us: join.sent_at_us,
                operations: (join.address.generation != 0).then_some(join.operation),
            },
        };
        job.lobby.insert(session, candidate);
        if self.out.above().is_none() && job.may_begin(now, patience) {
            return Ok(());
        }
        self.join_above(now, id);
        Err(WelcomeCode::Waiting)
    }

    /// Answers a join that is not, or not yet, followed by a generation.
    fn answer(&mut self, now: Instant, peer: PeerId, join: &Join, code: WelcomeCode) {
        let address = join.address;
        let job = self.jobs.get(&address.job);
        if code == WelcomeCode::Welcome
            && let Some(current) = job.and_then(|job| job.current.as_ref())
            && let Some(rank) = current.rank_of(address.session)
        {
            let welcome = welcome_to(current, rank, join.sent_at_us);
            return self.out.tell(now, peer, Message::Welcome(welcome));
        }
        self.tell_waiting(now, peer, join, code, 0);
    }

    /// Tells a sender of a join that it is in no generation.
    fn tell_waiting(
        &mut self,
        now: Instant,
        peer: PeerId,
        join: &Join,
        code: WelcomeCode,
        nonce: u32,
    ) {
        let address = join.address;
        let job = self.jobs.get(&address.job);
        let here = job.map_or(0, |job| u32::try_from(job.lobby.len()).unwrap_or(MAX_RANKS));
        let welcome = Welcome {
            workers: job.map_or(0, |job| job.fixed),
            here: here.min(MAX_RANKS),
            nonce,
            ..self.without_place(address, code, join.sent_at_us)
        };
        self.out.tell(now, peer, Message::Welcome(welcome));
    }

    /// Tells a sender in another version of the format which version this switch speaks.
    pub(super) fn answer_other_version(&mut self, now: Instant, from: Source, address: Address) {
        let welcome = self.without_place(address, WelcomeCode::OtherVersion, 0);
        self.out.tell(now, from.peer, Message::Welcome(welcome));
    }

    /// Begins the job's next generation if all its workers are there.
    pub(super) fn begin_if_complete(&mut self, now: Instant, id: JobId) {
        let patience = self.patience;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if self.out.above().is_none() && job.may_begin(now, patience) {
            self.begin(now, id, None);
        }
    }

    /// Begins a generation of the workers in the lobby; in a lower switch that of the welcome.
    pub(super) fn begin(&mut self, now: Instant, id: JobId, from_above: Option<&Welcome>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.owner.begins(now, job.lobby.values().count());
        let operations = job.operations().unwrap_or(0);
        let seated = job.seat();
        let wishes = seated.iter().map(|(_, one)| (one.wish.datagram_bytes, one.wish.block_bytes));
        let block_bytes = block_bytes(wishes, seated.len());
        let block_bytes = block_bytes.expect("each datagram has room for a block, see admit()");
        let beginning = self.beginning(id, &seated, block_bytes, from_above, operations);
        let members = u32::try_from(seated.len()).expect("a lobby has at most MAX_RANKS workers");
        let (slots, number) = (beginning.slots, beginning.number);
        let mut pool = Pool::new(slots, members);
        pool.refuse_non_finite(self.config.non_finite == NonFinite::Refuse);
        let generation = Generation::new(beginning, pool);
        let job = self.jobs.get_mut(&id).expect("it has just been there");
        if let Some(older) = job.previous.take() {
            self.counters.pieces.retire(&older.pool.counts());
        }
        job.previous = job.current.take();
        for (rank, (_, candidate)) in (0..).zip(&seated) {
            let welcome = welcome_to(&generation, rank, candidate.wish.sent_at_us);
            self.out.tell(now, candidate.peer, Message::Welcome(welcome));
        }
        job.current = Some(generation);
        self.counters.generations += 1;
        self.event(id, SumEvent::GenerationBegan { generation: number, workers: members });
        self.plan(id);
    }

    fn beginning(
        &mut self,
        id: JobId,
        seated: &[(Session, Candidate)],
        block_bytes: u32,
        from_above: Option<&Welcome>,
        operations: u32,
    ) -> Beginning {
        let block_bytes = from_above.map_or(block_bytes, |welcome| welcome.block_bytes);
        let slots = self.slots(block_bytes);
        let job = self.jobs.get(&id);
        let is_fixed = job.is_some_and(|job| job.fixed > 0);
        // A worker that stays has operations behind it that a new one has not: on several cores the
        // two would meet in parts of different operations.
        let before = job.and_then(|job| job.current.as_ref());
        let stays = |session| before.is_some_and(|before| before.rank_of(session).is_some());
        let begins = is_fixed && !seated.iter().any(|(session, _)| stays(*session));
        let cores = if begins { self.config.cores } else { 1 };
        let cores = from_above.map_or(cores, |welcome| welcome.cores.min(cores));
        let members = seated.iter().map(|(session, candidate)| Member {
            session: *session,
            peer: candidate.peer,
            wanted: candidate.wanted,
            contributors: candidate.contributors,
            heard: candidate.heard,
            has_left: false,
            told_not_finite: None,
            draws: Draws::default(),
        });
        // The deadline that the workers asked for, or else the switch's own.
        let asked = job.map(|job| job.deadline_us).filter(|us| *us > 0);
        let deadline = asked.map(|us| Duration::from_micros(us.into()));
        let members = members.collect();
        let number = self.number_of_next(id);
        let began_with = from_above.map_or(operations, |welcome| welcome.operation);
        Beginning {
            job: id,
            number,
            is_fixed,
            members,
            block_bytes,
            cores,
            slots: from_above.map_or(slots, |welcome| welcome.slots.min(slots)),
            deadline: deadline.or(self.config.deadline),
            most_lanes: self.config.tenants.of(id).map_or(0, |tenant| tenant.most_parameters()),
            began_with,
            above: from_above.map(above),
        }
    }

    /// The number of a job's next generation.
    fn number_of_next(&mut self, id: JobId) -> u32 {
        let current = self.jobs.get(&id).and_then(|job| job.current.as_ref());
        let before = current.map(|current| current.number);
        self.numbers.next(before)
    }

    /// Slots of a job: its share of the memory has two tables, for the table of the generation
    /// before is kept too. Each slot has two cells.
    fn slots(&self, block_bytes: u32) -> u32 {
        let share = self.config.memory_bytes / u64::from(self.config.jobs);
        let slots = share / (4 * u64::from(block_bytes));
        u32::try_from(slots).unwrap_or(u32::MAX).clamp(1, self.config.slots)
    }

    pub(super) fn handle_leave(
        &mut self,
        now: Instant,
        from: Source,
        packet: &ReducePacket<'_>,
    ) -> Verdict {
        let leave = match Leave::parse(packet) {
            Ok(leave) => leave,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let verdict = self.take_leave(now, from, &leave);
        if verdict != Verdict::Drop(DropReason::WrongSender) {
            // Also where nobody of that name is here: then this is a repetition, and the answer to the first was lost.
            let Leave { address, operation } = leave;
            let (culprit, reason) = (address.rank, Reason::Left);
            let closed = Closed { address, operation, culprit, reason, clash: None };
            self.out.tell(now, from.peer, Message::Closed(closed));
        }
        verdict
    }

    fn take_leave(&mut self, now: Instant, from: Source, leave: &Leave) -> Verdict {
        let address = leave.address;
        if leave.operation == u32::MAX {
            self.leave_newer(now, from, &address);
        }
        let Some(job) = self.jobs.get_mut(&address.job) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let waited = job.lobby.leaves(address.session, from.peer);
        let Some(generation) = job.generation(address.generation) else {
            // It was in no generation yet: nobody else waits for it.
            return if waited { Verdict::Absorb } else { Verdict::Drop(DropReason::NotAMember) };
        };
        if let Err(reason) = generation.hear(now, from, &address) {
            return if waited { Verdict::Absorb } else { Verdict::Drop(reason) };
        }
        self.counters.leaves += 1;
        generation.members[address.rank as usize].has_left = true;
        // It needs no result any more.
        generation.pool.note_holds(address.rank, u32::MAX);
        generation.regroup();
        // An operation that all have sent goes on without the leaver: others may have its result.
        let operation = leave.operation.max(generation.first_incomplete());
        let rank = generation.name(address.rank);
        self.event(address.job, SumEvent::WorkerLeft { rank, peer: from.peer });
        let end = End { operation, reason: Reason::Left, ..culprit_is(Some(rank), now) };
        self.close(now, address.job, address.generation, end);
        self.begin_if_complete(now, address.job);
        Verdict::Absorb
    }

    /// A worker that waited for the next generation leaves, and that generation has begun with
    /// it meanwhile. Where no piece has come yet, the others begin again without noticing.
    fn leave_newer(&mut self, now: Instant, from: Source, address: &Address) {
        let job = self.jobs.get_mut(&address.job);
        let Some(current) = job.and_then(|job| job.current.as_mut()) else { return };
        let Some(rank) = current.rank_of(address.session) else { return };
        let member = &mut current.members[rank as usize];
        if current.number == address.generation || member.peer != from.peer || member.has_left {
            // The caller takes this leave, or it is another's, or it comes again.
            return;
        }
        member.has_left = true;
        current.pool.note_holds(rank, u32::MAX);
        current.regroup();
        let operation = current.first_incomplete();
        let has_begun = current.shapes.next().1 > 0;
        let (number, name) = (current.number, current.name(rank));
        self.counters.leaves += 1;
        self.event(address.job, SumEvent::WorkerLeft { rank: name, peer: from.peer });
        let (reason, culprit) =
            if has_begun { (Reason::Left, Some(name)) } else { (Reason::Renewed, None) };
        let end = End { operation, reason, ..culprit_is(culprit, now) };
        self.close(now, address.job, number, end);
    }
}

/// The rank that a join asks for.
fn wanted_by(join: &Join) -> Option<u32> {
    Some(join.address.rank).filter(|rank| *rank != ALL)
}

/// Bytes of a datagram and of a block that a join asks for.
const fn wish_of(join: &Join) -> (u32, u32) {
    (join.datagram_bytes, join.block_bytes)
}

/// The welcome of the member of that rank.
fn welcome_to(generation: &Generation, rank: u32, sent_at_us: u32) -> Welcome {
    let members = u32::try_from(generation.members.len()).expect("at most MAX_RANKS");
    let session = generation.members[rank as usize].session;
    Welcome {
        address: Address { job: generation.job, generation: generation.number, rank, session },
        code: WelcomeCode::Welcome,
        operation: generation.began_with,
        workers: members,
        here: members,
        slots: generation.pool.slots(),
        block_bytes: generation.block_bytes,
        cores: generation.cores,
        sent_at_us,
        nonce: 0,
    }
}

/// Bytes of a block that fits every worker's datagrams, of their length and the wanted bytes of
/// a block; none where not even a line fits.
fn block_bytes(wishes: impl Iterator<Item = (u32, u32)> + Clone, workers: usize) -> Option<u32> {
    let words = u32::try_from(workers.div_ceil(64) * WORD).ok()?;
    let longest = wishes.clone().map(|(datagram, _)| datagram).min()?;
    let longest = longest.min(olaf_wire::offsets::MAX_DATAGRAM as u32);
    let fits = longest.checked_sub(HEADER as u32 + words)? / LINE * LINE;
    let wanted = wishes.map(|(_, block)| block).filter(|block| *block > 0).min();
    let wanted = wanted.map_or(fits, |wanted| (wanted / LINE * LINE).max(LINE));
    Some(fits.min(wanted)).filter(|bytes| *bytes > 0)
}
