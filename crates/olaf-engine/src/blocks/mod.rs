//! Tables of blocks: the pieces of one block, one from each member, meet in a cell and are summed.
//!
//! A queue (module [`crate::queue`]) merges updates *while they wait* for a link. A table of blocks
//! holds a sum *until it is complete*, overdue or given up. A table takes time and pieces as
//! arguments and decides nothing about messages: the switch around it does.
//!
//! | table | protocol | keeps results |
//! |---|---|---|
//! | `pool` | `reduce`, SwitchML | in a ring of two cells for each slot |
//! | `by_index` | iSwitch | in such a ring, too |
//! | `hashed` | ATP | no: the worker resends |
//! | `records` | Trio-ML | for a time |

pub mod by_index;
pub mod hashed;
mod holds;
pub mod pool;
pub mod records;
mod ring;

pub use by_index::ByIndex;
pub use hashed::Hashed;
pub use pool::Pool;
pub use records::Records;
