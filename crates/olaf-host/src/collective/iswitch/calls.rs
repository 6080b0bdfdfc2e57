//! A roll call: what each worker calls an operation.
//!
//! A data packet of iSwitch has no field that says what its floats are for. But a worker's own vector may begin with a packet of
//! its own: one float for each worker, in which each worker writes what it calls, and which the switch sums like all
//! others. Everyone then has the calls of all, and no packet of the operation itself leaves before.
//!
//! A worker does so before an operation whose call differs from the one before; the first one of a generation is compared
//! with a sum. If others do not, their first packet has another length, or another `last`, and the switch names one (`mismatch`):
//! the packet of a roll call is shorter than a full one, and not the last of its vector. No other packet is.
//!
//! differs: the paper has one kind of vector, a gradient.

use alloc::vec::Vec;
use olaf_engine::Instant;
use olaf_engine::sums::{Dispute, Odd};
use olaf_wire::Call;
use olaf_wire::reduce::{Called, Clash};

const FLOAT: usize = 4;
/// What a worker adds to the floats of the others: `x + (-0.0)` has the bits of `x`.
const NOTHING: [u8; FLOAT] = (-0.0f32).to_le_bytes();

/// The roll call before an operation.
#[derive(Debug)]
pub(super) struct RollCall {
    own: Call,
    rank: u32,
    workers: u32,
    /// The calls are here.
    is_done: bool,
    odd: Option<Odd<Call>>,
}

impl RollCall {
    /// The roll call before an operation that this end calls `own`, and the one before `last`; none if there is no need.
    /// A job of as many workers as a packet has floats, or more, has none.
    pub(super) fn before(
        own: Call,
        last: Call,
        (rank, workers): (u32, u32),
        packet_floats: u32,
    ) -> Option<Self> {
        let is_short = (2..packet_floats).contains(&workers);
        (own != last && is_short).then_some(Self { own, rank, workers, is_done: false, odd: None })
    }

    /// Bytes of its packet.
    pub(super) const fn len(&self) -> usize {
        self.workers as usize * FLOAT
    }

    /// Writes this end's call into its packet.
    pub(super) fn write(&self, out: &mut [u8]) {
        let floats = out.as_chunks_mut().0;
        floats.fill(NOTHING);
        if let Some(own) = floats.get_mut(self.rank as usize) {
            // 0 says nothing, and an f32 has every number of 16 bits.
            *own = (f32::from(self.own.to_bits()) + 1.0).to_le_bytes();
        }
    }

    /// Takes the calls of all workers.
    pub(super) fn take(&mut self, floats: &[u8]) {
        let floats = floats.as_chunks::<FLOAT>().0;
        let bits = floats.iter().map(|float| f32::from_le_bytes(*float) - 1.0);
        let is_call = |bits: f32| (0.0..=f32::from(u16::MAX)).contains(&bits);
        let said = (0..).zip(bits).filter(|(_, bits)| is_call(*bits));
        let said: Vec<(u32, Call)> =
            said.map(|(rank, bits)| (rank, Call::from_bits(bits as u16))).collect();
        let mut dispute = Dispute::new(Instant(0));
        said.iter().for_each(|(rank, call)| dispute.note(*rank, *call));
        self.odd = dispute.odd(Instant(0), said.len());
        self.is_done = true;
    }

    /// Returns true if all call the same, as far as they have said it.
    pub(super) const fn has_agreed(&self) -> bool {
        self.is_done && self.odd.is_none()
    }

    /// Returns true if the workers differ, and this end is the one to be named.
    pub(super) fn is_odd(&self) -> bool {
        self.odd.is_some_and(|odd| odd.member == self.rank)
    }

    /// What the workers call, where they differ. `lanes`: of this end's operation.
    pub(super) fn clash(&self, lanes: u64) -> Option<Clash> {
        let Odd { calls, others, .. } = self.odd?;
        let lanes = |call| if call == self.own { lanes } else { 0 };
        let called = |call| Called::of_floats(call, lanes(call));
        Some(Clash { culprit: called(calls), others: called(others) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use olaf_wire::CallKind;

    const MEAN: Call = Call::new(CallKind::Mean, 0);

    fn roll(own: Call, rank: u32) -> RollCall {
        let last = Call::new(CallKind::Broadcast { root: 1 }, 0);
        RollCall::before(own, last, (rank, 3), 366).expect("it differs from the one before")
    }

    /// The sum of the packets of these workers.
    fn sum(calls: [Call; 3]) -> Vec<u8> {
        let mut sum = [0.0f32; 3];
        for (rank, own) in (0..).zip(calls) {
            let mut packet = [0; 12];
            roll(own, rank).write(&mut packet);
            let floats = packet.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float));
            sum.iter_mut().zip(floats).for_each(|(sum, float)| *sum += float);
        }
        sum.iter().flat_map(|float| float.to_le_bytes()).collect()
    }

    #[test]
    fn a_worker_calls_the_roll_where_its_call_differs_from_the_one_before() {
        let before = |own, workers| RollCall::before(own, Call::default(), (0, workers), 366);
        assert!(before(Call::default(), 3).is_none(), "a sum after a sum");
        assert!(before(MEAN, 3).is_some());
        assert!(before(MEAN, 1).is_none(), "nobody else is there");
        assert!(before(MEAN, 365).is_some());
        assert!(before(MEAN, 366).is_none(), "the packet would be a full one");
    }

    #[test]
    fn every_worker_hears_the_calls_of_all_and_names_the_same_one() {
        let mut agreed = roll(MEAN, 0);
        assert!(!agreed.has_agreed());
        agreed.take(&sum([MEAN; 3]));
        assert!(agreed.has_agreed() && agreed.clash(9).is_none());

        let last = Call::from_bits(u16::MAX);
        let calls = [last, MEAN, MEAN];
        for (rank, own) in (0..).zip(calls) {
            let mut roll = roll(own, rank);
            roll.take(&sum(calls));
            assert!(!roll.has_agreed());
            assert_eq!(roll.is_odd(), rank == 0);
            let clash = roll.clash(9).expect("they differ");
            assert_eq!((clash.culprit.call, clash.others.call), (last, MEAN));
            let lanes = (clash.culprit.lanes, clash.others.lanes);
            assert_eq!(lanes, if rank == 0 { (9, 0) } else { (0, 9) });
        }
    }

    #[test]
    fn who_is_not_in_the_sum_has_said_nothing() {
        let mut roll = roll(MEAN, 1);
        let mut floats = [NOTHING; 3].concat();
        floats[4..8].copy_from_slice(&(f32::from(MEAN.to_bits()) + 1.0).to_le_bytes());
        floats[8..].copy_from_slice(&f32::NAN.to_le_bytes());
        roll.take(&floats);
        assert!(roll.has_agreed());
    }
}
