//! The life of a job at its authority: who counts as dead, when a generation ends because of that, and when the job is
//! forgotten.
//!
//! | a job is | when | what may follow |
//! |---|---|---|
//! | unbegun | it never had a generation | it opens when all its workers wait in the lobby; a full authority evicts it for a new job; it is forgotten when nobody waits any more |
//! | open | its generation goes on | it closes when a member leaves, is replaced, or is dead while somebody waits for it |
//! | closed | its generation has ended | the next generation opens when all its workers wait in the lobby |
//! | deserted | each of its members has left or is silent, and nobody waits in the lobby whom the authority hears | a full authority evicts it; a join that says something else of the job takes its name |
//! | gone | it is deserted, and the workers that have not left are not heard for 30 x `CONTESTED` (all have left: 1 x) | it is forgotten |
//!
//! A worker is **dead** when it is not heard for `silence`, and somebody waits for its part of a sum: a process that is stopped
//! in a debugger, or by its garbage collector, for less than that costs time alone. It is **silent** when it is not heard for
//! three of its heartbeats. Then it loses what another party with a proved address asks for: its rank, the number of
//! its job, its place at a full authority. A program that was killed is started again at once, and must not wait for `silence`.

use crate::party::{GONE, LOOKS};
use crate::time::Instant;
use core::time::Duration;
use olaf_wire::reduce::Reason;

/// The default of `silence_ms` of every authority, and of a worker: how long a party that others wait for may be silent.
pub const SILENCE: Duration = Duration::from_secs(5);

/// How long a party may be silent that has what another one asks for, at most `silence`: three heartbeats of a worker, which
/// sends one each 500 ms.
pub const CONTESTED: Duration = Duration::from_millis(1500);

/// A lower switch sends a heartbeat to the switch above this often, and repeats what has no answer.
pub const HEARTBEAT: Duration = Duration::from_millis(250);

/// A lower switch passes one question, or one sum, on once in this time, however many of its members ask for it.
pub const REPEAT: Duration = Duration::from_millis(2);

/// A member or a candidate, as far as its life goes.
#[derive(Clone, Copy, Debug)]
pub struct Presence {
    /// When it was last heard.
    pub heard: Instant,
    /// It said that it leaves.
    pub has_left: bool,
}

/// A member that others wait for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead<Rank> {
    /// The member.
    pub rank: Rank,
    /// Its generation ends with this reason.
    pub reason: Reason,
}

/// What a look at a job sees beside its members.
#[derive(Clone, Copy, Debug)]
pub struct Look<Rank> {
    /// Nobody waits for the next generation.
    pub lobby_is_empty: bool,
    /// The switch above need not hear of an end first, or there is none.
    pub may_go: bool,
    /// See [`Patience::dead`].
    pub dead: Option<Dead<Rank>>,
}

/// What follows from a look at a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<Rank> {
    /// The job stays as it is.
    Stay,
    /// The generation of the dead member ends.
    Close(Dead<Rank>),
    /// The job is forgotten.
    Forget,
}

/// How long an authority waits for those that it does not hear.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    silence: Duration,
    contested: Duration,
}

impl Patience {
    /// A party that others wait for may be silent for `silence`.
    #[must_use]
    pub const fn new(silence: Duration) -> Self {
        let is_shorter = silence.as_nanos() < CONTESTED.as_nanos();
        Self { silence, contested: if is_shorter { silence } else { CONTESTED } }
    }

    /// The same where a party waits in the lobby: a member that is silent has what that party asks for.
    #[must_use]
    pub const fn where_asked_for(self) -> Self {
        Self { silence: self.contested, ..self }
    }

    /// When to look again, after a look at `now`.
    #[must_use]
    pub fn next_look(self, now: Instant) -> Instant {
        now + self.contested / LOOKS
    }

    /// Returns true if a party that was last heard then loses what another one asks for.
    #[must_use]
    pub fn is_silent(self, now: Instant, heard: Instant) -> bool {
        now.since(heard) >= self.contested
    }

    /// Returns true if nobody waits any longer for a party that was last heard then.
    #[must_use]
    pub fn is_overdue(self, now: Instant, heard: Instant) -> bool {
        now.since(heard) >= self.silence
    }

    /// Returns true if nobody takes part or waits: a member that has left does not come back to its generation.
    pub fn is_deserted(self, now: Instant, mut all: impl Iterator<Item = Presence>) -> bool {
        all.all(|one| one.has_left || self.is_silent(now, one.heard))
    }

    /// The first member that is dead. `lacks` says whether an open block lacks a member's part. `is_asked_for`: somebody
    /// waits for what is in no block yet, for whichever member is silent.
    pub fn dead<Rank: Copy>(
        self,
        now: Instant,
        mut members: impl Iterator<Item = (Rank, Presence)>,
        is_asked_for: bool,
        lacks: impl Fn(Rank) -> bool,
    ) -> Option<Dead<Rank>> {
        let is_absent = |one: Presence| one.has_left || self.is_overdue(now, one.heard);
        let dead = members.find(|(rank, one)| is_absent(*one) && (is_asked_for || lacks(*rank)))?;
        let reason = if dead.1.has_left { Reason::Left } else { Reason::Dead };
        Some(Dead { rank: dead.0, reason })
    }

