//! The header of a sum, and how two become one.
//!
//! A worker sends one contribution; a queue, a worker's outbox and a server's collection add
//! contributions to each other. The lanes of a sum stand apart (see [`crate::lanes`]): each holder
//! keeps them in a buffer of its own.

use crate::ids::{Flow, WorkerId};
use olaf_wire::offsets::LANE;
use olaf_wire::{Address, Session, Update};

/// One worker's contribution, or the sum of several: everything but the lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// The flow: contributions of one flow may merge.
    pub flow: Flow,
    /// The worker; of a sum, the first contributor.
    pub worker: WorkerId,
    /// That worker's count of its updates.
    pub sequence: u32,
    /// Segments the model has.
    pub segments: u32,
    /// Contributions in the sum.
    pub contributors: u32,
    /// Their weights, summed; finite and above 0.
    pub weight: f64,
    /// Their mean reward by weight.
    pub reward: f64,
    /// Generation times of the oldest and the newest contribution, nanoseconds.
    pub generated_ns: (u64, u64),
    /// Model versions that the oldest and the newest contribution were computed on.
    pub versions: (u32, u32),
    /// Most switches that a contribution has passed.
    pub hops: u8,
    /// Bytes the sum takes on the link: the largest contribution's.
    pub bytes: u32,
}

/// Why two contributions have no sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSum {
    /// A reward is not a finite number.
    NonFinite,
    /// The contributors, the weights or the rewards are too many or too large for one number.
    Overflow,
}

impl Contribution {
    /// One worker's contribution to a model of one segment, with a weight of 1 and a reward of 0.
    #[must_use]
    pub const fn of_one(flow: Flow, worker: WorkerId, generated_ns: u64, bytes: u32) -> Self {
        Self {
            flow,
            worker,
            sequence: 0,
            segments: 1,
            contributors: 1,
            weight: 1.0,
            reward: 0.0,
            generated_ns: (generated_ns, generated_ns),
            versions: (0, 0),
            hops: 0,
            bytes,
        }
    }

    /// The contribution that an update carries. It takes `bytes` on the link.
    #[must_use]
    pub const fn of_update(update: &Update, bytes: u32) -> Self {
        Self {
            flow: Flow {
                job: update.address.job,
                cluster: update.address.cluster,
                segment: update.segment,
            },
            worker: update.address.worker,
            sequence: update.sequence,
            segments: update.segments,
            contributors: update.contributors,
            weight: update.weight,
            reward: update.reward,
            generated_ns: (update.generated_oldest_ns, update.generated_newest_ns),
            versions: (update.version_oldest, update.version_newest),
            hops: update.hops,
            bytes,
        }
    }

    /// The update that carries this contribution: `session` names its sender's life, the two
    /// sequences are its sender's counts.
    #[must_use]
    pub const fn to_update(
        &self,
        session: Session,
        hop_sequence: u32,
        flow_sequence: u32,
    ) -> Update {
        let Flow { job, cluster, segment } = self.flow;
        Update {
            address: Address { job, cluster, worker: self.worker, session },
            sequence: self.sequence,
            hop_sequence,
            flow_sequence,
            segment,
            segments: self.segments,
            generated_oldest_ns: self.generated_ns.0,
            generated_newest_ns: self.generated_ns.1,
            version_oldest: self.versions.0,
            version_newest: self.versions.1,
            contributors: self.contributors,
            weight: self.weight,
            reward: self.reward,
            hops: self.hops,
        }
    }

    /// Adds another contribution to this one, which keeps its flow, its worker and its sequence.
    ///
    /// differs: OLAF §2.1 averages two updates at a time, which weighs late contributors more. A
    /// sum and a weight give the same mean in any order, and the server divides once. Example: 1, 3
    /// and 10 averaged in this order give ((1 + 3) / 2 + 10) / 2 = 6; their mean is 4.67.
    ///
    /// # Errors
    /// Why the two have no sum; this one stays as it was.
    #[inline]
    pub fn merge(&mut self, other: &Self) -> Result<(), NoSum> {
        let totals = self.totals(other)?;
        self.take_in(other, totals);
        Ok(())
    }

    /// The sum of the two, under this one's name.
    ///
    /// # Errors
    /// Why the two have no sum.
    #[inline]
    pub fn with(mut self, other: &Self) -> Result<Self, NoSum> {
        self.merge(other)?;
        Ok(self)
    }

