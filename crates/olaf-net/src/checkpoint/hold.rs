//! The lock on a checkpoint: two servers with one file would each overwrite what the other has saved.

use crate::error::StartError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The lock, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Hold {
    _file: File,
    /// Why there is no lock: a file system may have none.
    pub(super) missing: Option<String>,
}

impl Hold {
    /// Takes the lock in a file beside `path`, and writes the owner's name there.
    ///
    /// # Errors
    /// Another server has it; the message names that server.
    pub(super) fn take(path: &Path, incarnation: u32) -> Result<Self, StartError> {
        let name = super::file::with_suffix(path, ".lock");
        let failed = |error: io::Error| {
            StartError::Config(format!("checkpoint: {} cannot be made: {error}", name.display()))
        };
        // Not truncated: it may have the name of another server.
        let options =
            File::options().read(true).write(true).create(true).truncate(false).to_owned();
        let mut file = options.open(&name).map_err(failed)?;
        let missing = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => None,
            Err(Errno::WOULDBLOCK) => {
                let mut owner = String::new();
                // It may be writing its name just now.
                let _ = (&file).take(200).read_to_string(&mut owner);
                let owner = owner.trim().escape_default();
                return Err(StartError::Config(format!(
                    "checkpoint: {} belongs to another server ({owner}): stop that one, or name another file",
                    path.display(),
                )));
            }
            Err(error) => Some(error.to_string()),
        };
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        let pid = std::process::id();
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "process {pid} on {host}, incarnation {incarnation}"))
            .map_err(failed)?;
        Ok(Self { _file: file, missing })
    }
}
