//! What the controller asks the sharing policy. Safety does not depend on its answers.

use super::{Grant, Progress};
use crate::JobId;

/// Whose turn it is, and for which of its all-reduces.
pub trait Policy {
    /// The next of `free`: jobs, ascending, that hold nothing and whose resources are free. None:
    /// no job's, for now.
    fn turn(&mut self, now: u64, free: &[JobId]) -> Option<JobId>;

    /// What to give `job`, whose hosts have all stopped before the operation `next`. None: nothing
    /// after all.
    fn grant(&mut self, now: u64, job: JobId, next: u64) -> Option<Grant>;

    /// A host of `job` was seen before the operation `next`.
    fn observe(&mut self, _now: u64, _job: JobId, _next: u64) {}

    /// A host of `job` told how far it is.
    fn progress(&mut self, _now: u64, _job: JobId, _progress: Progress) {}

    /// `job` holds nothing any more.
    fn free(&mut self, _now: u64, _job: JobId) {}

    /// `job` is gone.
    fn forget(&mut self, _job: JobId) {}

    /// Nobody is free to be given anything: `turn` is asked again when somebody is.
    fn nobody(&mut self) {}

    /// When `turn` may answer otherwise though nothing was heard.
    fn poll_timeout(&self) -> Option<u64> {
        None
    }
}
