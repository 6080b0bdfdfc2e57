//! Messages with ordinary values, for the tests and benches of the other crates.
//!
//! A test writes the fields that matter to it and takes the rest from here:
//! `Update { hops: 1, ..update(address(1, 0, 4), 7) }`. No program depends on this crate.
//!
//! All of these messages agree with each other: the server's life is [`EPOCH`], its model has
//! version 1, and every time is 1 ns.
//!
//! [`Toy`] signs models, and [`Liar`] is a switch that lies about them: in a simulated network and on real
//! sockets. [`cases`] and [`rounds`] say how much tests and benches do. `exploring` runs the model checks.

#[cfg(feature = "model")]
pub mod exploring;
mod lying;
mod toy;

pub use lying::{Liar, Lie};
pub use toy::Toy;

use olaf_wire::{
    Address, Ages, Answer, ClusterId, Ends, JobId, Join, JoinPath, QueueStatus, Session, Update,
    Welcome, WelcomeCode, WorkerId,
};

/// The number of random cases that a property test runs: `all` of them, a quarter where the
/// environment has `OLAF_QUICK_TESTS`, as in `make test`, and `N` times as many where it has
/// `OLAF_TESTS_TIMES=N`, as in `make search`.
#[must_use]
pub fn cases(all: u32) -> u32 {
    let times = std::env::var("OLAF_TESTS_TIMES").ok().map(|times| times.parse::<u32>());
    match times {
        Some(Ok(times)) => all * times,
        Some(Err(error)) => panic!("OLAF_TESTS_TIMES: {error}"),
        None if std::env::var_os("OLAF_QUICK_TESTS").is_some() => all.div_ceil(4),
        None => all,
    }
}

/// The number of rounds that a benchmark measures: `all` of them, or at most 2 where
/// [benches are quick](are_benches_quick).
#[must_use]
pub fn rounds(all: usize) -> usize {
    if are_benches_quick() { all.min(2) } else { all }
}

/// Returns true if a benchmark shows only that it runs: the environment has `OLAF_QUICK_BENCHES`,
/// as in `make bench-quick`.
#[must_use]
pub fn are_benches_quick() -> bool {
    std::env::var_os("OLAF_QUICK_BENCHES").is_some()
}

/// The server's epoch.
pub const EPOCH: u32 = 9;

/// A worker's address. Its session is 100 more than its number.
pub const fn address(job: u32, cluster: u32, worker: u32) -> Address {
    Address {
        job: JobId(job),
        cluster: ClusterId(cluster),
        worker: WorkerId(worker),
        session: Session(100 + worker),
    }
}

/// The address of all workers of the same cluster.
pub const fn everyone(of: Address) -> Address {
    Address { worker: WorkerId::ALL, session: Session(0), ..of }
}

/// The first join of a worker that has no model.
pub fn join(address: Address, parameters: u32, segment_lanes: u32) -> Join {
    Join {
        address,
        have_version: 0,
        parameters,
        segment_lanes,
        clock_error_us: 0,
        sent_at_ns: 1,
        clock_offset_ns: 0,
        hops: 0,
        wants_notices: false,
        path: JoinPath::default(),
        nonce: 0,
    }
}

/// The server's welcome to a join. The model is ready.
pub fn welcome(join: &Join) -> Welcome {
    Welcome {
        address: join.address,
        code: WelcomeCode::Welcome,
        ready: true,
        version: 1,
        parameters: join.parameters,
        segment_lanes: join.segment_lanes,
        epoch: EPOCH,
        first_missing: u32::MAX,
        echoed_sent_at_ns: join.sent_at_ns,
        received_at_ns: 1,
        sent_at_ns: 1,
        switch_epoch: 0,
        silent_ms: 0,
        rule: None,
        layout_missing: u32::MAX,
        missing: 0,
        padded_to: 0,
        nonce: 0,
    }
}

/// One worker's own update of one segment, on version 1 of the model.
pub const fn update(address: Address, sequence: u32) -> Update {
    Update {
        address,
        sequence,
        hop_sequence: sequence.wrapping_add(1),
        segment: 0,
        segments: 1,
        generated_oldest_ns: 1,
        generated_newest_ns: 1,
        version_oldest: 1,
        version_newest: 1,
        contributors: 1,
        weight: 1.0,
        reward: 0.0,
        hops: 0,
        flow_sequence: 0,
    }
}

/// The server's answer to all workers of a cluster, after the update of this hop sequence.
pub fn answer(cluster: Address, acknowledges: u32) -> Answer {
    Answer {
        address: everyone(cluster),
        acknowledges,
        segment: 0,
        segments: 1,
        model_version: 1,
        parameters: 0,
        epoch: EPOCH,
        delivered_version: 1,
        delivered_newest_ns: 1,
        server_time_ns: 1,
        queue: QueueStatus::default(),
        ages: Ages::default(),
        ends: Ends::NONE,
    }
}

/// A worker's offer of its model, of one segment, to a server that has none.
pub fn offer(address: Address, parameters: u32) -> Answer {
    Answer {
        address,
        acknowledges: 0,
        model_version: 0,
        parameters,
        epoch: 0,
        delivered_version: 0,
        delivered_newest_ns: 0,
        server_time_ns: 0,
        ..answer(address, 0)
    }
}
