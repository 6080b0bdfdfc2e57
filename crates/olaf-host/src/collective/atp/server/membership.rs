//! Who takes part: joins, leaves, silence, and the beginning and the end of generations.

use super::AtpServer;
use super::job::{End, Generation, Job, Member};
use crate::collective::atp::factors::Factors;
use alloc::vec::Vec;
use olaf_engine::sums::{Entry, Evicted, Fit, Knock, Look, Step};
use olaf_engine::{Instant, JobId, PeerId, Receivers, Refused, SumEvent, Verdict};
use olaf_wire::Sides;
use olaf_wire::atp::offsets::{SHORT_LEVELS, TENSOR_BITS, VALUE, upper};
use olaf_wire::atp::{ANY, AtpPacket, Closed, Join, LEVELS, Leave, Left, Welcome};
use olaf_wire::reduce::{Reason, WelcomeCode};

/// What a join leads to.
enum Answer {
    /// A welcome with that code.
    Code(WelcomeCode),
    /// The generation has ended, with that life and end.
    Closed(u16, End),
}

/// The end of a generation that the server does not know.
const UNKNOWN: End =
    End { tensor: 0, reason: Reason::Unknown, culprit: ANY, sides: Sides::new(0, 0) };

impl AtpServer {
    pub(super) fn handle_join(
        &mut self,
        now: Instant,
        peer: PeerId,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        let join = Join::parse(packet).map_err(Refused::Malformed)?;
        self.counts.joins += 1;
        let of = (join.job, join.server);
        let patience = self.patience;
        let knock = Knock {
            id: of,
            job: JobId(join.job.into()),
            peer,
            nonce: join.nonce,
            // A peer may be a switch with any number of the job's workers behind it.
            behind: join.workers,
            workers: join.workers,
            fit: self.fit(now, &join),
        };
        let held = self.jobs.iter().map(|(of, job)| job.held(*of, now, patience));
        match self.door.enter(now, &knock, held) {
            Entry::ProveFirst { nonce, verdict } => {
                let answer = Welcome::without_place(&join, WelcomeCode::Waiting);
                let answer = Welcome { nonce, ..answer };
                self.send(now, Receivers::One(peer), |buf| answer.emit(buf));
                return if verdict == Verdict::Absorb { Ok(()) } else { Err(Refused::NotProven) };
            }
            Entry::TooOften => return Err(Refused::TooOften),
            Entry::Refused => return Err(self.turn_away(now, peer, &join, WelcomeCode::Refused)),
            Entry::Full => return Err(self.turn_away(now, peer, &join, WelcomeCode::Full)),
            Entry::Contested => {
                return Err(self.turn_away(now, peer, &join, WelcomeCode::Contested));
            }
            Entry::OtherProgram => return self.meet_stranger(now, peer, &join),
            Entry::Come { evicted, .. } => {
                if let Some(evicted) = evicted {
                    self.evict(evicted);
                }
            }
        }
        self.bury_predecessor(now, of, peer, &join);
        match self.admit(now, peer, &join) {
            Ok(()) => self.begin(now, of),
            Err(Answer::Closed(life, end)) => {
                if end.reason != Reason::Unknown {
                    // It is a member. Its welcome may be lost, and it believes the end only of a generation that it knows. Or
                    // its switch has forgotten it, and copies it no results before another welcome.
                    self.answer(now, peer, &join, WelcomeCode::Welcome);
                }
                self.tell_closed(now, of, &[peer], life, end);
            }
            Err(Answer::Code(code)) if code.is_refusal() => {
                if code == WelcomeCode::Contested {
                    self.end_contest(now, of);
                }
                return Err(self.turn_away(now, peer, &join, code));
            }
            Err(Answer::Code(code)) => self.answer(now, peer, &join, code),
        }
        Ok(())
    }

    /// How a join fits its job.
    fn fit(&self, now: Instant, join: &Join) -> Fit {
        match self.jobs.get(&(join.job, join.server)) {
            None => Fit::New,
            Some(job) => {
                let is_deserted = job.is_deserted(now, self.patience);
                job.owner.fit(now, join.program, !job.agrees(join), is_deserted)
            }
        }
    }

