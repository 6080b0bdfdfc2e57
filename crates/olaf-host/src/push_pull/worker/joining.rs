//! How a worker gets in: joins, repeated by the measured round trip, and the model it offers to a
//! job that has none.

use super::{Standing, Worker};
use crate::push_pull::round_trip::RoundTrip;
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_engine::party::{Allowance, Bucket, Shape};
use olaf_wire::offsets::{LANE, SEGMENT_HEADER};
use olaf_wire::{Ages, Answer, Ends, Join, JoinPath, QueueStatus, Welcome};

/// A join without an answer is repeated after this long while no round trip is known, then after
/// twice as long, and so on up to the keepalive: a slow uplink is not to be filled with joins.
const FIRST_RETRY: Duration = Duration::from_millis(20);
/// Joins whose answer is still awaited; of more the older ones say nothing of the path any more.
const REMEMBERED: usize = 64;
/// First window of an offered model: segments sent before the worker asks the server which it
/// lacks. A window whose segments all arrived doubles the next; any other window halves it.
const OFFER_WINDOW: u32 = 64;
/// Joins that leave at once because an answer asks for it, beyond which the next one waits: whatever a switch
/// answers, it draws 200 in a second. A path that is shorter than 5 ms could bring as many windows of an
/// offered model; its windows are longer by then.
const AT_ONCE: Allowance = Allowance { burst: 64, every: Duration::from_millis(5) };

/// Segments that a worker offers: its whole model four times, and then half of it in a second. A job wants
/// each segment once, and again what was lost.
fn offers(segments: u32) -> Allowance {
    let burst = segments.saturating_mul(4).saturating_add(4 * OFFER_WINDOW);
    Allowance { burst, every: Duration::from_secs(1) / (segments / 2).saturating_add(OFFER_WINDOW) }
}

/// Most bytes of a window, about; a window of `OFFER_WINDOW` segments may have more.
const OFFER_BYTES: usize = 1 << 20;

/// Joins on their way, and what their answers tell of the path.
#[derive(Debug)]
pub(super) struct Joins {
    pub(super) round_trip: RoundTrip,
    /// How long to wait for the answer to the next join.
    retry: Duration,
    /// Sending times of the joins whose answers are awaited, as the joins state them.
    on_the_way: VecDeque<u64>,
    /// The last joins, answered or not. What says that it answers none of them is not believed.
    asked: VecDeque<Asked>,
    /// The newest of them. Each join has a time of its own, so that an answer names one join.
    newest: u64,
    pub(super) sent: u64,
    /// Joins that left at once.
    at_once: Bucket,
    /// Segments that were offered.
    offered: Bucket,
}

/// A question that was put by a join.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sent_at_ns: u64,
    /// The highest version that anything was heard of by then.
    version_seen: u32,
}

impl Joins {
    pub(super) fn new() -> Self {
        Self {
            round_trip: RoundTrip::default(),
            retry: FIRST_RETRY,
            on_the_way: VecDeque::new(),
            asked: VecDeque::new(),
            newest: 0,
            sent: 0,
            at_once: Bucket::default(),
            offered: Bucket::default(),
        }
    }

    /// The time that a join sent now carries. A version was heard of by then.
    pub(super) fn send(&mut self, now: Instant, version_seen: u32) -> u64 {
        self.newest = now.0.max(self.newest + 1);
        if self.on_the_way.len() == REMEMBERED {
            self.on_the_way.pop_front();
        }
        self.on_the_way.push_back(self.newest);
        if self.asked.len() == REMEMBERED {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { sent_at_ns: self.newest, version_seen });
        self.sent += 1;
        self.newest
    }

    /// How long to wait before the next one; twice as long after each join without an answer, but
    /// no longer than the keepalive, by which others know that the worker lives.
    fn next_after(&mut self, keepalive: Duration) -> Duration {
        let wait = self.retry.min(keepalive);
        self.retry = (wait * 2).min(keepalive);
        wait
    }

    /// The highest version that was heard of when the join of that time left; nothing where no recent
    /// join has that time. A stranger who does not see the joins cannot name one: a time has
    /// nanoseconds.
    pub(super) fn asked_at(&self, sent_at_ns: u64) -> Option<u32> {
        let asked = self.asked.iter().find(|asked| asked.sent_at_ns == sent_at_ns);
        asked.map(|asked| asked.version_seen)
    }

    /// An answer came to the join that was sent at `sent_at_ns`; its answerer held the join for
    /// `held_ns`. Only the first answer to a join counts.
    pub(super) fn answered(&mut self, now: Instant, sent_at_ns: u64, held_ns: u64) {
        if let Some(at) = self.on_the_way.iter().position(|sent| *sent == sent_at_ns) {
            self.on_the_way.remove(at);
            let took = now.0.saturating_sub(sent_at_ns).saturating_sub(held_ns);
            self.round_trip.sample(Duration::from_nanos(took));
        }
        self.retry = self.round_trip.retry_after();
    }
}

