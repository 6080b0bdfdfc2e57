//! Switches in a row or a tree between workers and server.

use super::{Liar, SERVER, SWITCH, Setting};
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{BitsPerSecond, PeerId, PortId, Switch, Wiring};
use olaf_sim::{Network, Wire};

/// The place of the tree's switch of that number; the first is [`SWITCH`].
pub(crate) fn switch(number: usize) -> PeerId {
    PeerId(SWITCH.0 + u32::try_from(number).unwrap())
}

/// One switch and its uplink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Which switch it sends up to; none: the server.
    pub(crate) above: Option<usize>,
    pub(crate) slots: usize,
    pub(crate) pacing: Pacing,
    pub(crate) link: Wire,
    pub(crate) down: Down,
}

/// The ways down from a switch: worker `w` is behind that of number `w mod ports`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Down {
    pub(crate) ports: u16,
    /// The rate of each; none: unlimited.
    pub(crate) rate: Option<BitsPerSecond>,
    /// Datagrams that may wait for each.
    pub(crate) limit: usize,
}

impl Default for Down {
    fn default() -> Self {
        Self { ports: 1, rate: None, limit: Config::default().downlink_limit }
    }
}

impl Down {
    /// The port that a worker is behind.
    pub(crate) fn port_of(self, worker: u32) -> PortId {
        PortId(PortId::DOWNLINK.0 + u16::try_from(worker % u32::from(self.ports)).unwrap())
    }
}

/// The switches, and at which of them workers are: worker `w` at `homes[w mod n]`.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) hops: Vec<Hop>,
    pub(crate) homes: Vec<usize>,
}

impl Tree {
    pub(crate) fn single(setting: &Setting) -> Self {
        Self { hops: vec![Hop::new(setting, None)], homes: vec![0] }
    }

    /// So many switches in a row; the workers are at the first, the server at the last.
    pub(crate) fn chain(setting: &Setting, length: usize) -> Self {
        let above = |at| (at + 1 < length).then_some(at + 1);
        Self { hops: (0..length).map(|at| Hop::new(setting, above(at))).collect(), homes: vec![0] }
    }

    /// OLAF Figure 9: SW1 (0) and SW2 (1) send to SW3 (2), which sends to the server.
    pub(crate) fn figure_9(setting: &Setting) -> Self {
        let hop = |above| Hop::new(setting, above);
        Self { hops: vec![hop(Some(2)), hop(Some(2)), hop(None)], homes: vec![0, 1] }
    }

    pub(crate) fn home_of(&self, worker: PeerId) -> PeerId {
        switch(self.homes[worker.0 as usize % self.homes.len()])
    }

    /// Who is next on the way up from a switch.
    pub(crate) fn above(&self, number: usize) -> PeerId {
        self.hops[number].above.map_or(SERVER, switch)
    }

    pub(crate) fn places(&self) -> Vec<PeerId> {
        (0..self.hops.len()).map(switch).collect()
    }

    pub(crate) fn place(&self, net: &mut Network, setting: &Setting) {
        for (number, hop) in self.hops.iter().enumerate() {
            let (above, hop, gate) = (self.above(number), *hop, setting.gate);
            let (admission, silent_after) = (setting.admission, setting.silent_after);
            let lying = setting.lying;
            net.join(switch(number), above, hop.link);
            let first_life = 200 + 100 * u32::try_from(number).unwrap();
            let mut wiring = Wiring::new(PortId::DOWNLINK).with(above, PortId::UPLINK);
            for worker in 0..setting.workers {
                wiring.place(PeerId(worker), hop.down.port_of(worker));
            }
            net.place_wired(switch(number), wiring, move |life, _| {
                let config = Config {
                    slots: hop.slots,
                    gate,
                    silent_after,
                    downlinks: hop.down.ports,
                    downlink_rate: hop.down.rate,
                    downlink_limit: hop.down.limit,
                    ..Config::default()
                };
                let config = config.paced(hop.pacing).asking(admission);
                let mut switch = Switch::new(config, first_life + life).unwrap();
                switch.set_default_server(above);
                if lying { Box::new(Liar::new(switch)) } else { Box::new(switch) }
            });
        }
    }
}

impl Hop {
    /// As the setting has it.
    pub(crate) fn new(setting: &Setting, above: Option<usize>) -> Self {
        let down = Down::default();
        Self { above, slots: setting.slots, pacing: setting.pacing, link: setting.core, down }
    }
}
