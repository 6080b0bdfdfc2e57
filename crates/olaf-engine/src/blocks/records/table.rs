//! The hash table of block records: our own, so that its order depends on nothing but its keys.

use super::record::{Key, Record};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Records in buckets. A bucket is a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Table {
    /// The first record of each bucket.
    heads: Vec<Option<u32>>,
    records: Vec<Option<Record>>,
    free: Vec<u32>,
}

impl Table {
    /// A table with at least that many buckets.
    pub(super) fn new(buckets: u32) -> Self {
        let buckets = buckets.max(1).next_power_of_two() as usize;
        Self { heads: vec![None; buckets], records: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    pub(super) fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Blocks of a generation lie side by side, so that a scan of a part of the table finds its share
    /// of them; generations and jobs lie apart.
    fn bucket(&self, key: Key) -> usize {
        let apart = u32::from(key.generation).wrapping_mul(0x9e37_79b1)
            ^ u32::from(key.job).wrapping_mul(0x85eb_ca6b);
        (key.block.wrapping_mul(0xc2b2_ae35).rotate_left(16) ^ apart.rotate_left(8)) as usize
            & (self.heads.len() - 1)
    }

    fn place(&self, key: Key) -> Option<u32> {
        let mut next = self.heads[self.bucket(key)];
        while let Some(at) = next {
            let record = self.records[at as usize].as_ref().expect("a chain has records");
            if record.key == key {
                return Some(at);
            }
            next = record.next;
        }
        None
    }

    pub(super) fn get(&self, key: Key) -> Option<&Record> {
        self.records[self.place(key)? as usize].as_ref()
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Record> {
        let at = self.place(key)?;
        self.records[at as usize].as_mut()
    }

    /// Adds a record whose key has none.
    pub(super) fn insert(&mut self, mut record: Record) {
        let bucket = self.bucket(record.key);
        record.next = self.heads[bucket];
        let at = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            u32::try_from(self.records.len() - 1).expect("jobs bound the records")
        });
        self.records[at as usize] = Some(record);
        self.heads[bucket] = Some(at);
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Record> {
        let at = self.place(key)?;
        let bucket = self.bucket(key);
        let removed = self.records[at as usize].take()?;
        if self.heads[bucket] == Some(at) {
            self.heads[bucket] = removed.next;
        } else {
            let mut next = self.heads[bucket];
            while let Some(before) = next {
                let record = self.records[before as usize].as_mut().expect("a chain has records");
                if record.next == Some(at) {
                    record.next = removed.next;
                    break;
                }
                next = record.next;
            }
        }
        self.free.push(at);
        Some(removed)
    }

    /// Every record.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().flatten()
    }

    /// Shows every record of these buckets, in order.
    pub(super) fn scan(&mut self, buckets: Range<usize>, mut visit: impl FnMut(&mut Record)) {
        for bucket in buckets {
            let mut next = self.heads[bucket];
            while let Some(at) = next {
                let record = self.records[at as usize].as_mut().expect("a chain has records");
                visit(record);
                next = record.next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_is_found_until_it_is_removed(
            steps in prop::collection::vec((any::<bool>(), 0u8..2, 0u16..3, 0u32..20), 0..200),
        ) {
            let (mut table, mut slow) = (Table::new(4), BTreeSet::new());
            for (adds, job, generation, block) in steps {
                let key = Key { job, generation, block };
                if !adds {
                    prop_assert_eq!(table.remove(key).is_some(), slow.remove(&key));
                } else if slow.insert(key) {
                    table.insert(Record::new(Instant(0), key, (false, 0), Vec::new()));
                }
                prop_assert_eq!(table.len(), slow.len());
                let mut seen = BTreeSet::new();
                table.scan(0..4, |record| assert!(seen.insert(record.key)));
                prop_assert_eq!(&seen, &slow);
                prop_assert!(slow.iter().all(|key| table.get(*key).is_some_and(|r| r.key == *key)));
            }
        }
    }

    #[test]
    fn the_blocks_of_a_generation_spread_over_the_buckets() {
        let mut table = Table::new(4096);
        for block in 0..4096 {
            let key = Key { job: 1, generation: 9, block };
            table.insert(Record::new(Instant(0), key, (false, 0), Vec::new()));
        }
        let longest = (0..4096).map(|bucket| {
            let mut chain = 0;
            table.scan(bucket..bucket + 1, |_| chain += 1);
            chain
        });
        assert!(longest.max() <= Some(12), "a scan of a part finds about its share");
    }
}
