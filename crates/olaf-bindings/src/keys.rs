//! Key files, for `olaf keys`.

use olaf_net::keys::{Key, KeyError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes a new key for `job` (None: any job) to a new file that only its owner may read. Returns
/// the key's public name.
#[pyfunction]
#[pyo3(signature = (path, job=None))]
pub(crate) fn new_key(path: PathBuf, job: Option<u32>) -> PyResult<String> {
    let key = Key::generate(job);
    key.write(&path).map_err(error)?;
    Ok(key.name())
}

/// Writes what a switch needs of the key in `path` to the file `out`, which is new, or has what the switch
/// needed of that key before the last rotation. Returns the public name.
#[pyfunction]
pub(crate) fn switch_key(path: PathBuf, out: PathBuf) -> PyResult<String> {
    let key = Key::read(&path).map_err(error)?;
    key.write_for_switch(&out).map_err(error)?;
    Ok(key.name())
}

/// Writes a new key in the place of the one in `path`, which is good until `until_s`, seconds of Unix time.
/// Returns the new key's public name.
#[pyfunction]
pub(crate) fn rotate_key(path: PathBuf, until_s: u64) -> PyResult<String> {
    replaced(&path, |key, now_s| key.rotated(until_s, now_s))
}

/// Ends the old key in `path`. Returns the present key's public name.
#[pyfunction]
pub(crate) fn end_old_key(path: PathBuf) -> PyResult<String> {
    replaced(&path, Key::finished)
}

fn replaced(path: &Path, by: impl Fn(&Key, u64) -> Result<Key, String>) -> PyResult<String> {
    let key = Key::read(path).map_err(error)?;
    let refused = |why| KeyError::Refused(path.display().to_string(), why);
    let new = by(&key, now_s()).map_err(refused).map_err(error)?;
    new.replace(path).map_err(error)?;
    Ok(new.name())
}

/// Public name of the key before the last rotation in `path`, until when it is good (seconds of Unix time),
/// and whether it is good now; None without one.
#[pyfunction]
pub(crate) fn old_key(path: PathBuf) -> PyResult<Option<(String, u64, bool)>> {
    let key = Key::read(&path).map_err(error)?;
    Ok(key.old().map(|old| (old.name(), old.until_s, old.is_good(now_s()))))
}

/// Seconds of Unix time.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Public name, kind ("job" or "switch") and job (None: any) of the key in `path`.
#[pyfunction]
pub(crate) fn key_info(path: PathBuf) -> PyResult<(String, &'static str, Option<u32>)> {
    let key = Key::read(&path).map_err(error)?;
    Ok((key.name(), key.kind(), key.job))
}

/// The text of the key file in `path`, to hand over to a process. The secret is in it.
#[pyfunction]
pub(crate) fn key_text(path: PathBuf) -> PyResult<String> {
    Ok(Key::read(&path).map_err(error)?.text())
}

/// The text of a new key for `job` (None: any job), which is in no file.
#[pyfunction]
#[pyo3(signature = (job=None))]
pub(crate) fn new_key_text(job: Option<u32>) -> String {
    Key::generate(job).text()
}

/// The text of what a switch needs of the key with this text.
#[pyfunction]
pub(crate) fn switch_key_text(text: &str) -> PyResult<String> {
    Ok(Key::of_text(text).map_err(error)?.for_switch().text())
}

fn error(error: KeyError) -> PyErr {
    match error {
        KeyError::System(..) | KeyError::Exists(..) => PyOSError::new_err(error.to_string()),
        KeyError::Open(..) | KeyError::NoKey(..) | KeyError::Refused(..) => {
            PyValueError::new_err(error.to_string())
        }
    }
}
