//! The file of the module `olaf._olaf`, which Python loads. `olaf-bindings` is what is in it.
//!
//! This crate only links. Cargo compiles a library beside the crates that it uses; a file that is
//! linked waits until all of them are ready, and a processor would have nothing to do meanwhile.

use olaf_bindings as _;
