//! Why an operation, or a join, failed: in words for a program, and in a sentence for a person.

use super::Protocol;
use olaf_host::collective::{Failure, NoWay, Off};
use olaf_wire::reduce::{Called, Clash, LaneType, Reason, WelcomeCode};
use olaf_wire::{CallKind, Lacking};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumError {
    /// The call cannot be: the text says what to change.
    Usage(String),
    /// The caller's time is over.
    TimedOut(String),
    /// Something in the job, or on the way, went wrong.
    Failed(SumFailure),
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumFailure {
    /// A short stable name.
    pub reason: &'static str,
    /// The rank of the worker that is the reason.
    pub culprit: Option<u32>,
    /// Of a partial sum: workers in the block with the fewest, and workers that belong into it.
    pub counts: Option<(u32, u32)>,
    /// What happened, where, and what to do.
    pub text: String,
}

impl fmt::Display for SumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::TimedOut(text) => f.write_str(text),
            Self::Failed(failure) => f.write_str(&failure.text),
        }
    }
}

impl std::error::Error for SumError {}

/// Where an operation failed.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) protocol: Protocol,
    pub(super) switch: SocketAddr,
    pub(super) job: u32,
    /// The rank that the worker asks for.
    pub(super) rank: Option<u32>,
    /// The worker's options, as far as messages name them.
    pub(super) silence: Duration,
}

impl Place {
    /// The error for the failure of an operation that took `took`. `refused`: the switch's machine
    /// says that no program listens there.
    pub(super) fn error(&self, failure: Failure, took: Duration, refused: bool) -> SumError {
        let Self { switch, job, .. } = self;
        let (reason, culprit, text) = match failure {
            Failure::NotJoined => (
                "not_joined",
                None,
                format!("this worker is not in job {job}: it has left; connect again"),
            ),
            Failure::Refused(code) => (refusal_reason(code), None, self.refusal(code)),
            Failure::BadOperation(what) => return SumError::Usage(format!("all_reduce: {what}")),
            Failure::TimedOut => return SumError::TimedOut(self.timed_out(took)),
            Failure::Closed { reason, culprit } => {
                (name_of(reason), culprit, self.closed(reason, culprit))
            }
            Failure::SwitchSilent => ("switch_silent", None, self.silent(refused)),
            Failure::Partial { contributors, expected } => {
                let text = format!(
                    "only {contributors} of the {expected} workers of job {job} are in the sum: the \
                     others missed the deadline of a block; allow partial sums (partial=True), or \
                     raise deadline_s"
                );
                let counts = Some((contributors, expected));
                return SumError::Failed(SumFailure {
                    reason: "partial",
                    culprit: None,
                    counts,
                    text,
                });
            }
            Failure::NotFinite { rank } if self.protocol == Protocol::Trio => (
                "not_finite",
                rank,
                format!(
                    "{} of job {job} gave a sum a NaN or an infinity, for which integers have no place: look at \
                     that worker's values, or sum as the paper prints it (non_finite=\"pass\")",
                    worker(rank)
                ),
            ),
            Failure::NotFinite { rank } => (
                "not_finite",
                rank,
                format!(
                    "{} of job {job} sent a NaN or an infinity, which the switch at {switch} refuses: \
                     look at that worker's values, or set non_finite to pass in [switch.{}]",
                    worker(rank),
                    self.protocol.name()
                ),
            ),
        };
        SumError::Failed(SumFailure { reason, culprit, counts: None, text })
    }

    /// Why the worker has left this switch, in a sentence.
    pub(super) fn why_left(&self, failure: Failure, refused: bool) -> String {
        match failure {
            Failure::Closed { reason: Reason::Unknown, .. } => {
                format!("the switch {} was started again", self.switch)
            }
            failure => self.error(failure, Duration::ZERO, refused).to_string(),
        }
    }

    /// The error of a job that cannot go on through the second switch either. `refused_there`, `other`: what its machine
    /// says, and the version of the second switch's messages.
    pub(super) fn error_of_both(
        &self,
        failure: Failure,
        refused: bool,
        (second, why): (&Self, NoWay),
        refused_there: bool,
        other: Option<u8>,
    ) -> SumError {
        let first = self.why_left(failure, refused);
        let why = second.no_way(why, refused_there, other);
        let text = format!(
            "{first}; and the job cannot go on through the second switch {}: {why}",
            second.switch
        );
        match self.error(failure, Duration::ZERO, refused) {
            SumError::Failed(failure) => SumError::Failed(SumFailure { text, ..failure }),
            SumError::Usage(_) | SumError::TimedOut(_) => SumError::TimedOut(text),
        }
    }

