//! The keys that a role is given: by files, or by the program that started it.

use super::file::{Key, KeyError};
use super::renewing::{Stamp, stamps};
use super::secrets::{Cookie, KeySet};
use crate::error::StartError;
use olaf_engine::seal::Secrets;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// The files among these that hold a job's key which is a secret. One that cannot be read is not among them.
pub(crate) fn files_of_jobs<'a>(files: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_of_a_job = |key: Key| key.is_of_a_job() && !key.is_public();
    files.filter(|path| Key::read(path.as_ref()).is_ok_and(is_of_a_job)).collect()
}

/// Returns true if there is a key among these, and none is the one that everybody knows, under whatever name.
pub(crate) fn are_secret<'a>(files: impl Iterator<Item = &'a str>, texts: &[KeyText]) -> bool {
    let files = files.map(|path| Key::read(path.as_ref()));
    let mut keys = files.chain(texts.iter().map(|KeyText(text)| Key::of_text(text))).peekable();
    // What cannot be read ends the start of the role with a better error.
    keys.peek().is_some() && !keys.any(|key| key.is_ok_and(|key| key.is_public()))
}

/// The text of a key file that the starting program hands over. It is never written or shown.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(..)")
    }
}

/// Which keys a role takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A job's, and a switch's.
    Both,
    /// A job's alone: the role signs models.
    Jobs,
}

/// Where a role's keys are from. Its files may be replaced while the role runs.
pub(crate) struct Sources {
    takes: Takes,
    /// The setting that names the files, for messages.
    option: &'static str,
    files: Vec<String>,
    texts: Vec<KeyText>,
    of_jobs: Vec<(u32, String)>,
    /// The job that a worker is of.
    job: Option<u32>,
    cookie: Cookie,
    /// The files before they were read.
    pub(super) seen: Vec<Option<Stamp>>,
}

/// The keys of a role, and where they are from.
pub(crate) struct Given {
    pub(crate) secrets: Box<dyn Secrets>,
    pub(crate) sources: Arc<Sources>,
}

impl Sources {
    /// The files, in the order in which they are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let listed = self.of_jobs.iter().map(|(_, path)| path.as_str());
        self.files.iter().map(String::as_str).chain(listed)
    }

    /// The keys; none without any.
    pub(crate) fn read(&self) -> Result<Option<Box<dyn Secrets>>, StartError> {
        let option = self.option;
        let mut keys: Vec<Key> = Vec::new();
        let in_option = |error: KeyError| StartError::Config(format!("{option}: {error}"));
        let mut add = |option: &str, from: &str, key: Key| {
            if self.takes == Takes::Jobs && !key.is_of_a_job() {
                return Err(StartError::Config(format!(
                    "{option}: {from}: this is a switch's key, which cannot sign models: workers \
                     would refuse every model; give the server the job's key, from which the switch's \
                     was made (olaf keys show FILE tells which of the two a key is)"
                )));
            }
            add(&mut keys, option, from, key)
        };
        for path in &self.files {
            add(option, path, Key::read(path.as_ref()).map_err(in_option)?)?;
        }
        for KeyText(text) in &self.texts {
            let key = Key::of_text(text).map_err(|error| StartError::Config(error.to_string()))?;
            add(option, "a key that was handed over", key)?;
        }
        for (job, path) in &self.of_jobs {
            let key = Key::read(path.as_ref());
            let no_key = |error| StartError::Config(format!("jobs: job {job}: key_file: {error}"));
            let mut key = key.map_err(no_key)?;
            let own = *key.job.get_or_insert(*job);
            if own != *job {
                return Err(StartError::Config(format!(
                    "jobs: {path}: this key is for job {own}, and stands at job {job}"
                )));
            }
            add("jobs", path, key)?;
        }
        self.check_job(&keys)?;
        Ok((!keys.is_empty()).then(|| Box::new(KeySet::with_cookie(&keys, &self.cookie)) as _))
    }

    /// A worker's key of another job is refused here: a switch drops what is signed with it without a word.
    fn check_job(&self, keys: &[Key]) -> Result<(), StartError> {
        let Some(job) = self.job else { return Ok(()) };
        let Some(other) = keys.iter().find_map(|key| key.job.filter(|own| *own != job)) else {
            return Ok(());
        };
        let from = self.files.first().map_or("the key that was handed over", String::as_str);
        Err(StartError::Config(format!(
            "key_file: {from}: this key is for job {other}, and the worker is of job {job}: give it \
             the key of job {job}, or correct the job's number"
        )))
    }

    fn given(mut self) -> Result<Option<Given>, StartError> {
        self.seen = stamps(self.files());
        let sources = Arc::new(self);
        Ok(sources.read()?.map(|secrets| Given { secrets, sources }))
    }
}

