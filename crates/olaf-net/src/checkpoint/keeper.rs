//! Writes checkpoints now and then, in a thread of its own: the server only hands over a snapshot.

use super::{Files, file};
use crate::clock;
use crate::error::StartError;
use olaf_engine::{Instant, JobId};
use olaf_host::push_pull::server::{JobState, Server as Brain};
use olaf_wire::JobRule;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A checkpoint to write.
struct Work {
    path: PathBuf,
    state: JobState,
    rule: JobRule,
    is_last: bool,
}

/// What became of it.
struct Done {
    job: JobId,
    path: PathBuf,
    version: u32,
    at: Instant,
    error: Option<String>,
}

/// The server's checkpoints.
pub(crate) struct Keeper {
    files: Files,
    every: Duration,
    next: Instant,
    /// What was handed over of each job: its revision then.
    saved: BTreeMap<JobId, u64>,
    /// Handed over, and not on the disk yet.
    open: BTreeSet<JobId>,
    /// The one job of a file that is for one.
    only: Option<JobId>,
    skipped: BTreeSet<JobId>,
    writer: Option<Writer>,
    events: VecDeque<Value>,
    written: u64,
    failed: u64,
    last: Option<Done>,
}

struct Writer {
    work: mpsc::Sender<Work>,
    done: mpsc::Receiver<Done>,
    thread: JoinHandle<()>,
}

impl Keeper {
    /// Goes on from the file that is there, or puts it aside for good if `fresh`. Writes at once,
    /// and then once in `every`.
    pub(crate) fn new(
        files: Files,
        every: Duration,
        fresh: bool,
        brain: &mut Brain,
    ) -> Result<Self, StartError> {
        let told = if fresh { files.set_aside()? } else { files.restore(brain)? };
        let (work, works) = mpsc::channel();
        let (dones, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("olaf-checkpoint".into())
            .spawn(move || write_all(&works, &dones))
            .map_err(|error| StartError::System("cannot start a thread".into(), error))?;
        Ok(Self {
            only: brain.revisions().next().map(|(job, _)| job),
            files,
            every,
            // What was taken up is written again at once: a file that an orderly end left says of
            // itself that it is the last, and that is true no longer.
            next: clock::now(),
            saved: BTreeMap::new(),
            open: BTreeSet::new(),
            skipped: BTreeSet::new(),
            writer: Some(Writer { work, done, thread }),
            events: told.into(),
            written: 0,
            failed: 0,
            last: None,
        })
    }

    /// When to call [`Keeper::handle_timeout`].
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Hands over what has changed, where it is time.
    pub(crate) fn handle_timeout(&mut self, now: Instant, brain: &Brain) {
        if now >= self.next {
            self.next = now + self.every;
            self.hear();
            self.hand_over(brain, false);
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Value> {
        self.hear();
        self.events.pop_front()
    }

    pub(crate) fn statistics(&self) -> Value {
        let last = self.last.as_ref();
        json!({
            "written": self.written, "failed": self.failed,
            "file": last.map(|done| done.path.display().to_string()),
            "version": last.map(|done| done.version),
            "written_at_ns": last.map(|done| done.at.0),
        })
    }

    /// Hands over the last words of a server that takes nothing in any more. What is returned
    /// writes them where it is called, and may take its time.
    pub(crate) fn finish(&mut self, brain: &Brain) -> Option<Finish> {
        self.hand_over(brain, true);
        self.writer.take().map(Finish)
    }

    #[cfg(test)]
    pub(super) fn finish_without_last_word(&mut self) {
        self.writer.take().map(Finish).expect("it has not finished").wait();
    }

    /// What was written at the end.
    pub(crate) fn finished(&mut self, finished: Finished) {
        finished.0.into_iter().for_each(|done| self.note(done));
    }

    fn hand_over(&mut self, brain: &Brain, is_last: bool) {
        let Some(writer) = &self.writer else { return };
        for (job, revision) in brain.revisions() {
            if !self.files.is_for_many() && *self.only.get_or_insert(job) != job {
                if self.skipped.insert(job) {
                    let file = self.files.of(job.0).display().to_string();
                    self.events.push_back(json!({
                        "event": "checkpoint_skipped", "job": job.0, "file": file,
                        "reason": "another job has this file: put {job} into the file's name",
                    }));
                }
                continue;
            }
            // The last one says of itself that it is the last.
            let known = self.saved.get(&job) == Some(&revision);
            if !is_last && (known || self.open.contains(&job)) {
                continue;
            }
            let Some(state) = brain.checkpoint(job) else { continue };
            let path = self.files.of(job.0);
            // Workers that have not come back yet may have a newer model than what is written here.
            let is_last = is_last && !brain.awaits_newer(job);
            if writer.work.send(Work { path, state, rule: brain.rule(), is_last }).is_ok() {
                self.saved.insert(job, revision);
                self.open.insert(job);
            }
        }
    }

    fn hear(&mut self) {
        let done: Vec<_> = self.writer.iter().flat_map(|writer| writer.done.try_iter()).collect();
        done.into_iter().for_each(|done| self.note(done));
    }

    fn note(&mut self, done: Done) {
        self.open.remove(&done.job);
        let Some(error) = &done.error else {
            self.written += 1;
            self.last = Some(done);
            return;
        };
        // It is tried again when it is time.
        self.saved.remove(&done.job);
        self.failed += 1;
        self.events.push_back(json!({
            "event": "checkpoint_failed", "job": done.job.0,
            "file": done.path.display().to_string(), "reason": error,
        }));
    }
}

/// Checkpoints that remain to be written.
pub(crate) struct Finish(Writer);

/// They are.
pub(crate) struct Finished(Vec<Done>);

impl Finish {
    /// Waits until everything is on the disk.
    pub(crate) fn wait(self) -> Finished {
        let Writer { work, done, thread } = self.0;
        drop(work);
        let all = done.iter().collect();
        let _ = thread.join();
        Finished(all)
    }
}

fn write_all(works: &mpsc::Receiver<Work>, dones: &mpsc::Sender<Done>) {
    for Work { path, state, rule, is_last } in works {
        let at = clock::now();
        let written = file::write(&path, &state, rule, is_last, at.0);
        let error = written.err().map(|error| error.to_string());
        let (job, version) = (state.job, state.version);
        if dones.send(Done { job, path, version, at, error }).is_err() {
            return;
        }
    }
}
