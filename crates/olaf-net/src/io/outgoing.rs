//! What is on its way out: datagrams of one size and one traffic class to one peer leave together.

use crate::io::peers::{Peers, Place};
use crate::io::socket::{Batch, Socket};
use crate::io::statistics::IoStatistics;
use olaf_engine::{PeerId, Receivers, TrafficClass, Transmit};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::packet::is_probe;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Peers for which datagrams are collected side by side, so that what fans out to many workers
/// segment by segment still leaves in large sends.
const RUNS: usize = 16;
/// A run's bytes, and room to write the next datagram behind them.
const RUN_BYTES: usize = 2 * (1 << 16);
/// Segments one send may have, whatever the kernel says.
const MAX_SEGMENTS: usize = 64;

/// Where runs go: a socket, or a test's idea of one.
pub(crate) trait BatchSender {
    /// Datagrams of one size that one call may send.
    fn segments_per_send(&self) -> usize;
    /// Sends the batch.
    fn send(&self, batch: &Batch<'_>) -> io::Result<()>;
}

impl BatchSender for Socket {
    fn segments_per_send(&self) -> usize {
        Self::segments_per_send(self)
    }

    fn send(&self, batch: &Batch<'_>) -> io::Result<()> {
        Self::send(self, batch)
    }
}

/// A datagram that the system would not send.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: usize,
    /// It was only to find out whether it fits.
    pub(crate) is_probe: bool,
    pub(crate) error: io::Error,
}

impl Trouble {
    /// Returns true if the datagram is longer than the path takes.
    pub(crate) fn is_too_large(&self) -> bool {
        is(&self.error, Errno::MSGSIZE)
    }

    /// What happened and what to do about it.
    pub(crate) fn advice(&self) -> String {
        if self.is_too_large() {
            format!(
                "a datagram of {} bytes does not fit the path to {}: raise the path's MTU or set \
                 mtu_bytes (or segment_lanes) lower, the same for all workers of the job",
                self.bytes, self.to
            )
        } else {
            format!("cannot send to {}: {}", self.to, self.error)
        }
    }
}

/// The runs.
pub(crate) struct Outgoing {
    runs: Vec<Run>,
    /// The run last written to: the next datagram is written behind it.
    current: usize,
    /// What was written when the socket turned out to be full.
    parked: Option<Run>,
    /// A datagram for several receivers that has not been put into all their runs yet.
    group: Option<Group>,
    blocked: bool,
    opened: u64,
    trouble: Option<Trouble>,
}

/// One datagram, and the receivers that it was not sent to yet.
struct Group {
    bytes: Vec<u8>,
    class: TrafficClass,
    to: Arc<[PeerId]>,
    next: usize,
}

/// Where a run goes, and its traffic class.
#[derive(Clone, Copy)]
struct Flow {
    peer: PeerId,
    place: Place,
    class: TrafficClass,
}

