//! Keys of jobs: files, and the cryptography of `olaf_engine::seal`.
//!
//! A job's key is 32 random bytes in a file that only its owner may read. What signs datagrams is
//! derived from it, so that a switch can be given that alone ([`Key::for_switch`]): a switch then
//! checks and signs hop by hop, and cannot sign what only workers and servers sign.

mod advice;
mod file;
mod given;
#[cfg(test)]
mod lying;
mod renewing;
mod secrets;

pub(crate) use advice::KeyAdvice;
pub(crate) use file::open_to_others;
pub use file::{Key, KeyError, Old};
pub use given::KeyText;
pub(crate) use given::{
    Given, Sources, Takes, are_secret, files_of_jobs, secrets, secrets_for, secrets_of,
};
pub(crate) use renewing::{Renewed, renew};
#[cfg(test)]
pub(crate) use secrets::KeySet;
