//! Some members and their tables.

use super::model::{Action, Bug, First, Setup};
use crate::blocks::pool::{About, Asked, Cell, Met, Piece, Pool, State};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use olaf_wire::reduce::{LaneType, Operator};

const NOW: Instant = Instant(0);
/// The member that broadcasts.
const ROOT: u32 = 0;
/// The lower switch's rank above.
const LOWER: u32 = 0;
/// Blocks of an operation.
const OPERATION: u32 = 2;

/// The sum of a block with its contributors. The first lane has a digit for each member: how often the
/// member is in the sum. The second is the sum of the block's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    lanes: [i32; 2],
    contributors: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    /// The next block that it sends.
    next: u32,
    /// The blocks whose pieces it has sent, as a mask.
    sent: u32,
    results: Vec<Option<Sum>>,
}

/// The tables, their members, and what the explorer remembers of them.
#[derive(Clone, Debug)]
pub(super) struct System {
    /// The table of the only switch, or of the upper one.
    pub(super) upper: Pool,
    lower: Option<Pool>,
    pub(super) members: Vec<Member>,
    /// The result of each block that has left the upper switch.
    pub(super) results: Vec<Option<Sum>>,
    /// The sum of each block that has left the lower switch.
    risen: Vec<Option<Sum>>,
    /// The blocks whose results have left the lower switch, as a mask.
    fallen: u32,
    /// The generation has no block from this one on.
    pub(super) end: u32,
    /// A block was summed twice, or two results of it differ.
    pub(super) fault: Option<&'static str>,
}

impl System {
    pub(super) fn new(setup: &Setup) -> Self {
        let blocks = setup.blocks as usize;
        let member = Member { next: 0, sent: 0, results: vec![None; blocks] };
        let above = if setup.lower > 0 { setup.members - setup.lower + 1 } else { setup.members };
        Self {
            upper: Pool::new(setup.slots, above),
            lower: (setup.lower > 0).then(|| Pool::new(setup.slots, setup.lower)),
            members: vec![member; setup.members as usize],
            results: vec![None; blocks],
            risen: vec![None; blocks],
            fallen: 0,
            end: setup.blocks,
            fault: None,
        }
    }

