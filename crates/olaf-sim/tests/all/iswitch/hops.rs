//! Network hops of an aggregation (iSwitch §2.3, §2.4): 4 with a parameter server, 4N - 4 in a ring, 2 with
//! iSwitch. Every link takes one millisecond and any number of bytes, so a time is a number of hops.

use super::job::*;
use super::party::Party;
use core::time::Duration;
use olaf_engine::{Instant, PeerId};
use olaf_sim::{Network, Wire};

const HOP: Duration = Duration::from_millis(1);
const PLAIN_SWITCH: PeerId = PeerId(500);
const SERVER: PeerId = PeerId(501);

fn wire() -> Wire {
    Wire { delay: HOP, ..Wire::default() }
}

/// A datagram that a plain switch passes on: its receiver, its sender, a number.
fn datagram(to: PeerId, from: PeerId, number: u32) -> Vec<u8> {
    [to.0, from.0, number].iter().flat_map(|field| field.to_be_bytes()).collect()
}

fn field(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap())
}

fn plain_network() -> Network {
    let mut net = Network::new(1, Instant(0));
    net.place(PLAIN_SWITCH, |_, _| {
        Box::new(Party::new(|bytes| vec![(PeerId(field(bytes, 0)), bytes.to_vec())]))
    });
    net
}

/// Hops until the last of these parties got its last datagram.
fn hops(net: &Network, parties: impl Iterator<Item = PeerId>) -> u128 {
    let last = parties.map(|id| net.node::<Party>(id).unwrap().came.last().unwrap().0);
    last.max().unwrap().since(Instant(0)).as_nanos() / HOP.as_nanos()
}

/// Every worker sends its gradient to the server, which sends the weights to all when it has every gradient.
fn of_parameter_server(workers: u32) -> u128 {
    let mut net = plain_network();
    let mut gradients = Vec::new();
    net.place(SERVER, move |_, _| {
        let mut gradients = core::mem::take(&mut gradients);
        Box::new(Party::new(move |bytes| {
            gradients.push(PeerId(field(bytes, 1)));
            let all = gradients.len() == workers as usize;
            let to = gradients.iter().filter(|_| all);
            to.map(|to| (PLAIN_SWITCH, datagram(*to, SERVER, 0))).collect()
        }))
    });
    net.join(SERVER, PLAIN_SWITCH, wire());
    for end in 0..workers {
        net.place(peer(end), |_, _| Box::new(Party::new(|_| Vec::new())));
        net.join(peer(end), PLAIN_SWITCH, wire());
        net.with(peer(end), |party: &mut Party, _| {
            party.send(PLAIN_SWITCH, datagram(SERVER, peer(end), 0));
        });
    }
    net.run_for(HOP * 1000);
    hops(&net, (0..workers).map(peer))
}

/// Every worker sends a part to the next one, 2 (N - 1) times: N - 1 to sum up, N - 1 to spread the sums.
fn of_ring(workers: u32) -> u128 {
    let mut net = plain_network();
    for end in 0..workers {
        let next = peer((end + 1) % workers);
        net.place(peer(end), move |_, _| {
            Box::new(Party::new(move |bytes| {
                let step = field(bytes, 2) + 1;
                let goes_on = step < 2 * (workers - 1);
                let send = || (PLAIN_SWITCH, datagram(next, peer(end), step));
                goes_on.then(send).into_iter().collect()
            }))
        });
        net.join(peer(end), PLAIN_SWITCH, wire());
        net.with(peer(end), |party: &mut Party, _| {
            party.send(PLAIN_SWITCH, datagram(next, peer(end), 0));
        });
    }
    net.run_for(HOP * 1000);
    hops(&net, (0..workers).map(peer))
}

fn of_iswitch(workers: u32, leaves: Vec<Option<u32>>) -> u128 {
    let mut job = Job::new(Setting { workers, leaves, wire: wire(), ..Setting::default() });
    job.run_for(HOP * 1000);
    let task = Task::sum(100, 0);
    job.begin_all(task);
    job.run_until_done(HOP * 1000);
    job.all_are_right(&[task]);
    let took = (0..workers).map(|end| job.outcome(end, 0).took).max().unwrap();
    took.as_nanos() / HOP.as_nanos()
}

#[test]
fn a_parameter_server_needs_four_hops() {
    assert_eq!([2, 4, 9].map(of_parameter_server), [4, 4, 4]);
}

#[test]
fn a_ring_needs_4n_less_4_hops() {
    let workers = [2, 4, 9];
    assert_eq!(workers.map(of_ring), workers.map(|n| u128::from(4 * n - 4)));
}

#[test]
fn iswitch_needs_two_hops_and_two_more_for_each_level() {
    assert_eq!([2, 4, 9].map(|workers| of_iswitch(workers, Vec::new())), [2, 2, 2]);
    let two_racks = (0..6).map(|end| Some(end % 2)).collect();
    assert_eq!(of_iswitch(6, two_racks), 4);
}
