//! The values of a run, exact: up to the horizon, and of a cycle for ever.

use super::question::{Kind, Question};
use super::run::{Counts, Cycle, Delivered};
use core::cmp::Ordering;
use serde::{Serialize, Serializer};

/// A fraction, not reduced; 1/0 is infinite. Times and counts are below 2^22, sums of them below
/// 2^44, so that products of any two fractions fit.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// Above.
    pub numerator: u128,
    /// Below.
    pub denominator: u128,
}

impl Ratio {
    const INFINITE: Self = Self { numerator: 1, denominator: 0 };

    const fn whole(number: u64) -> Self {
        Self { numerator: number as u128, denominator: 1 }
    }

    const fn of(numerator: u128, denominator: u128) -> Self {
        Self { numerator, denominator }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            numerator: self.numerator * other.denominator - other.numerator * self.denominator,
            denominator: self.denominator * other.denominator,
        }
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.numerator * other.denominator).cmp(&(other.numerator * self.denominator))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ratio {}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.numerator, self.denominator).serialize(serializer)
    }
}

/// What a cluster's deliveries came to.
#[derive(Clone, Default)]
struct Account {
    first: Option<Delivered>,
    last: Option<Delivered>,
    peaks: u64,
    /// Sum of the peaks, and twice the age's time integral between first and last delivery.
    peak_sum: u128,
    twice_area: u128,
    /// The largest peak.
    peak: u64,
    /// The longest time to a delivery, from tick 0 on.
    gap: u64,
}

impl Account {
    fn take(&mut self, delivered: Delivered) {
        let before = self.last.replace(delivered);
        self.first.get_or_insert(delivered);
        self.gap = self.gap.max(delivered.end - before.map_or(0, |before| before.end));
        let Some(before) = before else { return };
        let peak = delivered.end - before.newest;
        self.peaks += 1;
        self.peak_sum += u128::from(peak);
        self.twice_area += twice_area(before, delivered.end);
        self.peak = self.peak.max(peak);
    }
}

/// Twice the integral of the age from a delivery to the next.
fn twice_area(from: Delivered, to: u64) -> u128 {
    let square = |age: u64| u128::from(age) * u128::from(age);
    square(to - from.newest) - square(from.end - from.newest)
}

/// Computes values; kept for its memory.
pub(super) struct Values {
    kind: Kind,
    about: Vec<usize>,
    horizon: u64,
    accounts: Vec<Account>,
}

impl Values {
    pub(super) fn new(question: &Question) -> Self {
        Self {
            kind: question.kind,
            about: question.about.clone(),
            horizon: question.horizon,
            accounts: vec![Account::default(); question.alike.len()],
        }
    }

    /// The value up to the horizon, a departure at the horizon with it or not; none where the
    /// objective has none.
    pub(super) fn until_horizon(
        &mut self,
        deliveries: &[Delivered],
        counts: Counts,
        last_counts: bool,
    ) -> Option<Ratio> {
        let horizon = self.horizon;
        let seen = |end| end < horizon || (last_counts && end == horizon);
        if self.kind == Kind::Loss {
            return share(counts);
        }
        self.read(deliveries.iter().take_while(|delivered| seen(delivered.end)));
        let mut accounts = self.about.iter().map(|cluster| &self.accounts[*cluster]);
        match self.kind {
            Kind::FairPeak => {
                let known = accounts.filter(|account| account.peaks > 0);
                widest(known.map(|account| Ratio::of(account.peak_sum, account.peaks.into())))
            }
            Kind::FairAge => widest(accounts.filter_map(|account| {
                let seen = horizon - account.first?.end;
                let area = account.twice_area + twice_area(account.last?, horizon);
                (seen > 0).then(|| Ratio::of(area, 2 * u128::from(seen)))
            })),
            Kind::WorstPeak => accounts
                .filter_map(|account| Some(account.peak.max(horizon - account.last?.newest)))
                .max()
                .map(Ratio::whole),
            Kind::Starvation => accounts
                .map(|account| account.gap.max(horizon - account.last.map_or(0, |last| last.end)))
                .max()
                .map(Ratio::whole),
            Kind::NoAverage => Some(Ratio::whole(
                accounts.by_ref().filter(|account| account.peaks == 0).count() as u64,
            )),
            Kind::Loss => unreachable!("answered above"),
        }
    }

    /// The value of a run that repeats itself: of averages what they tend to, of the others the
    /// largest at any time. Infinite where a cluster has its last delivery.
    pub(super) fn for_ever(&mut self, deliveries: &[Delivered], cycle: &Cycle) -> Option<Ratio> {
        let (from, to) = cycle.deliveries;
        let period = cycle.period;
        match self.kind {
            Kind::Loss => share(cycle.counts),
            Kind::NoAverage => {
                self.read(deliveries[from..to].iter());
                let mute = |cluster: &&usize| self.accounts[**cluster].last.is_none();
                Some(Ratio::whole(self.about.iter().filter(mute).count() as u64))
            }
            Kind::FairPeak | Kind::FairAge => {
                self.read(deliveries[from..to].iter());
                let peak = self.kind == Kind::FairPeak;
                widest(self.about.iter().filter_map(|cluster| {
                    let account = &self.accounts[*cluster];
                    let (again, last) = (account.first?.end + period, account.last?);
                    Some(if peak {
                        let sum = account.peak_sum + u128::from(again - last.newest);
                        Ratio::of(sum, u128::from(account.peaks) + 1)
                    } else {
                        let area = account.twice_area + twice_area(last, again);
                        Ratio::of(area, 2 * u128::from(period))
                    })
                }))
            }
            Kind::WorstPeak | Kind::Starvation => {
                let starvation = self.kind == Kind::Starvation;
                self.read(deliveries[..to].iter());
                let firsts = |cluster: usize| {
                    let mut of_cycle = deliveries[from..to].iter();
                    of_cycle.find(|delivered| delivered.cluster == cluster)
                };
                let of_cluster = |cluster: &usize| {
                    let account = &self.accounts[*cluster];
                    let Some(first) = firsts(*cluster) else {
                        let counts = starvation || account.last.is_some();
                        return counts.then_some(Ratio::INFINITE);
                    };
                    let (again, last) = (first.end + period, account.last?);
                    Some(Ratio::whole(if starvation {
                        account.gap.max(again - last.end)
                    } else {
                        account.peak.max(again - last.newest)
                    }))
                };
                self.about.iter().filter_map(of_cluster).max()
            }
        }
    }

    fn read<'a>(&mut self, deliveries: impl Iterator<Item = &'a Delivered>) {
        self.accounts.fill(Account::default());
        for delivered in deliveries {
            self.accounts[delivered.cluster].take(*delivered);
        }
    }
}

fn share(counts: Counts) -> Option<Ratio> {
    (counts.sent > 0).then(|| Ratio::of(counts.dropped.into(), counts.sent.into()))
}

/// Largest difference of two of them; none where there are fewer than two. A cluster may be named
/// twice: it differs from itself by nothing.
fn widest(means: impl Iterator<Item = Ratio>) -> Option<Ratio> {
    let mut known: Option<(Ratio, Ratio, usize)> = None;
    for mean in means {
        let (least, most, count) = known.unwrap_or((mean, mean, 0));
        known = Some((least.min(mean), most.max(mean), count + 1));
    }
    known.filter(|(_, _, count)| *count > 1).map(|(least, most, _)| most.minus(least))
}
