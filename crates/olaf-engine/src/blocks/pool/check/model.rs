//! What is explored: its settings, its actions, and what must hold in every state.

use super::system::{Member, System};
use super::tests as names;
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::reduce::Operator;
use stateright::{Model, Property};

/// What is explored.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) slots: u32,
    pub(super) members: u32,
    /// The first members are behind a lower switch: how many. 0: there is none.
    pub(super) lower: u32,
    pub(super) blocks: u32,
    /// A block may be overdue at any time; of several open ones the first, or the last.
    pub(super) overdue: Option<First>,
    /// Every second block is a broadcast.
    pub(super) broadcasts: bool,
    /// The generation may end, because of a dead member or for one that joins.
    pub(super) ends: bool,
    pub(super) bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum First {
    Oldest,
    Newest,
}

/// A mistake of the members, planted to see that the check finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bug {
    /// A member says that it holds one result more than it does.
    ClaimMore,
    /// A member sends a block before it holds the result of the block one window behind.
    SendAhead,
    /// A piece that is sent again comes under another member's name.
    OtherName,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// A member sends its next piece, or passes over a block that needs none.
    Send(u32),
    /// A piece arrives, for the first time or again. It says what its sender holds now, or nothing: an
    /// old piece.
    Arrive { member: u32, block: u32, holds: bool },
    /// A question arrives, which says what its sender holds.
    Ask(u32),
    /// A member takes a result that has left the switch.
    Take { member: u32, block: u32 },
    /// The sum of the lower switch arrives above.
    Rise(u32),
    /// A result from above arrives at the lower switch.
    Fall(u32),
    /// The upper switch hears what the lower one holds.
    AskAbove,
    /// The first open block of the upper, or of the lower switch is overdue.
    Overdue { lower: bool },
    /// The generation ends.
    End { dead: bool },
}

impl Setup {
    pub(super) fn operator(&self, block: u32) -> Operator {
        if self.broadcasts && block % 2 == 1 { Operator::Broadcast } else { Operator::Sum }
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
        for member in 0..self.members {
            if system.may_send(self, member) {
                actions.push(Action::Send(member));
            }
            actions.push(Action::Ask(member));
            for block in 0..self.blocks {
                if system.members[member as usize].has_sent(block) {
                    actions.push(Action::Arrive { member, block, holds: false });
                    actions.push(Action::Arrive { member, block, holds: true });
                }
                if system.has_left(self, member, block) {
                    actions.push(Action::Take { member, block });
                }
            }
        }
        if self.lower > 0 {
            let blocks = 0..self.blocks;
            actions
                .extend(blocks.clone().filter(|block| system.has_risen(*block)).map(Action::Rise));
            let results = blocks.filter(|block| system.results[*block as usize].is_some());
            actions.extend(results.map(Action::Fall));
            actions.push(Action::AskAbove);
        }
        for lower in [false, true] {
            if system.has_deadline(lower) {
                actions.push(Action::Overdue { lower });
            }
        }
        if self.ends && system.end == self.blocks {
            actions.extend([true, false].map(|dead| Action::End { dead }));
        }
    }

    fn next_state(&self, system: &System, action: Action) -> Option<System> {
        let mut next = system.clone();
        next.act(self, action);
        (next != *system).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(names::ONCE, |_, system: &System| system.fault.is_none()),
            Property::always(names::KEPT, |setup: &Self, system: &System| {
                system.keeps_results(setup)
            }),
            Property::always(names::GETS_ON, |setup: &Self, system: &System| system.gets_on(setup)),
            Property::always(names::FATES, |_, system: &System| system.has_every_fate()),
            Property::sometimes(names::DONE, |setup: &Self, system: &System| {
                system.end == setup.blocks && system.is_done()
            }),
            Property::sometimes(names::PARTIAL, |setup: &Self, system: &System| {
                let mut sums = (0..setup.blocks).filter(|b| setup.operator(*b) == Operator::Sum);
                system.is_done() && sums.any(|block| system.is_partial(setup, block))
            }),
            Property::sometimes(names::AGAIN, |setup: &Self, system: &System| {
                (2 * setup.slots..setup.blocks).any(|block| system.upper.cell(block).is_some())
            }),
            Property::sometimes(names::OCCUPIED, |setup: &Self, system: &System| {
                let waits = |member: &Member, block| {
                    member.has_sent(block) && system.upper.cell(block - 2 * setup.slots).is_some()
                };
                let mut blocks = 2 * setup.slots..setup.blocks;
                blocks.any(|block| system.members.iter().any(|member| waits(member, block)))
            }),
            Property::sometimes(names::ENDED, |setup: &Self, system: &System| {
                (1..setup.blocks).contains(&system.end) && system.is_done()
            }),
        ]
    }
}