    /// The first half of a merge: the numbers that may have no sum. A holder that adds the lanes
    /// between the two halves can still refuse the contribution, and changes nothing.
    ///
    /// # Errors
    /// Why the two have no sum.
    #[inline]
    pub(crate) fn totals(&self, other: &Self) -> Result<Totals, NoSum> {
        if !other.reward.is_finite() {
            return Err(NoSum::NonFinite);
        }
        // The mean is computed by shares of the weight, not by sums of products: the product of a
        // reward and a huge weight can overflow where the mean does not. Example: a reward of 8 at
        // a weight of 1e308 is 8 in the mean, but the product of the two is infinite.
        self.totals_with(other, |weight| {
            self.reward * (self.weight / weight) + other.reward * (other.weight / weight)
        })
    }

    /// Returns true if the reward times the weight is a finite number. A queue takes nothing else
    /// in: an infinite product that waits would turn away every honest contribution of its flow.
    #[inline]
    pub(crate) fn has_product(&self) -> bool {
        (self.reward * self.weight).is_finite()
    }

    /// [`Contribution::totals`] with the mean reward as hardware computes it: a sum of products,
    /// divided once. `products` is the sum of each reward times its weight in this contribution;
    /// `None` if it was never merged. Returns the new sum of products, too.
    ///
    /// A sum of products costs one addition for each arrival, which an adder in hardware can do at
    /// every second beat; shares of the weight would need two divisions before the next arrival
    /// (docs/design/037-rtl.md). The price: contributions whose sum of products overflows have no
    /// sum, also where their mean would be finite.
    ///
    /// # Errors
    /// Why the two have no sum.
    #[inline]
    pub(crate) fn totals_by_products(
        &self,
        products: Option<f64>,
        other: &Self,
    ) -> Result<(Totals, f64), NoSum> {
        if !other.has_product() {
            return Err(NoSum::NonFinite);
        }
        let products = products.unwrap_or(self.reward * self.weight) + other.reward * other.weight;
        let totals = self.totals_with(other, |weight| products / weight)?;
        Ok((totals, products))
    }

    /// The totals, with the mean reward at the sum of the weights.
    #[inline]
    fn totals_with(
        &self,
        other: &Self,
        reward_at: impl FnOnce(f64) -> f64,
    ) -> Result<Totals, NoSum> {
        let contributors =
            self.contributors.checked_add(other.contributors).ok_or(NoSum::Overflow)?;
        let weight = self.weight + other.weight;
        let reward = reward_at(weight);
        if !weight.is_finite() || !reward.is_finite() {
            return Err(NoSum::Overflow);
        }
        Ok(Totals { contributors, weight, reward })
    }

    /// The second half of a merge.
    #[inline]
    pub(crate) fn take_in(&mut self, other: &Self, totals: Totals) {
        let Totals { contributors, weight, reward } = totals;
        (self.contributors, self.weight, self.reward) = (contributors, weight, reward);
        self.generated_ns = widen(self.generated_ns, other.generated_ns);
        self.versions = widen(self.versions, other.versions);
        self.hops = self.hops.max(other.hops);
        self.bytes = self.bytes.max(other.bytes);
    }
}

/// The numbers of a sum that can overflow.
#[derive(Clone, Copy)]
pub(crate) struct Totals {
    contributors: u32,
    weight: f64,
    reward: f64,
}

/// Bytes of the datagram of an update with these lanes.
#[must_use]
pub fn datagram_bytes(lanes: &[u8]) -> u32 {
    u32::try_from(Update::datagram_len(lanes.len() / LANE)).unwrap_or(u32::MAX)
}