/// A model on offer to a job that has none.
#[derive(Debug)]
pub(super) struct Offer {
    /// Which model: the worker's version, and the server's life.
    of: (u32, u32),
    /// Segments of the window that is being sent.
    to_send: VecDeque<u32>,
    /// No segment from here on was ever sent.
    end: u32,
    window: u32,
    /// Only the answer to a join that was sent later than this one knows what came of the window.
    asked_after: u64,
    pub(super) sent: u64,
}

impl Offer {
    fn new(of: (u32, u32), first: u32) -> Self {
        Self {
            of,
            to_send: VecDeque::new(),
            end: first,
            window: OFFER_WINDOW,
            asked_after: 0,
            sent: 0,
        }
    }

    /// The next window: first the segments that the server lacks of the last window, then new ones.
    fn plan(&mut self, shape: Shape, first_missing: u32, missing: u64) {
        let segments = shape.segments();
        let named = (0..64).filter(|bit| missing >> bit & 1 == 1);
        let named = named.filter_map(|bit| first_missing.checked_add(bit));
        self.to_send = named.filter(|segment| *segment < self.end.min(segments)).collect();
        let datagram = SEGMENT_HEADER + shape.lanes(0) * LANE;
        let most = u32::try_from(OFFER_BYTES / datagram).unwrap_or(u32::MAX).max(OFFER_WINDOW);
        if !self.to_send.is_empty() {
            self.window = (self.window / 2).max(OFFER_WINDOW);
        } else if self.sent > 0 {
            self.window = (self.window * 2).min(most);
        }
        let from = self.end.max(first_missing).min(segments);
        self.end = from.saturating_add(self.window).min(segments);
        self.to_send.extend(from..self.end);
    }
}

impl Worker {
    /// Something came that only the answer to a join can confirm: the worker asks soon. A flood of
    /// such datagrams makes no flood of joins.
    pub(super) fn ask_soon(&mut self, now: Instant) {
        let at = now.max(self.last_join + FIRST_RETRY);
        if self.path.is_searching() || self.next_join.is_some_and(|next| at < next) {
            self.join_at(at);
        }
    }

    /// An answer asks for a join: it is due at once, or soon where answers have asked for many.
    pub(super) fn join_at_once(&mut self, now: Instant) {
        let at = self.at_once(now);
        self.join_at(at);
    }

    fn at_once(&mut self, now: Instant) -> Instant {
        let is_first = self.joins.at_once.take(now, AT_ONCE);
        if is_first { now } else { now.max(self.last_join + FIRST_RETRY) }
    }

    /// The next join is due then; where the path is still looked at, the next question of it.
    pub(super) fn join_at(&mut self, at: Instant) {
        if self.path.is_searching() {
            self.path.ask_at(at);
        } else {
            self.next_join = Some(at);
        }
    }

    pub(super) fn emit_join(&mut self, now: Instant, buf: &mut [u8]) -> usize {
        let waiting = self.standing == Standing::Joining;
        let keepalive = self.config.keepalive;
        let after = if waiting { self.joins.next_after(keepalive) } else { keepalive };
        self.next_join = Some(now + after);
        self.write_join(now, false, 0, buf)
    }

    /// Writes a question about the path, padded to a given number of bytes.
    pub(super) fn emit_probe(&mut self, now: Instant, padded_to: u32, buf: &mut [u8]) -> usize {
        let len = self.write_join(now, true, padded_to, buf);
        self.path.sent(now, padded_to, self.joins.newest);
        len
    }

    /// Writes a join, or a question about the path.
    fn write_join(&mut self, now: Instant, asks: bool, padded_to: u32, buf: &mut [u8]) -> usize {
        let shape = self.shape.expect("join() sets the shape before it asks for a join");
        self.last_join = now;
        self.switch.expect(now);
        self.server.expect(now);
        Join {
            address: self.config.address,
            have_version: self.models.newest().map_or(0, |model| model.version),
            parameters: shape.parameters,
            segment_lanes: shape.segment_lanes,
            clock_error_us: self.clock.error_us(),
            sent_at_ns: self.joins.send(now, self.models.newest_version_seen()),
            clock_offset_ns: self.clock.offset_ns(),
            hops: 0,
            wants_notices: self.transmission.wants_notices(),
            path: JoinPath { asks, round_trip_us: self.joins.round_trip.as_micros(), padded_to },
            nonce: self.nonce,
        }
        .emit(buf)
    }

