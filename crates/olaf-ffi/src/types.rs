//! Plain data on both sides of the boundary.

use core::ffi::c_char;
use olaf_engine::{ClusterId, Contribution, Entry, JobId, Outcome, Rejection, WorkerId};
use olaf_wire::{Address, QueueStatus, Session, Update};

/// The header of an update, or of one segment of it: what stands on the wire before the lanes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct olaf_update {
    /// The job.
    pub job: u32,
    /// The cluster in the job: updates of one cluster may merge.
    pub cluster: u32,
    /// The worker; of a merge, the contributor that came first.
    pub worker: u32,
    /// The sender's life.
    pub session: u32,
    /// The worker's count of its updates.
    pub sequence: u32,
    /// The last sender's count of what it sent for this job.
    pub hop_sequence: u32,
    /// Which segment of the model, from 0; below `segments`.
    pub segment: u32,
    /// Segments the model has, at least 1.
    pub segments: u32,
    /// Generation time of the oldest contribution, nanoseconds; at most that of the newest.
    pub generated_oldest_ns: u64,
    /// Generation time of the newest contribution, nanoseconds.
    pub generated_newest_ns: u64,
    /// Oldest model version a contributor computed on; at most the newest.
    pub version_oldest: u32,
    /// Newest model version a contributor computed on.
    pub version_newest: u32,
    /// Contributions in it, at least 1.
    pub contributors: u32,
    /// Switches passed.
    pub hops: u32,
    /// Their weights, summed; finite and above 0.
    pub weight: f64,
    /// Their mean reward by weight. One that is not finite is rejected by a queue.
    pub reward: f64,
    /// The last sender's count of what it sent in this flow (job, cluster, segment); 0: not counted.
    pub flow_sequence: u32,
    /// 0.
    pub reserved: u32,
}

/// An update as it comes to a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_arrival {
    /// Its header; `session` and `hop_sequence` play no part.
    pub update: olaf_update,
    /// Bytes it takes on the link.
    pub bytes: u32,
    /// The updates that met in it before, as `olaf_queue_contributors` told them where it left.
    /// Null where there are none: then it is its own worker's.
    pub contributors: *const olaf_contributor,
    /// How many.
    pub contributor_count: usize,
    /// Its lanes: the sum of the contributions' values times their weights, little-endian 32-bit
    /// floats at any alignment. May be null where there are none.
    pub lanes: *const u8,
    /// How many lanes, at most `OLAF_LANES_MAX`; 0 where only the queue is studied.
    pub lane_count: usize,
}

/// What became of an arrival.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum olaf_fate {
    /// It waits in a slot of its own.
    OLAF_FATE_APPENDED = 0,
    /// It was added to a waiting entry.
    OLAF_FATE_MERGED = 1,
    /// It took a waiting entry's place.
    OLAF_FATE_REPLACED = 2,
    /// Its reward is below a waiting entry's by more than the gate allows.
    OLAF_FATE_FILTERED = 3,
    /// No slot was free.
    OLAF_FATE_DROPPED = 4,
    /// It cannot be summed, or has passed too many switches.
    OLAF_FATE_REJECTED = 5,
    /// No slot was free, and it got that of a waiting entry whose departure would have helped
    /// less: of a `freshest` queue.
    OLAF_FATE_EVICTED = 6,
}

/// What became of an arrival, with particulars.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_outcome {
    /// What became of it.
    pub fate: olaf_fate,
    /// Why it was rejected, a number for `olaf_rejection_name`; 0 where it was not.
    pub rejection: u32,
    /// The entry it waits in or met; 0 where there is none.
    pub entry: u64,
    /// Contributions whose place it took: replaced, or with `OLAF_FATE_EVICTED` dropped; 0 where
    /// there were none.
    pub displaced: u32,
    /// With `OLAF_FATE_EVICTED`, the entry that is gone. Else 0.
    pub evicted: u64,
    /// Not 0 where the workers of its cluster may be told of it with a notice, as an engine of
    /// `olaf_scenario_notices` does: it came straight from its worker and was taken in.
    pub notify: u8,
}

/// An entry of a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_entry {
    /// Its name: never used again in its queue.
    pub id: u64,
    /// Its header as the next hop is to read it: this switch is counted in `hops`, and
    /// `hop_sequence` numbers it. Its `session` is 0.
    pub update: olaf_update,
    /// Bytes it takes on the link: the largest contribution's.
    pub bytes: u32,
    /// Not 0 where it is one worker's unmerged update, which a newer one of that worker replaces.
    pub replaceable: u8,
    /// Sum of the contributions' lanes, in this machine's floats; valid until the next call that
    /// changes the queue. Null where there are none.
    pub lanes: *const f32,
    /// How many lanes.
    pub lane_count: usize,
    /// Updates that met in it: how many `olaf_queue_contributors` has to say.
    pub contributors: usize,
}

