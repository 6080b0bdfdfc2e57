//! A worker's sending end under a transmission control (OLAF §5).

use crate::memory::{handle, input, output};
use crate::result::*;
use crate::scenario::olaf_scenario;
use crate::types::olaf_queue_status;
use olaf_engine::Instant;
use olaf_host::transmission::Feedback;
use olaf_sim::study::scenario::{Decision, Sender};

/// What a worker does with updates that are ready, behind a pointer.
pub struct olaf_sender(Handle<Sender>);

/// What a worker does now.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum olaf_action {
    /// It sends what it holds, as one datagram.
    OLAF_ACTION_SEND = 0,
    /// It sends nothing now.
    OLAF_ACTION_HOLD = 1,
    /// It sends nothing now: call `olaf_sender_retry` after `retry_after_ns`.
    OLAF_ACTION_RETRY = 2,
}

/// What a worker decided.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_decision {
    /// What it does now.
    pub action: olaf_action,
    /// With `OLAF_ACTION_SEND`: how many updates the datagram holds.
    pub contributors: u32,
    /// With `OLAF_ACTION_SEND`: when the oldest of them was generated, nanoseconds.
    pub generated_oldest_ns: u64,
    /// With `OLAF_ACTION_SEND`: when the newest of them was generated, nanoseconds.
    pub generated_newest_ns: u64,
    /// With `OLAF_ACTION_RETRY`: how long to wait, nanoseconds.
    pub retry_after_ns: u64,
}

/// What one answer tells a worker.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_feedback {
    /// The most crowded queue on the path.
    pub queue: olaf_queue_status,
    /// The cluster's Age-of-Model at the server of late, microseconds; 0: not known.
    pub own_age_us: u32,
    /// The same, averaged over all clusters that the server serves; 0: not known.
    pub mean_age_us: u32,
}

/// What a worker's sending has come to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_sender_counts {
    /// Updates not sent and given up.
    pub discarded: u64,
    /// Updates not sent yet.
    pub held: u64,
    /// Decisions so far.
    pub decisions: u64,
    /// Sum over them of the probability to send.
    pub probability_sum: f64,
}

/// Makes the sender of a worker of a scenario, under the scenario's control. Free it with
/// `olaf_sender_free`; it does not need the scenario.
///
/// # Safety
/// `scenario` is null or from `olaf_scenario_new`; `sender` is null or points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_new(
    scenario: *const olaf_scenario,
    worker: u32,
    sender: *mut *mut olaf_sender,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (scenario, sender) = unsafe { (input(scenario)?, output(sender)?) };
        let config = scenario.spec.transmission().map_err(|_| OLAF_RESULT_BAD_ARGUMENT)?;
        let made = Sender::new(scenario.spec.seed, worker, config);
        sender.set(Box::into_raw(Box::new(olaf_sender(Handle::new(made)))));
        Ok(())
    })
}

/// Frees a sender; null is nothing to free.
///
/// # Safety
/// `sender` is null, or came from `olaf_sender_new` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_free(sender: *mut olaf_sender) {
    if !sender.is_null() {
        guard(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(sender) });
            Ok(())
        });
    }
}

/// One more update is ready at `now_ns`, which is when it was generated.
///
/// # Safety
/// `sender` is null or from `olaf_sender_new`; `decision` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_ready(
    sender: *mut olaf_sender,
    now_ns: u64,
    decision: *mut olaf_decision,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (sender, decision) = unsafe { (handle(sender)?, output(decision)?) };
        decision.set(told(sender.0.run(|sender| Ok(sender.ready(Instant(now_ns))))?));
        Ok(())
    })
}

/// The time of another try has come.
///
/// # Safety
/// `sender` is null or from `olaf_sender_new`; `decision` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_retry(
    sender: *mut olaf_sender,
    now_ns: u64,
    decision: *mut olaf_decision,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (sender, decision) = unsafe { (handle(sender)?, output(decision)?) };
        decision.set(told(sender.0.run(|sender| Ok(sender.retry(Instant(now_ns))))?));
        Ok(())
    })
}

/// An answer came at `now_ns`.
///
/// # Safety
/// `sender` is null or from `olaf_sender_new`; `feedback` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_hear(
    sender: *mut olaf_sender,
    now_ns: u64,
    feedback: *const olaf_feedback,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (sender, feedback) = unsafe { (handle(sender)?, input(feedback)?) };
        let feedback = Feedback {
            queue: feedback.queue.to_wire(),
            round_ns: u64::from(feedback.queue.round_us) * 1000,
            own_age_ns: u64::from(feedback.own_age_us) * 1000,
            mean_age_ns: u64::from(feedback.mean_age_us) * 1000,
        };
        sender.0.run(|sender| {
            sender.hear(Instant(now_ns), &feedback);
            Ok(())
        })
    })
}

/// Word came at `now_ns`: the first switch has taken in an update of the worker's cluster, generated
/// at `newest_ns`.
///
/// # Safety
/// `sender` is null or from `olaf_sender_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_taken(
    sender: *mut olaf_sender,
    now_ns: u64,
    newest_ns: u64,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let sender = unsafe { handle(sender) }?;
        sender.0.run(|sender| {
            sender.taken(Instant(now_ns), newest_ns);
            Ok(())
        })
    })
}

/// What the sending has come to so far.
///
/// # Safety
/// `sender` is null or from `olaf_sender_new`; `counts` is null or points to room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olaf_sender_get_counts(
    sender: *const olaf_sender,
    counts: *mut olaf_sender_counts,
) -> olaf_result {
    guard(|| {
        // SAFETY: the caller's promise.
        let (sender, counts) = unsafe { (input(sender)?, output(counts)?) };
        counts.set(sender.0.read(|sender| {
            let (probability_sum, decisions) = sender.probability();
            let (discarded, held) = (sender.discarded(), sender.held());
            Ok(olaf_sender_counts { discarded, held, decisions, probability_sum })
        })?);
        Ok(())
    })
}

fn told(decision: Decision) -> olaf_decision {
    let nothing = olaf_decision {
        action: olaf_action::OLAF_ACTION_HOLD,
        contributors: 0,
        generated_oldest_ns: 0,
        generated_newest_ns: 0,
        retry_after_ns: 0,
    };
    match decision {
        Decision::Send(held) => olaf_decision {
            action: olaf_action::OLAF_ACTION_SEND,
            contributors: held.count,
            generated_oldest_ns: held.generated_ns.0,
            generated_newest_ns: held.generated_ns.1,
            ..nothing
        },
        Decision::Hold => nothing,
        Decision::RetryAfter(after) => olaf_decision {
            action: olaf_action::OLAF_ACTION_RETRY,
            retry_after_ns: u64::try_from(after.as_nanos()).unwrap_or(u64::MAX),
            ..nothing
        },
    }
}