    /// The job belongs to another program.
    fn meet_stranger(&mut self, now: Instant, peer: PeerId, join: &Join) -> Result<(), Refused> {
        let job = self.jobs.get_mut(&(join.job, join.server));
        let job = job.expect("the door has seen its workers");
        let heard = job.last_heard();
        match job.owner.meet_stranger(now, join.session, heard) {
            code if code.is_refusal() => Err(self.turn_away(now, peer, join, code)),
            code => {
                self.answer(now, peer, join, code);
                Ok(())
            }
        }
    }

    /// Turns all workers of a job away: nobody can say which of them belong together.
    fn end_contest(&mut self, now: Instant, of: (u16, u8)) {
        let Some(job) = self.jobs.get_mut(&of) else { return };
        for member in core::mem::take(&mut job.lobby).into_values() {
            let code = WelcomeCode::Contested;
            let refused = Welcome::refusal(of, member.session, code, member.sent_at_us);
            self.send(now, Receivers::One(member.peer), |buf| refused.emit(buf));
        }
        self.close(now, of, Reason::Refused, None);
    }

    /// Answers a join that is refused.
    fn turn_away(&mut self, now: Instant, peer: PeerId, join: &Join, code: WelcomeCode) -> Refused {
        self.answer(now, peer, join, code);
        self.event(join.job, SumEvent::WorkerRefused { peer, code });
        Refused::NotAdmitted(code)
    }

    /// Lets a worker into the lobby of its job; `Ok`: the lobby is complete.
    fn admit(&mut self, now: Instant, peer: PeerId, join: &Join) -> Result<(), Answer> {
        let of = (join.job, join.server);
        let patience = self.patience;
        let owner = self.door.owner(join.program);
        let job = self.jobs.entry(of).or_insert_with(|| Job::new(join, owner));
        if job.is_deserted(now, patience) {
            job.owner.begin_anew();
        }
        let mut closes = None;
        if let Some(current) = &mut job.current {
            let member = current.rank_of(join.session);
            let wants_next = join.closed == current.life;
            match member {
                Some(rank) if !wants_next => {
                    let before = current.members[rank];
                    let member = Member { wanted: before.wanted, ..Member::new(now, peer, join) };
                    current.hear(rank, member);
                    let moved = &current.members[rank];
                    if (before.peer, before.path, before.aggregators)
                        != (moved.peer, moved.path, moved.aggregators)
                        && current.end.is_none()
                    {
                        current.settles.get_or_insert(now + self.config.settle);
                    }
                    let code = Answer::Code(WelcomeCode::Welcome);
                    return Err(current.end.map_or(code, |end| Answer::Closed(current.life, end)));
                }
                Some(rank) => {
                    current.gone[rank] = true;
                    closes = current.end.is_none().then_some(rank);
                }
                None if join.generation != 0 => {
                    return Err(Answer::Closed(join.generation, UNKNOWN));
                }
                None if current.end.is_none() => {
                    let is_alive = |member: &Member| !patience.is_silent(now, member.heard);
                    if current.members.iter().all(is_alive) {
                        // It takes the place of a member that is silent, not of one that is alive.
                        let heard = job.rival(now, join.session, join.rank, patience);
                        let oldest = job.oldest_heard(join.session);
                        let owner = &mut job.owner;
                        return Err(Answer::Code(match heard {
                            Some(heard) => owner.meet_rival(now, join.session, heard),
                            None => owner.meet_members(now, join.session, oldest),
                        }));
                    }
                }
                None => {}
            }
        } else if join.generation != 0 {
            return Err(Answer::Closed(join.generation, UNKNOWN));
        }
        if let Some(rank) = closes {
            self.close(now, of, Reason::Left, Some(rank));
        }
        let job = self.jobs.get_mut(&of).expect("it has just been there");
        job.lobby.retain(|_, member| !patience.is_silent(now, member.heard));
        if let Some(heard) = job.rival(now, join.session, join.rank, patience) {
            return Err(Answer::Code(job.owner.meet_rival(now, join.session, heard)));
        }
        if !job.lobby.contains_key(&join.session) && job.lobby.len() >= job.workers as usize {
            let heard = job.oldest_heard(join.session);
            return Err(Answer::Code(job.owner.meet_surplus(now, join.session, heard)));
        }
        job.lobby.insert(join.session, Member::new(now, peer, join));
        if job.may_begin(now, patience) { Ok(()) } else { Err(Answer::Code(WelcomeCode::Waiting)) }
    }

