//! How an end gets into a generation: joins, repeated until a welcome says that it has begun.

use super::generation::{Closing, Generation};
use super::operations::Open;
use super::{Reducer, Standing};
use crate::collective::path::{micros, since};
use crate::collective::{Failure, window};
use olaf_engine::blocks::pool::MAX_SLOTS;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::Refusal;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{
    ALL, Address, Join, MAX_RANKS, ReducePacket, Welcome, WelcomeCode, datagram_len,
};

impl Reducer {
    pub(super) fn begin_to_join(&mut self, now: Instant, generation: u32) {
        self.joining.begin(now, self.config.workers);
        self.progress.joins_anew();
        (self.asks_since_us, self.last_generation) = (micros(now), generation);
        self.asking.stop();
    }

    /// When the next join leaves.
    pub(super) fn joins_at(&self) -> Option<Instant> {
        self.joining.at().filter(|_| self.leaving.at().is_none())
    }

    pub(super) fn emit_join(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.joins_at().filter(|at| *at <= now)?;
        self.joining.sent(now);
        self.quiet.expect(now);
        self.counts.joins += 1;
        let deadline = self.config.options.deadline.map_or(0, |d| d.as_micros().max(1));
        let operation = self.count_of_join();
        self.progress.tell(Some(operation));
        let join = Join {
            address: self.address_of_join(),
            workers: self.config.workers.min(MAX_RANKS),
            contributors: 1,
            deadline_us: u32::try_from(deadline).unwrap_or(u32::MAX),
            block_bytes: self.config.options.block_bytes.unwrap_or(0),
            datagram_bytes: self.config.datagram_bytes,
            sent_at_us: micros(now),
            nonce: self.joining.nonce(),
            operation,
            program: self.config.options.program,
        };
        Some(join.emit(buf))
    }

    /// How a join names this end: with its wanted rank, and the generation it was in last.
    pub(super) fn address_of_join(&self) -> Address {
        Address {
            job: self.config.job,
            generation: self.last_generation,
            rank: self.config.rank.filter(|rank| *rank < MAX_RANKS).unwrap_or(ALL),
            session: self.config.session,
        }
    }

    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        packet: &ReducePacket<'_>,
    ) -> Result<(), Refused> {
        let welcome = Welcome::parse(packet).map_err(Refused::Malformed)?;
        if welcome.address.session != self.config.session {
            // It is for an earlier incarnation of this worker, or for another worker of this address.
            return Err(Refused::NotForMe);
        }
        let answers_older = welcome.sent_at_us != 0
            && (welcome.sent_at_us.wrapping_sub(self.asks_since_us) as i32) < 0;
        match self.joining.standing() {
            // The answers to a join and to its repetition.
            Standing::In { generation, .. } if generation == welcome.address.generation => {
                self.heard(now);
                return Ok(());
            }
            // Operations of a generation that ends are still open: this end asks when they have ended.
            Standing::Joining { .. } if self.generation.is_some() => return Err(Refused::NotAsked),
            Standing::Joining { .. } if !answers_older => {}
            // It answers a join for an earlier generation, which has ended since.
            Standing::Joining { .. } => return Err(Refused::OldEpoch),
            // This end has left or was turned away, or the welcome is to another generation than the one it is in.
            _ => return Err(Refused::NotAsked),
        }
        if welcome.code == WelcomeCode::Welcome {
            check(&welcome).map_err(|field| Refused::Malformed(Refusal::BadField(field)))?;
        }
        self.heard(now);
        let generation = welcome.address.generation;
        if welcome.code == WelcomeCode::Welcome
            && let Some(leave) = self.leaving.last(|leave| leave.address.generation == generation)
        {
            // The switch takes this end for a member that it still has: it has not heard the leave.
            self.leaving.once(now, leave);
            return Ok(());
        }
        if welcome.sent_at_us != 0 {
            self.path.sample_question(since(now, welcome.sent_at_us));
        }
        match welcome.code {
            WelcomeCode::Welcome => self.enter(now, &welcome),
            WelcomeCode::Waiting => {
                let workers = welcome.workers.max(self.config.workers);
                self.joining.heard(now, welcome.here, workers, welcome.nonce);
            }
            code => {
                self.turned_away(now, code);
                return Err(Refused::NotAdmitted(code));
            }
        }
        Ok(())
    }

    /// The switch turned this end away.
    pub(super) fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        self.joining.turned_away(code);
        self.events.tell(WorkerEvent::JoinRefused(code));
        self.quiet.excuse();
        let waiting = core::mem::take(&mut self.waiting);
        self.fail_unplaced(now, waiting, Failure::Refused(code));
    }

    /// A generation begins.
    fn enter(&mut self, now: Instant, welcome: &Welcome) {
        let address = welcome.address;
        let Welcome { slots, block_bytes, .. } = *welcome;
        let fixed = self.config.options.window_blocks;
        self.window = window::of_generation(fixed, welcome.workers, block_bytes, slots.max(1));
        let entered = Generation::new(&self.config, welcome);
        let (generation, rank, workers) = (address.generation, entered.rank, entered.workers);
        self.generation = Some(entered);
        self.joining.enter(generation, rank, workers);
        self.events.tell(WorkerEvent::InGeneration { generation, rank, workers });
        self.asking.start(now, self.config.options.keepalive);
        self.counts.generations += 1;
        let was_there = self.last_place.is_some_and(|(last, _)| last.generation == generation);
        if was_there || self.progress.is_unheard(Some(self.count_of_join()), welcome.operation) {
            // The switch was silent for this end, and has noticed nothing: it would take this end's next operation for its
            // first one there.
            // This end leaves before it has any operation there: all begin again in the next generation.
            return self.close(now, Closing::unheard(rank));
        }
        let waiting = core::mem::take(&mut self.waiting);
        let is_behind_us = self.progress.align(welcome.operation);
        if is_behind_us && self.config.workers == 0 {
            // The switch does not believe this end. What waits may not be what the others begin again.
            let failure = self.progress.doomed().why();
            return self.fail(now, waiting, failure);
        }
        for open in waiting {
            match self.progress.take_doomed() {
                Some(failure) => self.fail_unplaced(now, [open], failure),
                None => self.place(now, open),
            }
        }
    }

    /// The count that a join says: of the operations that have begun, and of those that fail when they begin.
    fn count_of_join(&self) -> u32 {
        let count = self.progress.begun_and_doomed();
        count.filter(|_| self.last_generation != 0).unwrap_or(0)
    }

    /// Gives an operation its place in the generation, and the results that are here already.
    pub(super) fn place(&mut self, now: Instant, mut open: Open) {
        let Some(generation) = &mut self.generation else { return };
        match generation.place(&mut open) {
            Ok(()) => generation.begin(open),
            Err(failure) => return self.fail_unplaced(now, [open], failure),
        }
        self.progress.begin(1);
        self.asking.awaits(now, self.path.patience());
        self.take_early(now);
    }
}

/// Checks what only an end must know of a generation.
fn check(welcome: &Welcome) -> Result<(), &'static str> {
    let lanes = welcome.block_bytes as usize;
    // A block has lanes of every type, and fits a datagram.
    if lanes < 8 || datagram_len(0, olaf_wire::reduce::LaneType::F16, lanes / 2) > MAX_DATAGRAM {
        return Err("block_bytes");
    }
    if welcome.slots > MAX_SLOTS {
        return Err("slots");
    }
    Ok(())
}
