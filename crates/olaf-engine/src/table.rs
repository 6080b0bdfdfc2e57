//! A map whose look-ups can be remembered.
//!
//! An update meets a dozen maps: of jobs, workers, clusters, senders, open entries. The next update of
//! its flow finds the same places in them. A [`Hint`] is such a place, and it is checked at each use: the
//! row that it names must have the key that is looked for. So no removal, restart or eviction has to
//! call a hint back. A wrong hint costs a look-up and nothing else.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map;
use alloc::vec::Vec;
use core::ops::Index;

/// A map in the order of its keys. Values lie in rows, which stay where they are.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    index: BTreeMap<K, u32>,
    rows: Vec<Option<(K, V)>>,
    free: Vec<u32>,
}

/// Where a key was found last. It may be wrong at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint(u32);

impl Default for Hint {
    /// The first row: where a table of one key has it, as tables of jobs and of clusters mostly do.
    fn default() -> Self {
        Self::FIRST
    }
}

impl Hint {
    const FIRST: Self = Self(0);
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Table<K, V> {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { index: BTreeMap::new(), rows: Vec::new(), free: Vec::new() }
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns true if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

impl<K: Copy + Ord, V> Table<K, V> {
    /// The value of a key, looked for at the hint first. The hint says from then on where it is.
    #[inline]
    pub fn at(&mut self, key: &K, hint: &mut Hint) -> Option<&mut V> {
        // The branch of the right hint uses what the comparison has found: the row is looked at once.
        if self.is_at(key, *hint) {
            return self.rows[hint.0 as usize].as_mut().map(|(_, value)| value);
        }
        self.find(key, hint)
    }

    /// The same. A key that is missing gets its value first.
    #[inline]
    pub fn at_or_insert(&mut self, key: K, hint: &mut Hint, value: impl FnOnce() -> V) -> &mut V {
        if self.is_at(&key, *hint) {
            return &mut self.rows[hint.0 as usize].as_mut().expect("its key was just seen").1;
        }
        *hint = self.find_or_insert(key, value);
        &mut self.rows[hint.0 as usize].as_mut().expect("the row of a key is filled").1
    }

    #[inline]
    fn is_at(&self, key: &K, hint: Hint) -> bool {
        matches!(self.rows.get(hint.0 as usize), Some(Some((found, _))) if found == key)
    }

    #[inline(never)]
    fn find(&mut self, key: &K, hint: &mut Hint) -> Option<&mut V> {
        *hint = Hint(*self.index.get(key)?);
        self.rows[hint.0 as usize].as_mut().map(|(_, value)| value)
    }

    #[inline(never)]
    fn find_or_insert(&mut self, key: K, value: impl FnOnce() -> V) -> Hint {
        match self.index.entry(key) {
            btree_map::Entry::Occupied(row) => Hint(*row.get()),
            btree_map::Entry::Vacant(place) => {
                let filled = Some((key, value()));
                let row = match self.free.pop() {
                    Some(row) => {
                        self.rows[row as usize] = filled;
                        row
                    }
                    None => {
                        self.rows.push(filled);
                        u32::try_from(self.rows.len() - 1).expect("the limits are far below")
                    }
                };
                Hint(*place.insert(row))
            }
        }
    }

    /// The value of a key. A missing key gets its value first.
    pub fn get_or_insert(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        self.at_or_insert(key, &mut Hint::default(), value)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_at(key, Hint::FIRST)
    }

    /// The value of a key, looked for at the hint first.
    #[must_use]
    #[inline]
    pub fn get_at(&self, key: &K, hint: Hint) -> Option<&V> {
        if self.is_at(key, hint) {
            return self.rows[hint.0 as usize].as_ref().map(|(_, value)| value);
        }
        self.look_up(key)
    }

    #[inline(never)]
    fn look_up(&self, key: &K) -> Option<&V> {
        let row = *self.index.get(key)?;
        self.rows[row as usize].as_ref().map(|(_, value)| value)
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.at(key, &mut Hint::default())
    }

    /// Returns true if there is that key.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.index.contains_key(key)
    }

    /// Gives a key that value. Returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let mut new = Some(value);
        let known = self.get_or_insert(key, || new.take().expect("it is asked for once"));
        new.map(|value| core::mem::replace(known, value))
    }

