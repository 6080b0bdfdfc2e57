//! Who sums together: what the authorities of all protocols decide alike
//! (`docs/design/041-one-membership.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `eviction` | which job gives its place to a new one |
//! | `numbers` | the number of a generation |
//! | `operations` | the operation that a generation begins with |

mod eviction;
mod numbers;
pub mod operations;

pub use eviction::{Evicted, Held, evicted};
pub use numbers::Numbers;