    /// Why no job can go on through this switch, the second one.
    fn no_way(&self, why: NoWay, refused: bool, other: Option<u8>) -> String {
        match why {
            NoWay::Off(why) => off(why),
            NoWay::NotMet { here: 0, waited, .. } => self.no_answer(waited, refused, other),
            NoWay::NotMet { here, workers, waited } => self.alone(waited, here, workers),
            NoWay::Refused(code) => self.refusal(code),
            NoWay::OtherRank(rank) => {
                format!("another worker is rank {rank} of this job there: use another job number")
            }
            NoWay::OtherProgram => {
                "another program takes part in this job there: use another job number".into()
            }
            NoWay::Replaced => "a worker was replaced, and counts from another operation".into(),
            NoWay::Apart(operations) => format!("the workers are {operations} operations apart"),
            NoWay::NotKept(operation) => {
                format!("no worker has kept the result of operation {operation}")
            }
            NoWay::Unusable(operation) => {
                format!("what a worker gave is no result of operation {operation}")
            }
            NoWay::Meeting(failure, waited) => self.error(failure, waited, refused).to_string(),
        }
    }

    /// The switch did not answer a join in time.
    pub(super) fn no_answer(&self, waited: Duration, refused: bool, other: Option<u8>) -> String {
        let (switch, waited) = (self.switch, waited.as_secs_f64());
        if let Some(theirs) = other {
            return format!(
                "{switch} speaks version {theirs} of the messages of {}, and this worker \
                 another one: install the same release of Olaf on both machines",
                self.protocol.name()
            );
        }
        format!(
            "no answer from a switch at {switch} within {waited:.1} s: {}",
            self.why_silent(refused)
        )
    }

    /// Other workers are missing.
    pub(super) fn alone(&self, waited: Duration, here: u32, workers: u32) -> String {
        let Self { switch, job, .. } = self;
        format!(
            "{here} of {workers} workers of job {job} are at the switch at {switch} after {:.1} s: \
             start the others, or allow more time (timeout_s)",
            waited.as_secs_f64()
        )
    }

    /// The switch turned the worker away.
    pub(super) fn refusal(&self, code: WelcomeCode) -> String {
        let Self { switch, job, .. } = self;
        match code {
            WelcomeCode::Full => format!(
                "the switch at {switch} has no room for this worker: job {job} has all its workers, \
                 or the switch has all its jobs; give another job number, or raise `jobs` or \
                 `memory` in [switch.{}], or the job's `max_workers` in the switch's list of jobs",
                self.protocol.name()
            ),
            WelcomeCode::Refused => format!(
                "the switch at {switch} refused this worker: it contradicts the other workers of \
                 job {job}; give all of them the same number of workers, deadline and block size, \
                 or use another job number; or the switch has a list of jobs (`switch.jobs`), which \
                 does not list this one"
            ),
            WelcomeCode::OtherVersion => format!(
                "the switch at {switch} speaks another version of the messages of {}: install \
                 the same release of Olaf on both machines",
                self.protocol.name()
            ),
            WelcomeCode::OtherProgram => format!(
                "another program uses job {job} at the switch at {switch}: give another job number \
                 (job=), or, if this worker belongs to that program, start it with the same \
                 `program=` (or OLAF_PROGRAM) as the others"
            ),
            WelcomeCode::RankTaken => format!(
                "{} of job {job} lives: the switch at {switch} hears another worker that has this \
                 rank; give each worker a rank of its own, or, if another program uses this job, \
                 give another job number (job=)",
                worker(self.rank)
            ),
            WelcomeCode::Contested => format!(
                "{} of job {job} is wanted by two live workers at the switch at {switch}, which \
                 turned all of them away: two programs use this job number, or two workers have one \
                 rank. Sums that the job had before may mix both programs. Give another job number \
                 (job=), or name each program (`program=`, OLAF_PROGRAM)",
                self.rank.map_or_else(|| "a place".into(), |rank| format!("rank {rank}"))
            ),
            WelcomeCode::Welcome | WelcomeCode::Waiting => {
                format!("the switch at {switch} answered {}", code.name())
            }
        }
    }

    /// Workers called different operations under one number, and it is known which. `is_whole`: the sizes are those of
    /// the callers' arrays.
    pub(super) fn clashed(&self, culprit: Option<u32>, clash: &Clash, is_whole: bool) -> SumError {
        let [theirs, others] =
            [clash.culprit, clash.others].map(|called| words_of(called, is_whole));
        let text = format!(
            "{} of job {} called another operation than the others: {theirs}, and the others {others}; every worker \
             must call the same operations in the same order",
            worker(culprit),
            self.job
        );
        let reason = name_of(Reason::Mismatch);
        SumError::Failed(SumFailure { reason, culprit, counts: None, text })
    }

    fn why_silent(&self, refused: bool) -> String {
        let question = if refused {
            "its machine says that nothing listens on that port; start it"
        } else {
            "is it running there, and does UDP get through? Start it"
        };
        let engines = self.protocol.engines();
        format!("{question} with `olaf switch --engines {engines}`, or correct the address")
    }

    fn timed_out(&self, took: Duration) -> String {
        let Self { switch, job, .. } = self;
        format!(
            "the operation did not end within {:.1} s (job {job}, switch {switch}): does every \
             worker call the same operations in the same order? Allow more time with timeout_s",
            took.as_secs_f64()
        )
    }

