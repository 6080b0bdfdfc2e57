//! Olaf for C and for what speaks C: `libolaf.so`, `libolaf.a` and the header `include/olaf.h`.
//!
//! What this crate is: whole engines, the queue of a switch, the wire format of updates and the
//! scenarios of `olaf-sim` behind a C ABI, thin. Opaque handles with `_new` and `_free`, results
//! last, an error is a code and [`olaf_result_text`] says it in words.
//!
//! What it promises: no panic crosses the boundary; a null, misaligned or short buffer is refused
//! before anything happens; a call that fails changes nothing its documentation does not name.
//!
//! What it is not: a place of decisions, and no more thread-safe than a C struct: one thread at a
//! time may use a handle.

#![allow(unsafe_code, reason = "pointers from C are read and written here, and nowhere else")]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]
#![allow(non_camel_case_types, reason = "the header's names are C's")]

mod ends;
mod engine;
mod held;
mod memory;
mod queue;
mod result;
mod scenario;
mod sharers;
mod types;
mod wire;

pub use ends::*;
pub use engine::*;
pub use held::olaf_engine;
pub use queue::*;
pub use result::*;
pub use scenario::*;
pub use types::*;
pub use wire::*;

/// Version of this header: a change that breaks callers counts it up. Compare it with
/// `olaf_abi_version()` before anything else.
pub const OLAF_ABI_VERSION: u32 = 4;

/// Version of the library that is linked.
#[unsafe(no_mangle)]
pub extern "C" fn olaf_abi_version() -> u32 {
    OLAF_ABI_VERSION
}
