//! How long a datagram may be on the whole way to the server and back.
//!
//! Asked with joins that are filled up to the size in question: every switch passes them on as they
//! are, and the server fills its answer up to the same size. An answer proves the size both ways,
//! also where a router drops silently what is too long. A job is cut once, by its first worker, so
//! the question comes before the join; later workers only see whether the job's cut fits their
//! path.

use super::{Standing, Worker};
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::party::Shape;
use olaf_engine::{Instant, TooNarrow, WorkerEvent};
use olaf_wire::offsets::{LANE, MAX_DATAGRAM, SEGMENT_HEADER};
use olaf_wire::{Packet, Welcome, WelcomeCode};

/// What is known of the path before anything is sent.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Whether the worker finds out what the path carries, and cuts the model to it; otherwise its
    /// segments are as the set-up says.
    pub search: bool,
    /// The longest datagram that the system lets out, its UDP payload.
    pub largest: u32,
    /// Bytes of the IP and UDP headers in front of it.
    pub headers: u32,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self { search: false, largest: MAX_DATAGRAM as u32, headers: 28 }
    }
}

/// IP packets whose size is tried, beside the largest that the system lets out: of jumbo frames,
/// Ethernet, PPPoE, common tunnels, and what every IPv6 and IPv4 path must carry.
pub(in crate::push_pull) const PACKETS: [u32; 9] =
    [9000, 4000, 1500, 1492, 1450, 1420, 1400, 1280, 576];
/// What every path carries in practice: a model that fits it needs no question.
const ALWAYS: u32 = 1280 - 48;
/// A size that got no answer so often, while shorter ones did, does not pass.
const TRIES: u32 = 3;
/// Before the first answer a question is repeated after this long, then after twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(20);
/// While nothing passes, the path is looked at again at most so rarely.
const RARELY: Duration = Duration::from_secs(8);
/// Nothing is suspected sooner.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// After a check that found the path well, the path is not suspected again for this time.
const TRUST: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is asked.
    Settled,
    /// Before the worker joins: the size is looked for.
    Searching,
    /// In a run: whether the job's datagrams pass still.
    Checking,
    /// They do not: nothing that long is sent, and the path is looked at again now and then.
    Narrow,
}

/// Long questions that were sent one after the other, with a short one behind them.
///
/// Datagrams of a path stay in order. The answer to a later question therefore says that the long ones have
/// arrived or are lost, however slow the path is: no time has to be guessed within which a long datagram
/// passes a slow uplink, and such an uplink is not filled with repetitions.
#[derive(Clone, Copy, Debug)]
struct Volley {
    /// The sending time of the last long question, as the question states it; none has it yet: `u64::MAX`.
    last_ns: u64,
    /// When that question was sent.
    sent: Instant,
    /// A question was answered that was not sent before that one.
    over: bool,
}

/// What is known of the path.
#[derive(Debug)]
pub(super) struct Path {
    config: PathConfig,
    state: State,
    /// The longest datagram that came back.
    proven: u32,
    /// Nothing longer is tried.
    ceiling: u32,
    to_send: VecDeque<u32>,
    /// Long questions on their way. Until the volley is over the worker asks short ones only.
    volley: Option<Volley>,
    next: Option<Instant>,
    retry: Duration,
    /// Volleys since anything was answered.
    tries: u32,
    answered: bool,
    /// The length of the job's datagrams, where the job is cut already.
    needed: Option<u32>,
    trusted_until: Instant,
    pub(super) probes: u64,
    /// Why the worker stays outside.
    pub(super) refused: Option<TooNarrow>,
}

impl Path {
    pub(super) fn new(config: PathConfig) -> Self {
        Self {
            config,
            state: State::Settled,
            proven: 0,
            ceiling: config.largest,
            to_send: VecDeque::new(),
            volley: None,
            next: None,
            retry: FIRST_RETRY,
            tries: 0,
            answered: false,
            needed: None,
            trusted_until: Instant(0),
            probes: 0,
            refused: None,
        }
    }

    pub(super) fn is_searching(&self) -> bool {
        self.state == State::Searching
    }

    /// Returns true if nothing as long as a segment may be sent now.
    pub(super) fn is_narrow(&self) -> bool {
        self.state == State::Narrow
    }