    /// Takes a key out. Returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let row = self.index.remove(key)?;
        self.free.push(row);
        self.rows[row as usize].take().map(|(_, value)| value)
    }

    /// Takes out those that are not to be kept. It asks in the order of the keys.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        let Self { index, rows, free } = self;
        index.retain(|key, row| {
            let place = &mut rows[*row as usize];
            let stays = place.as_mut().is_some_and(|(_, value)| keeps(key, value));
            if !stays {
                *place = None;
                free.push(*row);
            }
            stays
        });
    }

    /// All of them, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.index.values().filter_map(|row| self.rows[*row as usize].as_ref()).map(|(k, v)| (k, v))
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = &K> + Clone {
        self.index.keys()
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Looks at all of them, in the order of the keys.
    pub fn for_each_mut(&mut self, mut look: impl FnMut(&K, &mut V)) {
        for row in self.index.values() {
            if let Some((key, value)) = &mut self.rows[*row as usize] {
                look(key, value);
            }
        }
    }
}

impl<K: Copy + Ord, V> Index<&K> for Table<K, V> {
    type Output = V;

    /// # Panics
    /// Where the key is missing.
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hint_of_a_row_that_another_key_has_now_is_not_believed() {
        let mut table = Table::new();
        let mut hint = Hint::default();
        *table.at_or_insert(1, &mut hint, || 10) += 1;
        assert_eq!(table.remove(&1), Some(11));
        assert_eq!(table.at(&1, &mut hint), None);
        table.insert(2, 20);
        assert_eq!(table.rows.len(), 1, "key 2 has the row of key 1");
        assert_eq!(table.at(&1, &mut hint), None);
        assert_eq!(*table.at_or_insert(1, &mut hint, || 12), 12);
        assert_eq!(table.at(&1, &mut hint), Some(&mut 12));
        assert_eq!(table.rows.len(), 2);
    }

    proptest! {
        #[test]
        fn whatever_is_remembered_a_table_is_a_map(
            steps in prop::collection::vec((0u8..6, 0u8..12, any::<u16>(), 0usize..4), 1..300),
        ) {
            let (mut table, mut map) = (Table::new(), BTreeMap::new());
            // Few hints for many keys: most of them are wrong.
            let mut hints = [Hint::default(); 4];
            for (verb, key, value, hint) in steps {
                let hint = &mut hints[hint];
                match verb {
                    0 => prop_assert_eq!(table.insert(key, value), map.insert(key, value)),
                    1 => prop_assert_eq!(table.remove(&key), map.remove(&key)),
                    2 => prop_assert_eq!(table.at(&key, hint), map.get_mut(&key)),
                    3 => {
                        let found = table.at_or_insert(key, hint, || value);
                        prop_assert_eq!(&mut *found, map.entry(key).or_insert(value));
                    }
                    4 => {
                        let keeps = |other: &u8, _: &mut u16| other % 3 != key % 3;
                        table.retain(keeps);
                        map.retain(keeps);
                    }
                    _ => {
                        table.for_each_mut(|_, of| *of = of.wrapping_add(value));
                        map.values_mut().for_each(|of| *of = of.wrapping_add(value));
                    }
                }
                prop_assert!(table.iter().eq(map.iter()) && table.keys().eq(map.keys()));
                prop_assert_eq!((table.len(), table.contains_key(&key)), (map.len(), map.contains_key(&key)));
                prop_assert_eq!(table.get(&key), map.get(&key));
                prop_assert_eq!(table.get_at(&key, *hint), map.get(&key));
            }
            prop_assert!(table.rows.len() <= 12, "rows are used again");
        }
    }
}
