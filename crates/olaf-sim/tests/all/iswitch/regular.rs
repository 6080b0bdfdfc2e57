//! Regular traffic passes a switch of iSwitch untouched (§3.3), where a list names its sender.

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
    let wiring = Wiring::new(PortId::DOWNLINK).with(RECEIVER, PortId::UPLINK);
    let mut job = Job::with_switch(setting, wiring, move |life, _| {
        let mut switch = Switch::new(config.clone(), 77 * (life + 1)).unwrap();
        switch.pass_on(SENDER, RECEIVER);
        Box::new(switch)
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
    let came = |id| job.net.node::<Party>(id).unwrap().came.iter().map(|(_, bytes)| bytes.clone());
    assert_eq!(came(RECEIVER).collect::<Vec<_>>(), sent);
    assert_eq!(came(SENDER).count(), 0, "no list names the receiver");
    let switch = job.net.node::<Switch>(SWITCH).unwrap().statistics(job.net.now());
    assert_eq!((switch.passed_on, switch.refused["foreign"]), (100, 100));
    assert_eq!(switch.pieces.received, 3 * 50_000_u64.div_ceil(366));
}
