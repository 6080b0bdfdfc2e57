//! A worker's end of `reduce`: all workers of a job sum their arrays through a switch.
//!
//! Every call may come from any thread. A thread that waits for an operation receives datagrams
//! itself, so that a small operation costs no hop between threads.
//!
//! A switch with several cores has an engine for each, on ports that follow each other. A worker of a
//! fixed job has a connection to each, and divides its operations among them. All workers do so in
//! the first generation alone: the parts of an operation have their places in it at every core, or
//! the operation is not divided. From the next generation on, the job goes on with the first core.

mod channel;
mod config;
mod error;
mod operations;

pub use config::{Protocol, SumConfig};
pub use error::{SumError, SumFailure};

use crate::clock::deadline;
use crate::error::{ClientError, StartError};
use crate::roles::port_of;
use crate::watch::{Setting, Watch};
use channel::{Channel, Seat};
use olaf_host::collective::{Commit, Done, Operation, OperationId, Sum};
use olaf_wire::reduce::{MAX_CORES, MAX_RANKS};
use operations::{Ended, Slot, Told};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time in which a worker that leaves says so.
const LEAVE_PATIENCE: Duration = Duration::from_millis(300);
/// An operation is divided among cores in parts of at least this many bytes: a smaller one ends
/// sooner on one core.
const LEAST_PART: usize = 64 << 10;
/// Parts begin at multiples of this many bytes, which have whole lanes of every type.
const LINE: usize = 64;

/// A worker that reduces.
pub struct SumClient {
    first: Channel,
    watch: Option<Watch>,
    /// To the other cores of the switch, whose number is known once the worker is in the job.
    others: OnceLock<Others>,
    job: u32,
    workers: Option<u32>,
    config: SumConfig,
    told: Arc<Told>,
    /// The rank and the number of workers in the newest generation.
    last: Mutex<Option<(u32, u32)>>,
    next_id: AtomicU64,
    /// The parts of one operation begin before those of the next, and one thread connects.
    order: Mutex<()>,
}

/// The connections to the cores of a switch other than the first.
struct Others {
    /// The generation at the first core whose operations are divided.
    generation: u32,
    channels: Vec<Channel>,
}

/// A join under way.
#[derive(Debug)]
pub struct SumJoining {
    since: Instant,
    refused_before: u64,
}

/// An operation that has begun.
#[derive(Debug)]
pub struct Pending {
    id: u64,
    /// The operation's part at each connection, in order.
    parts: Vec<OperationId>,
    slot: Arc<Slot>,
    refused_before: u64,
}

impl Pending {
    /// Names the operation among those of its client.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns true if it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.slot.has_ended()
    }
}

impl SumClient {
    /// Opens the socket and starts the thread; sends nothing yet. `workers`: workers of the job;
    /// none: any number, which may change. `rank`: the wanted rank; none: any that is free.
    ///
    /// # Errors
    /// [`StartError::Config`] for an address or a key that cannot be used.
    pub fn open(
        switch: &str,
        job: u32,
        workers: Option<u32>,
        rank: Option<u32>,
        config: &SumConfig,
    ) -> Result<Self, StartError> {
        check("workers", workers, 1..=MAX_RANKS)?;
        check("rank", rank, 0..=workers.unwrap_or(MAX_RANKS) - 1)?;
        if config.fall_back.is_some() {
            if workers.is_none() {
                let text = "fall_back needs the number of workers: in an elastic job the second switch \
                            cannot know for whom to wait";
                return Err(StartError::Config(text.into()));
            }
            if config.protocol != Protocol::Reduce {
                let name = config.protocol.name();
                let text = format!("protocol = {name}: only reduce has a fall_back");
                return Err(StartError::Config(text));
            }
            if config.cores.is_some_and(|cores| cores > 1) {
                let text = "cores: with fall_back a worker uses one core";
                return Err(StartError::Config(text.into()));
            }
        }
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        let first = Channel::open(switch, job, workers, rank, config)?;
        if let Some(watch) = &watch {
            watch.start(first.source())?;
        }
        Ok(Self {
            first,
            watch,
            others: OnceLock::new(),
            job,
            workers,
            config: config.clone(),
            told: Arc::new(Told::default()),
            last: Mutex::new(None),
            next_id: AtomicU64::new(0),
            order: Mutex::new(()),
        })
    }

