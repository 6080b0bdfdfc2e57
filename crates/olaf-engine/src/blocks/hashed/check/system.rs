//! Workers, one to three switches on the way to the server, and the server.

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

/// What is explored. All fragments meet in one cell of each switch.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Workers at the lowest switch.
    pub(super) below: u8,
    /// Switches above it, at most two: each has one more worker.
    pub(super) beside: u8,
    pub(super) fragments: u16,
    pub(super) bug: Option<Bug>,
}

/// A mistake, planted to see that the check finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bug {
    /// The server adds what overlaps.
    AddsAgain,
    /// What leaves the first level is never marked, and the others add parts of a group.
    AddsParts,
    /// Workers never set `resend`.
    NoResend,
}

/// Levels of switches, at most.
const LEVELS: usize = 3;

/// A gradient fragment packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Packet {
    fragment: u16,
    bitmaps: [u32; LEVELS],
    resend: bool,
    /// A digit for each worker: how often it is in the sum.
    value: i32,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// A worker sends a fragment, for the first time or again.
    Send { worker: u8, fragment: u16, resend: bool },
    /// A packet arrives at that level; behind the last one is the server.
    Arrives(usize, Packet),
    /// A parameter packet passes the last switches: that many.
    Answer { fragment: u16, passes: usize },
}

#[derive(Clone, Debug)]
pub(super) struct System {
    tables: Vec<Hashed>,
    /// On their way to each level but the first, and to the server.
    on_the_way: Vec<BTreeSet<Packet>>,
    /// Workers in each fragment's sum at the server, and the sum.
    server: Vec<(u32, i32)>,
    fault: bool,
}

const NOW: Instant = Instant(0);

fn table() -> Hashed {
    Hashed::new(1, 1 << 10, Duration::from_secs(1))
}

fn id(sequence: u16, level: usize) -> Id {
    let place = level as u32;
    Id { job: 1, server: 0, place, sequence, key: Key::default(), tensor_length: 1, values: 1 }
}

impl Setup {
    fn workers(&self) -> u8 {
        self.below + self.beside
    }

    fn levels(&self) -> usize {
        1 + usize::from(self.beside)
    }

    /// The first packet of a worker, and the level that it goes to.
    fn packet(&self, worker: u8, fragment: u16, resend: bool) -> (Packet, usize) {
        let mut bitmaps = [1; LEVELS];
        let level = usize::from((worker + 1).saturating_sub(self.below));
        bitmaps[level] = if level == 0 { 1 << worker } else { 2 };
        (Packet { fragment, bitmaps, resend, value: 1 << (4 * worker) }, level)
    }

    /// Members that meet at a level, in the group of the packet.
    fn fan_in(&self, packet: &Packet, level: usize) -> u8 {
        let is_beside = packet.bitmaps[level + 1..].contains(&2);
        match level {
            _ if is_beside => 1,
            0 => self.below,
            _ => 2,
        }
    }

    /// Workers of a packet: those of a whole group where it names several.
    fn ranks(&self, packet: &Packet) -> u32 {
        let settled = packet.bitmaps.iter().position(|bitmap| *bitmap != 0).unwrap_or(0);
        let beside = |level: usize| 1u32 << (usize::from(self.below) + level - 1);
        if let Some(level) = (settled + 1..LEVELS).find(|level| packet.bitmaps[*level] == 2) {
            return beside(level);
        }
        if settled == 0 {
            return packet.bitmaps[0];
        }
        let named = |bit: u32| packet.bitmaps[settled] & bit != 0;
        let lower = if named(1) { beside(settled) - 1 } else { 0 };
        lower | if named(2) { beside(settled) } else { 0 }
    }

    /// A sum has each of its workers once.
    fn is_true(&self, ranks: u32, value: i32) -> bool {
        (0..self.workers()).all(|rank| value >> (4 * rank) & 15 == (ranks >> rank & 1) as i32)
    }
}

impl System {
    fn new(setup: &Setup) -> Self {
        let levels = setup.levels();
        Self {
            tables: (0..levels).map(|_| table()).collect(),
            on_the_way: vec![BTreeSet::new(); levels],
            server: vec![(0, 0); usize::from(setup.fragments)],
            fault: false,
        }
    }

