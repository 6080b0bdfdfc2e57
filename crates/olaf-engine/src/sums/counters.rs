//! What authorities count alike, in the names of `docs/reference/statistics.md`.

use crate::blocks::pool::Counts;
use crate::drop::DropReason;
use alloc::collections::BTreeMap;
use serde::Serialize;

/// Counts by the name of a reason.
pub type ByReason = BTreeMap<&'static str, u64>;

/// Counts a datagram that reached no table. The tables count those that they refuse.
pub fn refuse(refused: &mut ByReason, reason: DropReason) {
    if !matches!(reason, DropReason::Piece(_) | DropReason::Record(_)) {
        *refused.entry(reason.name()).or_default() += 1;
    }
}

/// What became of the pieces that met tables of two cells a slot: `received` is the sum of all others.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Pieces {
    pub received: u64,
    pub summed: u64,
    pub waiting: u64,
    pub late: u64,
    pub repeated: u64,
    pub held: u64,
    pub occupied: u64,
    pub given_up: u64,
    pub refused: ByReason,
}

impl Pieces {
    /// Those of tables that are forgotten, and those of the tables of now.
    pub fn of(forgotten: &Counts, tables: impl Iterator<Item = Counts>) -> Self {
        let mut all = forgotten.clone();
        tables.for_each(|table| all.add(&table));
        let refused = all.refused.iter();
        Self {
            received: all.received,
            summed: all.summed,
            waiting: all.waiting,
            late: all.late,
            repeated: all.repeated,
            held: all.held,
            occupied: all.occupied,
            given_up: all.given_up,
            refused: refused.map(|(reason, count)| (reason.name(), *count)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::pool::Reason;

    #[test]
    fn pieces_of_forgotten_tables_and_of_those_of_now_add_up() {
        let table = |received, waiting| {
            let refused = [(Reason::Mismatch, 1)].into();
            Counts {
                received,
                waiting,
                summed: received - waiting - 1,
                refused,
                ..Counts::default()
            }
        };
        let mut forgotten = Counts::default();
        forgotten.retire(&table(10, 4));
        assert_eq!((forgotten.waiting, forgotten.given_up), (0, 4));
        let all = Pieces::of(&forgotten, [table(20, 5)].into_iter());
        assert_eq!((all.received, all.waiting, all.given_up, all.summed), (30, 5, 4, 19));
        assert_eq!(all.refused.values().sum::<u64>(), 2);
        assert_eq!(all.received, all.waiting + all.given_up + all.summed + 2);
    }

    #[test]
    fn a_table_counts_what_it_refuses_itself() {
        let mut refused = ByReason::new();
        refuse(&mut refused, DropReason::Piece(Reason::Mismatch));
        assert!(refused.is_empty());
        refuse(&mut refused, DropReason::Mismatch);
        assert_eq!(refused.values().sum::<u64>(), 1);
    }
}