    /// What follows from a look at a job with these members.
    pub fn step<Rank>(
        self,
        now: Instant,
        look: Look<Rank>,
        members: impl Iterator<Item = Presence> + Clone,
    ) -> Step<Rank> {
        if look.lobby_is_empty && look.may_go && self.is_gone(now, members) {
            // Nobody is left who could be told of an end.
            return Step::Forget;
        }
        look.dead.map_or(Step::Stay, Step::Close)
    }

    /// Returns true if none of these members will be heard again.
    fn is_gone(self, now: Instant, mut members: impl Iterator<Item = Presence> + Clone) -> bool {
        let have_all_left = members.clone().all(|one| one.has_left);
        // A worker that gives an operation up leaves, too, and joins again at once. Workers that have not left may come
        // back to their generation, if the path was cut.
        let patience =
            if have_all_left { self.contested } else { self.silence.max(self.contested * GONE) };
        members.all(|one| one.has_left && !have_all_left || now.since(one.heard) >= patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience::new(SILENCE);
    const START: Instant = Instant(1 << 40);
    const NOBODY: fn(u32) -> bool = |_| false;

    fn heard(ms: u64) -> Presence {
        Presence { heard: START + Duration::from_millis(ms), has_left: false }
    }

    fn left(ms: u64) -> Presence {
        Presence { has_left: true, ..heard(ms) }
    }

    fn numbered(members: &[Presence]) -> impl Iterator<Item = (u32, Presence)> {
        (0..).zip(members.iter().copied())
    }

    #[test]
    fn a_silent_member_is_dead_only_where_somebody_waits_for_it() {
        let now = START + SILENCE;
        let members = [heard(1), heard(0), heard(0)];
        let dead = |is_asked_for, lacks: fn(u32) -> bool| {
            PATIENCE.dead(now, numbered(&members), is_asked_for, lacks).map(|dead| dead.rank)
        };
        assert_eq!(dead(false, NOBODY), None);
        assert_eq!(dead(false, |rank| rank == 0), None, "it was heard");
        assert_eq!(dead(false, |rank| rank == 2), Some(2));
        assert_eq!(dead(true, NOBODY), Some(1));
    }

    #[test]
    fn who_is_asked_for_what_it_has_may_be_silent_for_a_shorter_time() {
        let silent = |patience: Patience, after| patience.is_silent(START + after, START);
        let just_before = CONTESTED - Duration::from_millis(1);
        assert!(!silent(PATIENCE, just_before) && silent(PATIENCE, CONTESTED));
        assert!(!PATIENCE.is_overdue(START + CONTESTED, START), "nobody asks for what it has");
        assert!(PATIENCE.is_overdue(START + SILENCE, START));
        let long = Patience::new(SILENCE * 10);
        assert!(silent(long, CONTESTED), "as long as by default");
        let asked_for = PATIENCE.where_asked_for();
        assert!(asked_for.is_overdue(START + CONTESTED, START), "a party waits in the lobby");
        assert!(!asked_for.is_overdue(START + just_before, START));
        let short = Patience::new(Duration::from_millis(200));
        assert!(silent(short, Duration::from_millis(200)), "never longer than `silence`");
    }

    #[test]
    fn who_has_left_is_not_called_dead() {
        let members = [heard(0), left(0)];
        let dead = PATIENCE.dead(START, numbered(&members), true, NOBODY);
        assert_eq!(dead, Some(Dead { rank: 1, reason: Reason::Left }));
    }

    #[test]
    fn a_deserted_job_is_forgotten_after_30_x_silence_or_1_x_where_all_have_left() {
        let look = Look::<u32> { lobby_is_empty: true, may_go: true, dead: None };
        let step = |after, members: &[Presence]| {
            PATIENCE.step(START + after, look, members.iter().copied())
        };
        let (just_before, short) = (Duration::from_millis(1), CONTESTED);
        let vanished = [heard(0), left(0)];
        assert!(PATIENCE.is_deserted(START + short, vanished.iter().copied()));
        assert_eq!(step(CONTESTED * GONE - just_before, &vanished), Step::Stay);
        assert_eq!(step(CONTESTED * GONE, &vanished), Step::Forget);
        assert_eq!(step(short - just_before, &[left(0); 2]), Step::Stay);
        assert_eq!(step(short, &[left(0); 2]), Step::Forget);
        assert_eq!(step(Duration::ZERO, &[]), Step::Forget, "nobody was ever in it");
        assert!(PATIENCE.is_deserted(START, [left(0); 2].into_iter()), "its place is free at once");
    }

    #[test]
    fn a_job_that_somebody_waits_for_or_above_has_not_heard_of_is_not_forgotten() {
        let dead = Some(Dead { rank: 1, reason: Reason::Dead });
        let gone = [heard(0), heard(0)];
        let step = |lobby_is_empty, may_go| {
            let look = Look { lobby_is_empty, may_go, dead };
            PATIENCE.step(START + CONTESTED * GONE, look, gone.iter().copied())
        };
        assert_eq!(step(true, true), Step::Forget);
        assert!(matches!(step(false, true), Step::Close(_)));
        assert!(matches!(step(true, false), Step::Close(_)));
    }

    #[test]
    fn looks_are_a_sixteenth_of_the_silence_apart() {
        assert_eq!(PATIENCE.next_look(START), START + Duration::from_micros(93_750));
    }
}
