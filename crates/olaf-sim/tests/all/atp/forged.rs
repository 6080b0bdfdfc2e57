//! A stranger who knows everything that workers write sends leaves for them, and sends gradients for them.

use super::job::*;
use olaf_engine::switch::atp::Switch;
use olaf_engine::{Engine, PeerId, PortId, Source, Verdict};
use olaf_host::collective::atp::{AtpServer, Options};
use olaf_wire::Session;
use olaf_wire::atp::{Header, Key, Leave};
use olaf_wire::reduce::Reason;

const STRANGER: PeerId = PeerId(66);
const BELOW: Source = Source::new(PortId::DOWNLINK, STRANGER);

fn leave_of(jobs: &Jobs, rank: u32) -> Vec<u8> {
    let session = Session(jobs.worker(0, rank).statistics().session);
    let mut buf = vec![0; 64];
    let len = Leave { job: 1, server: 0, session, life: 0, reason: Reason::Left }.emit(&mut buf);
    buf.truncate(len);
    buf
}

/// A leave for each worker, at its switch and at the server.
fn leaves(jobs: &mut Jobs) {
    for rank in 0..jobs.setting.workers() {
        let bytes = leave_of(jobs, rank);
        let at = jobs.switch_of(rank);
        jobs.net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, BELOW, &bytes));
        jobs.net.with(server(0), |server: &mut AtpServer, now| {
            server.handle_packet(now, Source::end(STRANGER), &bytes)
        });
    }
}

/// A gradient of the first worker for each of some sequence numbers: all values are wrong.
fn sends_gradients(jobs: &mut Jobs) {
    let of = jobs.worker(0, 0).statistics();
    let Some(generation) = of.flows[0].generation else { return };
    let first = of.flows[0].expected_sequence;
    for sequence in first..first + 20 {
        let header = Header {
            bitmap0: 1,
            bitmap1: 1,
            fan_in0: 2,
            fan_in1: 2,
            job: 1,
            sequence: sequence as u16,
            index: sequence as u16,
            key: Key::new(generation, 0, sequence),
            tensor_length: LANES as u32,
            ..Header::default()
        };
        let mut bytes = vec![0; header.datagram_len(62)];
        header.emit(&[0x11; 4 * 62], &mut bytes);
        let at = jobs.switch_of(0);
        let verdict =
            jobs.net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, BELOW, &bytes));
        assert!(matches!(verdict, Some(Verdict::Drop(_))), "{verdict:?}");
    }
}

const LANES: usize = 62 * 400;

#[test]
fn what_a_stranger_sends_in_a_workers_name_changes_nothing() {
    for racks in [vec![3], vec![2, 1, 0]] {
        let own = Options { first_packets: 20, most_packets: 20, ..Options::default() };
        let mut jobs = Jobs::new(Setting { seed: 2, racks, own, ..Setting::default() });
        leaves(&mut jobs);
        jobs.run_for(200 * MS);
        let tasks = [Task::sum(LANES, 0), Task::sum(3000, 1)];
        tasks.iter().for_each(|task| jobs.begin_all(0, *task));
        let mut said = 0;
        while jobs.open() > 0 && said < 1000 {
            leaves(&mut jobs);
            sends_gradients(&mut jobs);
            said += 1;
            jobs.run_for(MS / 2);
        }
        jobs.run_until_done(2000 * MS);
        assert!(said > 2, "in the middle of the operations");
        jobs.all_are_right(0, &tasks);
        jobs.accounts();
        let of = jobs.server(0).statistics();
        assert_eq!((of.generations, of.closed_generations.len()), (1, 0));
        assert!(of.refused["unknown_peer"] > 2, "{:?}", of.refused);
        let first = jobs.switch(jobs.switch_of(0)).statistics().refused;
        assert!(first["wrong_sender"] > 2 && first["not_a_member"] > 2, "{first:?}");
    }
}
