//! The paper's control: P_s = min(Qmax / N + f, 1) (OLAF §5).

use core::time::Duration;
use olaf_wire::QueueStatus;

/// The control of OLAF §5, as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paper {
    /// Feedback older than this is obsolete (the paper's threshold, 400 ms in its §6).
    pub threshold: Duration,
    /// How fast the probability rises from there on.
    pub slope: Slope,
}

/// The slope v of f = v (silence - threshold), per second of silence beyond the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slope {
    /// 1 / threshold, "urgency": one more threshold of silence and everything is sent.
    Urgency,
    /// The threshold, "fairness".
    ///
    /// differs: in the paper a time, where a probability per time is needed; read as the
    /// threshold's number of seconds, per second.
    Fairness,
    /// So much per second.
    PerSecond(f64),
}

impl Paper {
    /// The probability of sending after `silence`, in the congestion regime: more clusters than
    /// slots.
    #[must_use]
    pub fn probability(&self, queue: &QueueStatus, silence: Duration) -> f64 {
        let share = f64::from(queue.slots) / f64::from(queue.active_clusters);
        let threshold_s = self.threshold.as_secs_f64();
        let slope = match self.slope {
            Slope::Urgency => 1.0 / threshold_s,
            Slope::Fairness => threshold_s,
            Slope::PerSecond(slope) => slope,
        };
        let beyond_s = silence.saturating_sub(self.threshold).as_secs_f64();
        (share + slope * beyond_s).min(1.0)
    }
}
