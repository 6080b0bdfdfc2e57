//! Workers, a lower switch, the switch before the server, and the server.

use super::super::{Ended, Hashed, Id, Met, Piece};
use super::tests as names;
use crate::lanes::saturating;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use olaf_wire::atp::Key;
use stateright::{Model, Property};

/// What is explored. All fragments meet in one cell.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Workers at the lower switch.
    pub(super) below: u8,
    /// Whether one more worker is at the upper switch; otherwise there is one level.
    pub(super) beside: bool,
    pub(super) fragments: u16,
    pub(super) bug: Option<Bug>,
}

/// A mistake, planted to see that the check finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bug {
    /// The server adds what overlaps.
    AddsAgain,
    /// What leaves the first level is never marked, and the second level adds parts of a group.
    AddsParts,
    /// Workers never set `resend`.
    NoResend,
}

/// A gradient fragment packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Packet {
    fragment: u16,
    bitmap0: u32,
    bitmap1: u32,
    resend: bool,
    /// A digit for each worker: how often it is in the sum.
    value: i32,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// A worker sends a fragment, for the first time or again.
    Send {
        worker: u8,
        fragment: u16,
        resend: bool,
    },
    /// A packet arrives at the upper switch, or at the server.
    Upper(Packet),
    Server(Packet),
    /// A parameter packet passes the upper, and perhaps the lower switch.
    Answer {
        fragment: u16,
        reaches_lower: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct System {
    lower: Hashed,
    upper: Hashed,
    /// On their way to the upper switch, and to the server.
    to_upper: BTreeSet<Packet>,
    to_server: BTreeSet<Packet>,
    /// Workers in each fragment's sum at the server, and the sum.
    server: Vec<(u32, i32)>,
    fault: bool,
}

const NOW: Instant = Instant(0);

fn table() -> Hashed {
    Hashed::new(1, 1 << 10, Duration::from_secs(1))
}

fn met(table: &mut Hashed, packet: &Packet, place: u32, bitmap: u32, fan_in: u8) -> Met {
    let mut values = [0; 4];
    saturating::write(&[packet.value], &mut values);
    let piece = Piece {
        id: id(packet.fragment, place),
        index: 0,
        bitmap,
        fan_in,
        ecn: false,
        resend: packet.resend,
        is_first_level: place == 0,
        values: &values,
    };
    table.meet(NOW, &piece)
}

fn id(sequence: u16, place: u32) -> Id {
    Id { job: 1, server: 0, place, sequence, key: Key::default(), tensor_length: 1, values: 1 }
}

impl Setup {
    fn workers(&self) -> u8 {
        self.below + u8::from(self.beside)
    }

    /// Workers of a packet: those of a whole group where it names several.
    fn ranks(&self, packet: &Packet) -> u32 {
        let group = (1u32 << self.below) - 1;
        match packet.bitmap1 {
            1 => packet.bitmap0,
            2 => 1 << self.below,
            _ => group | 1 << self.below,
        }
    }

    /// A sum has each of its workers once.
    fn is_true(&self, ranks: u32, value: i32) -> bool {
        (0..self.workers()).all(|rank| value >> (4 * rank) & 15 == (ranks >> rank & 1) as i32)
    }
}

impl System {
    fn new(setup: &Setup) -> Self {
        Self {
            lower: table(),
            upper: table(),
            to_upper: BTreeSet::new(),
            to_server: BTreeSet::new(),
            server: vec![(0, 0); usize::from(setup.fragments)],
            fault: false,
        }
    }

    fn send(&mut self, setup: &Setup, worker: u8, fragment: u16, resend: bool) {
        let resend = resend && setup.bug != Some(Bug::NoResend);
        let value = 1 << (4 * worker);
        if worker >= setup.below {
            self.to_upper.insert(Packet { fragment, bitmap0: 1, bitmap1: 2, resend, value });
            return;
        }
        let mut packet = Packet { fragment, bitmap0: 1 << worker, bitmap1: 1, resend, value };
        let bitmap0 = packet.bitmap0;
        let open = match met(&mut self.lower, &packet, 0, bitmap0, setup.below) {
            Met::Complete => self.lower.aggregator(0).cloned(),
            Met::Flushed(sum) => Some(*sum),
            Met::Occupied | Met::Pass => {
                packet.resend = true;
                None
            }
            Met::Kept | Met::Repeated | Met::Late => return,
        };
        if let Some(sum) = open {
            (packet.bitmap0, packet.value) = (sum.bitmap, sum.value[0]);
        }
        packet.resend &= setup.bug != Some(Bug::AddsParts);
        let to = if setup.beside { &mut self.to_upper } else { &mut self.to_server };
        to.insert(packet);
    }

    fn at_upper(&mut self, setup: &Setup, mut packet: Packet) {
        let is_part = packet.bitmap1 == 1 && packet.bitmap0.count_ones() < u32::from(setup.below);
        packet.resend |= is_part && setup.bug != Some(Bug::AddsParts);
        let bitmap1 = packet.bitmap1;
        match met(&mut self.upper, &packet, 32, bitmap1, 2) {
            Met::Complete => {
                let Some(sum) = self.upper.aggregator(0) else { return };
                (packet.bitmap0, packet.bitmap1, packet.value) = (0, sum.bitmap, sum.value[0]);
            }
            Met::Occupied | Met::Pass => packet.resend = true,
            Met::Flushed(_) | Met::Kept | Met::Repeated | Met::Late => return,
        }
        self.to_server.insert(packet);
    }

    fn at_server(&mut self, setup: &Setup, packet: &Packet) {
        let ranks = setup.ranks(packet);
        self.fault |= !setup.is_true(ranks, packet.value);
        let (have, sum) = &mut self.server[usize::from(packet.fragment)];
        if *have & ranks == 0 || setup.bug == Some(Bug::AddsAgain) {
            (*have, *sum) = (*have | ranks, *sum + packet.value);
            self.fault |= !setup.is_true(*have, *sum);
        }
    }

    fn is_done(&self, setup: &Setup, fragment: u16) -> bool {
        self.server[usize::from(fragment)].0.count_ones() == u32::from(setup.workers())
    }

    fn all_done(&self, setup: &Setup) -> bool {
        (0..setup.fragments).all(|fragment| self.is_done(setup, fragment))
    }

    fn act(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Send { worker, fragment, resend } => self.send(setup, worker, fragment, resend),
            Action::Upper(packet) => self.at_upper(setup, packet),
            Action::Server(packet) => self.at_server(setup, &packet),
            Action::Answer { fragment, reaches_lower } => {
                self.upper.release(NOW, 0, &id(fragment, 32));
                if reaches_lower {
                    self.lower.release(NOW, 0, &id(fragment, 0));
                }
            }
        }
    }

    /// Nothing is lost any more: workers send again what has no answer, twice, and all sums complete.
    fn gets_on(&self, setup: &Setup) -> bool {
        let mut system = self.clone();
        for _ in 0..2 {
            for (fragment, worker) in
                (0..setup.fragments).flat_map(|f| (0..setup.workers()).map(move |w| (f, w)))
            {
                system.to_upper.clear();
                system.to_server.clear();
                system.send(setup, worker, fragment, true);
                for packet in core::mem::take(&mut system.to_upper) {
                    system.at_upper(setup, packet);
                }
                for packet in core::mem::take(&mut system.to_server) {
                    system.at_server(setup, &packet);
                }
            }
        }
        !system.fault && system.all_done(setup)
    }

    fn counts_agree(&self) -> bool {
        [&self.lower, &self.upper].iter().all(|table| {
            let counts = table.counts();
            counts.received == counts.settled()
        })
    }
}