fn widen<T: Ord>(a: (T, T), b: (T, T)) -> (T, T) {
    (a.0.min(b.0), a.1.max(b.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(weight: f64, reward: f64) -> Contribution {
        Contribution {
            weight,
            reward,
            ..Contribution::of_one(Flow::default(), WorkerId(1), 7, 100)
        }
    }

    /// The slow, obvious reference model: the mean by products of rewards and weights, scaled down first.
    fn reference(a: &Contribution, b: &Contribution) -> Option<Contribution> {
        let contributors = u64::from(a.contributors) + u64::from(b.contributors);
        let scale = 2f64.powi(-600);
        let products = a.reward * (a.weight * scale) + b.reward * (b.weight * scale);
        let weight = a.weight + b.weight;
        if !a.reward.is_finite() || !b.reward.is_finite() || weight.is_infinite() {
            return None;
        }
        Some(Contribution {
            contributors: u32::try_from(contributors).ok()?,
            weight,
            reward: products / (a.weight * scale + b.weight * scale),
            generated_ns: (
                a.generated_ns.0.min(b.generated_ns.0),
                a.generated_ns.1.max(b.generated_ns.1),
            ),
            versions: (a.versions.0.min(b.versions.0), a.versions.1.max(b.versions.1)),
            hops: a.hops.max(b.hops),
            bytes: a.bytes.max(b.bytes),
            ..*a
        })
    }

    fn any_contribution() -> impl Strategy<Value = Contribution> {
        let weights = prop_oneof![1e-3..1e3, Just(f64::MAX / 4.0), Just(f64::MAX)];
        let rewards = prop_oneof![8 => -1e3..1e3, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)];
        let counts = prop_oneof![8 => 1u32..9, 1 => Just(u32::MAX)];
        let times = (0u64..99, 0u64..99, 0u32..99, 0u32..99);
        (weights, rewards, counts, times, 0u8..5, 1u32..999).prop_map(
            |(weight, reward, contributors, at, hops, bytes)| Contribution {
                contributors,
                generated_ns: (at.0, at.0 + at.1),
                versions: (at.2, at.2 + at.3),
                hops,
                bytes,
                ..of(weight, reward)
            },
        )
    }

    #[test]
    fn a_sum_of_weights_near_the_largest_number_has_a_mean() {
        let mut sum = of(f64::MAX / 2.0, 8.0);
        assert_eq!(sum.merge(&of(f64::MAX / 2.0, 4.0)), Ok(()));
        assert_eq!((sum.weight, sum.reward, sum.contributors), (f64::MAX, 6.0, 2));
        let before = sum;
        assert_eq!(sum.merge(&of(f64::MAX, 4.0)), Err(NoSum::Overflow));
        assert_eq!(sum, before);
    }

    #[test]
    fn a_sum_of_rewards_near_the_largest_number_has_a_mean() {
        let mut sum = of(2.0, f64::MAX);
        assert_eq!(sum.merge(&of(2.0, f64::MAX)), Ok(()));
        assert_eq!((sum.weight, sum.reward), (4.0, f64::MAX));
    }

    #[test]
    fn an_update_and_its_contribution_say_the_same() {
        let sum = Contribution { sequence: 3, segments: 5, hops: 2, ..of(1.5, 8.0) };
        let update = sum.to_update(Session(9), 11, 12);
        assert_eq!(Contribution::of_update(&update, sum.bytes), sum);
        assert_eq!(
            (update.address.session, update.hop_sequence, update.flow_sequence),
            (Session(9), 11, 12)
        );
    }

    proptest! {
        #[test]
        fn merging_is_what_the_reference_says(a in any_contribution(), b in any_contribution()) {
            prop_assume!(a.reward.is_finite());
            match (a.with(&b), reference(&a, &b)) {
                (Ok(sum), Some(reference)) => {
                    let near = (sum.reward - reference.reward).abs() <= 1e-9 * (a.reward.abs() + b.reward.abs() + 1.0);
                    prop_assert!(near, "{:?} against {:?}", sum, reference);
                    prop_assert_eq!(Contribution { reward: 0.0, ..sum }, Contribution { reward: 0.0, ..reference });
                }
                (sum, reference) => prop_assert!(sum.is_err() && reference.is_none(), "{:?} {:?}", sum, reference),
            }
        }

        #[test]
        fn merging_gives_the_same_in_any_order(a in any_contribution(), b in any_contribution()) {
            prop_assume!(a.reward.is_finite() && b.reward.is_finite());
            let named = |sum: Contribution| Contribution { worker: WorkerId(0), sequence: 0, ..sum };
            prop_assert_eq!(a.with(&b).map(named), b.with(&a).map(named));
        }

        #[test]
        fn three_give_the_same_mean_however_they_are_paired(
            a in any_contribution(), b in any_contribution(), c in any_contribution(),
        ) {
            let one = a.with(&b).and_then(|ab| ab.with(&c));
            let other = b.with(&c).and_then(|bc| a.with(&bc));
            if let (Ok(one), Ok(other)) = (one, other) {
                let scale = a.reward.abs() + b.reward.abs() + c.reward.abs() + 1.0;
                prop_assert!((one.reward - other.reward).abs() <= 1e-9 * scale);
                prop_assert!((one.weight / other.weight - 1.0).abs() <= 1e-12);
            }
        }
    }
}
