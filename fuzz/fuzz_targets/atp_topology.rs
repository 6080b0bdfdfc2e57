//! Any text as a topology file of ATP: it is read or refused, and every worker that it names has a seat.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_host::collective::atp::{Path, Seating, Topology};
use olaf_wire::atp::LEVELS;
use std::collections::BTreeSet;

fuzz_target!(|text: &str| {
    let topology = match Topology::parse(text) {
        Ok(topology) => topology,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for job in [1, 7] {
        let paths: Vec<Path> = (0..2000).map_while(|rank| topology.path(job, rank)).collect();
        let seating = Seating::new(&paths, LEVELS);
        let places: BTreeSet<_> = seating.seats.iter().map(|seat| seat.bitmaps).collect();
        assert_eq!(places.len(), paths.len(), "no two workers have the same bits");
        paths.iter().for_each(|path| assert!(!topology.names(path).is_empty()));
    }
});
