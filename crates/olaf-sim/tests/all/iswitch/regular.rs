//! Regular traffic passes a switch of iSwitch untouched (§3.3).

use super::job::*;
use super::party::Party;
use core::time::Duration;
use olaf_engine::switch::iswitch::Switch;
use olaf_engine::{PeerId, PortId, Wiring};

const SENDER: PeerId = PeerId(600);
const RECEIVER: PeerId = PeerId(601);

#[test]
fn other_datagrams_pass_while_sums_run() {
    let setting = Setting::default();
    let (wire, config) = (setting.wire, setting.switch.clone());
    let wiring = Wiring::new(PortId::DOWNLINK)
        .with(RECEIVER, PortId::UPLINK)
        .with_default(SENDER, PortId::DOWNLINK);
    let mut job = Job::with_switch(setting, wiring, move |life, _| {
        Box::new(Switch::new(config.clone(), 77 * (life + 1)).unwrap())
    });
    for id in [SENDER, RECEIVER] {
        job.net.place(id, |_, _| Box::new(Party::new(|_| Vec::new())));
        job.net.join(id, SWITCH, wire);
    }
    job.run_for(Duration::from_millis(50));
    let task = Task::sum(50_000, 0);
    job.begin_all(task);
    // Their bytes could be packets of ours: the class of service says that they are none.
    let sent: Vec<Vec<u8>> = (0..100u8).map(|at| vec![at % 10; 12 + 4 * usize::from(at)]).collect();
    for bytes in &sent {
        for (from, to) in [(SENDER, SWITCH), (RECEIVER, SWITCH)] {
            job.net.with(from, |party: &mut Party, _| party.send(to, bytes.clone()));
        }
        job.run_for(Duration::from_micros(20));
    }
    job.run_until_done(Duration::from_secs(1));
    job.run_for(Duration::from_millis(1));
    job.all_are_right(&[task]);
    for id in [SENDER, RECEIVER] {
        let came = &job.net.node::<Party>(id).unwrap().came;
        let came: Vec<&Vec<u8>> = came.iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(came, sent.iter().collect::<Vec<_>>());
    }
    let switch = job.net.node::<Switch>(SWITCH).unwrap().statistics(job.net.now());
    assert_eq!((switch.passed_on, switch.refused.len()), (200, 0));
    assert_eq!(switch.pieces.received, 3 * 50_000_u64.div_ceil(366));
}
