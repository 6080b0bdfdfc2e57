//! What cannot be, and why a worker is not in.

use core::fmt;
use olaf_engine::keys::ConfigError;
use olaf_host::LayoutError;
use olaf_host::push_pull::worker::PushError;
use olaf_wire::WelcomeCode;

/// A set-up that cannot be.
#[derive(Debug)]
pub enum SetupError {
    /// No worker, or too many.
    Workers,
    /// A link's chance is no chance, or certain.
    Chance,
    /// The switch's key.
    Switch(ConfigError),
    /// The server's key.
    Server(ConfigError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers => f.write_str("clusters: one entry for each worker, at least one"),
            Self::Chance => {
                f.write_str("links: loss, duplication and reordering must be from 0 to below 1")
            }
            Self::Switch(error) => write!(f, "switch.{error}"),
            Self::Server(error) => write!(f, "server.{error}"),
        }
    }
}

impl core::error::Error for SetupError {}

/// Why a worker is not in.
#[derive(Debug)]
pub enum JoinError {
    /// The model cannot be joined with.
    Model(PushError),
    /// Its description is none.
    Layout(LayoutError),
    /// The switch or the server said no.
    TurnedAway(WelcomeCode),
    /// Nobody answered in time.
    Unanswered,
    /// The worker has left.
    Left,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => write!(f, "the model: {error}"),
            Self::Layout(error) => write!(f, "layout: {error}"),
            Self::TurnedAway(code) => write!(f, "turned away: {}", code.name()),
            Self::Unanswered => f.write_str(
                "no answer within the timeout in virtual time: allow for more than two round trips \
                 of the links, and more where they lose datagrams",
            ),
            Self::Left => f.write_str("this worker has left"),
        }
    }
}

impl core::error::Error for JoinError {}

/// Parts that together are not as long as the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSize {
    /// Values of the parts.
    pub have: usize,
    /// Parameters of the model.
    pub need: usize,
}

impl fmt::Display for ModelSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { have, need } = self;
        write!(f, "the parts have {have} values together; the job's model has {need}")
    }
}

impl core::error::Error for ModelSize {}
