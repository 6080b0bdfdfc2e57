//! The token that a reader from another machine sends.

use crate::error::StartError;
use crate::keys::open_to_others;
use std::fs;
use std::io::Read;

const SHORTEST: usize = 16;
const LONGEST: u64 = 1024;

/// A secret of one line.
#[derive(Clone)]
pub(super) struct Token(Vec<u8>);

impl Token {
    /// Reads a file that only its owner may read.
    pub(super) fn read(path: &str) -> Result<Self, StartError> {
        let wrong = |why: String| StartError::Config(format!("metrics_token_file: {path}: {why}"));
        let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
        let about = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if let Some(mode) = open_to_others(&about) {
            return Err(wrong(format!(
                "others may read it (mode {mode:03o}); make it private: chmod 600 {path}"
            )));
        }
        let mut text = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        // What was cut would be another token than the one that readers have.
        if read.map_err(|error| wrong(error.to_string()))? as u64 > LONGEST {
            return Err(wrong(format!(
                "is longer than {LONGEST} bytes: a token is one line; `openssl rand -hex 32` makes one"
            )));
        }
        let secret = text.trim();
        if secret.len() < SHORTEST || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(format!(
                "needs at least {SHORTEST} printable ASCII characters in one line; \
                 `openssl rand -hex 32` makes some"
            )));
        }
        Ok(Self(secret.as_bytes().to_vec()))
    }

    /// Returns true if a header `Authorization` holds it. The time does not depend on where they
    /// differ.
    pub(super) fn is_in(&self, header: &[u8]) -> bool {
        let Some(said) = header.strip_prefix(b"Bearer ") else { return false };
        aws_lc_rs::constant_time::verify_slices_are_equal(said, &self.0).is_ok()
    }
}