    pub(super) fn act(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Send(member) => self.send(setup, member),
            Action::Arrive { member, block, holds } => {
                let holds = if holds { self.claims(setup, member).min(block) } else { 0 };
                self.arrive(setup, member, block, holds);
            }
            Action::Ask(member) => self.ask(setup, member),
            Action::Take { member, block } => self.take(member, block),
            Action::Rise(block) => self.rise(setup, block),
            Action::Fall(block) => self.fall(setup, block),
            Action::AskAbove => self.ask_above(),
            Action::Overdue { lower: false } => {
                let block = self.upper.poll_overdue(Instant(u64::MAX)).expect("a block is open");
                self.leave(setup, block);
            }
            Action::Overdue { lower: true } => {
                let lower = self.lower.as_mut().expect("a block is open there");
                let block = lower.poll_overdue(Instant(u64::MAX)).expect("a block is open");
                self.leave_lower(block);
            }
            Action::End { dead } => self.end(setup, dead),
        }
    }

    fn send(&mut self, setup: &Setup, member: u32) {
        let this = &mut self.members[member as usize];
        let block = this.next;
        this.next += 1;
        let is_silent = setup.operator(block) == Operator::Broadcast && member != ROOT;
        if !is_silent && this.results[block as usize].is_none() {
            this.sent |= 1 << block;
        }
    }

    fn arrive(&mut self, setup: &Setup, member: u32, block: u32, holds: u32) {
        let sum = Sum { lanes: [1 << (4 * member), block as i32 + 1], contributors: 1 };
        let (pool, rank) = self.switch_of(setup, member);
        let is_again = pool.cell(block).is_some_and(|cell| cell.from().contains(rank));
        let is_misnamed = setup.bug == Some(Bug::OtherName) && is_again;
        let rank = if is_misnamed { (rank + 1) % pool.ring.members() } else { rank };
        if meet(pool, setup, (rank, block, holds), sum) == Met::Complete {
            if member < setup.lower {
                self.leave_lower(block);
            } else {
                self.leave(setup, block);
            }
        }
    }

    fn ask(&mut self, setup: &Setup, member: u32) {
        let holds = self.claims(setup, member);
        let (pool, rank) = self.switch_of(setup, member);
        pool.note_holds(rank, holds);
    }

    fn take(&mut self, member: u32, block: u32) {
        let sum = self.results[block as usize];
        let known = self.members[member as usize].results[block as usize];
        if known.is_some_and(|known| Some(known) != sum) {
            self.fault = Some("two results of a block differ");
        }
        self.members[member as usize].results[block as usize] = sum;
    }

    /// The lower switch's sum arrives above.
    fn rise(&mut self, setup: &Setup, block: u32) {
        let sum = self.risen[block as usize].expect("it has left");
        let holds = self.lower.as_ref().expect("there is one").min_holds().min(block);
        if meet(&mut self.upper, setup, (LOWER, block, holds), sum) == Met::Complete {
            self.leave(setup, block);
        }
    }

    /// A result from above arrives at the lower switch.
    fn fall(&mut self, setup: &Setup, block: u32) {
        let Sum { lanes, contributors } = self.results[block as usize].expect("it has left");
        let lower = self.lower.as_mut().expect("there is one");
        let about = About {
            lane_type: LaneType::I32,
            operator: setup.operator(block),
            not_finite: false,
            congested: false,
        };
        if lower.fulfil(block, contributors, &bytes(lanes), &about) {
            self.fallen |= 1 << block;
        }
    }

    fn ask_above(&mut self) {
        let lower = self.lower.as_ref().expect("there is one");
        self.upper.note_holds(LOWER, lower.min_holds());
    }

    /// A sum is complete at the upper switch: it leaves as the result.
    fn leave(&mut self, setup: &Setup, block: u32) {
        self.upper.finish(block);
        let sum = sum_of(self.upper.cell(block).expect("it has just been closed"));
        if self.results[block as usize].replace(sum).is_some() {
            self.fault = Some("a block was summed twice");
        }
        let times = (0..setup.members).map(|member| sum.times(member));
        let of_this_block = sum.lanes[1] == sum.contributors as i32 * (block as i32 + 1);
        let each_once = times.clone().all(|times| times <= 1);
        if !each_once || times.sum::<u32>() != sum.contributors || !of_this_block {
            self.fault = Some("a piece was summed twice, or not at all");
        }
    }

    /// A sum is complete at the lower switch: it leaves for the upper one.
    fn leave_lower(&mut self, block: u32) {
        let lower = self.lower.as_ref().expect("there is one");
        let sum = sum_of(lower.cell(block).expect("it has just been closed"));
        if self.risen[block as usize].replace(sum).is_some() {
            self.fault = Some("a block was summed twice below");
        }
    }

    /// The generation ends at the operation of the first incomplete block, or at the first operation
    /// without a piece.
    fn end(&mut self, setup: &Setup, dead: bool) {
        let is_known = |block: &u32| {
            self.results[*block as usize].is_some() || self.upper.cell(*block).is_some()
        };
        let next = (0..setup.blocks).rev().find(is_known).map_or(0, |newest| newest + 1);
        self.end = if dead {
            self.upper.first_incomplete() / OPERATION * OPERATION
        } else {
            next.next_multiple_of(OPERATION).min(setup.blocks)
        };
        self.upper.close(self.end);
    }

    /// The table of a member's switch, and its rank there.
    fn switch_of(&mut self, setup: &Setup, member: u32) -> (&mut Pool, u32) {
        match &mut self.lower {
            Some(lower) if member < setup.lower => (lower, member),
            Some(_) => (&mut self.upper, member - setup.lower + 1),
            None => (&mut self.upper, member),
        }
    }

    /// What a member says that it holds.
    fn claims(&self, setup: &Setup, member: u32) -> u32 {
        let holds = self.members[member as usize].holds();
        holds + u32::from(setup.bug == Some(Bug::ClaimMore))
    }

    pub(super) fn may_send(&self, setup: &Setup, member: u32) -> bool {
        let member = &self.members[member as usize];
        let slack = u32::from(setup.bug == Some(Bug::SendAhead));
        member.next < setup.blocks && member.next < member.holds() + setup.slots + slack
    }

    pub(super) fn has_risen(&self, block: u32) -> bool {
        self.risen[block as usize].is_some()
    }

    /// Returns true if the result of a block may be on its way to a member.
    pub(super) fn has_left(&self, setup: &Setup, member: u32, block: u32) -> bool {
        self.results[block as usize].is_some()
            && (member >= setup.lower || self.fallen >> block & 1 == 1)
    }

    pub(super) fn has_deadline(&self, lower: bool) -> bool {
        let pool = if lower { self.lower.as_ref() } else { Some(&self.upper) };
        pool.is_some_and(|pool| pool.next_deadline().is_some())
    }

    fn pools(&self) -> impl Iterator<Item = &Pool> {
        core::iter::once(&self.upper).chain(&self.lower)
    }

    /// No result is lost that somebody needs: each member's switch has it, or, for a member behind the
    /// lower switch, the upper one has it still.
    pub(super) fn keeps_results(&self, setup: &Setup) -> bool {
        let has = |pool: &Pool, block, sum| {
            pool.cell(block).is_some_and(|cell| cell.state() == State::Final && sum_of(cell) == sum)
        };
        let kept = |member: u32, block: u32, sum| {
            let is_held = self.members[member as usize].results[block as usize].is_some();
            let is_below = member < setup.lower
                && self.lower.as_ref().is_some_and(|lower| has(lower, block, sum));
            is_held || is_below || has(&self.upper, block, sum)
        };
        (0..self.end).all(|block| {
            let sum = self.results[block as usize];
            sum.is_none_or(|sum| (0..setup.members).all(|member| kept(member, block, sum)))
        })
    }

    /// Loses everything on its way; from then on nothing is lost, and each member answers what it is
    /// asked for. Does everybody get all results?
    pub(super) fn gets_on(&self, setup: &Setup) -> bool {
        let mut system = self.clone();
        for _ in 0..4 * setup.blocks {
            for member in 0..setup.members {
                system.fair_turn(setup, member);
            }
            if setup.lower > 0 {
                system.fair_turn_of_lower(setup);
            }
        }
        system.is_done()
    }

    fn fair_turn(&mut self, setup: &Setup, member: u32) {
        while self.may_send(setup, member) {
            self.send(setup, member);
        }
        self.ask(setup, member);
        for block in 0..setup.blocks {
            let has_sent = self.members[member as usize].has_sent(block);
            let (pool, rank) = self.switch_of(setup, member);
            match pool.asked(rank, block) {
                Asked::Result => self.take(member, block),
                Asked::Wanted if has_sent => self.arrive(setup, member, block, 0),
                _ => {}
            }
        }
    }

    fn fair_turn_of_lower(&mut self, setup: &Setup) {
        self.ask_above();
        for block in 0..setup.blocks {
            match self.upper.asked(LOWER, block) {
                Asked::Result => self.fall(setup, block),
                Asked::Wanted if self.has_risen(block) => self.rise(setup, block),
                _ => {}
            }
        }
    }

    /// Everybody has the results of all blocks before the generation's end.
    pub(super) fn is_done(&self) -> bool {
        let all = |member: &Member| member.results[..self.end as usize].iter().all(Option::is_some);
        self.members.iter().all(all)
    }

    pub(super) fn is_partial(&self, setup: &Setup, block: u32) -> bool {
        self.results[block as usize].is_some_and(|sum| sum.contributors < setup.members)
    }

    pub(super) fn has_every_fate(&self) -> bool {
        self.pools().all(|pool| {
            let counts = pool.counts();
            counts.received == counts.settled() + counts.waiting
        })
    }
}