    /// A job gives its place, or its name, to another one.
    fn evict(&mut self, evicted: Evicted<(u16, u8)>) {
        self.jobs.remove(&evicted.id);
        let full = Refused::NotAdmitted(WelcomeCode::Full);
        *self.counts.refused.entry(full.name()).or_default() += evicted.turned_away as u64;
    }

    /// Begins a generation of the workers in the lobby.
    fn begin(&mut self, now: Instant, of: (u16, u8)) {
        let Some(job) = self.jobs.get_mut(&of) else { return };
        job.owner.begins(now, job.lobby.len());
        let began_with = job.operations().unwrap_or(0);
        let Some(members) = job.seated(of.0, &self.topology) else { return };
        let number = self.next_generation;
        self.next_generation = number.checked_add(1).unwrap_or(1);
        let values = members.iter().map(|member| member.values).min().unwrap_or(1);
        let wanted = members.iter().map(|member| member.window).min().unwrap_or(1);
        let window = self.config.window_of(values).min(wanted);
        let workers = job.workers;
        let mut current = Generation::new(number, members, values, window);
        current.began_with = began_with;
        current.factors = Factors::new(job.scale, window);
        let misplaced = current.seat(of, LEVELS, self.config.rack_scale, &self.topology);
        if current.seating.levels > SHORT_LEVELS {
            // The fields of the other levels take the place of some values: a datagram of the path has
            // room for both.
            let places = (upper::LEN / VALUE) as u16;
            current.values = values.saturating_sub(places).max(1);
        }
        job.current = Some(current);
        self.counts.generations += 1;
        self.tell_misplaced(of, &misplaced);
        self.event(of.0, SumEvent::GenerationBegan { generation: number.into(), workers });
        self.welcome_all(now, of);
    }

    /// Tells all members their places.
    fn welcome_all(&mut self, now: Instant, of: (u16, u8)) {
        let Some(job) = self.jobs.get(&of) else { return };
        let Some(current) = &job.current else { return };
        let all: Vec<(PeerId, Welcome)> = (0..current.members.len())
            .map(|rank| (current.members[rank].peer, welcome_to(of, job, current, rank)))
            .collect();
        for (peer, welcome) in all {
            self.send(now, Receivers::One(peer), |buf| welcome.emit(buf));
        }
    }

    /// Answers a join that is not followed by a generation now.
    fn answer(&mut self, now: Instant, peer: PeerId, join: &Join, code: WelcomeCode) {
        let of = (join.job, join.server);
        let job = self.jobs.get(&of);
        let current = job.and_then(|job| job.current.as_ref());
        let rank = current.and_then(|current| current.rank_of(join.session));
        let welcome = match (job, current, rank) {
            (Some(job), Some(current), Some(rank)) if code == WelcomeCode::Welcome => {
                welcome_to(of, job, current, rank)
            }
            _ => Welcome {
                workers: job.map_or(0, |job| job.workers),
                here: job.map_or(0, |job| u32::try_from(job.lobby.len()).unwrap_or(u32::MAX)),
                ..Welcome::without_place(join, code)
            },
        };
        self.send(now, Receivers::One(peer), |buf| welcome.emit(buf));
    }