/// What part an update has in one that it met.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum olaf_part {
    /// It is in the sum.
    OLAF_PART_SUMMED = 0,
    /// It was in it until another took its place.
    OLAF_PART_REPLACED = 1,
    /// It was held against it and filtered.
    OLAF_PART_FILTERED = 2,
}

/// A worker's update that met others on the way.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct olaf_contributor {
    /// Generation time of the newest contribution in it, nanoseconds.
    pub generated_ns: u64,
    /// Its worker.
    pub worker: u32,
    /// What part it has: a number of `olaf_part`.
    pub part: u32,
}

/// How a queue is set up. Begin with `olaf_queue_options_default`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct olaf_queue_options {
    /// A C string: the name of a queue discipline, such as `olaf` (OLAF §4) or `fifo`.
    pub kind: *const c_char,
    /// Updates it holds, the departing one included: 1 to 1048576.
    pub slots: usize,
    /// The reward gate's threshold, at least 0; not a number: off.
    pub gate: f64,
    /// A cluster is active if it was heard within this time, in nanoseconds (OLAF §5); above 0.
    pub active_ns: u64,
    /// Switches an update may have passed, this one included: 1 to 255.
    pub max_hops: u32,
}

/// State of a queue as answers carry it back (OLAF §5).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct olaf_queue_status {
    /// Clusters heard lately.
    pub active_clusters: u16,
    /// Updates the queue can hold.
    pub slots: u16,
    /// Updates it holds.
    pub used: u16,
    /// Switches that have looked at this status; 0: none wrote one.
    pub switches: u16,
    /// Time in which a queue of the path serves each active cluster once, microseconds: the longest
    /// of the path; 0: not known.
    pub round_us: u32,
}

/// Fates of contributions. At all times `received = sent_alone + merged + replaced + filtered +
/// dropped + rejected + waiting`. What begins with `packets_` counts datagrams, a merge as one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct olaf_fates {
    /// Contributions that came.
    pub received: u64,
    /// Left as they came.
    pub sent_alone: u64,
    /// Left in a merge with others.
    pub merged: u64,
    /// A newer or better one took their place.
    pub replaced: u64,
    /// Below the reward gate.
    pub filtered: u64,
    /// Found the queue full, or were discarded by the caller.
    pub dropped: u64,
    /// Turned away.
    pub rejected: u64,
    /// Still in the queue, the departing ones included.
    pub waiting: u64,
    /// Entries that left, whatever they held.
    pub departures: u64,
    /// Datagrams that came.
    pub packets_received: u64,
    /// Were added to a waiting one.
    pub packets_merged: u64,
    /// Took a waiting one's place.
    pub packets_replaced: u64,
    /// Below the reward gate.
    pub packets_filtered: u64,
    /// Found the queue full, lost their slot, or were discarded by the caller.
    pub packets_dropped: u64,
    /// Turned away.
    pub packets_rejected: u64,
}

impl olaf_update {
    pub(crate) fn of_wire(update: &Update) -> Self {
        let Update { address, .. } = update;
        Self {
            job: address.job.0,
            cluster: address.cluster.0,
            worker: address.worker.0,
            session: address.session.0,
            sequence: update.sequence,
            hop_sequence: update.hop_sequence,
            segment: update.segment,
            segments: update.segments,
            generated_oldest_ns: update.generated_oldest_ns,
            generated_newest_ns: update.generated_newest_ns,
            version_oldest: update.version_oldest,
            version_newest: update.version_newest,
            contributors: update.contributors,
            hops: u32::from(update.hops),
            weight: update.weight,
            reward: update.reward,
            flow_sequence: update.flow_sequence,
            reserved: 0,
        }
    }

