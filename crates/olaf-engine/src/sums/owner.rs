//! Whose job it is. Two programs that were given one number are kept apart, and so are two workers of one rank.
//!
//! | a join says | the authority answers |
//! |---|---|
//! | another program than the job's, one of whose workers lives | `other_program` |
//! | the rank of a worker that lives | `rank_taken` |
//! | the same, in a job that names no program, before it begins | `contested`, to all of the job |
//! | the same, where it has just begun, from as many workers as it has members | `contested`, to all of the job |
//! | one of these, and the other may be dead | `waiting` |
//!
//! A worker that was started again asks for the rank of its earlier incarnation, which is never heard again. Two workers
//! that live are both heard: so the authority waits until it has heard the other one after the join.

use super::Fit;
use crate::ids::Session;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use olaf_wire::reduce::WelcomeCode;

/// How long a process lets the first generation of a job wait whose workers name no program. It begins with a join that
/// comes later, and workers repeat theirs after 20, 60 and 140 ms.
pub const SETTLE: Duration = Duration::from_millis(120);

/// Datagrams of a worker that has died may be under way for this time after another one has taken up its work.
const OVERLAP: Duration = Duration::from_millis(100);

/// How long after its first generation has begun a job that names no program may still be contested. Programs that start
/// together differ by the time that imports take.
const FIRST_MOMENTS: Duration = Duration::from_secs(2);

/// For this time a contested job turns its workers away: also those that start more slowly than the others.
const CONTEST: Duration = Duration::from_secs(3);

/// Rivals that a job remembers. Beyond that it forgets them all: they go on waiting, and are told later.
const MOST_RIVALS: usize = 256;

/// A worker that asks for what another one has.
#[derive(Clone, Copy, Debug)]
struct Rival {
    /// When it first asked.
    first: Instant,
    /// When it last asked.
    last: Instant,
    /// It was heard, and so was the worker that has what it asks for, after it had asked.
    lives: bool,
}

/// Workers that ask for what others have, at most [`MOST_RIVALS`].
#[derive(Clone, Debug)]
struct Rivals(BTreeMap<Session, Rival>);

impl Rivals {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns true if the other worker, which was last heard at `heard`, was heard after the rival had asked.
    fn both_live(&mut self, now: Instant, session: Session, heard: Instant) -> bool {
        if self.0.len() >= MOST_RIVALS && !self.0.contains_key(&session) {
            self.0.clear();
        }
        let new = Rival { first: now, last: now, lives: false };
        let rival = self.0.entry(session).or_insert(new);
        rival.last = now;
        let both_live = heard > rival.first + OVERLAP;
        rival.lives |= both_live;
        both_live
    }

    /// The number of those that were heard, as the other worker was, after they had asked.
    fn that_live(&self) -> usize {
        self.0.values().filter(|rival| rival.lives).count()
    }
}

/// The program that a job belongs to.
#[derive(Clone, Debug)]
pub struct Owner {
    /// 0: its workers name none.
    program: u64,
    /// How long the first generation waits, where the workers name no program. 0: nobody expects strangers, as in the
    /// hardware. Nothing is contested then, and a worker whose rank is taken waits until it is free.
    settle: Duration,
    /// Workers that ask for what another worker of the job has.
    rivals: Rivals,
    /// Workers of other programs.
    strangers: Rivals,
    /// Since when all workers of the first generation are here.
    complete: Option<Instant>,
    began: Option<Instant>,
    /// Members of the latest generation.
    members: usize,
    is_first: bool,
    contested: Option<Instant>,
}

impl Owner {
    /// The job of that program. Where it is 0, the first generation waits for `settle`.
    #[must_use]
    pub const fn new(program: u64, settle: Duration) -> Self {
        Self {
            program,
            settle,
            rivals: Rivals::new(),
            strangers: Rivals::new(),
            complete: None,
            began: None,
            members: 0,
            is_first: true,
            contested: None,
        }
    }

    /// What a lower switch says above.
    #[must_use]
    pub const fn program(&self) -> u64 {
        self.program
    }

    /// How a join of that program fits. `contradicts`: the join says something else of the job than its workers do.
    /// `is_deserted`: none of them is left.
    #[must_use]
    pub fn fit(&self, now: Instant, program: u64, contradicts: bool, is_deserted: bool) -> Fit {
        match () {
            () if program != self.program => Fit::OtherProgram { is_deserted },
            () if self.is_contested(now) => Fit::Contested,
            () if contradicts => Fit::Contradicts { is_deserted },
            () => Fit::Agrees,
        }
    }

    /// Returns true if workers of the job are still turned away. The job is not forgotten before: the last of them would
    /// wait alone for the others.
    #[must_use]
    pub fn is_contested(&self, now: Instant) -> bool {
        self.contested.is_some_and(|at| now.since(at) < CONTEST)
    }

    /// A worker of the job joins, and nobody else is left in it: it begins as a new one does.
    pub fn begin_anew(&mut self) {
        *self = Self::new(self.program, self.settle);
    }

