//! The sharing controller, and a host of a job that shares.

use super::{MANY, Row, TEXT, count, counter, gauge, info, left};

/// The rows of either, by the table in which timers are.
macro_rules! rows {
    ($table:literal, $($own:expr),* $(,)?) => { &[
        counter(
            concat!($table, "timers"),
            "olaf_timers",
            "Timers that ended.",
        ),
        gauge(
            concat!($table, "late:percentile=50.p50_us"),
            "olaf_timer_late_seconds",
            "How late timers were at most, of this percentage of them.",
        ),
        gauge(
            concat!($table, "late:percentile=99.p99_us"),
            "olaf_timer_late_seconds",
            "How late timers were at most, of this percentage of them.",
        ),
        counter(
            "refused.{reason}",
            "olaf_refused_datagrams",
            "Datagrams of nobody who takes part, by reason.",
        ),
        $($own),*
    ] };
}

pub(in super::super) const CONTROLLER: &[Row] = rows!(
    "",
    counter(
        "{result=granted|aborted}",
        "olaf_sharing_rounds",
        "Rounds with the hosts of a job: that gave a grant, and that ended without one.",
    ),
    counter(
        "datagrams",
        "olaf_sharing_received_datagrams",
        "Datagrams of hosts and strangers that reached the controller.",
    ),
    gauge(
        "superseded",
        "olaf_sharing_superseded",
        "1: a later controller is at work, and this one does nothing more.",
    ),
    count(
        "jobs[]",
        &["phase"],
        "olaf_sharing_jobs",
        "Jobs, by what the controller does with them."
    ),
    gauge("jobs[job].hosts", "olaf_sharing_job_hosts", "Hosts of a job."),
    gauge(
        "jobs[job].{state=heard|left}",
        "olaf_sharing_job_seen_hosts",
        "Hosts of a job: that were heard by this controller, and that have left.",
    ),
    gauge(
        "jobs[job].silent_ns",
        "olaf_sharing_job_silent_seconds",
        "Time since the host of a job that was heard longest ago was heard.",
    ),
    gauge(
        "jobs[job].failed",
        "olaf_sharing_job_failed",
        "1: a host of the job is dead, or the job is stuck, and its tree is not down yet.",
    ),
    gauge(
        "resources[resource].units",
        "olaf_sharing_resource_units",
        "Units of a resource of the switches.",
    ),
    gauge(
        "resources[resource].used",
        "olaf_sharing_resource_used_units",
        "Units of a resource that jobs may hold now.",
    ),
    left("jobs[].{field=job|unheard|failure}", TEXT),
    left("resources[].resource", "a label of the other fields"),
);

pub(in super::super) const HOST: &[Row] = rows!(
    "played.",
    info("", &["job", "rank"], "olaf_sharing_host", "Number of the job and rank of the host."),
    counter("launches", "olaf_sharing_launches", "All-reduces that the host launched."),
    counter(
        "played.in_network",
        "olaf_sharing_in_network_launches",
        "Launched all-reduces that the switches sum.",
    ),
    counter(
        "mixed",
        "olaf_sharing_mixed_launches",
        "All-reduces that another host launched in another mode. There must be none.",
    ),
    counter(
        "played.locked",
        "olaf_sharing_locked_launches",
        "Launches that waited because the grant was being changed.",
    ),
    counter(
        "played.locked_ns",
        "olaf_sharing_locked_seconds",
        "Time that launches waited because the grant was being changed.",
    ),
    gauge(
        "played.longest_locked_ns",
        "olaf_sharing_longest_locked_seconds",
        "Longest wait of one launch for a grant.",
    ),
    counter(
        "played.decide_ns",
        "olaf_sharing_decide_seconds",
        "Time that launches took to decide, waits left out.",
    ),
    gauge(
        "played.longest_decide_ns",
        "olaf_sharing_longest_decide_seconds",
        "Longest decision of one launch, waits left out.",
    ),
    gauge("held", "olaf_sharing_held", "1: an all-reduce uses the switches, or still may."),
    gauge("locked", "olaf_sharing_locked", "1: the grant is being changed: nothing is launched."),
    gauge(
        "controller.heard",
        "olaf_sharing_controller_heard",
        "1: the sharing controller was heard since the host began.",
    ),
    gauge(
        "controller.silent_ns",
        "olaf_sharing_controller_silent_seconds",
        "Time since the sharing controller was heard.",
    ),
    count(
        "peers[]",
        &["heard"],
        "olaf_sharing_peers",
        "Other hosts of the job, by whether they were heard since the host began.",
    ),
    left("played.launches", "`launches` counts them"),
    left("gone", "/readyz says it"),
    left("controller.address", "/status.json has it"),
    left("peers[].{field=rank|address|silent_ns}", MANY),
);
