//! The crates' errors as Python's exceptions.

use olaf_net::{AskError, ClientError, StartError, SumError as Failed, SumFailure};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyTimeoutError, PyValueError};
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

create_exception!(
    olaf._olaf,
    SumError,
    OlafError,
    "An all-reduce failed; the message says what happened, where, and what to do."
);

/// The attributes that every `SumError` has.
pub(crate) fn complete(py: Python<'_>) -> PyResult<()> {
    let kind = py.get_type::<SumError>();
    kind.setattr("reason", "")?;
    for name in ["culprit", "contributors", "expected"] {
        kind.setattr(name, py.None())?;
    }
    Ok(())
}

pub(crate) fn sum(py: Python<'_>, error: Failed) -> PyErr {
    let SumFailure { reason, culprit, counts, text } = match error {
        Failed::Usage(text) => return PyValueError::new_err(text),
        Failed::TimedOut(text) => return PyTimeoutError::new_err(text),
        Failed::Failed(failure) => failure,
    };
    let error = SumError::new_err(text);
    let value = error.value(py);
    let set = value
        .setattr("reason", reason)
        .and_then(|()| value.setattr("culprit", culprit))
        .and_then(|()| value.setattr("contributors", counts.map(|(contributors, _)| contributors)))
        .and_then(|()| value.setattr("expected", counts.map(|(_, expected)| expected)));
    set.err().unwrap_or(error)
}

/// The error of an operation that has begun. A call that the protocol does not have is one, too: its ValueError has
/// `reason = "refused"`, which others do not have.
pub(crate) fn ended(py: Python<'_>, error: Failed) -> PyErr {
    let has_refused = matches!(error, Failed::Usage(_));
    let error = sum(py, error);
    let set = if has_refused { error.value(py).setattr("reason", "refused") } else { Ok(()) };
    set.err().unwrap_or(error)
}

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
