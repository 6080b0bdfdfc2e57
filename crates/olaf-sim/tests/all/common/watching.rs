//! What the parties of a job say while others die, and how far the job gets meanwhile.

use super::Job;
use core::ops::RangeBounds;
use core::time::Duration;
use olaf_engine::{Event, Instant, PeerId};
use olaf_host::Worker;
use olaf_host::push_pull::worker::Standing;
use std::collections::BTreeSet;

/// A silent party is noticed within this time: each party looks for silence every 100 ms, and asks
/// after every keepalive of 100 ms.
pub(crate) const NOTICED_WITHIN: Duration = Duration::from_millis(500 + 100 + 100 + 50);

/// The parties that reported an event for which `is` holds, at a time within `span`.
pub(crate) fn who_said(
    job: &Job,
    span: impl RangeBounds<Instant>,
    is: impl Fn(&Event) -> bool,
) -> BTreeSet<PeerId> {
    let events = job.net.events().iter();
    events.filter(|(at, _, n)| span.contains(at) && is(n)).map(|(_, who, _)| *who).collect()
}

pub(crate) fn all_workers(job: &Job) -> BTreeSet<PeerId> {
    job.workers().into_iter().collect()
}

/// Trains for this time. Returns how many versions the model went on.
pub(crate) fn versions(job: &mut Job, during: Duration) -> u32 {
    let before = job.server_version();
    job.train_for(during);
    job.server_version().saturating_sub(before)
}

/// Every worker has a model of one of the last `within` versions: nobody was left behind.
#[track_caller]
pub(crate) fn everyone_is_current(job: &Job, within: u32) {
    let now = job.server_version();
    for id in job.workers() {
        let worker = &job.net.node::<Worker>(id).unwrap();
        assert_eq!(worker.standing(), Standing::Joined, "{id:?}");
        let have = worker.model().map_or(0, |model| model.version);
        assert!(have + within >= now, "{id:?} has version {have} of {now}");
    }
}
