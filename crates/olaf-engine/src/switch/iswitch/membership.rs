//! Join, Leave, Reset and Halt: who takes part, and when a generation begins and ends.

use super::job::{Candidate, End, Generation, Job, Wish};
use super::length::Length;
use super::vectors::Vectors;
use super::{Message, NonFinite, Switch};
use crate::blocks::ByIndex;
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::event::SumEvent;
use crate::ids::{JobId, PeerId, Session};
use crate::sums::{Entry, Evicted, Fit, Knock, contributors};
use crate::time::Instant;
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, Control, Halt, Join, Leave, Outcome, SEG, Sender,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::Reason;

/// Most floats of a data packet.
const MOST_FLOATS: u32 = ((MAX_DATAGRAM - SEG) / 4) as u32;

impl Switch {
    pub(super) fn event(&mut self, job: JobId, event: SumEvent) {
        self.events.push(job, event);
    }

    pub(super) fn handle_join(&mut self, now: Instant, from: Source, join: &Join) -> Verdict {
        let patience = self.patience;
        let knock = Knock {
            id: join.job,
            job: join.job,
            peer: from.peer,
            nonce: join.nonce,
            behind: join.contributors,
            workers: join.workers,
            fit: self.fit(now, join),
        };
        let held = self.jobs.iter().map(|(id, job)| job.held(*id, now, patience));
        match self.door.enter(now, &knock, held) {
            Entry::ProveFirst { nonce, verdict } => {
                self.answer_join(now, from.peer, join, Outcome::Waiting, nonce);
                return verdict;
            }
            Entry::TooOften => return Verdict::Drop(DropReason::TooOften),
            Entry::Refused => return self.turn_away(now, from, join, Outcome::Refused),
            Entry::Full => return self.turn_away(now, from, join, Outcome::Full),
            Entry::Contested => return self.turn_away(now, from, join, Outcome::Contested),
            Entry::OtherProgram => return self.meet_stranger(now, from, join),
            Entry::Come { evicted, .. } => {
                if let Some(evicted) = evicted {
                    self.evict(evicted);
                }
            }
        }
        match self.admit(now, from.peer, join) {
            Outcome::Waiting => {
                self.answer_join(now, from.peer, join, Outcome::Waiting, 0);
                self.lobby_changed(now, join.job);
                Verdict::Absorb
            }
            Outcome::Success => {
                self.welcome(now, join.job, Some(join.session));
                Verdict::Absorb
            }
            outcome => {
                if outcome == Outcome::Contested {
                    self.end_contest(now, join.job);
                }
                self.turn_away(now, from, join, outcome)
            }
        }
    }

    /// How a join fits its job.
    fn fit(&self, now: Instant, join: &Join) -> Fit {
        match self.jobs.get(&join.job) {
            None => Fit::New,
            Some(job) => {
                let contradicts = job.workers != join.workers;
                let is_deserted = job.is_deserted(now, self.patience);
                job.owner.fit(now, join.program.into(), contradicts, is_deserted)
            }
        }
    }

    /// The job belongs to another program.
    fn meet_stranger(&mut self, now: Instant, from: Source, join: &Join) -> Verdict {
        let job = self.jobs.get_mut(&join.job).expect("the door has seen its workers");
        let heard = job.lobby.last_heard(job.members());
        let code = job.owner.meet_stranger(now, join.session, heard);
        let outcome = Outcome::from_code(code);
        if code.is_refusal() {
            return self.turn_away(now, from, join, outcome);
        }
        self.answer_join(now, from.peer, join, outcome, 0);
        Verdict::Absorb
    }

    /// Turns all workers of a job away: nobody can say which of them belong together.
    fn end_contest(&mut self, now: Instant, id: JobId) {
        self.refuse_lobby(now, id, Outcome::Contested);
        self.close(now, id, Reason::Refused, ANY);
    }

    /// Turns away the workers that wait for the next generation.
    pub(super) fn refuse_lobby(&mut self, now: Instant, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        for (session, candidate) in job.lobby.take() {
            let admission = Admission { member: ANY, rank: ANY, session, ..Admission::default() };
            let admission = Some(admission);
            let (action, sent_at_us) = (Action::Join, 0);
            let ack = Ack { generation: 0, action, outcome, sent_at_us, index: 0, admission };
            self.out.tell(now, candidate.peer, Control::Ack(ack));
        }
    }

