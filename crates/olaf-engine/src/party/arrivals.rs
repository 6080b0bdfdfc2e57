//! Which datagrams came from the hop below, which came before, and which did not come.
//!
//! A sender numbers its updates of a job without gaps, from 1, in each of its lives. The receiver counts
//! the numbers that came and the numbers that were skipped. Both are counted apart from the fates of the
//! contributions, so that the accounts of a run can compare them: a contribution that was lost between
//! two parties is a number that the receiver never saw, and nothing else.

use crate::ids::{JobId, PeerId, Session};
use crate::table::{Hint, Table};
use alloc::vec::Vec;
use olaf_wire::{Update, serial};
use serde::Serialize;

/// What came of each sender, for its last lives.
#[derive(Debug)]
pub struct Arrivals {
    senders: Table<(JobId, PeerId), Sender>,
    most: usize,
    counts: Totals,
    /// Counts up with each datagram; says who was heard longest ago.
    clock: u64,
}

/// Sums over all lives, forgotten ones included.
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Totals {
    pub datagrams: u64,
    pub skipped: u64,
    pub late: u64,
    pub repeated: u64,
    pub unnumbered: u64,
    pub forgotten: u64,
    pub forgotten_contributions: u64,
}

#[derive(Debug, Default)]
struct Sender {
    heard: u64,
    /// The life that began last comes first. What an old life still had on the way may arrive after the
    /// new one's first, and counts once all the same.
    lives: Vec<Life>,
}

/// One life of a sender.
#[derive(Debug)]
struct Life {
    session: Session,
    worker: Option<u32>,
    first: u32,
    newest: u32,
    /// Which of the 1,024 numbers up to the newest came.
    seen: [u64; Life::WORDS],
    datagrams: u64,
    contributions: u64,
    skipped: u64,
    late: u64,
    repeated: u64,
}

/// A life of a sender, as reports say it.
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HopStatistics {
    pub job: u32,
    pub life: u32,
    pub worker: Option<u32>,
    pub first: u32,
    pub newest: u32,
    pub datagrams: u64,
    pub contributions: u64,
    pub missing: u64,
    pub late: u64,
    pub repeated: u64,
}

/// The report of all senders.
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Debug, Serialize)]
pub struct ArrivalStatistics {
    #[serde(flatten)]
    pub totals: Totals,
    pub hops: Vec<HopStatistics>,
}

impl Arrivals {
    /// Lives of one sender that are remembered. A sender cannot push out another sender's by naming new
    /// lives.
    const LIVES: usize = 8;
    const GONE: usize = 1024;

    /// Remembers that many senders at most. The one that was heard longest ago gives way.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { senders: Table::new(), most: most.max(1), counts: Totals::default(), clock: 0 }
    }

    /// Takes in the number of a datagram whose sender is known. Whether the datagram comes for the first
    /// time. A datagram far older than the newest cannot be told from a repetition, and counts as one.
    #[inline]
    pub fn is_news(&mut self, peer: PeerId, update: &Update) -> bool {
        self.is_news_at(peer, update, &mut Hint::default())
    }

    /// The same. The hint says where the sender was found last.
    #[inline]
    pub fn is_news_at(&mut self, peer: PeerId, update: &Update, hint: &mut Hint) -> bool {
        let key = (update.address.job, peer);
        self.clock += 1;
        if self.senders.at(&key, hint).is_none() {
            self.make_room();
        }
        let sender = self.senders.at_or_insert(key, hint, Sender::default);
        sender.heard = self.clock;
        let counts = &mut self.counts;
        let number = update.hop_sequence;
        let newest =
            sender.lives.first().is_some_and(|life| life.session == update.address.session);
        let at = if newest { 0 } else { sender.life_of(update, counts) };
        let life = &mut sender.lives[at];
        if number == life.newest.wrapping_add(1) && number != 0 {
            // The usual number: the next one.
            life.newest = number;
            life.mark(number);
            life.datagrams += 1;
            life.contributions += u64::from(update.contributors);
            counts.datagrams += 1;
            return true;
        }
        let (skipped, late) = (life.skipped, life.late);
        let is_news = life.is_news(number);
        if is_news {
            life.datagrams += 1;
            life.contributions += u64::from(update.contributors);
            counts.datagrams += 1;
        } else {
            life.repeated += 1;
            counts.repeated += 1;
        }
        counts.skipped += life.skipped - skipped;
        counts.late += life.late - late;
        is_news
    }

    /// Counts contributions of a datagram whose sender is not known, or that has no number.
    pub fn unnumbered(&mut self, contributions: u64) {
        self.counts.unnumbered += contributions;
    }

    /// The datagrams that were taken in so far, repeated ones included.
    #[must_use]
    pub const fn taken_in(&self) -> u64 {
        self.counts.datagrams + self.counts.repeated
    }

    /// Forgets a job, with all that it counted.
    pub fn forget_job(&mut self, id: JobId) {
        self.senders.retain(|(job, _), _| *job != id);
    }

    /// Forgets senders that went away: beside twice the senders that are here, the last 1,024 are
    /// remembered. An account of a run that is longer than that names them as forgotten.
    pub fn keep(&mut self, here: usize) {
        while self.senders.len() > here.saturating_mul(2).saturating_add(Self::GONE) {
            self.forget_oldest();
        }
    }

    #[inline(never)]
    fn make_room(&mut self) {
        if self.senders.len() >= self.most {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest =
            self.senders.iter().min_by_key(|(_, sender)| sender.heard).map(|(key, _)| *key);
        if let Some(sender) = oldest.and_then(|key| self.senders.remove(&key)) {
            sender.lives.iter().for_each(|life| self.counts.forget(life));
        }
    }

    /// All that came, by sender and life.
    #[must_use]
    pub fn statistics(&self) -> ArrivalStatistics {
        let lives = self.senders.iter().flat_map(|((job, _), sender)| {
            sender.lives.iter().rev().map(|life| life.statistics(*job))
        });
        ArrivalStatistics { totals: self.counts, hops: lives.collect() }
    }
}