/// `Setup` is the model: its states are systems.
impl Model for Setup {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System::new(self)]
    }

    fn actions(&self, system: &System, actions: &mut Vec<Action>) {
        for fragment in 0..self.fragments {
            for worker in 0..self.workers() {
                let both = [false, true].into_iter();
                actions.extend(both.map(|resend| Action::Send { worker, fragment, resend }));
            }
            if system.is_done(self, fragment) {
                let both = [false, true].into_iter();
                actions
                    .extend(both.map(|reaches_lower| Action::Answer { fragment, reaches_lower }));
            }
        }
        actions.extend(system.to_upper.iter().copied().map(Action::Upper));
        actions.extend(system.to_server.iter().copied().map(Action::Server));
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        let mut next = system.clone();
        next.act(self, action);
        (next != *system).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(names::ONCE, |_, system: &System| !system.fault),
            Property::always(names::GETS_ON, |setup: &Self, system: &System| system.gets_on(setup)),
            Property::always(names::FATES, |_, system: &System| system.counts_agree()),
            Property::sometimes(names::DONE, |setup: &Self, system: &System| {
                system.all_done(setup)
            }),
            Property::sometimes(names::FREED, |setup: &Self, system: &System| {
                system.all_done(setup) && system.lower.used() + system.upper.used() == 0
            }),
            Property::sometimes(names::THROWN_AWAY, |_, system: &System| {
                system.upper.counts().discarded > 0
            }),
            Property::sometimes(names::TAKEN_ALONG, |_, system: &System| {
                system.lower.counts().flushed > 1
            }),
        ]
    }
}

/// What a table's future depends on: no counts.
fn key(table: &Hashed) -> impl Hash + PartialEq + use<> {
    let cell = &table.cells[0];
    let open = cell.open.as_ref().map(|open| (open.id, open.bitmap, open.value.clone()));
    (open, cell.last.map(|(id, ended)| (id, ended == Ended::Answered)))
}

impl PartialEq for System {
    fn eq(&self, other: &Self) -> bool {
        key(&self.lower) == key(&other.lower)
            && key(&self.upper) == key(&other.upper)
            && (&self.to_upper, &self.to_server) == (&other.to_upper, &other.to_server)
            && (&self.server, self.fault) == (&other.server, other.fault)
    }
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        key(&self.lower).hash(state);
        key(&self.upper).hash(state);
        (&self.to_upper, &self.to_server, &self.server, self.fault).hash(state);
    }
}