    /// Answers a join that is refused.
    fn turn_away(&mut self, now: Instant, from: Source, join: &Join, outcome: Outcome) -> Verdict {
        let code = outcome.of_join();
        self.event(join.job, SumEvent::WorkerRefused { peer: from.peer, code });
        self.answer_join(now, from.peer, join, outcome, 0);
        Verdict::Drop(DropReason::SumJoinRefused(code))
    }

    /// Takes a join in. Success: the sender is in the generation already.
    fn admit(&mut self, now: Instant, peer: PeerId, join: &Join) -> Outcome {
        if !self.jobs.contains_key(&join.job) {
            self.next_session = self.next_session.wrapping_add(1).max(1);
            let owner = self.door.owner(join.program.into());
            self.jobs.insert(join.job, Job::new(join.workers, owner, Session(self.next_session)));
        }
        let patience = self.patience;
        let job = self.jobs.get_mut(&join.job).expect("it was there or is now");
        let has_rank = join.rank < job.workers && join.sender == Sender::Worker;
        let wanted = has_rank.then_some(join.rank);
        if job.is_deserted(now, patience) {
            job.owner.begin_anew();
        }
        if let Some(heard) = job.holder(now, (join.session, peer), wanted, patience) {
            let code = job.owner.meet_rival(now, join.session, heard);
            if code.is_refusal() {
                return Outcome::from_code(code);
            }
        }
        if let Some(current) = job.current.as_mut().filter(|current| current.end.is_none()) {
            let same = |member: &&mut super::job::Member| {
                member.session == join.session && member.peer == peer
            };
            if let Some(member) = current.members.iter_mut().find(same) {
                member.heard = now;
                if join.operations == ANY || join.generation != current.number {
                    // The answer was lost.
                    return Outcome::Success;
                }
                // The sender has given this generation up.
                let rank = member.rank;
                self.close(now, join.job, Reason::Left, rank);
            } else if let Some(member) = current.members.iter().find(|member| member.peer == peer) {
                // A new life at the same address: the old one is over.
                let rank = member.rank;
                self.close(now, join.job, Reason::Dead, rank);
            }
        }
        let job = self.jobs.get_mut(&join.job).expect("closing forgets no job");
        job.lobby.retain_others(join.session, |other| other.peer != peer);
        if let Some(heard) = job.lobby.rival(join.session, wanted) {
            return Outcome::from_code(job.owner.meet_rival(now, join.session, heard));
        }
        let here = contributors(job.lobby.others(join.session));
        if here.saturating_add(join.contributors) > job.workers {
            // The generation would begin with more workers than the job has.
            let heard = job.lobby.oldest_heard(join.session);
            return Outcome::from_code(job.owner.meet_surplus(now, join.session, heard));
        }
        let member = match job.lobby.get(join.session) {
            Some(known) => known.wish.member,
            None => {
                self.next_member = self.next_member.wrapping_add(1);
                self.next_member
            }
        };
        let wish = Wish {
            member,
            sender: join.sender,
            packet_floats: join.packet_floats.min(MOST_FLOATS),
            operations: join.operations,
        };
        let contributors = join.contributors;
        let candidate = Candidate { peer, wanted, contributors, heard: now, wish };
        job.lobby.insert(join.session, candidate);
        Outcome::Waiting
    }

    /// A job gives its place, or its name, to another one.
    fn evict(&mut self, evicted: Evicted<JobId>) {
        let full = DropReason::SumJoinRefused(Outcome::Full.of_join());
        (0..evicted.turned_away).for_each(|_| self.counters.refuse(full));
        self.forget_job(evicted.id);
    }

    fn answer_join(
        &mut self,
        now: Instant,
        peer: PeerId,
        join: &Join,
        outcome: Outcome,
        nonce: u32,
    ) {
        let session = join.session;
        let job = self.jobs.get(&join.job);
        let candidate = job.and_then(|job| job.lobby.get(session));
        let admission = Admission {
            member: candidate.map_or(ANY, |candidate| candidate.wish.member),
            rank: ANY,
            workers: job.map_or(0, |job| job.workers),
            here: job.map_or(0, |job| job.lobby.contributors()),
            session,
            nonce,
            ..Admission::default()
        };
        let ack = Ack {
            generation: 0,
            action: Action::Join,
            outcome,
            sent_at_us: 0,
            index: 0,
            admission: Some(admission),
        };
        self.out.tell(now, peer, Control::Ack(ack));
    }

