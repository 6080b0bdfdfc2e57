//! What the workers of all protocols decide alike about their membership. Each part is a value that a worker owns and
//! asks: what happened goes in, a decision comes out. Messages and their bytes stay with the protocols.
//!
//! | file | what it decides |
//! |---|---|
//! | `leaving` | when a leave is sent again, and when nobody will answer it |
//! | `progress` | how many operations the program has begun, and which of the next ones fail |

mod leaving;
mod progress;

pub(super) use leaving::Leaving;
pub(super) use progress::{Doomed, Progress};

use core::time::Duration;

/// What nobody has answered is sent again after this time: longer than any path of a data centre, shorter than anybody
/// notices.
pub(super) const REPEAT: Duration = Duration::from_millis(20);