impl Sender {
    /// Where the life is that an update names. A new life comes first.
    #[inline(never)]
    fn life_of(&mut self, update: &Update, counts: &mut Totals) -> usize {
        let session = update.address.session;
        if let Some(at) = self.lives.iter().position(|life| life.session == session) {
            return at;
        }
        if self.lives.len() == Arrivals::LIVES
            && let Some(life) = self.lives.pop()
        {
            counts.forget(&life);
        }
        // Most senders have one life. All that ever came are remembered: no room for more.
        self.lives.reserve_exact(1);
        let worker = (update.hops == 0).then_some(update.address.worker.0);
        self.lives.insert(0, Life::new(session, worker, update.hop_sequence));
        0
    }
}

impl Totals {
    fn forget(&mut self, life: &Life) {
        self.forgotten += 1;
        self.forgotten_contributions += life.contributions;
    }
}

impl Life {
    const WORDS: usize = 16;
    const WINDOW: u32 = Self::WORDS as u32 * 64;

    fn new(session: Session, worker: Option<u32>, number: u32) -> Self {
        Self {
            session,
            worker,
            first: number,
            // The number itself is still to come.
            newest: before(number),
            seen: [0; Self::WORDS],
            datagrams: 0,
            contributions: 0,
            skipped: 0,
            late: 0,
            repeated: 0,
        }
    }

    fn is_news(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.newest);
        if serial::is_after(number, self.newest) {
            for skipped in 1..=ahead.min(Self::WINDOW) {
                self.clear(self.newest.wrapping_add(skipped));
            }
            self.skipped += u64::from(between(self.newest, number));
            self.newest = number;
            self.mark(number);
            return true;
        }
        let behind = self.newest.wrapping_sub(number);
        if behind >= Self::WINDOW || self.is_marked(number) {
            return false;
        }
        self.mark(number);
        if serial::is_after(self.first, number) {
            // It was sent before the first that came.
            self.skipped += u64::from(between(number, self.first));
            self.first = number;
        } else {
            self.late += 1;
        }
        true
    }

    fn statistics(&self, job: JobId) -> HopStatistics {
        HopStatistics {
            job: job.0,
            life: self.session.0,
            worker: self.worker,
            first: self.first,
            newest: self.newest,
            datagrams: self.datagrams,
            contributions: self.contributions,
            missing: self.skipped - self.late,
            late: self.late,
            repeated: self.repeated,
        }
    }

    fn place(number: u32) -> (usize, u64) {
        let bit = number % Self::WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn mark(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.seen[word] &= !bit;
    }

    fn is_marked(&self, number: u32) -> bool {
        let (word, bit) = Self::place(number);
        self.seen[word] & bit != 0
    }
}

/// The number that comes before: 0 is none.
const fn before(number: u32) -> u32 {
    match number {
        1 => u32::MAX,
        other => other.wrapping_sub(1),
    }
}

