//! Checkpoints on disk: when they are written, by which thread, and which one is taken up.

mod file;
mod hold;
mod keeper;
mod npy;

pub(crate) use keeper::Keeper;

use crate::error::StartError;
use file::Saved;
use olaf_host::push_pull::server::Server as Brain;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Stands for the job's number in a file's name.
const JOB: &str = "{job}";

/// Which file is a job's.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    name: String,
}

impl Files {
    /// From the configuration's key. Makes the folder, and sees that it can be written to: better
    /// now than when there is something to lose.
    pub(crate) fn new(path: &str) -> Result<Self, StartError> {
        let config = |text: String| StartError::Config(format!("checkpoint = {path:?}: {text}"));
        let whole = Path::new(path);
        let name = whole.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| config("must end in the name of a file".into()))?.to_owned();
        let folder = whole.parent().unwrap_or(Path::new("")).to_owned();
        if folder.to_str().is_none_or(|folder| folder.contains(JOB)) {
            return Err(config(format!("put {JOB} into the name of the file, not of its folder")));
        }
        let files = Self { folder, name };
        if !files.folder.as_os_str().is_empty() {
            std::fs::create_dir_all(&files.folder)
                .map_err(|error| config(format!("the folder cannot be made: {error}")))?;
        }
        let trial = files.folder.join(format!("{}.trial", files.name));
        std::fs::File::create(&trial)
            .and_then(|_| std::fs::remove_file(&trial))
            .map_err(|error| config(format!("the folder cannot be written to: {error}")))?;
        if whole.is_dir() {
            return Err(config("is a folder: name a file in it".into()));
        }
        Ok(files)
    }

    /// Returns true if each job has a file of its own.
    fn is_for_many(&self) -> bool {
        self.name.contains(JOB)
    }

    /// Whose lock stands for all of them.
    fn whole(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn of(&self, job: u32) -> PathBuf {
        self.folder.join(self.name.replace(JOB, &job.to_string()))
    }

    /// Files that exist, or whose previous version exists.
    fn found(&self) -> Vec<PathBuf> {
        let there = |path: &PathBuf| path.exists() || file::previous(path).exists();
        if !self.is_for_many() {
            return Vec::from_iter(Some(self.of(0)).filter(there));
        }
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let (before, after) = self.name.split_once(JOB).unwrap_or((&self.name, ""));
        let job = |name: String| {
            let name = name.strip_suffix(".previous").unwrap_or(&name);
            let job: u32 = name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
            Some((job, self.of(job)))
        };
        names.filter_map(job).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Puts what is there aside under names that nothing is ever written to; an event each.
    pub(crate) fn set_aside(&self) -> Result<Vec<Value>, StartError> {
        self.found().into_iter().map(|path| set_aside(&path)).collect()
    }

    /// Takes up what is there; what is to be told of it, an event each.
    pub(crate) fn restore(&self, brain: &mut Brain) -> Result<Vec<Value>, StartError> {
        self.found().into_iter().map(|path| take_up(brain, &path)).collect()
    }
}

/// Renames a file and the one before it.
fn set_aside(path: &Path) -> Result<Value, StartError> {
    let to = file::unused_name(path);
    for (from, to) in [(path, to.as_path()), (&file::previous(path), &file::previous(&to))] {
        if file::taken(from) {
            rename(from, to)?;
        }
    }
    let (file, kept_as) = (path.display().to_string(), to.display().to_string());
    Ok(json!({"event": "checkpoint_set_aside", "file": file, "kept_as": kept_as}))
}

fn rename(from: &Path, to: &Path) -> Result<(), StartError> {
    std::fs::rename(from, to).map_err(|error| {
        let (from, to) = (from.display(), to.display());
        StartError::Config(format!("checkpoint: {from} cannot be renamed to {to}: {error}"))
    })
}

/// Takes up a file, or the one before it where it is damaged or missing.
fn take_up(brain: &mut Brain, newest: &Path) -> Result<Value, StartError> {
    let before = file::previous(newest);
    let (saved, path, because) = match load(brain, newest, true) {
        Ok(saved) => (saved, newest, None),
        // The file before may be the last of an earlier life: workers may have a newer model.
        Err(why) => match load(brain, &before, false) {
            Ok(saved) => (saved, before.as_path(), Some(why)),
            Err(also) => {
                let also = format!("; {}: {also}", before.display());
                let also = if before.exists() { also.as_str() } else { "" };
                return Err(StartError::Config(format!(
                    "checkpoint: {}: {why}{also}; begin anew with `fresh = true` (--fresh), or name \
                     another file",
                    newest.display(),
                )));
            }
        },
    };
    let (job, version) = saved;
    let mut event = json!({
        "event": "restored", "job": job, "version": version, "file": path.display().to_string(),
    });
    if let Some(why) = because {
        event["reason"] = why.into();
        if file::taken(newest) {
            // Or the next one to be written would push it over the only good one.
            let aside = file::damaged(newest);
            rename(newest, &aside)?;
            event["kept_as"] = aside.display().to_string().into();
        }
    }
    Ok(event)
}

fn load(brain: &mut Brain, path: &Path, may_be_last: bool) -> Result<(u32, u32), String> {
    let Saved { state, is_last } = file::read(path)?;
    let told = (state.job.0, state.version);
    brain.restore(state, is_last && may_be_last).map_err(|error| error.to_string())?;
    Ok(told)
}

#[cfg(test)]
mod tests;
