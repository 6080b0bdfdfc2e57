//! The crates' errors as Python's exceptions.

use olaf_net::{AskError, ClientError, StartError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(olaf._olaf, OlafError, PyException, "Base of errors in the network.");
create_exception!(
    olaf._olaf,
    UnreachableError,
    OlafError,
    "A peer did not answer before the deadline; the message names the peer."
);
create_exception!(
    olaf._olaf,
    RefusedError,
    OlafError,
    "The switch or the server answered with a refusal; the message says why and what to do."
);

pub(crate) fn start(error: StartError) -> PyErr {
    match (&error, error.os_error()) {
        (StartError::System(text, _), Some(number)) => PyOSError::new_err((number, text.clone())),
        (StartError::System(..), None) => PyOSError::new_err(error.to_string()),
        (StartError::Config(text), _) => PyValueError::new_err(text.clone()),
    }
}

pub(crate) fn ask(role: &'static str) -> impl Fn(AskError) -> PyErr {
    move |error| OlafError::new_err(format!("{role}: {error}"))
}

pub(crate) fn client(error: ClientError) -> PyErr {
    match error {
        ClientError::Usage(text) => PyValueError::new_err(text),
        ClientError::Unreachable(text) => UnreachableError::new_err(text),
        ClientError::Refused(text) => RefusedError::new_err(text),
        ClientError::Failed(text) => OlafError::new_err(text),
    }
}