    /// As the wire writes it; nothing where a field is outside what it may be.
    pub(crate) fn to_wire(self) -> Option<Update> {
        let ordered = self.generated_oldest_ns <= self.generated_newest_ns
            && self.version_oldest <= self.version_newest;
        let counted = self.segment < self.segments && self.contributors > 0;
        let weighed = self.weight.is_finite() && self.weight > 0.0;
        if !(ordered && counted && weighed) {
            return None;
        }
        Some(Update {
            address: Address {
                job: JobId(self.job),
                cluster: ClusterId(self.cluster),
                worker: WorkerId(self.worker),
                session: Session(self.session),
            },
            sequence: self.sequence,
            hop_sequence: self.hop_sequence,
            flow_sequence: self.flow_sequence,
            segment: self.segment,
            segments: self.segments,
            generated_oldest_ns: self.generated_oldest_ns,
            generated_newest_ns: self.generated_newest_ns,
            version_oldest: self.version_oldest,
            version_newest: self.version_newest,
            contributors: self.contributors,
            weight: self.weight,
            reward: self.reward,
            hops: u8::try_from(self.hops).ok()?,
        })
    }
}

impl olaf_contributor {
    /// The worker of an update that has met no other.
    pub(crate) fn of(update: &olaf_update) -> Self {
        let olaf_update { generated_newest_ns: generated_ns, worker, .. } = *update;
        Self { generated_ns, worker, part: olaf_part::OLAF_PART_SUMMED as u32 }
    }

    /// The same where it is no longer in the sum. What gave way before stays as it is.
    pub(crate) fn gone(self, why: olaf_part) -> Self {
        if self.is_summed() { Self { part: why as u32, ..self } } else { self }
    }

    pub(crate) fn is_summed(self) -> bool {
        self.part == olaf_part::OLAF_PART_SUMMED as u32
    }

    pub(crate) fn is_known(&self) -> bool {
        self.part <= olaf_part::OLAF_PART_FILTERED as u32
    }
}

impl olaf_entry {
    pub(crate) fn of(entry: &Entry, hop_sequence: u32, contributors: usize) -> Self {
        let hops = entry.contribution.hops.saturating_add(1);
        let passed = Contribution { hops, ..entry.contribution };
        Self {
            id: entry.id.0,
            update: olaf_update::of_wire(&passed.to_update(Session(0), hop_sequence, 0)),
            bytes: passed.bytes,
            replaceable: u8::from(entry.replaceable),
            lanes: if entry.lanes.is_empty() { core::ptr::null() } else { entry.lanes.as_ptr() },
            lane_count: entry.lanes.len(),
            contributors,
        }
    }
}

impl olaf_outcome {
    pub(crate) fn of(fate: Result<Outcome, Rejection>, straight_from_worker: bool) -> Self {
        use olaf_fate::*;
        let taken = fate.is_ok_and(|outcome| outcome != Outcome::Dropped);
        let notify = u8::from(taken && straight_from_worker);
        let plain = |fate| Self { fate, rejection: 0, entry: 0, displaced: 0, evicted: 0, notify };
        let outcome = match fate {
            Ok(outcome) => outcome,
            Err(rejection) => {
                let number = u32::try_from(rejection.index()).unwrap_or(u32::MAX);
                return Self { rejection: number, ..plain(OLAF_FATE_REJECTED) };
            }
        };
        match outcome {
            Outcome::Appended(entry) => Self { entry: entry.0, ..plain(OLAF_FATE_APPENDED) },
            Outcome::Merged(entry) => Self { entry: entry.0, ..plain(OLAF_FATE_MERGED) },
            Outcome::Replaced { entry, displaced } => {
                Self { entry: entry.0, displaced, ..plain(OLAF_FATE_REPLACED) }
            }
            Outcome::Filtered(entry) => Self { entry: entry.0, ..plain(OLAF_FATE_FILTERED) },
            Outcome::Dropped => plain(OLAF_FATE_DROPPED),
            Outcome::Evicted { entry, evicted, dropped, .. } => Self {
                entry: entry.0,
                displaced: dropped,
                evicted: evicted.0,
                ..plain(OLAF_FATE_EVICTED)
            },
            Outcome::Rejected(rejection) => Self::of(Err(rejection.into()), straight_from_worker),
        }
    }
}

impl olaf_queue_status {
    pub(crate) fn of_wire(status: QueueStatus) -> Self {
        Self {
            active_clusters: status.active_clusters,
            slots: status.slots,
            used: status.used,
            switches: u16::from(status.switches),
            round_us: status.round_us,
        }
    }

    pub(crate) fn to_wire(self) -> QueueStatus {
        QueueStatus {
            active_clusters: self.active_clusters,
            slots: self.slots,
            used: self.used,
            switches: u8::try_from(self.switches).unwrap_or(u8::MAX),
            round_us: self.round_us,
        }
    }
}
