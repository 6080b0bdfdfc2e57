//! A control that works: each cluster sends once in a round of the slowest queue on its path.
//!
//! A queue that serves N clusters in turn needs one update of each a round; every further one
//! only makes the others wait. The first switch tells a cluster's workers at once what it has
//! taken in, so that of many workers one sends, and whichever has an update ready first.
//! `docs/design/009-transmission-control.md` measures it and says where it comes from.

use super::Feedback;
use olaf_engine::Instant;

/// If nothing was heard for this number of waits, and for at least [`OBSOLETE_NS`], the feedback
/// says nothing about the present network.
const OBSOLETE_WAITS: f64 = 4.0;
const OBSOLETE_NS: f64 = 500e6;

/// The set-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fair {
    /// A cluster is due this number of rounds after the newest update that its switch took in.
    pub rounds: f64,
    /// A cluster fresher than the mean waits longer by its relative lead, but at most by this
    /// number of rounds. A lead beyond that cannot be given away; twice as large, it is some other
    /// cluster's slow link, and waiting does not help it.
    pub yields: f64,
}

impl Default for Fair {
    fn default() -> Self {
        Self { rounds: 1.0, yields: 0.2 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Generation time of the newest update taken in.
    taken_newest_ns: u64,
    /// When the network last gave a heartbeat.
    last_sign: Instant,
    /// How long the cluster waits from `last_sign` on.
    due_after_ns: f64,
}

impl Default for State {
    fn default() -> Self {
        Self { taken_newest_ns: 0, last_sign: Instant(0), due_after_ns: 0.0 }
    }
}

impl State {
    pub(super) fn hear(&mut self, config: &Fair, now: Instant, feedback: &Feedback) {
        self.last_sign = now;
        let lead = if feedback.own_age_ns > 0 {
            feedback.mean_age_ns as f64 / feedback.own_age_ns as f64 - 1.0
        } else {
            0.0
        };
        let waits = lead.min(2.0 * config.yields - lead).max(0.0);
        self.due_after_ns = feedback.round_ns as f64 * (config.rounds + waits);
    }

    pub(super) fn taken(&mut self, now: Instant, newest_ns: u64) {
        self.last_sign = now;
        self.taken_newest_ns = self.taken_newest_ns.max(newest_ns);
    }

    /// `generated_ns`: when the update that would be sent was generated, on the clock of
    /// [`State::taken`].
    pub(super) fn probability(&self, now: Instant, generated_ns: u64) -> f64 {
        let silence_ns = now.since(self.last_sign).as_nanos() as f64;
        if silence_ns > (OBSOLETE_WAITS * self.due_after_ns).max(OBSOLETE_NS) {
            return 1.0;
        }
        let passed = generated_ns as f64 - self.taken_newest_ns as f64;
        // What was taken a whole wait from now is of another clock, or of this one before it was
        // set back.
        if passed >= self.due_after_ns || -passed > self.due_after_ns { 1.0 } else { 0.0 }
    }
}