    /// A worker of another program joins. `heard`: when a worker of the job was last heard.
    pub fn meet_stranger(&mut self, now: Instant, session: Session, heard: Instant) -> WelcomeCode {
        let both_live = self.strangers.both_live(now, session, heard);
        if both_live { WelcomeCode::OtherProgram } else { WelcomeCode::Waiting }
    }

    /// A worker asks for a rank that another one of the job has, which was last heard at `heard`. After
    /// [`WelcomeCode::Contested`] the caller turns all workers of the job away.
    pub fn meet_rival(&mut self, now: Instant, session: Session, heard: Instant) -> WelcomeCode {
        if self.settle.is_zero() || !self.rivals.both_live(now, session, heard) {
            return WelcomeCode::Waiting;
        }
        let has_just_begun = self.began.is_none_or(|at| now.since(at) < FIRST_MOMENTS);
        if !self.is_anonymous() || !self.is_first || !has_just_begun {
            return WelcomeCode::RankTaken;
        }
        // Where two programs are mixed, all workers of both live. One stranger who asks for a worker's rank must not end
        // a generation.
        if self.began.is_some() && self.rivals.that_live() < self.members {
            return WelcomeCode::RankTaken;
        }
        self.contest(now);
        WelcomeCode::Contested
    }

    /// A worker joins, and more would wait than the job has. `heard`: when the one that was not heard for the longest time
    /// was heard. After [`WelcomeCode::Contested`] the caller turns all workers of the job away.
    pub fn meet_surplus(&mut self, now: Instant, session: Session, heard: Instant) -> WelcomeCode {
        if !self.is_anonymous() || self.began.is_some() {
            return WelcomeCode::Full;
        }
        if !self.rivals.both_live(now, session, heard) {
            return WelcomeCode::Waiting;
        }
        self.contest(now);
        WelcomeCode::Contested
    }

    /// A worker joins while a generation goes on that has all its workers. `heard` is as for [`Self::meet_surplus`]: none of
    /// them has a place to give away if it is heard still.
    pub fn meet_members(&mut self, now: Instant, session: Session, heard: Instant) -> WelcomeCode {
        let all_live = !self.settle.is_zero() && self.rivals.both_live(now, session, heard);
        if all_live { WelcomeCode::Full } else { WelcomeCode::Waiting }
    }

    /// Returns true if a generation may begin now. `is_complete`: all its workers are here. `is_silent` says of a time
    /// whether who was last heard then is silent.
    pub fn may_begin(
        &mut self,
        now: Instant,
        is_complete: bool,
        is_silent: impl Fn(Instant) -> bool,
    ) -> bool {
        if !is_complete {
            self.complete = None;
            return false;
        }
        if !self.is_anonymous() || self.began.is_some() {
            return true;
        }
        self.rivals.0.retain(|_, rival| !is_silent(rival.last));
        let since = *self.complete.get_or_insert(now);
        // A rival that lives is about to be told so, with all others.
        self.rivals.0.is_empty() && now.since(since) >= self.settle
    }

    /// A generation begins, with this number of members.
    pub fn begins(&mut self, now: Instant, members: usize) {
        self.members = members;
        self.is_first = self.began.is_none();
        self.began.get_or_insert(now);
        self.rivals.0.clear();
    }

    /// Returns true if nothing else than ranks tells the job's workers from another program's.
    fn is_anonymous(&self) -> bool {
        self.program == 0 && !self.settle.is_zero()
    }