    /// A worker leaves. A session is no secret, so a leave counts from where the worker's joins come alone: from the
    /// worker itself, or from the switch before the server, which has looked at the worker's address.
    pub(super) fn handle_leave(
        &mut self,
        now: Instant,
        peer: PeerId,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        let leave = Leave::parse(packet).map_err(Refused::Malformed)?;
        let of = (leave.job, leave.server);
        let job = self.jobs.get_mut(&of).ok_or(Refused::UnknownJob)?;
        let seat = job.current.as_ref().and_then(|current| {
            let rank = current.rank_of(leave.session)?;
            Some((rank, current.members[rank].peer))
        });
        let waits = job.lobby.get(&leave.session).map(|member| member.peer);
        if seat.is_none() && waits.is_none() {
            return Err(Refused::UnknownWorker);
        }
        let rank = seat.filter(|(_, at)| *at == peer).map(|(rank, _)| rank);
        let waited = waits == Some(peer);
        if rank.is_none() && !waited {
            return Err(Refused::UnknownPeer);
        }
        let left = Left { job: leave.job, server: leave.server, session: leave.session };
        self.send(now, Receivers::One(peer), |buf| left.emit(buf));
        let Some(job) = self.jobs.get_mut(&of) else { return Ok(()) };
        let ended = job.lobby.get(&leave.session).map(|member| member.ended);
        if leave.life != 0 && ended == Some(leave.life) {
            // The worker has joined again since: this is a late copy.
            return Ok(());
        }
        if waited {
            job.lobby.remove(&leave.session);
        }
        let member = rank.zip(job.current.as_mut()).map(|(rank, of)| &mut of.members[rank]);
        let is_repeated = member.is_some_and(|of| core::mem::replace(&mut of.has_left, true));
        self.counts.leaves += u64::from(waited || !is_repeated);
        if rank.is_some() {
            self.close(now, of, leave.reason, rank);
        }
        Ok(())
    }

    /// A new life at the address of an old one: the old one is over. Where there is a switch in front of the worker, the
    /// switch sees that, and says so.
    fn bury_predecessor(&mut self, now: Instant, of: (u16, u8), peer: PeerId, join: &Join) {
        let Some(job) = self.jobs.get_mut(&of).filter(|_| join.switches[0] == 0) else { return };
        let is_it = |one: &Member| {
            one.session != join.session && one.peer == peer && one.is_direct() && !one.has_left
        };
        job.lobby.retain(|_, one| !is_it(one));
        let Some(current) = &mut job.current else { return };
        let rank = current.members.iter().position(is_it);
        if let Some(rank) = rank {
            current.members[rank].has_left = true;
            self.close(now, of, Reason::Dead, Some(rank));
        }
    }

    /// Ends a job's generation because of that rank. Tensors before the first one without a result keep
    /// their results; that one and all later ones fail at all workers.
    pub(super) fn close(
        &mut self,
        now: Instant,
        of: (u16, u8),
        reason: Reason,
        rank: Option<usize>,
    ) {
        self.close_between(now, of, reason, rank, Sides::default());
    }

    /// The same. It is known what the culprit and the others call.
    pub(super) fn close_between(
        &mut self,
        now: Instant,
        of: (u16, u8),
        reason: Reason,
        rank: Option<usize>,
        sides: Sides,
    ) {
        let Some(job) = self.jobs.get_mut(&of) else { return };
        let servers = u64::from(job.servers);
        let Some(current) = job.current.as_mut().filter(|current| current.end.is_none()) else {
            return;
        };
        let values = u64::from(current.values);
        let mine = |length: u32| {
            let fragments = u64::from(length).div_ceil(values);
            (fragments + servers - 1).saturating_sub(of.1.into()) / servers
        };
        let tensor = current.fragments.first_open_tensor(mine);
        let culprit = rank.and_then(|rank| u32::try_from(rank).ok());
        let end = End { tensor, reason, culprit: culprit.unwrap_or(ANY), sides };
        current.end = Some(end);
        current.settles = None;
        let (life, group) = (current.life, current.group());
        let culprit = rank.map(|rank| (end.culprit, current.members[rank].peer));
        *self.counts.closed.entry(reason.name()).or_default() += 1;
        let operation = u32::try_from(tensor).unwrap_or(u32::MAX);
        let generation = life.into();
        self.event(of.0, SumEvent::GenerationClosed { generation, operation, reason, culprit });
        self.tell_closed(now, of, &group, life, end);
    }

    fn tell_closed(&mut self, now: Instant, of: (u16, u8), to: &[PeerId], life: u16, end: End) {
        let closed = Closed {
            job: of.0,
            server: of.1,
            life,
            reason: end.reason,
            tensor: (end.tensor & ((1 << TENSOR_BITS) - 1)) as u32,
            culprit: end.culprit,
            sides: end.sides,
        };
        self.send(now, Receivers::Many(to.into()), |buf| closed.emit(buf));
    }