    /// The next short question is due then. Between two volleys the next one has its own time.
    pub(super) fn ask_at(&mut self, at: Instant) {
        if self.awaits_volley() {
            self.next = Some(at);
        }
    }

    /// The questions were refused: they are put again then.
    pub(super) fn ask_anew(&mut self, at: Instant) {
        (self.volley, self.next) = (None, Some(at));
        self.to_send.clear();
    }

    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The longest IP packet that was seen to pass.
    pub(super) const fn mtu_bytes(&self) -> Option<u32> {
        if self.proven == 0 { None } else { Some(self.proven + self.config.headers) }
    }

    pub(super) fn stop(&mut self) {
        (self.state, self.next, self.volley) = (State::Settled, None, None);
        self.to_send.clear();
    }

    /// How long to wait now; twice as long the next time.
    fn backs_off(&mut self, most: Duration) -> Duration {
        let wait = self.retry;
        self.retry = (wait * 2).min(most);
        wait
    }

    fn begin(&mut self, now: Instant, state: State) {
        (self.state, self.next, self.retry) = (state, Some(now), FIRST_RETRY);
        (self.tries, self.answered, self.volley) = (0, false, None);
        self.to_send.clear();
    }

    /// The long questions that go next.
    fn sizes(&self, most: u32) -> VecDeque<u32> {
        if self.state == State::Searching && !self.answered {
            return [most.min(self.ceiling)].into();
        }
        self.candidates(most).collect()
    }

    /// Sends long questions, and a short one behind them.
    fn ask(&mut self, now: Instant, sizes: VecDeque<u32>) {
        self.to_send = sizes;
        self.to_send.push_back(0);
        self.volley = Some(Volley { last_ns: u64::MAX, sent: now, over: false });
        self.tries += u32::from(self.answered);
    }

    /// A question of that size left. It states that sending time.
    pub(super) fn sent(&mut self, now: Instant, size: u32, sent_at_ns: u64) {
        if size > 0
            && let Some(volley) = &mut self.volley
        {
            *volley = Volley { last_ns: sent_at_ns, sent: now, over: false };
        }
    }

    /// The question of that sending time was answered. A path on which one datagram may be later than
    /// another has that patience.
    fn answered(&mut self, now: Instant, sent_at_ns: u64, patience: Duration) {
        self.answered = true;
        let all_left = self.to_send.iter().all(|size| *size == 0);
        if let Some(volley) = &mut self.volley
            && all_left
            && sent_at_ns >= volley.last_ns
        {
            volley.over = true;
            self.next = Some(now.max(volley.sent + patience));
        }
    }

    /// Returns true if long questions are on their way.
    fn awaits_volley(&self) -> bool {
        self.volley.is_some_and(|volley| !volley.over)
    }

    /// Sizes to try that are longer than what is proven, longest first.
    fn candidates(&self, most: u32) -> impl Iterator<Item = u32> {
        let (proven, top) = (self.proven, most.min(self.ceiling));
        let headers = self.config.headers;
        let usual = PACKETS.into_iter().map(move |packet| packet - headers);
        let named = self.needed.into_iter().chain([top]).chain(usual);
        let mut sizes: alloc::vec::Vec<u32> =
            named.filter(|size| *size > proven && *size <= top).collect();
        sizes.sort_unstable_by_key(|size| core::cmp::Reverse(*size));
        sizes.dedup();
        sizes.into_iter()
    }
}

/// Bytes of the longest datagram of a model cut like this, up or down.
pub(super) fn datagram_of(shape: Shape) -> u32 {
    u32::try_from(SEGMENT_HEADER + shape.lanes(0) * LANE).unwrap_or(u32::MAX)
}

impl Worker {
    /// Returns true if the path is to be looked at before this model is joined with.
    pub(super) fn begins_with_a_search(&mut self, now: Instant, shape: Shape) -> bool {
        let search = self.config.path.search && datagram_of(shape) > ALWAYS;
        if search {
            self.path.needed = None;
            self.path.begin(now, State::Searching);
        }
        search
    }