    fn silent(&self, refused: bool) -> String {
        let (switch, silence) = (self.switch, self.silence.as_secs_f64());
        format!(
            "the switch at {switch} has not been heard for {silence:.1} s: {}; then connect again",
            self.why_silent(refused)
        )
    }

    fn closed(&self, reason: Reason, culprit: Option<u32>) -> String {
        let Self { switch, job, .. } = self;
        let who = worker(culprit);
        match reason {
            Reason::Dead => format!(
                "{who} of job {job} died: the switch at {switch} hears nothing from it any more; \
                 start that worker again, and repeat the operation"
            ),
            Reason::Left => format!(
                "{who} left job {job}, and the operation needs it: start a worker in its place, or \
                 connect all workers with workers=None"
            ),
            Reason::Joined => {
                format!("a worker joined job {job} before this operation: repeat the operation")
            }
            Reason::Mismatch => format!(
                "{who} of job {job} called another operation than the others (another size, type or \
                 op): every worker must call the same operations in the same order"
            ),
            // The switch of Trio-ML ends an operation of a worker for this, or for its length.
            Reason::Refused if self.protocol == Protocol::Trio && culprit.is_some() => format!(
                "{who} of job {job} gave a sum values that it cannot take: a NaN or an infinity, or more values than the \
                 switch at {switch} allows; look at that worker's values"
            ),
            Reason::Refused => format!(
                "the switch at {switch} ended the operation because of {who} of job {job}: its log \
                 names the reason"
            ),
            Reason::Renewed => format!(
                "the switch at {switch} begins to count anew in job {job}: repeat the operation"
            ),
            Reason::SwitchSilent if culprit.is_some() => format!(
                "{who} of job {job} does not hear the switch at {switch} any more, and goes on through \
                 another one: give all workers of the job the same second switch (fall_back)"
            ),
            Reason::SwitchSilent => format!(
                "a switch above the switch at {switch} is silent, and job {job} has workers behind \
                 it: start that switch again, and repeat the operation"
            ),
            Reason::Unknown => format!(
                "the switch at {switch} does not know this worker any more: it was started again, or \
                 it gave the worker up; this worker joins job {job} again, repeat the operation"
            ),
        }
    }
}

/// Why the second switch cannot help any more.
pub(super) fn off(why: Off) -> String {
    match why {
        Off::Anew(reason) => {
            format!("the job began anew ({}), so its workers may count differently", reason.name())
        }
        Off::GivenUp => {
            "an operation of this worker timed out, so it may be behind the others".into()
        }
    }
}

/// The name of the reason for a turned-away worker.
fn refusal_reason(code: WelcomeCode) -> &'static str {
    match code {
        WelcomeCode::Full => "full",
        WelcomeCode::OtherProgram | WelcomeCode::RankTaken | WelcomeCode::Contested => code.name(),
        _ => "refused",
    }
}

/// The name of a generation's end, for programs.
const fn name_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Dead => "worker_died",
        Reason::Left => "worker_left",
        Reason::Joined => "worker_joined",
        Reason::Mismatch => "mismatch",
        Reason::Refused => "refused",
        Reason::Renewed => "renewed",
        Reason::SwitchSilent => "switch_silent",
        Reason::Unknown => "switch_restarted",
    }
}

/// What a worker called, as its program has it.
fn words_of(called: Called, is_whole: bool) -> String {
    let Called { call, lane_type, operator, lanes } = called;
    let kind = match lane_type {
        LaneType::F32 => "float32",
        LaneType::F16 => "float16",
        LaneType::Bf16 => "bfloat16",
        LaneType::I32 => "int32",
        LaneType::I64 => "int64",
    };
    let name = operator.name();
    let array = if is_whole && lanes > 0 { format!("{kind}[{lanes}]") } else { kind.into() };
    let text = match call.kind() {
        CallKind::Plain => format!("all_reduce({name}) of {array}"),
        CallKind::Mean => format!("all_reduce(mean) of {array}"),
        CallKind::Broadcast { root } => format!("broadcast(root={root}) of {array}"),
        CallKind::Empty => format!("all_reduce({name}) of an empty {kind} array"),
        // Its first message has the exponents, one for a block.
        CallKind::ExactSum => "all_reduce(sum, exact=True) of float32".into(),
        CallKind::ExactMean => "all_reduce(mean, exact=True) of float32".into(),
        CallKind::Refused(lacking) => {
            let what = match lacking {
                Lacking::Minimum => "all_reduce(min)",
                Lacking::Maximum => "all_reduce(max)",
                Lacking::Type => "all_reduce of another type than float32",
                Lacking::Broadcast => "broadcast",
                Lacking::Else => "an operation",
            };
            format!("{what}, which this protocol does not have")
        }
        CallKind::Other => "an operation that this release does not know".into(),
    };
    match call.tag() {
        0 => text,
        tag => format!("{text} (tag {tag})"),
    }
}

fn worker(rank: Option<u32>) -> String {
    rank.map_or_else(|| "a worker".into(), |rank| format!("worker {rank}"))
}