    /// The job takes this worker's model. Each window is sent for one answer, that to a join which
    /// left after the window before: however slow the path is and however many joins are on it,
    /// nothing is sent twice that was not lost, and at most one window in a round trip.
    pub(super) fn offer(&mut self, now: Instant, welcome: &Welcome) {
        let Some(shape) = self.shape else { return };
        let version = self.models.newest().map_or(0, |model| model.version);
        let of = (version, welcome.epoch);
        let offer = match &mut self.offer {
            Some(offer) if offer.of == of => offer,
            offer => offer.insert(Offer::new(of, welcome.first_missing)),
        };
        if welcome.echoed_sent_at_ns <= offer.asked_after || !offer.to_send.is_empty() {
            return;
        }
        offer.plan(shape, welcome.first_missing, welcome.missing);
        let segments = u32::try_from(offer.to_send.len()).unwrap_or(u32::MAX);
        if !self.joins.offered.take_many(now, segments, offers(shape.segments())) {
            // No job wants so many: the server's next answer may begin another window.
            offer.to_send.clear();
            return;
        }
        offer.asked_after = self.joins.newest;
        // Straight after the window the server is asked what it lacks.
        self.next_join = Some(self.at_once(now));
    }

    /// Models come only when the worker has shown that welcomes reach it: it joins again at once with the
    /// welcome's number. Where that join is lost it is repeated as any other.
    pub(super) fn prove(&mut self, now: Instant, nonce: u32) {
        if nonce == 0 {
            return;
        }
        let is_new = core::mem::replace(&mut self.nonce, nonce) != nonce;
        let retry = self.joins.round_trip.retry_after().min(self.config.keepalive);
        let at = if is_new { self.at_once(now) } else { now.max(self.last_join + retry) };
        self.next_join = Some(self.next_join.map_or(at, |next| next.min(at)));
    }

    /// A worker that waits for its answer or its model does not ask again before one can be here.
    pub(super) fn put_off_join(&mut self, ready: bool) {
        if self.standing != Standing::Joining {
            return;
        }
        let keepalive = self.config.keepalive;
        let wait = if ready { keepalive } else { self.joins.round_trip.retry_after() };
        let at = self.last_join + wait.min(keepalive);
        self.next_join = self.next_join.map(|next| next.max(at));
    }

    pub(super) fn emit_offer(&mut self, buf: &mut [u8]) -> Option<usize> {
        let offer = self.offer.as_mut()?;
        let segment = offer.to_send.pop_front()?;
        offer.sent += 1;
        self.counters.offers += 1;
        let shape = self.shape?;
        let (weights, version) = match self.models.newest() {
            Some(model) => (&model.lanes, model.version),
            None => (&self.first_weights, 0),
        };
        let lanes = weights.get(shape.range(segment))?;
        let offer = Answer {
            address: self.config.address,
            acknowledges: 0,
            segment,
            segments: shape.segments(),
            model_version: version,
            parameters: shape.parameters,
            epoch: self.server.epoch(),
            delivered_version: 0,
            delivered_newest_ns: 0,
            server_time_ns: 0,
            queue: QueueStatus::default(),
            ages: Ages::default(),
            ends: Ends::NONE,
        };
        Some(offer.emit(lanes, buf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SHAPE: Shape = Shape { parameters: 4000, segment_lanes: 10 };

    fn planned(offer: &mut Offer, first_missing: u32, missing: u64) -> Vec<u32> {
        offer.plan(SHAPE, first_missing, missing);
        offer.sent += offer.to_send.len() as u64;
        offer.to_send.drain(..).collect()
    }

    #[test]
    fn a_window_that_arrived_is_followed_by_one_twice_as_long() {
        let mut offer = Offer::new((0, 1), 0);
        assert_eq!(planned(&mut offer, 0, u64::MAX), (0..64).collect::<Vec<_>>());
        assert_eq!(planned(&mut offer, 64, u64::MAX), (64..192).collect::<Vec<_>>());
        assert_eq!(planned(&mut offer, 192, u64::MAX), (192..400).collect::<Vec<_>>());
        assert!(planned(&mut offer, 400, 0).is_empty());
    }

    #[test]
    fn of_a_window_that_did_not_arrive_whole_only_what_is_missing_goes_again() {
        let mut offer = Offer::new((0, 1), 0);
        planned(&mut offer, 0, u64::MAX);
        // Segments 5 and 60 are missing; those from 64 on were never sent.
        let again = planned(&mut offer, 5, 1 | 1 << 55 | 0xf << 59);
        assert_eq!(again, [5, 60].into_iter().chain(64..128).collect::<Vec<_>>());
    }

    #[test]
    fn an_answer_measures_the_join_that_it_names_and_only_once() {
        let mut joins = Joins::new();
        let (first, second) = (joins.send(Instant(1000), 7), joins.send(Instant(1000), 8));
        assert_ne!(first, second, "each has a time of its own");
        joins.answered(Instant(501_000), first, 100_000);
        assert_eq!(joins.round_trip.smoothed(), Some(Duration::from_nanos(400_000)));
        assert_eq!([first, second, 5].map(|at| joins.asked_at(at)), [Some(7), Some(8), None]);
        joins.answered(Instant(900_000_000), first, 0);
        assert_eq!(joins.round_trip.smoothed(), Some(Duration::from_nanos(400_000)));
    }
}