    fn send(&mut self, setup: &Setup, worker: u8, fragment: u16, resend: bool) {
        let resend = resend && setup.bug != Some(Bug::NoResend);
        let (packet, level) = setup.packet(worker, fragment, resend);
        if level == 0 {
            self.arrives(setup, 0, packet);
        } else {
            self.on_the_way[level - 1].insert(packet);
        }
    }

    fn arrives(&mut self, setup: &Setup, level: usize, mut packet: Packet) {
        if level == setup.levels() {
            self.at_server(setup, &packet);
            return;
        }
        let adds_parts = setup.bug == Some(Bug::AddsParts);
        let is_part = |below: usize| {
            let named = packet.bitmaps[below].count_ones();
            named > 0 && named < u32::from(setup.fan_in(&packet, below))
        };
        packet.resend |= (0..level).any(is_part) && !adds_parts;
        let mut values = [0; 4];
        saturating::write(&[packet.value], &mut values);
        let piece = Piece {
            id: id(packet.fragment, level),
            index: 0,
            bitmap: packet.bitmaps[level],
            fan_in: setup.fan_in(&packet, level),
            ecn: false,
            resend: packet.resend,
            is_first_level: level == 0,
            values: &values,
        };
        let sum = match self.tables[level].meet(NOW, &piece) {
            Met::Complete => self.tables[level].aggregator(0).cloned(),
            Met::Flushed(sum) => Some(*sum),
            Met::Occupied | Met::Pass => {
                packet.resend = true;
                None
            }
            Met::Kept | Met::Repeated | Met::Late => return,
        };
        if let Some(sum) = sum {
            packet.bitmaps[..level].fill(0);
            (packet.bitmaps[level], packet.value) = (sum.bitmap, sum.value[0]);
        }
        packet.resend &= level > 0 || !adds_parts;
        self.on_the_way[level].insert(packet);
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
            Action::Arrives(level, packet) => self.arrives(setup, level, packet),
            Action::Answer { fragment, passes } => {
                for level in (0..setup.levels()).rev().take(passes) {
                    self.tables[level].release(NOW, 0, &id(fragment, level));
                }
            }
        }
    }

    /// Nothing is lost any more: workers send again what has no answer, as often as there are levels,
    /// and all sums complete.
    fn gets_on(&self, setup: &Setup) -> bool {
        let mut system = self.clone();
        for _ in 0..setup.levels().max(2) {
            for (fragment, worker) in
                (0..setup.fragments).flat_map(|f| (0..setup.workers()).map(move |w| (f, w)))
            {
                system.on_the_way.iter_mut().for_each(BTreeSet::clear);
                system.send(setup, worker, fragment, true);
                for level in 0..setup.levels() {
                    for packet in core::mem::take(&mut system.on_the_way[level]) {
                        system.arrives(setup, level + 1, packet);
                    }
                }
            }
        }
        !system.fault && system.all_done(setup)
    }

    fn counts_agree(&self) -> bool {
        self.tables.iter().all(|table| table.counts().received == table.counts().settled())
    }

    fn used(&self) -> usize {
        self.tables.iter().map(Hashed::used).sum()
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
                let some = 1..=self.levels().max(2);
                actions.extend(some.map(|passes| Action::Answer { fragment, passes }));
            }
        }
        for (before, packets) in system.on_the_way.iter().enumerate() {
            let arrives = |packet: &Packet| Action::Arrives(before + 1, *packet);
            actions.extend(packets.iter().map(arrives));
        }
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
                system.all_done(setup) && system.used() == 0
            }),
            Property::sometimes(names::THROWN_AWAY, |_, system: &System| {
                system.tables.last().is_some_and(|table| table.counts().discarded > 0)
            }),
            Property::sometimes(names::TAKEN_ALONG, |_, system: &System| {
                system.tables[0].counts().flushed > 1
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
        self.tables.iter().map(key).eq(other.tables.iter().map(key))
            && self.on_the_way == other.on_the_way
            && (&self.server, self.fault) == (&other.server, other.fault)
    }
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tables.iter().for_each(|table| key(table).hash(state));
        (&self.on_the_way, &self.server, self.fault).hash(state);
    }
}
