//! Who sums together: what the authorities of all protocols decide alike
//! (`docs/design/041-one-membership.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `above` | what a lower switch says to the switch above, and hears of it |
//! | `calls` | who is named where workers call different operations |
//! | `counters` | what all count alike |
//! | `door` | which joins reach the membership of their job |
//! | `eviction` | which job gives its place to a new one |
//! | `life` | who is dead, when a generation ends because of that, when a job is forgotten |
//! | `lobby` | who waits for the next generation |
//! | `numbers` | the number of a generation |
//! | `owner` | whose job it is, and who may have a rank |
//! | `operations` | the operation that a generation begins with |

mod above;
mod calls;
mod counters;
mod door;
mod eviction;
mod life;
mod lobby;
mod numbers;
pub mod operations;
mod owner;

pub use above::Upward;
pub use calls::{Dispute, Odd, Says};
pub use counters::{ByReason, Pieces, refuse};
pub use door::{Door, Entry, Fit, Knock};
pub use eviction::{Evicted, Held, evicted};
pub use life::{CONTESTED, Dead, HEARTBEAT, Look, Patience, Presence, REPEAT, SILENCE, Step};
pub use lobby::{Candidate, Lobby, contributors};
pub use numbers::Numbers;
pub use owner::{Owner, SETTLE};
