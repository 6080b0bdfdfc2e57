//! The keys that a role is given: by files, or by the program that started it.

use super::file::{Key, KeyError};
use super::secrets::KeySet;
use crate::error::StartError;
use olaf_engine::seal::Secrets;
use serde::Deserialize;
use std::fmt;

/// The text of a key file that the starting program hands over. It is never written or shown.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(..)")
    }
}

/// The keys of these files and texts, and of single jobs; none without any. `option` names the
/// setting of the files for messages.
pub(crate) fn secrets(
    option: &str,
    files: &[String],
    texts: &[KeyText],
    of_jobs: &[(u32, &str)],
) -> Result<Option<Box<dyn Secrets>>, StartError> {
    let mut keys: Vec<Key> = Vec::new();
    let in_option = |error: KeyError| StartError::Config(format!("{option}: {error}"));
    for path in files {
        add(&mut keys, option, path, Key::read(path.as_ref()).map_err(in_option)?)?;
    }
    for KeyText(text) in texts {
        let key = Key::of_text(text).map_err(|error| StartError::Config(error.to_string()))?;
        add(&mut keys, option, "a key that was handed over", key)?;
    }
    for (job, path) in of_jobs {
        let key = Key::read(path.as_ref());
        let mut key = key.map_err(|error| StartError::Config(format!("jobs: {error}")))?;
        let own = *key.job.get_or_insert(*job);
        if own != *job {
            return Err(StartError::Config(format!(
                "jobs: {path}: this key is for job {own}, and stands at job {job}"
            )));
        }
        add(&mut keys, option, path, key)?;
    }
    Ok((!keys.is_empty()).then(|| Box::new(KeySet::new(&keys)) as _))
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
    let same = keys.iter().find(|known| known.name() == key.name());
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
        assert_eq!(both.keys().iter().map(|key| key.job).collect::<Vec<_>>(), [None, Some(1)]);
    }
}
