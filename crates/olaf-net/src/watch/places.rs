//! The places of an HTTP side, and who gives way when they are taken.
//!
//! A reader that opens connections and says nothing holds its places until a deadline. So one address has
//! a part of the places only, and a connection without a request gives way to the next one: a flood keeps
//! neither other addresses out nor an operator at the flood's own address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Connections at once.
const MOST: usize = 64;
/// Connections of one address at once: a page and several scrapers. Three quarters of the places stay free
/// for others.
const MOST_OF_ONE: usize = 16;
/// A connection that has asked is left in peace for this time. An answer takes a quarter of a second at
/// most until it is ready.
const GRACE: Duration = Duration::from_secs(1);

/// All places.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Table>>);

/// A place that was given; it is free again when this goes.
pub(super) struct Place {
    table: Arc<Mutex<Table>>,
    number: u64,
}

#[derive(Default)]
struct Table {
    /// In the order in which they came.
    holders: BTreeMap<u64, Holder>,
    next: u64,
}

struct Holder {
    reader: IpAddr,
    since: Instant,
    has_asked: bool,
    /// When it goes, the connection ends.
    _stays: oneshot::Sender<()>,
}

impl Places {
    /// A place for a connection from that address, and what ends when the place must be given up. None:
    /// the connection is to be closed at once.
    pub(super) fn take(&self, from: IpAddr) -> Option<(Place, oneshot::Receiver<()>)> {
        let (stays, ends) = oneshot::channel();
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.take(Instant::now(), one_reader(from), stays)?;
        Some((Place { table: self.0.clone(), number }, ends))
    }
}

impl Place {
    /// Its whole request came.
    pub(super) fn has_asked(&self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = table.holders.get_mut(&self.number) {
            holder.has_asked = true;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.holders.remove(&self.number);
    }
}

impl Table {
    fn take(&mut self, now: Instant, reader: IpAddr, stays: oneshot::Sender<()>) -> Option<u64> {
        if self.of(reader) >= MOST_OF_ONE {
            self.frees_one_of(now, reader)?;
        } else if self.holders.len() >= MOST {
            // Of several that have as many, the one whose connection is the oldest.
            let readers = self.holders.values().rev().map(|holder| holder.reader);
            let greediest = readers.max_by_key(|reader| self.of(*reader))?;
            self.frees_one_of(now, greediest)?;
        }
        self.next += 1;
        let holder = Holder { reader, since: now, has_asked: false, _stays: stays };
        self.holders.insert(self.next, holder);
        Some(self.next)
    }

    /// Connections of that reader.
    fn of(&self, reader: IpAddr) -> usize {
        self.holders.values().filter(|holder| holder.reader == reader).count()
    }

    /// Its oldest connection without a request gives way, or else one that takes its answer slowly.
    fn frees_one_of(&mut self, now: Instant, reader: IpAddr) -> Option<()> {
        let mut own = self.holders.iter().filter(|(_, holder)| holder.reader == reader);
        let silent = own.clone().find(|(_, holder)| !holder.has_asked);
        let slow = || own.find(|(_, holder)| now.duration_since(holder.since) >= GRACE);
        let number = *silent.or_else(slow)?.0;
        self.holders.remove(&number).map(|_| ())
    }
}

/// Who counts as one reader: an IPv4 address, or the 64 bits of an IPv6 address that a site chooses among
/// at will.
fn one_reader(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (!0 << 64))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Opens that number of connections, and returns their places.
    fn open(table: &mut Table, now: Instant, reader: IpAddr, count: usize) -> Vec<Option<u64>> {
        (0..count).map(|_| table.take(now, reader, oneshot::channel().0)).collect()
    }

    #[test]
    fn an_address_has_a_part_of_the_places_and_its_oldest_without_a_request_goes() {
        let (mut table, now) = (Table::default(), Instant::now());
        let first = open(&mut table, now, v4(1), MOST_OF_ONE);
        open(&mut table, now, v4(1), 500);
        assert_eq!((table.of(v4(1)), table.holders.len()), (MOST_OF_ONE, MOST_OF_ONE));
        assert!(!table.holders.contains_key(&first[0].expect("there was room")));
        assert!(open(&mut table, now, v4(2), MOST_OF_ONE).iter().all(Option::is_some));
    }

    #[test]
    fn who_asked_keeps_its_place_until_it_is_slow() {
        let (mut table, now) = (Table::default(), Instant::now());
        let asked = open(&mut table, now, v4(1), MOST_OF_ONE);
        table.holders.values_mut().for_each(|holder| holder.has_asked = true);
        assert_eq!(open(&mut table, now, v4(1), 1), [None]);
        assert!(open(&mut table, now + GRACE, v4(1), 1)[0].is_some());
        assert!(!table.holders.contains_key(&asked[0].expect("there was room")), "the oldest");
    }

    #[test]
    fn where_all_places_are_taken_the_address_with_most_gives_way() {
        let (mut table, now) = (Table::default(), Instant::now());
        open(&mut table, now, v4(0), 1);
        for reader in 1..10 {
            open(&mut table, now, v4(reader), MOST_OF_ONE);
        }
        assert_eq!(table.holders.len(), MOST);
        assert_eq!(table.of(v4(0)), 1, "it has one, and others have more");
        assert!(open(&mut table, now, v4(250), 1)[0].is_some());
    }

    #[test]
    fn of_many_addresses_with_one_connection_each_the_oldest_gives_way() {
        let (mut table, now) = (Table::default(), Instant::now());
        let places: Vec<_> = (0..=64).flat_map(|of| open(&mut table, now, v4(of), 1)).collect();
        assert!(places.iter().all(Option::is_some));
        assert_eq!((table.of(v4(0)), table.of(v4(1)), table.of(v4(64))), (0, 1, 1));
    }

    #[test]
    fn addresses_of_one_network_are_one_reader() {
        let of = |text: &str| one_reader(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