    /// The address it sends from; to the first core where there are several.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.first.local
    }

    /// The address that it serves metrics on, if it does: those of the connection to the first core.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// The time limit of an operation that has none of its own.
    #[must_use]
    pub const fn operation_timeout(&self) -> Duration {
        self.config.operation_timeout
    }

    /// Asks to be let in, and returns at once.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn start_join(&self) -> Result<SumJoining, ClientError> {
        self.first.start_join()
    }

    /// Waits until the worker is in its job, or is turned away; none while that is open.
    pub fn await_join(&self, timeout: Duration) -> Option<Result<(), ClientError>> {
        let deadline = deadline(timeout);
        let seat = match self.first.await_join(deadline)? {
            Ok(seat) => {
                // The rule which results all workers hold counts the blocks of one core.
                let one = self.config.fall_back.as_ref().map(|_| 1);
                let most = one.or(self.config.cores).unwrap_or(MAX_CORES);
                Seat { cores: seat.cores.min(most), ..seat }
            }
            Err(error) => return Some(Err(error)),
        };
        if let Err(error) = self.connect_others(&seat) {
            return Some(Err(error));
        }
        // A new generation has one core: nobody waits for the others any more.
        let others = if seat.cores > 1 { self.others() } else { &[] };
        for other in others {
            if let Err(error) = other.await_join(deadline)? {
                return Some(Err(error));
            }
        }
        *self.last() = Some((seat.rank, seat.workers));
        Some(Ok(()))
    }

    /// Joins at the switch's other cores, once.
    fn connect_others(&self, seat: &Seat) -> Result<(), ClientError> {
        let _order = self.order();
        if self.others.get().is_some() {
            return Ok(());
        }
        let mut channels = Vec::new();
        for core in 1..seat.cores {
            let failed = |error: StartError| ClientError::Failed(error.to_string());
            let address = port_of(self.first.place().switch, core).map_err(failed)?;
            // The same rank as at the first core: a broadcast has one root.
            let (address, rank) = (address.to_string(), Some(seat.rank));
            let other = Channel::open(&address, self.job, self.workers, rank, &self.config);
            let other = other.map_err(failed)?;
            other.start_join()?;
            channels.push(other);
        }
        let others = Others { generation: seat.generation, channels };
        self.others.set(others).ok().expect("set here alone, under a lock");
        Ok(())
    }

    /// Why nothing has come of the join so far.
    #[must_use]
    pub fn why_not_in(&self, joining: &SumJoining) -> SumError {
        let missing = self.channels().find(|channel| channel.seat().is_none());
        missing.unwrap_or(&self.first).why_not_in(joining)
    }

    /// The rank and the number of workers in the newest generation; none before the first.
    #[must_use]
    pub fn place_in_job(&self) -> Option<(u32, u32)> {
        let seat = self.first.seat();
        let mut last = self.last();
        *last = seat.or(*last);
        *last
    }

    /// Begins an operation on that many bytes, which ends with an error after `timeout`. `part` gives
    /// the operation on a range of the bytes, all ranges with the same type and reduction. Whoever
    /// begins it without waiting for it calls [`Self::go_on`] then.
    ///
    /// # Errors
    /// [`SumError`] where it cannot begin.
    pub fn begin(
        &self,
        bytes: usize,
        mut part: impl FnMut(Range<usize>) -> Operation,
        timeout: Duration,
    ) -> Result<Pending, SumError> {
        let _order = self.order();
        if let Some(others) = self.others.get().filter(|others| !others.channels.is_empty()) {
            let parts = divided(bytes, 1 + others.channels.len());
            let generation = (parts.len() > 1).then_some(others.generation);
            let parts = parts.into_iter().map(&mut part).collect();
            if let Some(begun) = self.begin_parts(parts, timeout, generation) {
                return begun;
            }
        }
        let whole = self.begin_parts(vec![part(0..bytes)], timeout, None);
        whole.expect("without a generation it begins or fails")
    }

    /// Begins the parts, each at its core. None where the first has no place in that generation.
    fn begin_parts(
        &self,
        parts: Vec<Operation>,
        timeout: Duration,
        generation: Option<u32>,
    ) -> Option<Result<Pending, SumError>> {
        let refused_before = self.first.connections_refused();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::new(id, parts.len()));
        let mut begun = Vec::with_capacity(parts.len());
        for (part, (channel, operation)) in self.channels().zip(parts).enumerate() {
            let generation = generation.filter(|_| part == 0);
            match channel.begin(operation, timeout, (&slot, part), generation)? {
                Ok(id) => begun.push(id),
                Err(failure) => {
                    self.channels().zip(begun).for_each(|(channel, id)| channel.give_up(id));
                    return Some(Err(channel.error(failure, Duration::ZERO, false)));
                }
            }
            if part > 0 {
                // The caller receives from the first core alone.
                channel.go_on();
            }
        }
        Some(Ok(Pending { id, parts: begun, slot, refused_before }))
    }

    /// Sends a vector for the first pipelined sum that is open (iSwitch §4.1). `began`: sums in the weights that the
    /// vector was computed with. `bound`: most sums that may have come since.
    ///
    /// # Errors
    /// [`SumError`] where it cannot be sent.
    pub fn contribute(&self, began: u64, bound: u64, vector: Vec<u8>) -> Result<Commit, SumError> {
        let commit = self.first.contribute((began, bound), vector);
        commit.map_err(|failure| self.first.error(failure, Duration::ZERO, false))
    }

    /// This worker takes part in pipelined sums no more: those without a result fail at all workers.
    pub fn end_pipeline(&self) {
        self.first.end_pipeline();
    }

    /// Nobody waits for the operations that have begun: the client's own thread sees to them.
    pub fn go_on(&self) {
        self.first.go_on();
    }

    /// Waits for the end of an operation; whether it has come. This thread receives meanwhile, where
    /// no other one does.
    #[must_use]
    pub fn wait(&self, pending: &Pending, timeout: Duration) -> bool {
        if pending.has_ended() {
            return true;
        }
        let deadline = deadline(timeout);
        if self.first.receive(&pending.slot, 0, deadline) == Some(false) {
            return false;
        }
        let is_over = pending.slot.wait(deadline);
        if is_over && !pending.has_ended() {
            let _ = self.settle(pending);
            return pending.slot.wait_for_all(deadline);
        }
        is_over
    }

    /// Returns true if an operation has ended. If a part of it has failed, the others end, too.
    #[must_use]
    pub fn settle(&self, pending: &Pending) -> bool {
        if !pending.has_ended() && pending.slot.has_failed() {
            self.give_up(pending);
        }
        pending.has_ended()
    }

    /// How an operation that has ended did end: once.
    ///
    /// # Errors
    /// [`SumError`] says what went wrong.
    pub fn outcome(&self, pending: &Pending) -> Option<Result<Sum, SumError>> {
        let Ended { parts, failed } = pending.slot.take()?;
        // The part that failed first has the reason: the others were given up.
        if let Some((failed, channel)) = failed.and_then(|at| Some((at, self.channels().nth(at)?)))
            && let Done { outcome: Err(failure), took, .. } = parts[failed]
        {
            let refused = channel.connections_refused() > pending.refused_before;
            return Some(Err(channel.error_of(failure, took, refused, parts.len() == 1)));
        }
        let sums = parts.into_iter().filter_map(|done| done.outcome.ok());
        sums.reduce(together).map(Ok)
    }

    /// Gives an operation up: it ends now, with an error.
    pub fn give_up(&self, pending: &Pending) {
        let parts = self.channels().zip(&pending.parts);
        parts.for_each(|(channel, id)| channel.give_up(*id));
    }

    /// Tells the end of this operation through [`Self::next_told`]; whether it is still open.
    pub fn tell(&self, pending: &Pending) -> bool {
        pending.slot.tell(&self.told)
    }

    /// The next operation to be told of that has ended; none at the deadline, and when the client is
    /// closed.
    #[must_use]
    pub fn next_told(&self, timeout: Duration) -> Option<u64> {
        self.told.next(timeout)
    }

    /// Returns true if nothing will be told any more.
    #[must_use]
    pub fn has_told_all(&self) -> bool {
        self.told.is_closed()
    }

    /// Everything counted so far, as JSON: of the connection to the first core, and of the others in
    /// a list.
    #[must_use]
    pub fn statistics(&self) -> String {
        let mut value = self.first.statistics();
        let others: Vec<_> = self.others().iter().map(Channel::statistics).collect();
        value["cores"] = (1 + others.len()).into();
        if !others.is_empty() {
            value["other_cores"] = others.into();
        }
        value.to_string()
    }

    /// What happened since the last call, a JSON object each. Where there are several cores, an event
    /// names its core.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn events(&self) -> Result<Vec<String>, ClientError> {
        let mut all = Vec::new();
        for (core, channel) in self.channels().enumerate() {
            let events = channel.events()?.into_iter().map(|mut event| {
                if !self.others().is_empty() {
                    event["core"] = core.into();
                }
                event.to_string()
            });
            all.extend(events);
        }
        Ok(all)
    }

    /// Begins a last operation, if other workers may still lack a result of this one: only with a second switch. Whoever
    /// waits for it before [`Self::leave`] leaves nobody behind. It ends by itself after 15 s, or twice that
    /// where the job moves meanwhile.
    pub fn say_farewell(&self) -> Option<Pending> {
        let _order = self.order();
        let refused_before = self.first.connections_refused();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::new(id, 1));
        let part = self.first.say_farewell(&slot)?;
        Some(Pending { id, parts: vec![part], slot, refused_before })
    }

    /// Waits until this worker goes on through its second switch. Returns what to tell people then; none at the deadline,
    /// and when it never will.
    #[must_use]
    pub fn await_move(&self, timeout: Duration) -> Option<String> {
        self.first.await_move(timeout)
    }

    /// Returns true if there is no move to wait for: it is over, or there is no second switch, or the client is closed.
    #[must_use]
    pub fn is_where_it_stays(&self) -> bool {
        self.first.is_where_it_stays()
    }

    /// Leaves the job and stops the thread; nothing when that was done before. Open
    /// operations fail.
    pub fn leave(&self) {
        self.watch.iter().for_each(Watch::stop);
        // All at once: each may take its time.
        self.channels().for_each(Channel::say_goodbye);
        let were_open = self.channels().map(Channel::close).fold(false, |any, one| any | one);
        if were_open {
            self.told.close();
        }
    }

    fn others(&self) -> &[Channel] {
        self.others.get().map_or(&[], |others| &others.channels)
    }

    /// By core.
    fn channels(&self) -> impl Iterator<Item = &Channel> {
        core::iter::once(&self.first).chain(self.others())
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> MutexGuard<'_, Option<(u32, u32)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SumClient {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What is known of a sum, from what is known of two parts.
fn together(one: Sum, other: Sum) -> Sum {
    let fewer = if other.contributors < one.contributors { other } else { one };
    Sum { not_finite: one.not_finite || other.not_finite, ..fewer }
}

/// Parts of about the same size, for at most that many cores. The same at every worker.
fn divided(bytes: usize, cores: usize) -> Vec<Range<usize>> {
    let parts = (bytes / LEAST_PART).clamp(1, cores);
    let each = bytes.div_ceil(parts).next_multiple_of(LINE);
    (0..parts).map(|part| (part * each).min(bytes)..((part + 1) * each).min(bytes)).collect()
}

fn check(
    key: &str,
    value: Option<u32>,
    allowed: std::ops::RangeInclusive<u32>,
) -> Result<(), StartError> {
    match value.filter(|value| !allowed.contains(value)) {
        Some(value) => Err(StartError::Config(format!(
            "{key} = {value}: must be from {} to {}",
            allowed.start(),
            allowed.end()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_bytes_and_begin_at_lines() {
        for bytes in [0, 1, 63, LEAST_PART, 2 * LEAST_PART - 1, 2 * LEAST_PART, 1_000_003 * 8] {
            for cores in 1..9 {
                let parts = divided(bytes, cores);
                assert_eq!(parts.len(), (bytes / LEAST_PART).clamp(1, cores));
                assert!(parts.iter().all(|part| part.start % LINE == 0));
                let ends = parts.iter().map(|part| part.end);
                let starts = parts.iter().map(|part| part.start).skip(1).chain([bytes]);
                assert!(ends.eq(starts), "{bytes} bytes on {cores} cores: {parts:?}");
                let shortest = parts.iter().map(ExactSizeIterator::len).min();
                assert!(parts.len() == 1 || shortest > Some(LEAST_PART / 2), "{parts:?}");
            }
        }
    }
}