/// Datagrams of one size, but for the last, and of one traffic class, to one peer.
///
/// A peer has at most one run. A datagram of another class sends the run on its way first, so
/// that a peer's datagrams leave in the order in which they were written.
#[derive(Default)]
struct Run {
    flow: Option<Flow>,
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    segment: usize,
    count: usize,
    /// A shorter datagram ends a run.
    ended: bool,
    opened: u64,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        let mut runs: Vec<Run> = (0..RUNS).map(|_| Run::default()).collect();
        runs[0].bytes.resize(RUN_BYTES, 0);
        Self {
            runs,
            current: 0,
            parked: None,
            group: None,
            blocked: false,
            opened: 0,
            trouble: None,
        }
    }

    /// Returns true if the socket is full: nothing more is taken before [`Outgoing::flush`]
    /// succeeds.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The newest trouble not yet told.
    pub(crate) fn poll_trouble(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    /// Takes the datagram that `write` writes; false when it writes none or the socket is full.
    pub(crate) fn take(
        &mut self,
        sender: &impl BatchSender,
        peers: &Peers,
        statistics: &mut IoStatistics,
        write: impl FnOnce(&mut [u8]) -> Option<Transmit>,
    ) -> bool {
        // A group goes first, to its last receiver: `write` is called only where its message is
        // taken.
        while self.has_room(sender, statistics) {
            if self.group.is_none() {
                return self.take_written(sender, peers, statistics, write);
            }
            self.take_next_of_group(sender, peers, statistics);
        }
        false
    }

    /// Returns true if another message can be written behind the current run.
    fn has_room(&mut self, sender: &impl BatchSender, statistics: &mut IoStatistics) -> bool {
        let limit = sender.segments_per_send().min(MAX_SEGMENTS);
        let full = self.runs[self.current].is_full(limit);
        !self.blocked && (!full || self.send(sender, statistics, self.current))
    }

    fn take_written(
        &mut self,
        sender: &impl BatchSender,
        peers: &Peers,
        statistics: &mut IoStatistics,
        write: impl FnOnce(&mut [u8]) -> Option<Transmit>,
    ) -> bool {
        let run = &mut self.runs[self.current];
        let Some(transmit) = write(&mut run.bytes[run.len..]) else { return false };
        let Transmit { to, len, class } = transmit;
        match to {
            Receivers::One(peer) => self.put(sender, peers, statistics, (peer, class, len)),
            Receivers::Many(to) => {
                let first = match 2 * len > MAX_DATAGRAM && self.is_empty() {
                    true => self.send_to_each(sender, peers, statistics, &to, (class, len)),
                    false => 0,
                };
                if first < to.len() {
                    let run = &self.runs[self.current];
                    let bytes = run.bytes[run.len..run.len + len].to_vec();
                    self.group = Some(Group { bytes, class, to, next: first });
                }
            }
        }
        true
    }

    /// Sends the datagram that was written into the current run, which is empty, to one receiver
    /// after the other: it is too long to share a send with another, so that a copy for each of them
    /// would win nothing. Returns the number of receivers before the socket was full.
    fn send_to_each(
        &mut self,
        sender: &impl BatchSender,
        peers: &Peers,
        statistics: &mut IoStatistics,
        to: &[PeerId],
        (class, len): (TrafficClass, usize),
    ) -> usize {
        for (at, peer) in to.iter().enumerate() {
            let Some(place) = peers.place(*peer) else {
                statistics.unroutable += 1;
                continue;
            };
            self.opened += 1;
            let run = &mut self.runs[self.current];
            run.open(Flow { peer: *peer, place, class }, len, self.opened);
            if !self.send(sender, statistics, self.current) {
                // The group has it from here on, and begins with this receiver.
                let run = &mut self.runs[self.current];
                (run.count, run.len) = (0, 0);
                return at;
            }
        }
        to.len()
    }

    /// Puts the group's datagram into the run of its next receiver.
    fn take_next_of_group(
        &mut self,
        sender: &impl BatchSender,
        peers: &Peers,
        statistics: &mut IoStatistics,
    ) {
        let Some(mut group) = self.group.take() else { return };
        if let Some(peer) = group.to.get(group.next).copied() {
            let run = &mut self.runs[self.current];
            let len = group.bytes.len();
            run.bytes[run.len..run.len + len].copy_from_slice(&group.bytes);
            group.next += 1;
            self.put(sender, peers, statistics, (peer, group.class, len));
        }
        self.group = Some(group).filter(|group| group.next < group.to.len());
    }

    /// Puts the datagram of `len` bytes that was written behind the current run into a run of `peer`
    /// in the traffic class `class`.
    fn put(
        &mut self,
        sender: &impl BatchSender,
        peers: &Peers,
        statistics: &mut IoStatistics,
        (peer, class, len): (PeerId, TrafficClass, usize),
    ) {
        let limit = sender.segments_per_send().min(MAX_SEGMENTS);
        let run = &mut self.runs[self.current];
        let Some(place) = peers.place(peer) else {
            statistics.unroutable += 1;
            return;
        };
        let flow = Flow { peer, place, class };
        self.opened += 1;
        let opened = self.opened;
        if run.count == 0 {
            run.open(flow, len, opened);
            return;
        }
        if run.takes(&flow, len, limit) {
            run.extend(len);
            return;
        }
        self.move_on(sender, statistics, flow, len, limit);
    }

    /// Sends all there is; false when the socket is full.
    pub(crate) fn flush(
        &mut self,
        sender: &impl BatchSender,
        statistics: &mut IoStatistics,
    ) -> bool {
        self.blocked = false;
        while let Some(oldest) = self.oldest() {
            if !self.send(sender, statistics, oldest) {
                return false;
            }
        }
        if let Some(mut parked) = self.parked.take()
            && !send_run(&mut parked, sender, statistics, &mut self.trouble)
        {
            self.parked = Some(parked);
            self.blocked = true;
            return false;
        }
        true
    }

    /// Returns true if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_none() && self.group.is_none() && self.runs.iter().all(|run| run.count == 0)
    }

    /// The datagram behind the current run belongs into another.
    fn move_on(
        &mut self,
        sender: &impl BatchSender,
        statistics: &mut IoStatistics,
        to: Flow,
        len: usize,
        limit: usize,
    ) {
        let from = self.current;
        let known = self.runs.iter().position(|run| run.count > 0 && run.is_for(to.peer));
        let target = known
            .or_else(|| self.runs.iter().position(|run| run.count == 0))
            .unwrap_or_else(|| self.oldest().expect("no run is empty"));
        let appends = self.runs[target].count > 0 && self.runs[target].takes(&to, len, limit);
        let tail = self.runs[from].len;
        if !appends && self.runs[target].count > 0 && !self.send(sender, statistics, target) {
            let mut parked =
                Run { bytes: self.runs[from].bytes[tail..tail + len].to_vec(), ..Run::default() };
            parked.open(to, len, self.opened);
            self.parked = Some(parked);
            return;
        }
        if target == from {
            self.runs[from].bytes.copy_within(tail..tail + len, 0);
        } else {
            let [source, target] = self
                .runs
                .get_disjoint_mut([from, target])
                .expect("the two were just seen to differ");
            if target.bytes.is_empty() {
                target.bytes.resize(RUN_BYTES, 0);
            }
            let at = if appends { target.len } else { 0 };
            target.bytes[at..at + len].copy_from_slice(&source.bytes[tail..tail + len]);
        }
        let opened = self.opened;
        if appends {
            self.runs[target].extend(len);
        } else {
            self.runs[target].open(to, len, opened);
        }
        self.current = target;
    }

    fn oldest(&self) -> Option<usize> {
        let open = self.runs.iter().enumerate().filter(|(_, run)| run.count > 0);
        open.min_by_key(|(_, run)| run.opened).map(|(index, _)| index)
    }

    fn send(
        &mut self,
        sender: &impl BatchSender,
        statistics: &mut IoStatistics,
        index: usize,
    ) -> bool {
        let sent = send_run(&mut self.runs[index], sender, statistics, &mut self.trouble);
        self.blocked |= !sent;
        sent
    }
}

