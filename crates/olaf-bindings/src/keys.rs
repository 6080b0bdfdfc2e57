//! Key files, for `olaf keys`.

use olaf_net::keys::{Key, KeyError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Writes a new key for `job` (None: any job) to a new file that only its owner may read. Returns
/// the key's public name.
#[pyfunction]
#[pyo3(signature = (path, job=None))]
pub(crate) fn new_key(path: PathBuf, job: Option<u32>) -> PyResult<String> {
    let key = Key::generate(job);
    key.write(&path).map_err(error)?;
    Ok(key.name())
}

/// Writes what a switch needs of the key in `path` to the new file `out`. Returns the public name.
#[pyfunction]
pub(crate) fn switch_key(path: PathBuf, out: PathBuf) -> PyResult<String> {
    let key = Key::read(&path).map_err(error)?;
    key.for_switch().write(&out).map_err(error)?;
    Ok(key.name())
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
        KeyError::Open(..) | KeyError::NoKey(..) => PyValueError::new_err(error.to_string()),
    }
}
