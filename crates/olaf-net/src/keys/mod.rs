//! Keys of jobs: files, and the cryptography of `olaf_engine::seal`.
//!
//! A job's key is 32 random bytes in a file that only its owner may read. What signs datagrams is
//! derived from it, so that a switch can be given that alone ([`Key::for_switch`]): a switch then
//! checks and signs hop by hop, and cannot sign what only workers and servers sign.

mod file;
mod secrets;

pub use file::{Key, KeyError};
pub(crate) use secrets::KeySet;

use crate::error::StartError;
use olaf_engine::seal::Secrets;

/// The keys of these files; none without files. `option` names the setting for messages.
pub(crate) fn read(option: &str, paths: &[String]) -> Result<Option<Box<dyn Secrets>>, StartError> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut keys: Vec<Key> = Vec::new();
    for path in paths {
        let in_option = |error: KeyError| StartError::Config(format!("{option}: {error}"));
        let key = Key::read(path.as_ref()).map_err(in_option)?;
        if let Some(twice) = keys.iter().find(|known| known.job == key.job) {
            let job = twice.job.map_or("any job".into(), |job| format!("job {job}"));
            return Err(StartError::Config(format!(
                "{option}: {path}: another of the key files is for {job}, too; make each key for a \
                 job of its own: olaf keys new FILE --job N"
            )));
        }
        keys.push(key);
    }
    Ok(Some(Box::new(KeySet::new(&keys))))
}
