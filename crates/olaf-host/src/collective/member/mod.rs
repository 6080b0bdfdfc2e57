//! What the workers of all protocols decide alike about their membership. Each part is a value that a worker owns and
//! asks: what happened goes in, a decision comes out. Messages and their bytes stay with the protocols.
//!
//! | file | what it decides |
//! |---|---|
//! | `progress` | how many operations the program has begun, and which of the next ones fail |

mod progress;

pub(super) use progress::{Doomed, Progress};