    /// Repeats the end of a generation to somebody who still sends for it, now and then.
    pub(super) fn repeat_closed(&mut self, now: Instant, of: (u16, u8)) {
        let repeat = self.config.repeat * 10;
        let Some(current) = self.jobs.get_mut(&of).and_then(|job| job.current.as_mut()) else {
            return;
        };
        let Some(end) = current.end else { return };
        if current.told.is_some_and(|told| now.since(told) < repeat) {
            return;
        }
        current.told = Some(now);
        let (life, group) = (current.life, current.group());
        self.tell_closed(now, of, &group, life, end);
    }

    /// Looks for silent workers and deserted jobs, and seats workers anew that have moved.
    pub(super) fn check(&mut self, now: Instant) {
        let patience = self.patience;
        let jobs: Vec<(u16, u8)> = self.jobs.keys().copied().collect();
        for of in jobs {
            let Some(job) = self.jobs.get_mut(&of) else { continue };
            job.lobby.retain(|_, member| !patience.is_silent(now, member.heard));
            let lobby_is_empty = job.lobby.is_empty();
            let open = job.current.as_ref().filter(|current| current.end.is_none());
            let silence = if lobby_is_empty { patience } else { patience.where_asked_for() };
            let dead = open.and_then(|current| current.dead(now, silence, !lobby_is_empty));
            // Nobody is above a server.
            let may_go = !job.owner.is_contested(now);
            let look = Look { lobby_is_empty, may_go, dead };
            match patience.step(now, look, job.members()) {
                Step::Stay => {}
                Step::Close(dead) => self.close(now, of, dead.reason, Some(dead.rank)),
                Step::Forget => {
                    self.jobs.remove(&of);
                }
            }
            self.settle(now, of);
        }
    }

    /// A worker has moved (ATP §A.3): all workers get new places, and go on with the earliest open
    /// fragment. What the server has stays, for it counts workers by their ranks.
    fn settle(&mut self, now: Instant, of: (u16, u8)) {
        let number = self.next_generation;
        let Some(current) = self.jobs.get_mut(&of).and_then(|job| job.current.as_mut()) else {
            return;
        };
        if current.settles.is_none_or(|at| at > now) || current.end.is_some() {
            return;
        }
        current.number = number;
        // The life's packets have room for as many levels as they had at first.
        let misplaced =
            current.seat(of, current.seating.levels, self.config.rack_scale, &self.topology);
        self.next_generation = number.checked_add(1).unwrap_or(1);
        self.counts.seated_anew += 1;
        self.tell_misplaced(of, &misplaced);
        self.welcome_all(now, of);
    }

    /// Tells of workers that are elsewhere than the topology says.
    fn tell_misplaced(&mut self, of: (u16, u8), ranks: &[u32]) {
        self.counts.misplaced += ranks.len() as u64;
        let current = self.jobs.get(&of).and_then(|job| job.current.as_ref());
        let peer = |rank: &u32| Some((*rank, current?.members.get(*rank as usize)?.peer));
        let all: Vec<(u32, PeerId)> = ranks.iter().filter_map(peer).collect();
        for (rank, peer) in all {
            self.event(of.0, SumEvent::WorkerMisplaced { rank, peer });
        }
    }

    fn event(&mut self, job: u16, event: SumEvent) {
        self.events.push(JobId(job.into()), event);
    }
}

fn welcome_to(of: (u16, u8), job: &Job, current: &Generation, rank: usize) -> Welcome {
    let (member, seat) = (&current.members[rank], current.seating.seats[rank]);
    Welcome {
        job: of.0,
        server: of.1,
        session: member.session,
        rank: u32::try_from(rank).unwrap_or(ANY),
        workers: job.workers,
        here: job.workers,
        code: WelcomeCode::Welcome,
        edge: seat.level > 0,
        same_switch: seat.same_switch[0],
        generation: current.number,
        life: current.life,
        values: current.values,
        window: current.window,
        bitmap0: seat.bitmaps[0],
        bitmap1: seat.bitmaps[1],
        fan_in0: seat.fan_ins[0],
        fan_in1: seat.fan_ins[1],
        aggregators: if seat.alone { 0 } else { current.aggregators },
        sent_at_us: member.sent_at_us,
        sequence: current.fragments.open(),
        upper: (current.seating.levels > SHORT_LEVELS).then(|| seat.upper()),
        nonce: 0,
        operations: current.began_with,
    }
}
