//! How many bytes each party sends and receives (ATP §A.5, §5.2.2).

use super::job::*;
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_host::collective::atp::Options;
use olaf_sim::Lot;
use olaf_wire::atp::{AtpPacket, Kind};

const LANES: usize = 62 * 96;
/// |U|, the bytes to be summed.
const U: usize = 4 * LANES;

/// Bytes of values that a party sent, and that it received.
fn values(jobs: &Jobs, at: PeerId) -> (usize, usize) {
    let mut sums = (0, 0);
    for record in jobs.net.trace() {
        let Ok(packet) = AtpPacket::new_checked(&record.bytes) else { continue };
        if !matches!(packet.kind(), Kind::Gradient | Kind::Parameters) {
            continue;
        }
        match record.lot {
            Lot::Sent if record.from == at => sums.0 += packet.values().len(),
            Lot::Delivered if record.to == at => sums.1 += packet.values().len(),
            _ => {}
        }
    }
    sums
}

fn run(racks: Vec<u32>, servers: u8) -> Jobs {
    let own = Options { servers, ..Options::default() };
    let mut jobs = Jobs::new(Setting { racks, own, keeps_records: true, ..Setting::default() });
    let task = Task::sum(LANES, 0);
    jobs.begin_all(0, task);
    jobs.run_until_done(Duration::from_secs(10));
    jobs.all_are_right(0, &[task]);
    jobs
}

#[test]
fn a_worker_moves_twice_the_bytes_and_each_of_m_servers_an_mth_of_that() {
    // With 16,384 aggregators and 96 fragments, the seed has no collision.
    for (racks, servers) in [(vec![4], 1), (vec![4], 2), (vec![4], 4), (vec![2, 2, 0], 1)] {
        let jobs = run(racks.clone(), servers);
        for rank in 0..4 {
            assert_eq!(values(&jobs, worker(0, rank)), (U, U), "{racks:?}, {servers} servers");
        }
        for index in 0..u32::from(servers) {
            let m = usize::from(servers);
            assert_eq!(values(&jobs, server(index)), (U / m, U / m), "{racks:?}, {m} servers");
        }
    }
}

#[test]
fn two_levels_bring_the_server_a_third_of_what_racks_alone_do() {
    // Figure 9: w0 and w1 at SW0, w2 and w3 at SW1, w4 and w5 at SW2 with the server.
    let jobs = run(vec![2, 2, 2], 1);
    assert_eq!(values(&jobs, server(0)), (U, U));
    for number in 0..2 {
        assert_eq!(values(&jobs, rack(number)).0, U + 2 * U, "its sum up, and two copies down");
    }
    // A solution of one level sends the server the sums of three switches.
    let of = jobs.server(0).statistics().gradients;
    assert_eq!((of.sums, of.received), (96, 96));
}
