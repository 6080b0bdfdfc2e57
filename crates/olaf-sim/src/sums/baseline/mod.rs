//! What the protocols are compared with: parameter servers and a ring, over the same links.
//!
//! Their datagrams are as long as those of the protocols, and the window of each [`stream`](Stream) is that of `reduce`:
//! it follows losses, marks and the round trip. A receiver acknowledges every eighth datagram, so that
//! acknowledgements take 1 % of a link. Losses are found by datagrams that were sent later, as in QUIC.

mod ps;
mod ring;
mod stream;

pub(super) use ps::{PsServer, PsWorker};
pub(super) use ring::RingWorker;
pub(super) use stream::StreamConfig;

use super::party::Worked;
use olaf_engine::{Instant, PeerId, Transmit};
use olaf_host::collective::{Done, Operation, OperationId, Standing, Sum};
use stream::Stream;

/// What the workers of the baselines share: streams to their peers, and operations that have ended.
#[derive(Debug)]
struct Ends {
    rank: u32,
    workers: u32,
    standing: Standing,
    streams: Vec<Stream>,
    begun: u64,
    done: Vec<Done>,
}

impl Ends {
    fn new(rank: u32, workers: u32, peers: &[PeerId], config: StreamConfig) -> Self {
        let streams = peers.iter().map(|peer| Stream::new(*peer, config)).collect();
        Self { rank, workers, standing: Standing::Left, streams, begun: 0, done: Vec::new() }
    }

    /// A baseline has no membership: a worker is in at once.
    fn join(&mut self) {
        let Self { rank, workers, .. } = *self;
        self.standing = Standing::In { generation: 0, rank, workers };
    }

    fn next_operation(&mut self) -> OperationId {
        self.begun += 1;
        OperationId(self.begun - 1)
    }

    fn end(&mut self, now: Instant, began: Instant, id: OperationId, operation: Operation) {
        let sum = Sum { contributors: self.workers, expected: self.workers, not_finite: false };
        let buffer = operation.buffer;
        self.done.push(Done { id, outcome: Ok(sum), buffer, took: now.since(began) });
    }

    fn poll_done(&mut self) -> Option<Done> {
        if self.done.is_empty() { None } else { Some(self.done.remove(0)) }
    }

    /// Streams take turns, so that none of them waits for another one.
    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        poll_streams(&mut self.streams, now, buf)
    }

    fn timeout(&self) -> Option<Instant> {
        self.streams.iter().filter_map(Stream::timeout).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.streams.iter_mut().for_each(|stream| stream.handle_timeout(now));
    }

    fn counts(&self) -> Worked {
        let mut all = Worked::default();
        for stream in &self.streams {
            all.sent += stream.sent();
            all.resent += stream.resent();
        }
        all
    }
}

/// The next datagram of any stream. The stream that has sent the fewest comes first.
fn poll_streams(streams: &mut [Stream], now: Instant, buf: &mut [u8]) -> Option<Transmit> {
    if let Some(at) = streams.iter().position(|stream| stream.owes_answer(now)) {
        return streams[at].poll_transmit(now, buf);
    }
    let ready = (0..streams.len()).filter(|at| streams[*at].may_send());
    let first = ready.min_by_key(|at| streams[*at].sent())?;
    streams[first].poll_transmit(now, buf)
}

/// Lanes of the part with that number, where `lanes` are divided into `parts` parts.
fn part(lanes: usize, parts: usize, number: usize) -> core::ops::Range<usize> {
    lanes * number / parts..lanes * (number + 1) / parts
}

/// Adds lanes of f32 to others.
fn add(sum: &mut [u8], lanes: &[u8]) {
    let (sum, _) = sum.as_chunks_mut();
    let (lanes, _) = lanes.as_chunks();
    for (sum, lane) in sum.iter_mut().zip(lanes) {
        *sum = (f32::from_le_bytes(*sum) + f32::from_le_bytes(*lane)).to_le_bytes();
    }
}