    /// The next question, if one is to be sent: how long it is.
    pub(super) fn poll_probe(&mut self) -> Option<u32> {
        let size = self.path.to_send.pop_front()?;
        self.path.probes += 1;
        Some(size)
    }

    /// The most that is ever asked for.
    fn longest_wanted(&self) -> u32 {
        let parameters = self.shape.map_or(1, |shape| shape.parameters);
        let segment_lanes = self.config.segment_lanes;
        let own = datagram_of(Shape { parameters, segment_lanes });
        self.path.needed.unwrap_or(own)
    }

    /// It is time for the next questions, or for a decision.
    pub(super) fn probe(&mut self, now: Instant) {
        let most = self.longest_wanted();
        let keepalive = self.config.keepalive;
        let path_wait = self.joins.round_trip.retry_after();
        let path = &mut self.path;
        match path.state {
            State::Settled => {
                path.next = None;
                return;
            }
            State::Narrow => {
                path.to_send = [most, 0].into();
                path.next = Some(now + path.backs_off(RARELY).max(keepalive));
                return;
            }
            State::Searching | State::Checking => {}
        }
        if path.awaits_volley() {
            // Nothing came back from behind the long questions. They may still be on their way.
            if path.to_send.is_empty() {
                path.to_send.push_back(0);
            }
        } else {
            let sizes = path.sizes(most);
            if path.answered && (path.tries >= TRIES || sizes.is_empty()) {
                return self.decide(now);
            }
            path.retry = path_wait.min(keepalive);
            path.ask(now, sizes);
        }
        // A switch forgets a worker that it hears no more, and with it the receiver of the answers.
        path.next = Some(now + path.backs_off(keepalive));
    }

    /// The server answered a question.
    pub(super) fn heard_of_path(&mut self, now: Instant, packet: &Packet<'_>, welcome: &Welcome) {
        let size = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        self.path.proven = self.path.proven.max(size);
        self.path.answered(now, welcome.echoed_sent_at_ns, self.joins.round_trip.retry_after());
        match self.path.state {
            State::Searching => {
                if welcome.segment_lanes > 0 {
                    let parameters = self.shape.map_or(1, |shape| shape.parameters);
                    let shape = Shape { parameters, segment_lanes: welcome.segment_lanes };
                    self.path.needed = Some(datagram_of(shape));
                    if self.path.proven >= datagram_of(shape) {
                        self.cut(now, welcome.segment_lanes);
                    } else {
                        self.segment_lanes_of_job = welcome.segment_lanes;
                    }
                } else if self.path.proven >= self.longest_wanted().min(self.path.ceiling) {
                    self.decide(now);
                }
            }
            State::Checking | State::Narrow if size >= self.longest_wanted() => {
                let was_narrow = self.path.state == State::Narrow;
                self.path.stop();
                self.path.trusted_until = now + TRUST;
                if was_narrow {
                    self.events.push_back(WorkerEvent::PathBack);
                }
            }
            _ => {}
        }
    }

    /// All that passes has been seen.
    fn decide(&mut self, now: Instant) {
        let proven = self.path.proven;
        match self.path.state {
            State::Searching => match self.path.needed {
                Some(needed) if needed > proven => self.stay_outside(needed),
                Some(_) => self.cut(now, self.segment_lanes_of_job),
                None => {
                    let lanes = (proven as usize).saturating_sub(SEGMENT_HEADER) / LANE;
                    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
                    self.cut(now, lanes.clamp(1, self.config.segment_lanes));
                }
            },
            State::Checking => self.narrowed(now),
            State::Settled | State::Narrow => {}
        }
    }

    /// The model is cut like this, and the worker joins.
    fn cut(&mut self, now: Instant, segment_lanes: u32) {
        self.path.stop();
        self.path.trusted_until = now + TRUST;
        let Some(shape) = &mut self.shape else { return };
        shape.segment_lanes = segment_lanes;
        self.path.needed = Some(datagram_of(*shape));
        let mtu_bytes = self.path.proven + self.path.config.headers;
        self.events.push_back(WorkerEvent::Path { mtu_bytes, segment_lanes });
        self.next_join = Some(now);
    }

