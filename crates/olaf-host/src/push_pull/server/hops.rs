//! A hop that the updates of a job come over: a worker's address, or a switch's.

use olaf_engine::party::Liveness;
use olaf_engine::{Instant, Refused};
use olaf_wire::Update;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Hop {
    pub(super) liveness: Liveness,
    /// A join came over it that a switch had passed on; where a list says which peers are switches, of
    /// a listed peer.
    pub(super) is_switch: bool,
}

impl Hop {
    /// An update that a switch passed on is judged by what that switch knows of its workers. So only
    /// a switch may send one.
    pub(super) const fn may_send(&self, update: &Update) -> Result<(), Refused> {
        if update.hops > 0 && !self.is_switch { Err(Refused::NotASwitch) } else { Ok(()) }
    }

    pub(super) fn note_join(&mut self, now: Instant, hops: u8) {
        self.liveness.note(now);
        self.is_switch |= hops > 0;
    }
}