    /// Begins the next generation, or asks the switch above for it, where all that belong to it are here.
    pub(super) fn lobby_changed(&mut self, now: Instant, id: JobId) {
        let has_above = self.out.above().is_some();
        let patience = self.patience;
        let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.is_open()) else { return };
        if has_above {
            return self.join_above(now, id);
        }
        if job.may_begin(now, patience) {
            self.begin(now, id, None);
        }
    }

    /// Begins a generation with the members in the lobby. `above` is what the switch above says.
    pub(super) fn begin(&mut self, now: Instant, id: JobId, above: Option<(u8, Admission)>) {
        let number = self.free_number();
        let most_floats = self.config.tenants.of(id).map_or(0, |tenant| tenant.most_parameters());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let floats = job.lobby.values().map(|candidate| candidate.wish.packet_floats).min();
        let mut packet_floats = floats.unwrap_or(1);
        job.owner.begins(now, job.lobby.values().count());
        let mut operations = job.operations().unwrap_or(0);
        let members = job.seat();
        if members.is_empty() {
            return;
        }
        let mut slots = u32::MAX;
        if let Some((_, admission)) = &above {
            packet_floats = packet_floats.min(admission.packet_floats).max(1);
            operations = admission.operations;
            slots = admission.slots.max(1);
        }
        let slots = self.config.slots_for(packet_floats).min(slots);
        let weights = members.iter().map(|member| member.contributors).collect();
        let mut table = ByIndex::new(slots, weights);
        table.refuse_non_finite(self.config.non_finite == NonFinite::Refuse);
        let generation = Generation {
            number,
            above: above.map(|(number, _)| number),
            group: members.iter().map(|member| member.peer).collect(),
            table,
            length: Length::new(most_floats, packet_floats),
            vectors: Vectors::default(),
            members,
            packet_floats,
            workers: job.workers,
            operations,
            end: None,
            halting: None,
        };
        let here = generation.here();
        for (member, of) in generation.members.iter().enumerate() {
            self.seats.insert((of.peer, number), (id, member as u32));
        }
        let before = job.current.replace(generation);
        if let Some(before) = before {
            self.forget(&before);
        }
        self.counters.generations += 1;
        self.event(id, SumEvent::GenerationBegan { generation: number.into(), workers: here });
        self.welcome(now, id, None);
    }

    /// A generation is no longer kept.
    pub(super) fn forget(&mut self, generation: &Generation) {
        self.counters.pieces.retire(&generation.table.counts());
        for member in &generation.members {
            self.seats.remove(&(member.peer, generation.number));
        }
    }

    /// A number that no generation of this switch has.
    fn free_number(&mut self) -> u8 {
        let in_use = |number: u8| {
            self.jobs
                .values()
                .any(|job| job.current.as_ref().is_some_and(|one| one.number == number))
        };
        let mut number = self.next_generation;
        while in_use(number) {
            number = number.wrapping_add(1);
        }
        self.next_generation = number.wrapping_add(1);
        number
    }

    /// Tells members that they are in; all of them, or one.
    fn welcome(&mut self, now: Instant, id: JobId, only: Option<Session>) {
        let Some(current) = self.jobs.get(&id).and_then(|job| job.current.as_ref()) else { return };
        for member in &current.members {
            if only.is_some_and(|session| session != member.session) {
                continue;
            }
            let admission = Admission {
                member: member.id,
                rank: member.rank,
                workers: current.workers,
                here: current.here(),
                slots: current.table.slots(),
                packet_floats: current.packet_floats,
                operations: current.operations,
                session: member.session,
                nonce: 0,
            };
            let ack = Ack {
                generation: current.number,
                action: Action::Join,
                outcome: Outcome::Success,
                sent_at_us: 0,
                index: 0,
                admission: Some(admission),
            };
            self.out.tell(now, member.peer, Control::Ack(ack));
        }
    }

    pub(super) fn handle_leave(&mut self, now: Instant, from: Source, leave: &Leave) -> Verdict {
        self.acknowledge(now, from.peer, leave.generation, Action::Leave, Outcome::Success, 0);
        let Some(job) = self.jobs.get_mut(&leave.job) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let was_waiting = job.lobby.leaves(leave.session, from.peer);
        let members = job.current.iter_mut().flat_map(|current| &mut current.members);
        let mut same =
            members.filter(|member| member.session == leave.session && member.peer == from.peer);
        match same.next() {
            Some(member) if !member.has_left => {
                member.has_left = true;
                let (rank, peer) = (member.rank, member.peer);
                self.event(leave.job, SumEvent::WorkerLeft { rank, peer });
                self.close(now, leave.job, Reason::Left, rank);
            }
            // The leave comes again: the answer to the first one was lost.
            Some(_) => {}
            None if was_waiting => {}
            // A session is no secret: a leave counts from the member's own address alone.
            None => return Verdict::Drop(DropReason::NotAMember),
        }
        let job = &self.jobs[&leave.job];
        let has_nobody = job.lobby.is_empty() && job.members().all(|member| member.has_left);
        // The switch above has to hear first that a generation ends.
        if has_nobody && (self.out.above().is_none() || !job.is_open()) {
            // The hardware has few places for jobs, and frees one with the last leave. So does this switch.
            self.forget_job(leave.job);
        }
        Verdict::Absorb
    }

    /// The generation of a job ends, because of the worker of that rank. A lower switch asks the switch above
    /// where it ends: only the uppermost one knows which packets have results.
    pub(super) fn close(&mut self, now: Instant, id: JobId, reason: Reason, culprit: u32) {
        self.close_because(now, id, (reason, culprit, 0));
    }

    /// The same. The worker that is the reason has said what it calls.
    pub(super) fn close_because(
        &mut self,
        now: Instant,
        id: JobId,
        (reason, culprit, calls): (Reason, u32, u8),
    ) {
        let has_above = self.out.above().is_some();
        let Some(current) = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut()) else {
            return;
        };
        if current.end.is_some() {
            // The first end counts: members have heard where it is.
            return;
        }
        if has_above {
            if current.halting.is_none() {
                current.halting = Some((reason, culprit, calls));
                self.halt_above(now, id);
            }
            return;
        }
        let index = current.table.first_incomplete();
        self.close_at(now, id, End { index, reason, culprit, calls });
    }

    /// The generation of a job has no packet from `end.index` on.
    pub(super) fn close_at(&mut self, now: Instant, id: JobId, end: End) {
        let current = self.jobs.get_mut(&id).and_then(|job| job.current.as_mut());
        let Some(current) = current.filter(|current| current.end.is_none()) else { return };
        current.table.close(end.index);
        current.end = Some(end);
        let number = current.number;
        let culprit = current.members.iter().find(|member| member.rank == end.culprit);
        let culprit = culprit.map(|member| (member.rank, member.peer));
        let halt = halt_of(number, end);
        let to = Receivers::Many(current.group.clone());
        self.out.send(now, to, Message::Control(Control::Halt(halt)));
        *self.counters.closed.entry(end.reason.name()).or_default() += 1;
        let operation = u32::try_from(end.index).unwrap_or(u32::MAX);
        self.event(
            id,
            SumEvent::GenerationClosed {
                generation: number.into(),
                operation,
                reason: end.reason,
                culprit,
            },
        );
        self.lobby_changed(now, id);
    }

    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        peer: PeerId,
        generation: u8,
        action: Action,
        outcome: Outcome,
        sent_at_us: u32,
    ) {
        let ack = Ack { generation, action, outcome, sent_at_us, index: 0, admission: None };
        self.out.tell(now, peer, Control::Ack(ack));
    }

    pub(super) fn forget_job(&mut self, id: JobId) {
        if let Some(current) = self.jobs.remove(&id).and_then(|job| job.current) {
            self.forget(&current);
        }
    }
}

/// What members hear of the end of that generation.
pub(super) const fn halt_of(generation: u8, end: End) -> Halt {
    let End { index, reason, culprit, calls } = end;
    Halt { generation, reason, culprit, index, calls }
}
