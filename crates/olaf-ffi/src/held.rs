//! What is behind a pointer to an engine.

use crate::memory;
use crate::result::*;
use ::olaf_engine::{Engine, Receivers};
use olaf_host::whole::Whole;
use olaf_sim::study::scenario::End;
use olaf_wire::offsets::MAX_DATAGRAM;

/// A whole engine, behind a pointer.
pub struct olaf_engine(pub(crate) Handle<Held>);

pub(crate) struct Held {
    pub(crate) kind: Kind,
    /// Where an engine writes a datagram: the longest fits.
    pub(crate) buf: Vec<u8>,
    /// Receivers of the datagram that was taken last.
    pub(crate) to: Option<Receivers>,
    /// An event that has not fitted into a buffer of the caller's yet.
    pub(crate) told: Option<String>,
}

pub(crate) enum Kind {
    /// A switch, a server or a worker.
    Whole(Whole),
    /// An end of a scenario.
    End(End),
}

impl olaf_engine {
    /// Gives an engine to the caller.
    pub(crate) fn hand_over(kind: Kind, to: memory::Output<*mut Self>) {
        let held = Held { kind, buf: vec![0; MAX_DATAGRAM], to: None, told: None };
        to.set(Box::into_raw(Box::new(Self(Handle::new(held)))));
    }
}

impl Kind {
    pub(crate) fn engine(&self) -> &dyn Engine {
        match self {
            Self::Whole(whole) => whole,
            Self::End(end) => end.engine(),
        }
    }

    pub(crate) fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::Whole(whole) => whole,
            Self::End(end) => end.engine_mut(),
        }
    }

    /// The engine, where it is a switch, a server or a worker.
    pub(crate) fn whole(&mut self) -> Result<&mut Whole, olaf_result> {
        match self {
            Self::Whole(whole) => Ok(whole),
            Self::End(_) => Err(OLAF_RESULT_BAD_ARGUMENT),
        }
    }
}
