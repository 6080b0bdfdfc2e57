//! The four protocols, as the suite needs them.

mod atp;
mod iswitch;
mod reduce;
mod trio;
mod two_switches;

pub(crate) use atp::Atp;
pub(crate) use iswitch::Iswitch;
pub(crate) use reduce::Reduce;
pub(crate) use trio::Trio;
pub(crate) use two_switches::{SECOND, TwoSwitches};

use super::job::Setting;
use super::protocol::{Protocol, TOP, lower};
use crate::common::sums;
use olaf_engine::party::Chance;
use olaf_engine::{PeerId, PortId, Wiring};
use olaf_sim::Network;
use olaf_sim::network::Node;

/// Places the switches of a protocol whose uppermost switch is the authority. `make` is told the place of a switch,
/// the switch above, and which life it is.
fn place<P: Protocol, N: Node>(
    net: &mut Network,
    setting: &Setting<P>,
    make: impl Fn(PeerId, Option<PeerId>, u32) -> N + Clone + Send + 'static,
) {
    for at in setting.switches() {
        let above = (at != TOP).then_some(TOP);
        let wiring = Wiring::new(PortId::DOWNLINK);
        let wiring = above.map_or(wiring.clone(), |above| wiring.with(above, PortId::UPLINK));
        let make = make.clone();
        net.place_wired(at, wiring, move |life, _| Box::new(make(at, above, life)));
    }
    (0..setting.lower.len()).for_each(|at| net.join(lower(at), TOP, setting.wire));
}

/// What the party at a place demands proofs of addresses with: no two parties draw the same. The jobs of even seeds
/// demand proofs.
fn proofs(seed: u64, at: PeerId, life: u32) -> Option<Chance> {
    sums::proofs(seed + 2000 * u64::from(at.0), life)
}