    fn contest(&mut self, now: Instant) {
        self.begin_anew();
        self.contested = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_millis(120);
    const RIVAL: Session = Session(9);

    const fn at(ms: u64) -> Instant {
        Instant((1 << 40) | (ms * 1_000_000))
    }

    fn begun(program: u64) -> Owner {
        let mut owner = Owner::new(program, SETTLE);
        owner.may_begin(at(0), true, |_| false);
        assert!(owner.may_begin(at(120), true, |_| false));
        owner.begins(at(120), 2);
        owner
    }

    #[test]
    fn a_job_is_its_first_programs_while_one_of_its_workers_lives() {
        let owner = Owner::new(5, SETTLE);
        for (program, contradicts, is_deserted, fit) in [
            (5, false, false, Fit::Agrees),
            (5, true, false, Fit::Contradicts { is_deserted: false }),
            (6, false, false, Fit::OtherProgram { is_deserted: false }),
            (6, true, true, Fit::OtherProgram { is_deserted: true }),
            (0, false, false, Fit::OtherProgram { is_deserted: false }),
        ] {
            assert_eq!(owner.fit(at(0), program, contradicts, is_deserted), fit, "{program}");
        }
        let nameless = Owner::new(0, SETTLE);
        assert_eq!(nameless.fit(at(0), 5, false, false), Fit::OtherProgram { is_deserted: false });
    }

    #[test]
    fn who_is_heard_after_a_rival_lives_and_who_is_not_may_have_died() {
        let mut owner = begun(5);
        let dead = [(200, 190), (260, 190), (2000, 190), (2100, 300)];
        for (now, heard) in dead {
            let code = owner.meet_rival(at(now), RIVAL, at(heard));
            assert_eq!(code, WelcomeCode::Waiting, "heard at {heard}");
        }
        assert_eq!(owner.meet_rival(at(2200), RIVAL, at(301)), WelcomeCode::RankTaken);
        assert_eq!(owner.meet_stranger(at(2200), Session(8), at(2200)), WelcomeCode::Waiting);
        assert_eq!(owner.meet_stranger(at(2400), Session(8), at(2301)), WelcomeCode::OtherProgram);
    }

    #[test]
    fn a_job_without_a_name_waits_for_rivals_before_its_first_generation_alone() {
        let mut owner = Owner::new(0, SETTLE);
        let silent = |heard: Instant| heard < at(50);
        assert!(!owner.may_begin(at(0), true, silent) && !owner.may_begin(at(119), true, silent));
        assert!(!owner.may_begin(at(130), false, silent), "one has gone");
        assert!(!owner.may_begin(at(140), true, silent), "it waits anew");
        assert_eq!(owner.meet_rival(at(150), RIVAL, at(140)), WelcomeCode::Waiting);
        assert!(!owner.may_begin(at(300), true, silent), "there is a rival");
        assert!(owner.may_begin(at(300), true, |_| true), "the rival has gone");
        owner.begins(at(300), 2);
        assert!(owner.may_begin(at(300), true, silent));
        let mut named = Owner::new(5, SETTLE);
        assert!(named.may_begin(at(0), true, silent));
    }

    #[test]
    fn a_job_without_a_name_is_contested_in_its_first_moments() {
        let asks = |owner: &mut Owner, first: u64, rival: Session| {
            owner.meet_rival(at(first), rival, at(first));
            owner.meet_rival(at(first + 200), rival, at(first + 190))
        };
        let contests = |owner: &mut Owner, first: u64| {
            let alone = asks(owner, first, Session(8));
            assert_ne!(alone, WelcomeCode::Contested, "one rival ends nothing");
            asks(owner, first, RIVAL)
        };
        let mut owner = begun(0);
        assert_eq!(contests(&mut owner, 130), WelcomeCode::Contested);
        assert_eq!(owner.fit(at(400), 0, false, true), Fit::Contested);
        assert_eq!(owner.fit(at(400), 7, false, true), Fit::OtherProgram { is_deserted: true });
        assert_eq!(owner.fit(at(3400), 0, false, true), Fit::Agrees, "it is over");
        assert_eq!(contests(&mut begun(5), 130), WelcomeCode::RankTaken, "ranks of one program");
        assert_eq!(contests(&mut begun(0), 2120), WelcomeCode::RankTaken, "later");
        let mut second = begun(0);
        second.begins(at(130), 2);
        assert_eq!(contests(&mut second, 140), WelcomeCode::RankTaken, "a worker may be replaced");
        let mut alone = Owner::new(0, Duration::ZERO);
        assert_eq!(contests(&mut alone, 130), WelcomeCode::Waiting, "nobody expects strangers");
    }

    #[test]
    fn more_workers_than_a_job_has_contest_it_before_it_begins() {
        let surplus = |owner: &mut Owner| {
            owner.meet_surplus(at(200), RIVAL, at(200));
            owner.meet_surplus(at(400), RIVAL, at(301))
        };
        assert_eq!(surplus(&mut Owner::new(0, SETTLE)), WelcomeCode::Contested);
        assert_eq!(surplus(&mut Owner::new(3, SETTLE)), WelcomeCode::Full);
        assert_eq!(surplus(&mut begun(0)), WelcomeCode::Full);
        let mut owner = begun(0);
        assert_eq!(owner.meet_members(at(200), RIVAL, at(300)), WelcomeCode::Waiting);
        assert_eq!(owner.meet_members(at(400), RIVAL, at(301)), WelcomeCode::Full);
    }

    #[test]
    fn a_worker_of_another_program_delays_and_contests_nothing() {
        let mut owner = Owner::new(0, SETTLE);
        assert!(!owner.may_begin(at(0), true, |_| false));
        owner.meet_stranger(at(10), Session(7), at(0));
        assert!(owner.may_begin(at(120), true, |_| false), "a stranger is no rival");
        owner.begins(at(120), 2);
        owner.meet_stranger(at(130), Session(7), at(130));
        assert_eq!(owner.meet_stranger(at(330), Session(7), at(320)), WelcomeCode::OtherProgram);
        owner.meet_rival(at(130), RIVAL, at(130));
        assert_eq!(owner.meet_rival(at(330), RIVAL, at(320)), WelcomeCode::RankTaken);
    }

    #[test]
    fn rivals_are_not_remembered_without_limit() {
        let mut owner = begun(5);
        for session in 0..10_000 {
            owner.meet_rival(at(200), Session(session), at(200));
        }
        assert!(owner.rivals.0.len() <= MOST_RIVALS);
    }
}
