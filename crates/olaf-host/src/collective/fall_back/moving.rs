//! When this worker moves to the second switch, and how: it leaves the first one, joins at the second, meets the others
//! there, and goes on.

use super::super::{Collective, Config, Done, Failure, Reducer, Standing};
use super::meeting::{Agreement, Meeting};
use super::{Counts, FallBack, NoWay, Off, Place, State};
use olaf_engine::{Instant, WorkerEvent};
use olaf_wire::reduce::Reason;

/// Returns true if the workers go on through the second switch after this failure.
const fn is_of_switch(failure: Failure) -> bool {
    matches!(
        failure,
        Failure::SwitchSilent
            // A worker that takes the switch for silent has moved and says so, or a switch above is silent.
            | Failure::Closed { reason: Reason::SwitchSilent | Reason::Unknown, .. }
    )
}

impl FallBack {
    /// Takes what happened at the first switch. An idle worker has no operation that fails: it learns here that its
    /// generation has ended.
    pub(super) fn look_at_first(&mut self, now: Instant) {
        while let Some(what) = self.first.poll_worker_event() {
            if let WorkerEvent::GenerationClosed { reason, culprit, .. } = what {
                let failure = Failure::Closed { reason, culprit };
                if is_of_switch(failure) {
                    self.move_after(now, failure);
                } else if matches!(self.state, State::First) && self.begun > 0 {
                    self.off.get_or_insert(Off::Anew(reason));
                }
            }
            self.tell(self.switches[0], what);
        }
        if let Standing::In { generation: run, rank, workers } = self.first.standing()
            && (self.place.is_none() || self.begun == 0)
        {
            self.place = Some(Place { run, rank, workers });
        }
    }

    /// An operation failed, or the generation ended.
    pub(super) fn move_after(&mut self, now: Instant, failure: Failure) {
        let may_move = matches!(self.state, State::First) && self.off.is_none();
        if may_move && self.place.is_some() && is_of_switch(failure) {
            self.left_because = Some(failure);
            self.moved_at = now;
            self.state = State::Leaving;
            // All of its operations there end now.
            if failure == Failure::SwitchSilent {
                self.first.move_away(now);
            } else {
                // The switch has said so itself.
                self.first.leave(now);
            }
        }
    }

    /// When the move has taken too long for an operation that waits for it.
    pub(super) fn late_at(&self) -> Option<Instant> {
        if !self.is_moving() {
            return None;
        }
        Some(self.oldest_began()?.max(self.moved_at) + self.patience)
    }

    /// The next step of a move; false where there is none yet.
    pub(super) fn goes_on_moving(&mut self, now: Instant) -> bool {
        if self.late_at().is_some_and(|at| at <= now) {
            self.cannot_go_on(now, self.why_late(now));
            return true;
        }
        match self.state {
            State::Leaving if self.off.is_some() => {
                let off = self.off.unwrap_or(Off::GivenUp);
                self.cannot_go_on(now, NoWay::Off(off));
            }
            State::Leaving if self.first.has_left() => {
                let rank = self.place.map(|place| place.rank);
                let mut second = Reducer::new(Config { rank, ..self.second_config.clone() });
                second.join(now);
                self.second = Some(second);
                self.state = State::Joining;
            }
            State::Joining => match self.present().standing() {
                Standing::In { rank, workers, .. } => self.meet(now, rank, workers),
                Standing::Refused(code) => self.cannot_go_on(now, NoWay::Refused(code)),
                Standing::Joining { .. } | Standing::Left => return false,
            },
            _ => return false,
        }
        true
    }

    fn why_late(&self, now: Instant) -> NoWay {
        let waited = self.waited(now);
        match (&self.state, self.second.as_ref().map(Reducer::standing)) {
            (State::Meeting(..), _) => NoWay::Meeting(Failure::TimedOut, waited),
            (_, Some(Standing::Joining { here, workers })) => {
                NoWay::NotMet { here, workers, waited }
            }
            _ => NoWay::NotMet { here: 0, workers: 0, waited },
        }
    }

    /// All workers are at the second switch.
    fn meet(&mut self, now: Instant, rank: u32, workers: u32) {
        let own = self.place.filter(|place| (place.rank, place.workers) == (rank, workers));
        match own.and_then(|_| self.standing_in_meeting()) {
            Some(mine) => self.begin_step(now, Meeting::new(mine)),
            None => {
                let rank = self.place.map_or(rank, |place| place.rank);
                self.cannot_go_on(now, NoWay::OtherRank(rank));
            }
        }
    }

    fn begin_step(&mut self, now: Instant, meeting: Meeting) {
        let operation = meeting.operation(&self.kept);
        let Some(second) = &mut self.second else { return };
        match second.begin(now, operation) {
            Ok(id) => self.state = State::Meeting(meeting, id),
            Err((failure, _)) => {
                self.cannot_go_on(now, NoWay::Meeting(failure, self.waited(now)));
            }
        }
    }

    pub(super) fn ended_at_second(&mut self, now: Instant, done: Done) {
        match core::mem::replace(&mut self.state, State::Joining) {
            State::Meeting(meeting, id) if id == done.id => self.take_step(now, meeting, &done),
            state => {
                self.state = state;
                self.ended(now, done);
            }
        }
    }

    /// An operation of the meeting has ended.
    fn take_step(&mut self, now: Instant, mut meeting: Meeting, done: &Done) {
        match done.outcome {
            Ok(_) => match meeting.take(done.buffer.bytes(), &self.kept) {
                Ok(None) => self.begin_step(now, meeting),
                Ok(Some(agreement)) => self.go_on(now, agreement),
                Err(why) => self.cannot_go_on(now, why),
            },
            // A worker missed the deadline of a block. All see that, and try again.
            Err(Failure::Partial { .. }) => self.begin_step(now, meeting),
            Err(failure) => {
                self.cannot_go_on(now, NoWay::Meeting(failure, self.waited(now)));
            }
        }
    }

    fn go_on(&mut self, now: Instant, agreement: Agreement) {
        let Agreement { goes_on_at, taken, given } = agreement;
        let count = taken.len() as u64;
        self.counts = Counts { operation: goes_on_at, taken: count, given, again: 0 };
        self.given = taken;
        self.state = State::Second;
        self.moved_at = now;
        self.begin_again(now);
        self.kept.clear();
    }

    /// The job cannot go on: what waits for the second switch fails.
    pub(super) fn cannot_go_on(&mut self, now: Instant, why: NoWay) {
        self.no_way = Some(why);
        self.state = State::Failed;
        if let Some(second) = &mut self.second {
            second.leave(now);
        }
        let failure = self.left_because.unwrap_or(Failure::SwitchSilent);
        self.fail_open(now, failure);
        self.kept.clear();
    }

    /// The program closes the connection.
    pub(super) fn close(&mut self, now: Instant) {
        if matches!(self.state, State::Closed) {
            return;
        }
        // What has ended well keeps its result.
        self.settle(now);
        self.state = State::Closed;
        if self.left_because.is_none() {
            self.first.leave(now);
        }
        if let Some(second) = &mut self.second {
            second.leave(now);
        }
        self.fail_open(now, Failure::NotJoined);
        self.settle(now);
        self.kept.clear();
        self.given.clear();
    }
}
