//! Figure 8: a sum leaves with each packet, or when all packets of the vectors are here.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::iswitch::{Config as SwitchConfig, Switch};
use olaf_engine::{
    BitsPerSecond, Engine, Event, Instant, PeerId, PortId, Report, Source, Transmit, Verdict, Why,
    Wiring,
};
use olaf_host::collective::Options;
use olaf_sim::Wire;
use olaf_wire::iswitch::DATA_CLASS;
use std::collections::VecDeque;

const PACKETS: usize = 200;
const FLOATS: usize = 366;

/// A switch that keeps its sums until it has those of a whole vector (Figure 8a).
struct Vectors {
    switch: Switch,
    kept: VecDeque<(Transmit, Vec<u8>)>,
    leaves: usize,
}

impl Engine for Vectors {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(now, from, bytes)
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        while let Some(sent) = self.switch.poll_transmit(now, port, buf) {
            if sent.class.dscp() != DATA_CLASS {
                return Some(sent);
            }
            let bytes = buf[..sent.len].to_vec();
            self.kept.push_back((sent, bytes));
            if self.kept.len() == PACKETS {
                self.leaves = PACKETS;
            }
        }
        self.leaves = self.leaves.checked_sub(1)?;
        let (sent, bytes) = self.kept.pop_front()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(sent)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.switch.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.switch.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.switch.poll_event()
    }

    fn ports(&self) -> u16 {
        self.switch.ports()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.switch.peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.switch.report(now, to);
    }
}

/// How long a sum of one vector takes at four workers with links of 1 Gbit/s.
fn takes(by_vector: bool) -> Duration {
    let switch = SwitchConfig { slots: 256, ..SwitchConfig::default() };
    let options = Options { window_blocks: Some(256), ..Options::default() };
    let rate = BitsPerSecond::new(1_000_000_000);
    let wire = Wire { rate, delay: Duration::from_micros(10), ..Wire::default() };
    let setting = Setting { workers: 4, wire, options, switch, ..Setting::default() };
    let config = setting.switch.clone();
    let mut job = Job::with_switch(setting, Wiring::new(PortId::DOWNLINK), move |life, _| {
        let switch = Switch::new(config.clone(), 77 * (life + 1)).unwrap();
        if by_vector {
            Box::new(Vectors { switch, kept: VecDeque::new(), leaves: 0 })
        } else {
            Box::new(switch)
        }
    });
    job.run_for(Duration::from_millis(100));
    let task = Task::sum(FLOATS * PACKETS, 0);
    job.begin_all(task);
    job.run_until_done(Duration::from_secs(1));
    job.all_are_right(&[task]);
    (0..4).map(|end| job.outcome(end, 0).took).max().unwrap()
}

#[test]
fn sums_by_packet_take_half_the_time_of_sums_by_vector() {
    let (packet, vector) = (takes(false), takes(true));
    // One vector on a link of 1 Gbit/s, which is both ways' time where sums leave with each packet.
    let once = Duration::from_nanos((PACKETS * (8 + 4 * FLOATS) * 8) as u64);
    assert!(packet > once && packet < once * 11 / 10, "{packet:?}, one way {once:?}");
    assert!(vector > once * 2 && vector < once * 22 / 10, "{vector:?}, one way {once:?}");
}