impl Run {
    fn open(&mut self, flow: Flow, len: usize, opened: u64) {
        self.flow = Some(flow);
        (self.start, self.len, self.segment, self.count) = (0, len, len, 1);
        // A router between virtual machines gets a run whole, and drops it whole where its first datagram
        // is too long. What comes after a probe must arrive even then.
        (self.ended, self.opened) = (is_probe(&self.bytes[..len]), opened);
    }

    fn extend(&mut self, len: usize) {
        self.len += len;
        self.count += 1;
        self.ended = len < self.segment;
    }

    fn is_for(&self, peer: PeerId) -> bool {
        self.flow.is_some_and(|flow| flow.peer == peer)
    }

    /// Returns true if a datagram of `len` bytes in that flow may leave with what is here.
    fn takes(&self, flow: &Flow, len: usize, limit: usize) -> bool {
        self.is_for(flow.peer)
            && self.flow.is_some_and(|own| own.class == flow.class)
            && self.fits(len, limit)
    }

    fn fits(&self, len: usize, limit: usize) -> bool {
        // An empty datagram has no size to split at.
        !self.ended
            && len > 0
            && len <= self.segment
            && self.count < limit
            && self.len + len <= MAX_DATAGRAM
    }

    /// Returns true if it cannot take another like its first.
    fn is_full(&self, limit: usize) -> bool {
        self.count > 0 && !self.fits(self.segment, limit)
    }

    fn sent(&mut self, count: usize) {
        self.start = self.len.min(self.start + count * self.segment);
        self.count -= count;
        if self.count == 0 {
            (self.start, self.len) = (0, 0);
        }
    }
}

/// Sends a run; false when the socket is full, and what is left of the run then stays.
fn send_run(
    run: &mut Run,
    sender: &impl BatchSender,
    statistics: &mut IoStatistics,
    trouble: &mut Option<Trouble>,
) -> bool {
    let Some(Flow { place, class, .. }) = run.flow else { return true };
    let mut one_by_one = false;
    let mut refusals = 0;
    // A router that has no room for an earlier datagram says so at the next send, which it does not concern.
    let mut was_too_large = false;
    while run.count > 0 {
        let (count, end) = if one_by_one {
            (1, run.len.min(run.start + run.segment))
        } else {
            (run.count, run.len)
        };
        let bytes = &run.bytes[run.start..end];
        statistics.send_calls += 1;
        let batch = Batch {
            to: place.address,
            from: place.reply_from,
            class,
            contents: bytes,
            segment: run.segment,
        };
        match sender.send(&batch) {
            Ok(()) => {
                statistics.sent_datagrams += count as u64;
                statistics.sent_bytes += bytes.len() as u64;
                run.sent(count);
                was_too_large = false;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                statistics.send_waits += 1;
                return false;
            }
            // The answer to something sent earlier: this one has not been tried yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && refusals < 2 => {
                statistics.connection_refused += 1;
                refusals += 1;
            }
            // No offload for this path, or a segment that is too large: the rest may still pass.
            Err(error)
                if count > 1
                    && [Errno::IO, Errno::INVAL, Errno::MSGSIZE].iter().any(|e| is(&error, *e)) =>
            {
                one_by_one = true;
                was_too_large = is(&error, Errno::MSGSIZE);
            }
            Err(error) if is(&error, Errno::MSGSIZE) && !was_too_large => was_too_large = true,
            Err(error) => {
                was_too_large = false;
                let is_probe = is_probe(bytes);
                let bytes = bytes.len() / count;
                let lost = Trouble { to: place.address, bytes, is_probe, error };
                if is_probe && lost.is_too_large() {
                    statistics.probes_too_large += count as u64;
                } else {
                    statistics.send_errors += count as u64;
                    statistics.too_large += if lost.is_too_large() { count as u64 } else { 0 };
                }
                *trouble = Some(lost);
                run.sent(count);
            }
        }
    }
    true
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
