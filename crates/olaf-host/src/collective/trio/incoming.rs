//! What a message from the switch changes.

use super::Worker;
use super::operations::State;
use crate::collective::path::since;
use crate::collective::{Collective, Standing};
use olaf_engine::engine::Ecn;
use olaf_engine::{Instant, Refused, Source, WorkerEvent};
use olaf_wire::trio::{Block, Kind, Straggler, TrioPacket, Want};

impl Worker {
    pub(super) fn take_packet(
        &mut self,
        now: Instant,
        from: Source,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        if from.peer != self.config.switch {
            return Err(Refused::UnknownPeer);
        }
        let packet = TrioPacket::new_checked(bytes).map_err(Refused::Malformed)?;
        if u32::from(packet.job()) != self.config.job.0 {
            return Err(Refused::UnknownJob);
        }
        match packet.kind() {
            Kind::Block | Kind::Aged => {
                self.counts.results += 1;
                let taken = self.handle_result(now, from, &packet);
                self.counts.results_refused += u64::from(taken.is_err());
                taken
            }
            Kind::Welcome => self.handle_welcome(now, &packet),
            Kind::Want => self.handle_want(now, &packet),
            Kind::Closed => self.handle_closed(now, &packet),
            Kind::Gone => self.handle_gone(now, &packet),
            Kind::Straggler => self.handle_straggler(&packet),
            Kind::Hello | Kind::Ask | Kind::Leave => Err(Refused::WrongDirection),
        }
    }

    /// The switch was heard.
    pub(super) fn heard(&mut self) {
        if self.quiet.heard() {
            self.events.tell(WorkerEvent::SwitchBack);
        }
    }

    fn handle_result(
        &mut self,
        now: Instant,
        from: Source,
        packet: &TrioPacket<'_>,
    ) -> Result<(), Refused> {
        let block = Block::parse(packet).map_err(Refused::Malformed)?;
        let Some(term) = &mut self.term else { return Err(Refused::UnknownWorker) };
        if block.sources > term.workers {
            return Err(Refused::Mismatch);
        }
        if term.open_of(block.generation).is_none() {
            let ahead = block.generation.wrapping_sub(term.next);
            if usize::from(ahead) >= 2 * super::MOST_OPEN {
                // The operation has ended here.
                return Err(Refused::Duplicate);
            }
            // Trio-ML §5: the others went on without this end, which has not begun the operation yet.
            if !term.early.keep(&block, packet.gradients()) {
                return Err(Refused::NoRoom);
            }
            self.counts.early += 1;
            self.heard();
            return Ok(());
        }
        let is_congested = from.class.ecn() == Ecn::Marked;
        self.take_result(now, &block, packet.gradients(), is_congested)?;
        self.counts.taken += 1;
        Ok(())
    }

    /// Takes the results that came before their operation began here.
    pub(super) fn take_early(&mut self, now: Instant, generation: u16) {
        loop {
            let term = self.term.as_mut();
            let Some((block, gradients)) = term.and_then(|term| term.early.take(generation)) else {
                return;
            };
            // The operation may not be the one that the others have begun.
            let taken = self.take_result(now, &block, &gradients, false);
            *if taken.is_ok() {
                &mut self.counts.early_used
            } else {
                &mut self.counts.early_discarded
            } += 1;
        }
    }

    fn take_result(
        &mut self,
        now: Instant,
        block: &Block,
        gradients: &[u8],
        is_congested: bool,
    ) -> Result<(), Refused> {
        let Some(term) = &mut self.term else { return Err(Refused::UnknownWorker) };
        let workers = term.workers;
        let Some(open) = term.open_of(block.generation) else { return Err(Refused::Duplicate) };
        let sent_at = open.slots.get(block.block as usize).map(|slot| slot.at);
        let state = open.take(block, gradients)?;
        let is_complete = open.is_complete();
        self.counts.degraded += u64::from(block.degraded);
        match state {
            State::Unsent => self.counts.spared += 1,
            State::Sent => {
                let sample = sent_at.map(|at| now.since(at));
                sample.into_iter().for_each(|sample| self.path.sample(sample));
                self.window.on_result(now, sample, is_congested);
                self.counts.answered += 1;
            }
            State::Again | State::Done => {
                self.window.on_result(now, None, is_congested);
                self.counts.answered += 1;
            }
        }
        self.heard();
        self.asking.progressed();
        if is_complete {
            self.finish(now, block.generation, workers);
        }
        Ok(())
    }

    /// All results of an operation are here.
    fn finish(&mut self, now: Instant, generation: u16, workers: u8) {
        let Some(term) = &mut self.term else { return };
        let at = term.open.iter().position(|open| open.generation == generation);
        let Some(open) = at.and_then(|at| term.open.remove(at)) else { return };
        let outcome = open.outcome(workers);
        self.ledger.end(open.end(now, outcome));
        self.finish_closing(now);
        if matches!(self.standing(), Standing::In { .. }) {
            self.place_all(now);
        }
    }

    /// The switch lacks pieces of this end, or answers a question for results that it lacks, too.
    fn handle_want(&mut self, now: Instant, packet: &TrioPacket<'_>) -> Result<(), Refused> {
        let want = Want::parse(packet).map_err(Refused::Malformed)?;
        if want.session != self.config.session {
            return Err(Refused::NotForMe);
        }
        let Some(term) = self.term.as_mut().filter(|term| term.number == want.term) else {
            return Err(Refused::OtherGeneration);
        };
        self.path.sample_question(since(now, want.sent_at_us));
        if let Some(open) = term.open_of(want.generation) {
            let blocks = open.blocks();
            for block in want.blocks().take_while(|block| *block < blocks) {
                open.want(block);
                self.window.on_loss(now);
                self.counts.wanted += 1;
                // The path is there: the next question need not wait longer.
                self.asking.progressed();
            }
        }
        self.heard();
        Ok(())
    }

    fn handle_straggler(&mut self, packet: &TrioPacket<'_>) -> Result<(), Refused> {
        let Straggler { term, source, straggling, events, .. } =
            Straggler::parse(packet).map_err(Refused::Malformed)?;
        if self.term.as_ref().is_none_or(|known| known.number != term) {
            return Err(Refused::OtherGeneration);
        }
        let before = self.counts.stragglers.insert(source, straggling);
        if before != Some(straggling) {
            let rank = source.into();
            self.events.tell(WorkerEvent::Straggler { rank, straggling, events });
        }
        self.heard();
        Ok(())
    }
}
