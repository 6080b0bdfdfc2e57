//! The server's array of bitmap and value, by sequence number (ATP §3.6).

use crate::collective::atp::{factors, fixed};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use olaf_engine::Instant;
use olaf_wire::atp::Header;

/// What the server has of a fragment.
#[derive(Debug, Default)]
enum Value {
    #[default]
    Nothing,
    /// A sum in fixed point. Sums of the switches have 32 bits; theirs have room here.
    Fixed(Vec<i64>),
    /// A sum ran over: the workers send f32.
    Float(Vec<f64>),
    /// All workers are in it. Big-endian f32.
    Done(Vec<u8>),
}

/// What a packet says of its operation: values of the tensor, and the call.
pub(super) type Says = (u32, u8);

/// A fragment.
#[derive(Debug, Default)]
pub(super) struct Fragment {
    value: Value,
    /// The workers in it, by rank: 64 a word. Once it is complete: those that have asked for the result
    /// since it was sent last.
    have: Vec<u64>,
    /// The tensor of the fragment, as its first packet named it.
    pub(super) tensor: u64,
    /// Values of the whole tensor, as the first packet said.
    pub(super) tensor_length: u32,
    /// What the workers call the tensor's operation, as the first packet said.
    pub(super) call: u8,
    /// Values of the fragment, as the first packet had them.
    values: usize,
    /// A packet had met congestion.
    pub(super) ecn: bool,
    /// A packet found its aggregator in use.
    pub(super) collided: bool,
    /// The largest f32 of a worker, without sign.
    largest: f64,
    /// The latest packet is in the sum, and has a value that is no finite number.
    latest_is_not_finite: bool,
    /// The code of the factor that the fragment a window later has.
    pub(super) factor: u8,
    /// The aggregator that its packets met in.
    pub(super) index: u16,
    /// The one that takes its place.
    pub(super) new_index: Option<u16>,
    /// When its parameter packet, or the request for f32, was sent last.
    pub(super) sent: Option<Instant>,
}

/// What became of a packet's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// They are in the sum.
    Added,
    /// They completed it.
    Completed,
    /// A sum has run over: the workers must send f32.
    RanOver,
    /// The fragment waits for f32, and these are integers.
    NotFloat,
    /// All its workers were in the sum already.
    Repeated,
    /// Some of its workers were: it cannot be added.
    Overlaps,
    /// The fragment is complete.
    Late,
    /// It describes another tensor than the packets before.
    Mismatch,
}