impl Member {
    /// It holds the results of all blocks below this one.
    fn holds(&self) -> u32 {
        self.results.iter().take_while(|result| result.is_some()).count() as u32
    }

    pub(super) const fn has_sent(&self, block: u32) -> bool {
        self.sent >> block & 1 == 1
    }
}

impl Sum {
    /// How often a member is in it.
    const fn times(&self, member: u32) -> u32 {
        self.lanes[0] as u32 >> (4 * member) & 0xf
    }
}

/// A member's piece of a block arrives: its rank, the block, and what it holds.
fn meet(pool: &mut Pool, setup: &Setup, (rank, block, holds): (u32, u32, u32), sum: Sum) -> Met {
    let deadline = setup.overdue.map(|first| match first {
        First::Oldest => Duration::from_nanos(block.into()),
        First::Newest => Duration::from_nanos((setup.blocks - block).into()),
    });
    let piece = Piece {
        block,
        member: rank,
        holds,
        contributors: sum.contributors,
        congested: false,
        not_finite: false,
        deadline,
        lane_type: LaneType::I32,
        operator: setup.operator(block),
        lanes: &bytes(sum.lanes),
    };
    pool.meet(NOW, &piece)
}

fn sum_of(cell: &Cell) -> Sum {
    let mut bytes = [0; 8];
    cell.write_result(&mut bytes);
    let lane = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    Sum { lanes: [lane(0), lane(4)], contributors: cell.contributors }
}

fn bytes(lanes: [i32; 2]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

/// What a table's future depends on: no counts.
fn key(pool: &Pool) -> (Vec<impl Hash + PartialEq + use<>>, Vec<Option<u64>>) {
    let cell = |cell: &Cell| {
        let known = cell.state() != State::Free;
        let sum = || (!cell.is_released).then(|| sum_of(cell));
        known.then(|| (cell.state() as u8, cell.block, cell.from().words().to_vec(), sum()))
    };
    let holds = (0..pool.ring.members()).map(|member| pool.ring.holds_of(member));
    (pool.ring.cells().iter().map(cell).collect(), holds.collect())
}

impl PartialEq for System {
    fn eq(&self, other: &Self) -> bool {
        let rest = |system: &Self| (system.fallen, system.end, system.fault);
        self.members == other.members
            && self.results == other.results
            && self.risen == other.risen
            && rest(self) == rest(other)
            && self.pools().map(key).eq(other.pools().map(key))
    }
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pools().for_each(|pool| key(pool).hash(state));
        (&self.members, &self.results, &self.risen).hash(state);
        (self.fallen, self.end, self.fault).hash(state);
    }
}