/// Numbers that lie between two, neither of them included: 0 is none.
pub(crate) const fn between(earlier: u32, later: u32) -> u32 {
    let passes_none = later < earlier && later != 0;
    later.wrapping_sub(earlier).saturating_sub(1).saturating_sub(passes_none as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    const PEER: PeerId = PeerId(7);

    fn numbered(life: u32, number: u32) -> Update {
        let mut update = olaf_samples::update(olaf_samples::address(1, 0, 3), 1);
        update.address.session = Session(life);
        (update.hop_sequence, update.hops, update.contributors) = (number, 0, 1);
        update
    }

    fn only(arrivals: &Arrivals) -> HopStatistics {
        let [one] = arrivals.statistics().hops[..] else { panic!("one life") };
        one
    }

    proptest! {
        #[test]
        fn numbers_are_known_and_missed_as_in_a_set(
            start in prop_oneof![Just(5_000u32), Just(u32::MAX - 200)],
            steps in prop::collection::vec(-40i64..60, 1..400),
        ) {
            let mut arrivals = Arrivals::new(4);
            let mut seen = BTreeSet::new();
            let mut newest = 0i64;
            for step in steps {
                let place = newest + step;
                newest = newest.max(place);
                // The sender's numbers skip 0.
                let number = i64::from(start) + place;
                let number = if number > i64::from(u32::MAX) { number + 1 } else { number };
                let news = seen.insert(place);
                prop_assert_eq!(arrivals.is_news(PEER, &numbered(1, number as u32)), news);
            }
            let one = only(&arrivals);
            let span = seen.last().expect("one came") - seen.first().expect("one came") + 1;
            prop_assert_eq!(one.datagrams, seen.len() as u64);
            prop_assert_eq!(one.missing, span as u64 - one.datagrams);
        }
    }

    #[test]
    fn what_did_not_come_is_missing_until_it_comes_late() {
        let mut arrivals = Arrivals::new(4);
        for number in [3, 4, 7, 7, 5, 2] {
            arrivals.is_news(PEER, &numbered(1, number));
        }
        let one = only(&arrivals);
        assert_eq!((one.first, one.newest, one.datagrams, one.missing), (2, 7, 5, 1));
        assert_eq!((one.late, one.repeated, one.contributions), (1, 1, 5));
        let totals = arrivals.statistics().totals;
        assert_eq!((totals.datagrams, totals.skipped, totals.late, totals.repeated), (5, 2, 1, 1));
    }

    #[test]
    fn what_is_older_than_the_window_cannot_be_told_from_a_repetition() {
        let mut arrivals = Arrivals::new(1);
        let came = [1, 2_000, 977, 977, 976, 975, 1].map(|number| {
            let is_news = arrivals.is_news(PeerId(1), &numbered(1, number));
            (number, is_news)
        });
        let news = came.into_iter().filter(|(_, is_news)| *is_news).map(|(number, _)| number);
        assert_eq!(news.collect::<Vec<_>>(), [1, 2_000, 977], "1,024 numbers are known");
        let only = only(&arrivals);
        assert_eq!((only.datagrams, only.late, only.repeated), (3, 1, 4));
    }

    #[test]
    fn another_life_of_the_sender_counts_from_anew_and_the_old_one_is_remembered() {
        let mut arrivals = Arrivals::new(4);
        let mut is_news = |life, number| arrivals.is_news(PEER, &numbered(life, number));
        assert!(is_news(1, 1) && !is_news(1, 1));
        assert!(is_news(2, 1));
        assert!(is_news(1, 2));
        assert!(!is_news(2, 1) && !is_news(1, 1));
    }

    #[test]
    fn a_sender_that_names_new_lives_pushes_out_no_other_sender() {
        let mut arrivals = Arrivals::new(4);
        assert!(arrivals.is_news(PeerId(1), &numbered(1, 1)));
        for life in 0..100 {
            arrivals.is_news(PEER, &numbered(life, 1));
        }
        assert!(!arrivals.is_news(PeerId(1), &numbered(1, 1)));
        let found = arrivals.statistics();
        assert_eq!((found.hops.len(), found.totals.forgotten), (1 + Arrivals::LIVES, 92));
        assert_eq!(found.totals.forgotten_contributions, 92);
    }

    #[test]
    fn the_sender_that_was_heard_longest_ago_gives_way() {
        let mut arrivals = Arrivals::new(2);
        for peer in [1, 2, 1, 3] {
            arrivals.is_news(PeerId(peer), &numbered(peer, 1));
        }
        let lives: Vec<_> = arrivals.statistics().hops.iter().map(|hop| hop.life).collect();
        assert_eq!(lives, [1, 3]);
    }

    #[test]
    fn the_last_thousand_senders_are_remembered_and_those_that_are_here() {
        let mut arrivals = Arrivals::new(1 << 20);
        for peer in 0..3_000 {
            arrivals.is_news(PeerId(peer), &numbered(peer, 1));
            arrivals.is_news(PeerId(0), &numbered(0, 1 + peer));
        }
        arrivals.keep(1_000);
        assert_eq!(arrivals.statistics().hops.len(), 3_000);
        arrivals.keep(10);
        let ArrivalStatistics { totals, hops } = arrivals.statistics();
        assert_eq!((hops.len(), totals.forgotten), (1_044, 1_956));
        assert_eq!(totals.forgotten_contributions, 1_956);
        let lives: BTreeSet<_> = hops.iter().map(|hop| hop.life).collect();
        assert_eq!(lives, (1_957..3_000).chain([0]).collect());
        assert!(!arrivals.is_news(PeerId(0), &numbered(0, 3_000)), "it is not forgotten");
    }
}