impl Fragment {
    pub(super) const fn is_seen(&self) -> bool {
        !matches!(self.value, Value::Nothing)
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.value, Value::Done(_))
    }

    pub(super) const fn wants_floats(&self) -> bool {
        matches!(self.value, Value::Float(_))
    }

    /// Returns true if the values of the latest packet are finite. A packet that is not in the sum counts as
    /// finite.
    pub(super) const fn latest_is_finite(&self) -> bool {
        !self.latest_is_not_finite
    }

    /// Takes back a result that has a value that is no finite number, or a sum in which the latest packet had one.
    /// Returns whether it did.
    pub(super) fn take_back_non_finite(&mut self) -> bool {
        let lanes = self.result().as_chunks::<4>().0;
        let overflowed = lanes.iter().any(|lane| !f32::from_be_bytes(*lane).is_finite());
        let takes_back = overflowed || self.latest_is_not_finite;
        if takes_back {
            self.clear_for_floats();
        }
        takes_back
    }

    /// The result; empty before there is one.
    pub(super) fn result(&self) -> &[u8] {
        match &self.value {
            Value::Done(bytes) => bytes,
            _ => &[],
        }
    }

    /// A bound of all partial sums of a complete fragment with that factor.
    pub(super) fn bound(&self, workers: u32, factor: f64) -> f64 {
        if self.largest > 0.0 {
            return self.largest * f64::from(workers);
        }
        factors::bound_of_sum(workers, self.result(), factor)
    }

    /// Takes the values of a packet from these workers, of `workers` in the job.
    pub(super) fn take(
        &mut self,
        header: &Header,
        tensor: u64,
        from: &[u64],
        values: &[u8],
        (workers, scale): (u32, f64),
    ) -> Taken {
        self.latest_is_not_finite = false;
        if self.is_seen() {
            let said = (self.tensor, self.tensor_length, self.values, self.call);
            if said != (tensor, header.tensor_length, values.len() / 4, header.key.call) {
                return Taken::Mismatch;
            }
        } else {
            (self.tensor, self.tensor_length) = (tensor, header.tensor_length);
            self.call = header.key.call;
            self.values = values.len() / 4;
            self.have = alloc::vec![0; from.len()];
            self.value = Value::Fixed(alloc::vec![0; self.values]);
        }
        if self.is_done() {
            return Taken::Late;
        }
        self.ecn |= header.ecn;
        // A worker may follow another rule than the server's own one.
        self.index = header.index;
        self.collided |= header.collision;
        if self.wants_floats() && !header.overflow {
            return Taken::NotFloat;
        }
        // A worker may know that a sum runs over before the server does.
        let begins_floats = header.overflow && !self.wants_floats();
        if begins_floats {
            self.clear_for_floats();
        }
        if from.iter().zip(&self.have).any(|(from, have)| from & have != 0) {
            let is_known = from.iter().zip(&self.have).all(|(from, have)| from & !have == 0);
            return if is_known { Taken::Repeated } else { Taken::Overlaps };
        }
        if !header.overflow && fixed::any_saturated(values) {
            self.clear_for_floats();
            return Taken::RanOver;
        }
        self.add(from, values);
        let have: u32 = self.have.iter().map(|word| word.count_ones()).sum();
        if have < workers {
            return if begins_floats { Taken::RanOver } else { Taken::Added };
        }
        self.finish(scale);
        Taken::Completed
    }

    /// These workers lack the result. Whether one of them has asked before: then the answer to that was
    /// lost, and did not cross the question.
    pub(super) fn asks_again(&mut self, from: &[u64]) -> bool {
        let mut again = false;
        for (asked, from) in self.have.iter_mut().zip(from) {
            again |= *asked & from != 0;
            *asked |= from;
        }
        again
    }

    /// The result is sent; those workers have asked for it.
    pub(super) fn is_sent(&mut self, now: Instant, to: &[u64]) {
        self.sent = Some(now);
        self.have.fill(0);
        self.have.iter_mut().zip(to).for_each(|(asked, to)| *asked = *to);
    }

    fn clear_for_floats(&mut self) {
        self.value = Value::Float(alloc::vec![0.0; self.values]);
        self.have.fill(0);
        // The request is due at once.
        self.sent = None;
    }

    fn add(&mut self, from: &[u64], values: &[u8]) {
        let lanes = values.as_chunks::<4>().0;
        match &mut self.value {
            Value::Fixed(sum) => {
                let sums = sum.iter_mut().zip(lanes);
                sums.for_each(|(sum, lane)| *sum += i64::from(i32::from_be_bytes(*lane)));
            }
            Value::Float(sum) => {
                let sums = sum.iter_mut().zip(lanes);
                sums.for_each(|(sum, lane)| {
                    let lane = f64::from(f32::from_be_bytes(*lane));
                    self.latest_is_not_finite |= !lane.is_finite();
                    *sum += lane;
                    self.largest = self.largest.max(lane.abs());
                });
            }
            Value::Nothing | Value::Done(_) => return,
        }
        self.have.iter_mut().zip(from).for_each(|(have, from)| *have |= from);
    }

    /// The PS converts the sum back to f32 (ATP §3.8).
    fn finish(&mut self, scale: f64) {
        let result: Vec<u8> = match &self.value {
            Value::Fixed(sum) => {
                sum.iter().flat_map(|lane| ((*lane as f64 / scale) as f32).to_be_bytes()).collect()
            }
            Value::Float(sum) => sum.iter().flat_map(|lane| (*lane as f32).to_be_bytes()).collect(),
            Value::Nothing | Value::Done(_) => return,
        };
        self.value = Value::Done(result);
    }
}

/// A tensor's fragments at this server.
#[derive(Clone, Copy, Debug)]
struct Tensor {
    length: u32,
    done: u32,
}

/// The fragments of a job's life: those of one window before the first open one, whose results a
/// worker may still lack, and those of one window behind it.
#[derive(Debug)]
pub(super) struct Fragments {
    window: u64,
    /// The sequence number of the first kept one.
    base: u64,
    kept: VecDeque<Fragment>,
    /// The first fragment without a result.
    open: u64,
    tensors: BTreeMap<u64, Tensor>,
    newest_tensor: u64,
    /// Tensors, and ranks of workers whose values in them were no finite numbers.
    told: BTreeSet<(u64, usize)>,
}

