//! What came of a run, as data.

use serde::Serialize;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The jobs, in the order of the scenario.
    pub jobs: Vec<JobOutcome>,
    /// Each direction of each link that carried something.
    pub links: Vec<LinkOutcome>,
    /// Virtual time at the end of the last job.
    pub end_ns: u64,
    /// Arrivals, wake-ups and alarms that were carried out.
    pub events: u64,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// What summed its gradients.
    pub engine: &'static str,
    /// Workers.
    pub workers: u32,
    /// Bytes of its gradient.
    pub model_bytes: u64,
    /// Why it failed; none: it did not.
    pub failed: Option<String>,
    /// All its workers had joined, and computation began.
    pub begin_ns: u64,
    /// Its last worker had updated its model for the last time.
    pub end_ns: u64,
    /// Iterations that ended at all workers.
    pub iterations: Vec<IterationOutcome>,
    /// Mean time of an iteration, over workers and iterations.
    pub iteration_ns: f64,
    /// Mean time to compute.
    pub compute_ns: f64,
    /// Mean time from a worker's last tensor to the last tensor of the slowest worker.
    pub wait_ns: f64,
    /// Mean time from then to the worker's last sum.
    pub aggregation_ns: f64,
    /// Mean time to update the model.
    pub update_ns: f64,
    /// Bits of the gradient over the mean time of waiting and aggregation; none where that takes no time.
    pub goodput_bps: Option<f64>,
    /// Data packets that workers sent for the first time.
    pub packets: u64,
    /// Data packets that workers sent again.
    pub resent: u64,
    /// Operations of workers that ended with the sum of all workers, bit for bit.
    pub exact: u64,
    /// Operations of workers that ended with the sum of some workers.
    pub degraded: u64,
    /// Packets of single workers that the server of ATP added, for all jobs together.
    pub at_server: u64,
    /// Packets that found the place of their sum taken, for all jobs of ATP together.
    pub collisions: u64,
}

/// An iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IterationOutcome {
    /// The first worker began to compute.
    pub begin_ns: u64,
    /// The last worker had updated its model.
    pub end_ns: u64,
    /// Mean time to compute, over the workers.
    pub compute_ns: f64,
    /// As in [`JobOutcome`].
    pub wait_ns: f64,
    /// As in [`JobOutcome`].
    pub aggregation_ns: f64,
    /// Operations of workers that ended with the sum of some workers.
    pub degraded: u32,
}

/// One direction of a link. `offered` is the sum of `delivered`, `lost`, `dropped` and `on_the_way`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkOutcome {
    /// Its ends: `host0 to rack0`.
    pub name: String,
    /// Its rate.
    pub rate_bps: u64,
    /// Frames that were sent into it.
    pub offered: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Frames that the link lost.
    pub lost: u64,
    /// Frames that found no room in its queue.
    pub dropped: u64,
    /// Frames that were on their way at the end.
    pub on_the_way: u64,
    /// Frames that were marked (ECN).
    pub marked: u64,
    /// Bytes that crossed it, with headers.
    pub bytes: u64,
    /// Share of the time to `end_ns` in which it was busy.
    pub busy: f64,
    /// The longest wait of a frame before it.
    pub longest_wait_ns: u64,
}
