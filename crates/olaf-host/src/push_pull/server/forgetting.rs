//! Jobs that nobody works on any more make room.
//!
//! A stranger can join a job, offer a model, push once and go, for each number that a server takes. So a
//! job without workers for [`forget_jobs_after`](super::ServerConfig::forget_jobs_after) is forgotten,
//! trained or not. An operator's list names jobs that are not. Where checkpoints are written, a job is
//! forgotten only when its last state is on the disk.

use super::Server;
use super::job::Job;
use alloc::vec::Vec;
use olaf_engine::{Event, Instant};
use olaf_wire::JobId;

/// Whether a job's checkpoint has all that the server knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OnDisk {
    /// No checkpoint was written yet.
    #[default]
    Nothing,
    /// The state at that revision.
    Revision(u64),
    /// None will be written.
    Never,
}

impl Server {
    /// Forgets jobs only when a checkpoint has their last state: [`note_saved`](Self::note_saved) says so.
    pub fn forget_saved_jobs_only(&mut self) {
        self.awaits_checkpoints = true;
    }

    /// A checkpoint of the job is on the disk, of that [revision](Self::revisions).
    pub fn note_saved(&mut self, job: JobId, revision: u64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.on_disk = OnDisk::Revision(revision);
        }
    }

    /// No checkpoint of the job will be written.
    pub fn note_not_kept(&mut self, job: JobId) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.on_disk = OnDisk::Never;
        }
    }

    /// The jobs that were forgotten since the last call, where checkpoints are written.
    pub fn forgotten(&mut self) -> Vec<JobId> {
        core::mem::take(&mut self.forgotten)
    }

    /// Forgets the jobs that it is time for.
    pub(super) fn forget_jobs(&mut self, now: Instant) {
        let Some(after) = self.config.forget_jobs_after else { return };
        let mut due = Vec::new();
        for (id, job) in &mut self.jobs {
            let nobody = job.members.is_empty();
            job.empty_since = job.empty_since.filter(|_| nobody).or_else(|| nobody.then_some(now));
            let is_over = job.empty_since.is_some_and(|since| now.since(since) >= after);
            let is_safe = !self.awaits_checkpoints || job.is_safe();
            if is_over && is_safe && !self.config.tenants.names(*id) {
                due.push(*id);
            }
        }
        for id in due {
            let Some(job) = self.jobs.remove(&id) else { continue };
            // Its fates go, too.
            self.arrivals.forget_job(id);
            self.deadlines.set(id, None);
            let idle = job.empty_since.map_or(after, |since| now.since(since));
            self.event(Event::JobForgotten { job: id, version: job.version, idle });
            if self.awaits_checkpoints {
                self.forgotten.push(id);
            }
        }
    }
}

impl Job {
    /// A number that changes when the job's state does.
    pub(super) fn revision(&self) -> u64 {
        let named = u64::from(self.description.layout.is_some());
        self.fates.received + self.collection.closed + u64::from(self.version) + named
    }

    /// Returns true if nothing is lost with it that a checkpoint should have.
    fn is_safe(&self) -> bool {
        match self.on_disk {
            OnDisk::Never => true,
            OnDisk::Revision(revision) => revision == self.revision(),
            // There is nothing to write.
            OnDisk::Nothing => self.is_empty(),
        }
    }
}