impl Fragments {
    pub(super) const fn new(window: u16) -> Self {
        Self {
            window: window as u64,
            base: 0,
            kept: VecDeque::new(),
            open: 0,
            tensors: BTreeMap::new(),
            newest_tensor: 0,
            told: BTreeSet::new(),
        }
    }

    /// Returns true if nobody was told yet that the worker's values in that tensor are no finite
    /// numbers.
    pub(super) fn is_news(&mut self, tensor: u64, rank: usize) -> bool {
        self.told.insert((tensor, rank))
    }

    /// The first sequence number that is open.
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    pub(super) const fn newest_tensor(&self) -> u64 {
        self.newest_tensor
    }

    /// Operations of which packets have come, at most. Each has a fragment at the first server: a tensor with a larger
    /// number is wrong there. Another server may have none of some, and leaves the count to the first one.
    pub(super) fn operations_seen(&self) -> u32 {
        let fragments = self.base + self.kept.len() as u64;
        u32::try_from(fragments.min(self.newest_tensor + 1)).unwrap_or(u32::MAX)
    }

    /// Returns true if another worker waits for the one with that rank: a fragment has come without it. A switch that
    /// has parts of it sends them on when a worker asks again, some milliseconds later.
    pub(super) fn lacks(&self, rank: usize) -> bool {
        let has =
            |of: &Fragment| of.have.get(rank / 64).is_some_and(|word| word >> (rank % 64) & 1 == 1);
        self.kept.iter().any(|of| of.is_seen() && !of.is_done() && !has(of))
    }

    /// The fragment of a sequence number. The error says whether it is too early, rather than late.
    pub(super) fn at(&mut self, sequence: u64) -> Result<&mut Fragment, bool> {
        if sequence >= self.open + self.window {
            return Err(true);
        }
        let index = sequence.checked_sub(self.base).ok_or(false)? as usize;
        if index >= self.kept.len() {
            self.kept.resize_with(index + 1, Fragment::default);
        }
        Ok(&mut self.kept[index])
    }

    /// The fragment of a sequence number that is kept.
    pub(super) fn known(&self, sequence: u64) -> Option<&Fragment> {
        self.kept.get(sequence.checked_sub(self.base)? as usize)
    }

    /// What the workers in the sums of a tensor's open fragments say of it, and their ranks, 64 a word.
    pub(super) fn said_of(&self, tensor: u64) -> impl Iterator<Item = (Says, &[u64])> {
        let is_its = move |of: &&Fragment| of.is_seen() && !of.is_done() && of.tensor == tensor;
        let says = |of: &Fragment| (of.tensor_length, of.call);
        self.kept.iter().filter(is_its).map(move |of| (says(of), of.have.as_slice()))
    }

    /// Returns true if the tensor agrees with what was said of it before. Notes a new one.
    pub(super) fn agrees(&mut self, tensor: u64, length: u32) -> bool {
        self.newest_tensor = self.newest_tensor.max(tensor);
        let known = self.tensors.entry(tensor).or_insert(Tensor { length, done: 0 });
        known.length == length
    }

    /// A fragment is complete.
    pub(super) fn complete(&mut self, tensor: u64) {
        if let Some(known) = self.tensors.get_mut(&tensor) {
            known.done += 1;
        }
        while self.known(self.open).is_some_and(Fragment::is_done) {
            self.open += 1;
        }
        while self.base + self.window < self.open {
            self.kept.pop_front();
            self.base += 1;
        }
        let oldest = self.kept.front().map_or(tensor, |fragment| fragment.tensor);
        self.tensors.retain(|number, _| *number >= oldest);
        self.told = self.told.split_off(&(oldest, 0));
    }

    /// The first tensor that has no result yet, where each has that many fragments here.
    pub(super) fn first_open_tensor(&self, fragments: impl Fn(u32) -> u64) -> u64 {
        if let Some(fragment) = self.known(self.open).filter(|fragment| fragment.is_seen()) {
            return fragment.tensor;
        }
        let Some(last) = self.open.checked_sub(1).and_then(|last| self.known(last)) else {
            return 0;
        };
        let known = self.tensors.get(&last.tensor);
        let is_done = known.is_none_or(|known| u64::from(known.done) >= fragments(known.length));
        last.tensor + u64::from(is_done)
    }
}
