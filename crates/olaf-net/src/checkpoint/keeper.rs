//! Writes checkpoints now and then, in a thread of its own: the server only hands over a snapshot.

use super::hold::Hold;
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
    /// Of the state.
    revision: u64,
    /// The file there is of a job that was forgotten: it stays, under another name.
    set_aside: bool,
    state: JobState,
    rule: JobRule,
    is_last: bool,
}

/// What became of it.
struct Done {
    job: JobId,
    path: PathBuf,
    revision: u64,
    version: u32,
    at: Instant,
    set_aside: Option<Value>,
    set_aside_failed: bool,
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
    /// Files of jobs that the server forgot: nothing is written over them.
    kept: BTreeSet<PathBuf>,
    /// Revisions that are on the disk now, for the server to know.
    safe: Vec<(JobId, u64)>,
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
        let hold = Hold::take(&files.whole(), brain.incarnation())?;
        let mut told = if fresh { files.set_aside()? } else { files.restore(brain)? };
        if let Some(reason) = &hold.missing {
            let file = files.whole().display().to_string();
            told.push(json!({"event": "checkpoint_not_locked", "file": file, "reason": reason}));
        }
        brain.forget_saved_jobs_only();
        let (work, works) = mpsc::channel();
        let (dones, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("olaf-checkpoint".into())
            .spawn(move || {
                write_all(&works, &dones);
                drop(hold); // nothing is written without it
            })
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
            kept: BTreeSet::new(),
            safe: Vec::new(),
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

    /// Hands over what has changed, where it is time, and tells the server what is safe.
    pub(crate) fn handle_timeout(&mut self, now: Instant, brain: &mut Brain) {
        brain.forgotten().into_iter().for_each(|job| self.keep_file_of(job));
        if now >= self.next {
            self.next = now + self.every;
            self.hear();
            self.safe.drain(..).for_each(|(job, revision)| brain.note_saved(job, revision));
            self.hand_over(brain, false);
            self.skipped.iter().for_each(|job| brain.note_not_kept(*job));
        }
    }

    /// The server forgot a job: its checkpoint is all that is left of it.
    fn keep_file_of(&mut self, job: JobId) {
        self.saved.remove(&job);
        if self.skipped.remove(&job) {
            return;
        }
        let path = self.files.of(job.0);
        let file = path.display().to_string();
        self.events.push_back(json!({"event": "checkpoint_kept", "job": job.0, "file": file}));
        self.kept.insert(path);
        // Another job may have the file of a forgotten one, which gets a name of its own.
        self.only = self.only.filter(|only| *only != job);
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
            let set_aside = self.kept.remove(&path);
            let work = Work { path, revision, set_aside, state, rule: brain.rule(), is_last };
            if writer.work.send(work).is_ok() {
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
        self.events.extend(done.set_aside.clone());
        let Some(error) = &done.error else {
            self.safe.push((done.job, done.revision));
            self.written += 1;
            self.last = Some(done);
            return;
        };
        // It is tried again when it is time.
        if done.set_aside_failed {
            self.kept.insert(done.path.clone());
        }
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
    for Work { path, revision, set_aside, state, rule, is_last } in works {
        let at = clock::now();
        let aside = if set_aside { super::set_aside(&path).map(Some) } else { Ok(None) };
        let set_aside_failed = aside.is_err();
        let (set_aside, error) = match aside {
            Ok(told) => {
                let written = file::write(&path, &state, rule, is_last, at.0);
                (told, written.err().map(|error| error.to_string()))
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let (job, version) = (state.job, state.version);
        let done = Done { job, path, revision, version, at, set_aside, set_aside_failed, error };
        if dones.send(done).is_err() {
            return;
        }
    }
}
