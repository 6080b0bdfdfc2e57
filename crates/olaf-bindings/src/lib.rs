//! The module `olaf._olaf`: the crates as Python sees them.
//!
//! Wraps only. Every decision is made in the crates; every call that waits or copies much
//! releases the GIL; every wait looks for Ctrl-C. The types stand in `python/olaf/_olaf.pyi`,
//! which is checked against the binary.

mod allocation;
mod arrays;
mod client;
mod engine;
mod errors;
mod functions;
mod job;
mod keys;
mod logging;
mod memory;
mod mina;
mod probe;
mod protocol;
mod queue;
mod report;
mod roles;
mod sharing;
mod sum;
mod sweep;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
mod _olaf {
    #[pymodule_export]
    use crate::allocation::{Allocator, tree_gain, trees_policy};
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::errors::{OlafError, RefusedError, SumError, UnreachableError};
    #[pymodule_export]
    use crate::functions::{
        apply_rule, defaults, deliver, format_rate, format_size, format_time, metrics,
        metrics_catalogue, metrics_unmapped, parse_rate, parse_size, parse_time, queues, replay,
        simulate, simulate_sums, update_bytes, wire_versions,
    };
    #[pymodule_export]
    use crate::job::VirtualJob;
    #[pymodule_export]
    use crate::keys::{
        end_old_key, key_info, key_text, new_key, new_key_text, old_key, rotate_key, switch_key,
        switch_key_text,
    };
    #[pymodule_export]
    use crate::logging::LogFilter;
    #[pymodule_export]
    use crate::mina::MinaSimulation;
    #[pymodule_export]
    use crate::probe::probe;
    #[pymodule_export]
    use crate::protocol::{SharingController, SharingHost};
    #[pymodule_export]
    use crate::queue::Queue;
    #[pymodule_export]
    use crate::roles::{Server, Switch};
    #[pymodule_export]
    use crate::sharing::share_group;
    #[pymodule_export]
    use crate::sum::{SumClient, SumOperation};
    #[pymodule_export]
    use crate::sweep::Sweep;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::errors::complete(module.py())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python names it so")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