/// The keys of these files and texts, and of single jobs; none without any. `option` names the
/// setting of the files for messages.
pub(crate) fn secrets(
    option: &'static str,
    files: &[String],
    texts: &[KeyText],
    of_jobs: &[(u32, &str)],
) -> Result<Option<Given>, StartError> {
    secrets_of(Takes::Both, option, files, texts, of_jobs)
}

/// The keys of a worker of `job`, from its file or text.
pub(crate) fn secrets_for(
    job: u32,
    file: Option<&String>,
    text: Option<&KeyText>,
) -> Result<Option<Given>, StartError> {
    let sources = Sources {
        takes: Takes::Both,
        option: "key_file",
        files: file.into_iter().cloned().collect(),
        texts: text.into_iter().cloned().collect(),
        of_jobs: Vec::new(),
        job: Some(job),
        cookie: Cookie::draw(),
        seen: Vec::new(),
    };
    sources.given()
}

/// As [`secrets`], for a role that may not take every kind of key.
pub(crate) fn secrets_of(
    takes: Takes,
    option: &'static str,
    files: &[String],
    texts: &[KeyText],
    of_jobs: &[(u32, &str)],
) -> Result<Option<Given>, StartError> {
    let sources = Sources {
        takes,
        option,
        files: files.to_vec(),
        texts: texts.to_vec(),
        of_jobs: of_jobs.iter().map(|(job, path)| (*job, (*path).to_owned())).collect(),
        job: None,
        cookie: Cookie::draw(),
        seen: Vec::new(),
    };
    sources.given()
}

fn add(keys: &mut Vec<Key>, option: &str, from: &str, key: Key) -> Result<(), StartError> {
    if let Some(twice) = keys.iter().find(|known| known.job == key.job) {
        let job = twice.job.map_or("any job".into(), |job| format!("job {job}"));
        return Err(StartError::Config(format!(
            "{option}: {from}: another of the key files is for {job}, too; make each key for a job \
             of its own: olaf keys new FILE --job N"
        )));
    }
    // Of two keys with one name a handshake means the first: workers of the other job would be shut out.
    let same = keys.iter().find(|known| known.shares_a_name(&key));
    if let Some((job, other)) = same.and_then(|same| same.job.zip(key.job)) {
        return Err(StartError::Config(format!(
            "{option}: {from}: the key of job {job} stands at job {other}, too; make each job a key \
             of its own: olaf keys new FILE --job {other}"
        )));
    }
    keys.push(key);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_one_job_of_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any.key");
        Key::generate(None).write(&path).unwrap();
        let path = path.to_str().unwrap();
        let given =
            |files: &[String], of_jobs: &[(u32, &str)]| secrets("key_files", files, &[], of_jobs);
        let error = given(&[], &[(1, path), (2, path)]).err().unwrap().to_string();
        assert!(error.contains("the key of job 1 stands at job 2, too"), "{error}");
        // It may be good for any job, and stand at one of them.
        let both = given(&[path.to_owned()], &[(1, path)]).ok().flatten().unwrap();
        assert_eq!(
            both.secrets.keys().iter().map(|key| key.job).collect::<Vec<_>>(),
            [None, Some(1)]
        );
        let error = given(&[], &[(1, path), (7, "nowhere.key")]).err().unwrap().to_string();
        assert!(error.starts_with("jobs: job 7: key_file: nowhere.key: "), "{error}");
    }

    #[test]
    fn the_key_that_everybody_knows_is_no_secret_in_any_file() {
        let folder = tempfile::tempdir().unwrap();
        let (own, copy) = (folder.path().join("own.key"), folder.path().join("copy.key"));
        Key::generate(None).write(&own).unwrap();
        Key::public().for_switch().write(&copy).unwrap();
        let (own, copy) = (own.to_str().unwrap(), copy.to_str().unwrap());
        let text = |key: &Key| [KeyText(key.text())];
        for (files, texts, is_secret) in [
            (vec![], &[][..], false),
            (vec![own], &[], true),
            (vec!["nowhere.key"], &[], true),
            (vec!["public"], &[], false),
            (vec![copy], &[], false),
            (vec![own, copy], &[], false),
            (vec![], &text(&Key::generate(None)), true),
            (vec![own], &text(&Key::public()), false),
        ] {
            assert_eq!(are_secret(files.iter().copied(), texts), is_secret, "{files:?}");
        }
        assert_eq!(files_of_jobs([own, copy, "public"].into_iter()), [own]);
    }

    #[test]
    fn a_worker_takes_no_key_of_another_job() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.key");
        Key::generate(Some(1)).write(&path).unwrap();
        let (path, text) = (path.to_str().unwrap().to_owned(), Key::generate(None).text());
        assert!(secrets_for(1, Some(&path), None).unwrap().is_some());
        assert!(secrets_for(2, None, Some(&KeyText(text))).unwrap().is_some());
        assert!(secrets_for(2, None, None).unwrap().is_none());
        let error = secrets_for(2, Some(&path), None).err().unwrap().to_string();
        assert!(error.contains("this key is for job 1, and the worker is of job 2"), "{error}");
    }
}
