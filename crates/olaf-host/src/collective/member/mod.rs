//! What the workers of all protocols decide alike about their membership. Each part is a value that a worker owns and
//! asks: what happened goes in, a decision comes out. Messages and their bytes stay with the protocols.
//!
//! | file | what it decides |
//! |---|---|
//! | `joining` | where the worker stands, when the next join leaves, and with which proof of its address |
//! | `leaving` | when a leave is sent again, and when nobody will answer it |
//! | `progress` | how many operations the program has begun, and which of the next ones fail |
//! | `quiet` | when the switch counts as silent |
//! | `ledger` | numbers and ends of operations |
//! | `events` | what the driver is told |

mod events;
mod joining;
mod leaving;
mod ledger;
mod progress;
mod quiet;

pub(super) use events::Events;
pub(super) use joining::{Joining, Joins};
pub(super) use leaving::Leaving;
pub(super) use ledger::Ledger;
pub use ledger::Operations;
pub(super) use progress::{Doomed, Progress};
pub(super) use quiet::Quiet;

use core::time::Duration;
use olaf_engine::{Instant, Why};

/// What nobody has answered is sent again after this time: longer than any path of a data centre, shorter than anybody
/// notices.
pub(super) const REPEAT: Duration = Duration::from_millis(20);

/// The earliest timeout of a worker: something is to be sent (again), or the switch counts as silent. Drivers ask for it
/// after each datagram.
#[inline]
pub(super) fn timeout(
    sends: impl IntoIterator<Item = Option<Instant>>,
    silence: Option<Instant>,
) -> Option<(Instant, Why)> {
    let mut next = silence.map(|at| (at, Why::SilenceCheck));
    for at in sends.into_iter().flatten() {
        if next.is_none_or(|(other, _)| at <= other) {
            next = Some((at, Why::Retransmission));
        }
    }
    next
}