    /// The job is cut to more than the path carries: the worker stays outside and says why.
    fn stay_outside(&mut self, needed: u32) {
        let headers = self.path.config.headers;
        self.path.stop();
        let trouble = TooNarrow {
            needed_mtu_bytes: needed.saturating_add(headers),
            mtu_bytes: self.path.proven + headers,
            segment_lanes: self.segment_lanes_of_job,
        };
        self.path.refused = Some(trouble);
        self.standing = Standing::TurnedAway(WelcomeCode::WrongSegmentLanes);
        self.next_join = None;
        self.events.push_back(WorkerEvent::PathTooNarrow(trouble));
        self.events.push_back(WorkerEvent::TurnedAway(WelcomeCode::WrongSegmentLanes));
    }

    /// The job is cut otherwise than this worker said: where it may, it takes the job's cut over.
    /// Returns whether it does.
    pub(super) fn take_over_cut(&mut self, now: Instant, welcome: &Welcome) -> bool {
        let Some(shape) = self.shape else { return false };
        if !self.config.path.search
            || welcome.segment_lanes == 0
            || welcome.segment_lanes == shape.segment_lanes
            || ![0, shape.parameters].contains(&welcome.parameters)
            || matches!(self.standing, Standing::Joined | Standing::Left)
        {
            return false;
        }
        let cut = Shape { segment_lanes: welcome.segment_lanes, ..shape };
        self.segment_lanes_of_job = welcome.segment_lanes;
        let needed = datagram_of(cut);
        if needed <= ALWAYS || needed <= self.path.proven {
            self.path.proven = self.path.proven.max(needed);
            self.cut(now, welcome.segment_lanes);
        } else {
            self.path.needed = Some(needed);
            self.path.begin(now, State::Searching);
            self.next_join = None;
        }
        true
    }

    /// In a run: a datagram as long as the job's does not get out, or nothing comes back.
    fn narrowed(&mut self, now: Instant) {
        let needed = self.longest_wanted();
        self.path.begin(now, State::Narrow);
        self.path.retry = self.config.keepalive;
        self.path.next = Some(now + self.config.keepalive);
        let headers = self.path.config.headers;
        self.events.push_back(WorkerEvent::PathTooNarrow(TooNarrow {
            needed_mtu_bytes: needed.saturating_add(headers),
            mtu_bytes: self.path.proven.min(self.path.ceiling).min(needed - 1) + headers,
            segment_lanes: self.shape.map_or(0, |shape| shape.segment_lanes),
        }));
    }

    /// The system did not send a datagram of `bytes` bytes, because the path takes only shorter
    /// ones. `largest` is the size that it would send, if it says so.
    pub(super) fn did_not_fit(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let headers = self.config.path.headers;
        let below = PACKETS.into_iter().map(|packet| packet - headers).filter(|size| *size < bytes);
        let largest = largest.filter(|size| *size < bytes).or(below.max()).unwrap_or(1);
        self.path.ceiling = self.path.ceiling.min(largest);
        match self.path.state {
            // The sizes below are tried at once.
            State::Searching => {
                self.path.volley = None;
                self.path.next = self.path.next.map(|_| now);
            }
            State::Settled | State::Checking if self.standing == Standing::Joined => {
                self.path.proven = self.path.ceiling;
                self.narrowed(now);
                // What the system says may pass again: the size itself is tried.
                self.path.ceiling = self.path.config.largest;
            }
            State::Narrow => self.path.ceiling = self.path.config.largest,
            _ => {}
        }
    }

    /// Returns true if the path is to be looked at, because nothing long was answered of late
    /// although switch and server are there.
    pub(super) fn suspect_path(&mut self, now: Instant) {
        let patience = SUSPECT_AFTER.max(self.joins.round_trip.retry_after() * 4);
        let since = self.outbox.unanswered_since();
        let suspicious =
            since.is_some_and(|since| now.since(since) >= patience) || self.fetches_in_vain > 6;
        if suspicious
            && self.path.state == State::Settled
            && self.standing == Standing::Joined
            && now >= self.path.trusted_until
            && self.server.is_alive()
            && self.longest_wanted() > ALWAYS
        {
            self.path.needed = self.shape.map(datagram_of);
            self.path.proven = 0;
            self.path.begin(now, State::Checking);
        }
    }
}
