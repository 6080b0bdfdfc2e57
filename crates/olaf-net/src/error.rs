//! What can go wrong outside the protocol, by whose fault it is.

use std::fmt;
use std::io;

/// Why a switch, a server or a client did not start.
#[derive(Debug)]
pub enum StartError {
    /// A key or an address of its configuration cannot be; the text names it.
    Config(String),
    /// The system refused; the text says what to do.
    System(String, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(text) => f.write_str(text),
            Self::System(text, error) => write!(f, "{text}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl StartError {
    /// The system's number for its refusal, where there is one.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        match self {
            Self::Config(_) => None,
            Self::System(_, error) => error.raw_os_error(),
        }
    }
}

/// Why a running part did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// Its thread panicked; the text is the panic's.
    Died(String),
    /// It did not get round to answering in time.
    Late,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died(why) => write!(f, "its thread died, which is a bug in Olaf: {why}"),
            Self::Late => {
                f.write_str("its thread did not answer in time: is the machine overloaded?")
            }
        }
    }
}

impl std::error::Error for AskError {}

/// Why a client's call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The arguments cannot be used.
    Usage(String),
    /// A peer did not answer before the deadline; the text names it.
    Unreachable(String),
    /// The switch or the server said no; the text says why and what to do.
    Refused(String),
    /// Something broke on this side.
    Failed(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text)
            | Self::Unreachable(text)
            | Self::Refused(text)
            | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ClientError {}
