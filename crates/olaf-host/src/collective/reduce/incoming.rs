//! What a message from the switch changes.

use super::Reducer;
use super::blocks::{Place, State};
use super::operations::Arrived;
use crate::collective::path::since;
use crate::collective::{Failure, Recovery};
use olaf_engine::{Ecn, Instant, Refused, Source, WorkerEvent};
use olaf_wire::Refusal;
use olaf_wire::reduce::offsets::{HEADER, MAGIC, common};
use olaf_wire::reduce::{
    ALL, Address, Block, BlockResult, Kind, RankSet, ReducePacket, Want, WelcomeCode,
};

impl Reducer {
    pub(super) fn take_packet(
        &mut self,
        now: Instant,
        from: Source,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        if from.peer != self.config.switch {
            return Err(Refused::UnknownPeer);
        }
        let packet = match ReducePacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(refusal) => {
                self.note_version(now, bytes, refusal);
                return Err(Refused::Malformed(refusal));
            }
        };
        if packet.address().job != self.config.job {
            return Err(Refused::UnknownJob);
        }
        match packet.kind() {
            Kind::Result => {
                let is_marked = from.class.ecn() == Ecn::Marked;
                let handled = self.handle_result(now, is_marked, &packet);
                self.counts.results += 1;
                self.counts.results_refused += u64::from(handled.is_err());
                handled
            }
            Kind::Want => self.handle_want(now, &packet),
            Kind::Welcome => self.handle_welcome(now, &packet),
            Kind::Closed => self.handle_closed(now, &packet),
            Kind::Piece | Kind::Ask | Kind::Join | Kind::Leave => Err(Refused::WrongDirection),
        }
    }

    /// A switch of another version answers a join in its own version. Kind and session have the
    /// same place in every version.
    fn note_version(&mut self, now: Instant, bytes: &[u8], refusal: Refusal) {
        let Refusal::WrongVersion { have, .. } = refusal else { return };
        let Some(header) = bytes.first_chunk::<HEADER>() else { return };
        let session = header[common::SESSION..].starts_with(&self.config.session.0.to_be_bytes());
        let is_answer =
            header.starts_with(&MAGIC) && header[common::KIND] == Kind::Welcome as u8 && session;
        // What is left of a generation ends first, and its switch speaks this version.
        let asks = self.joining.standing().is_joining() && self.generation.is_none();
        if is_answer && asks {
            self.counts.other_version = Some(have);
            self.heard(now);
            self.turned_away(now, WelcomeCode::OtherVersion);
        }
    }

    /// Returns true if a message is for this end in its generation.
    pub(super) fn for_generation(&self, address: &Address) -> Result<(), Refused> {
        let Some(generation) = &self.generation else { return Err(Refused::OtherGeneration) };
        let own = generation.address;
        if address.generation != own.generation {
            return Err(Refused::OtherGeneration);
        }
        let for_all = address.rank == ALL;
        if for_all || (address.rank == own.rank && address.session == own.session) {
            Ok(())
        } else {
            Err(Refused::NotForMe)
        }
    }

    fn handle_result(
        &mut self,
        now: Instant,
        is_marked: bool,
        packet: &ReducePacket<'_>,
    ) -> Result<(), Refused> {
        let header = BlockResult::parse(packet).map_err(Refused::Malformed)?;
        self.for_generation(&header.address)?;
        let Some(generation) = &mut self.generation else { return Err(Refused::OtherGeneration) };
        let block = header.block.number;
        match generation.blocks.place(block) {
            Place::Held => {
                self.heard(now);
                return Err(Refused::Duplicate);
            }
            Place::TooEarly => return Err(Refused::TooEarly),
            Place::Missing => {}
        }
        let missing = if header.is_partial() { only_missing(&header, packet) } else { None };
        let arrived = Arrived { header: &header, lanes: packet.lanes(), missing };
        if block < generation.next_block {
            let Some(at) = generation.index_of(block) else { return Err(Refused::Mismatch) };
            let saves = self.config.workers == 0;
            match generation.open[at].take(&arrived, saves) {
                Ok(()) => self.counts.taken += 1,
                Err(refused) => {
                    if refused == Refused::Mismatch {
                        self.contradicted(now, at, &header.block);
                    }
                    return Err(refused);
                }
            }
        } else if generation.closing.is_some() {
            return Err(Refused::OtherGeneration);
        } else if generation.early.keep(&arrived, generation.blocks.slots()) {
            self.counts.early += 1;
        } else {
            self.heard(now);
            return Err(Refused::NoRoom);
        }
        self.note_result(now, &header, is_marked || header.marks.congested);
        if self.generation.as_ref().is_some_and(|generation| generation.early.len() > 0) {
            // Exponents that came late make the lanes readable.
            self.take_early(now);
        }
        self.end_complete(now);
        Ok(())
    }

    /// The result of a block is here.
    fn note_result(&mut self, now: Instant, header: &BlockResult, is_congested: bool) {
        let Some(generation) = &mut self.generation else { return };
        let before = generation.blocks.hold(header.block.number);
        // The time from the piece to its result counts although other workers take part in it: a
        // question before that time is in vain.
        let round_trip =
            (before.state == State::Sent && !before.is_repeated).then(|| since(now, before.at_us));
        if let Some(sample) = round_trip {
            self.path.sample(sample);
        }
        if before.is_repeated && header.marks.resent && !before.is_lost {
            self.counts.lost_results += 1;
            self.window.on_loss(now);
        }
        match before.state {
            State::Sent => {
                self.counts.in_flight = self.counts.in_flight.saturating_sub(1);
                self.counts.answered += 1;
                self.window.on_result(now, round_trip, is_congested);
            }
            State::Unsent => self.counts.unneeded += 1,
            State::Awaited | State::Held => {}
        }
        self.heard(now);
        self.asking.progressed(crate::collective::path::micros(now));
    }

    /// Results of an operation that has begun now came before.
    pub(super) fn take_early(&mut self, now: Instant) {
        let Some(generation) = &mut self.generation else { return };
        let mut too_soon = alloc::vec::Vec::new();
        let mut contradicted = None;
        while let Some(kept) = generation.early.take_before(generation.next_block) {
            let arrived = kept.arrived();
            let block = arrived.header.block.number;
            let Some(at) = generation.index_of(block) else {
                self.counts.early_discarded += 1;
                continue;
            };
            if !generation.open[at].is_ready(block) {
                too_soon.push(kept);
                continue;
            }
            let saves = self.config.workers == 0;
            match generation.open[at].take(&arrived, saves) {
                Ok(()) => self.counts.early_used += 1,
                Err(refused) => {
                    self.counts.early_discarded += 1;
                    *self.counts.refused.entry(refused.name()).or_default() += 1;
                    contradicted = Some((at, arrived.header.block));
                    break;
                }
            }
        }
        too_soon.into_iter().for_each(|kept| generation.early.put_back(kept));
        if let Some((at, block)) = contradicted {
            return self.protest(now, at, &block);
        }
        self.end_complete(now);
    }

    /// The other workers' operation differs from this end's operation of the same number.
    fn contradicted(&mut self, now: Instant, at: usize, theirs: &Block) {
        let is_news = self.note_clash(at, theirs);
        let Some(generation) = &mut self.generation else { return };
        if self.config.options.recovery != Recovery::Off {
            // Its question says what this end calls, and the switch says who differs.
            if is_news {
                generation.blocks.ask(theirs.number);
            }
            return;
        }
        let culprit = Some(generation.rank);
        let reason = olaf_wire::reduce::Reason::Mismatch;
        let number = generation.open[at].at.number;
        self.leave_generation(now, number, Failure::Closed { reason, culprit });
    }

    /// Ends the operations that have all results, in order: while an earlier one may fail, no
    /// worker may have finished a later one.
    fn end_complete(&mut self, now: Instant) {
        let Some(generation) = &mut self.generation else { return };
        while let Some(open) = generation.pop_complete() {
            let outcome = open.outcome();
            self.ledger.end(open.end(now, outcome));
        }
        self.finish_closing(now);
    }

    fn handle_want(&mut self, now: Instant, packet: &ReducePacket<'_>) -> Result<(), Refused> {
        let want = Want::parse(packet).map_err(Refused::Malformed)?;
        self.for_generation(&want.address)?;
        self.heard(now);
        if want.sent_at_us != 0 && want.sent_at_us == self.asking.last_us() {
            self.path.sample_question(since(now, want.sent_at_us));
        }
        let Some(generation) = &mut self.generation else { return Ok(()) };
        let mut lost = 0;
        for block in want.blocks.iter() {
            lost += u32::from(generation.blocks.want(block));
        }
        if lost > 0 {
            self.counts.wanted += u64::from(lost);
            let (_, in_flight) = self.window.state();
            if lost >= in_flight && lost > 1 {
                self.window.on_timeout(now);
            } else {
                (0..lost).for_each(|_| self.window.on_loss(now));
            }
        }
        Ok(())
    }

    /// The switch was heard.
    pub(super) fn heard(&mut self, now: Instant) {
        if self.quiet.heard() {
            self.events.tell(WorkerEvent::SwitchBack);
        }
        self.await_answer(now);
    }
}

/// The only rank whose lanes are missing in a partial sum.
fn only_missing(header: &BlockResult, packet: &ReducePacket<'_>) -> Option<u32> {
    if header.contributors + 1 != header.expected {
        return None;
    }
    let named = RankSet::from_words(packet.contributor_words()).ok()?;
    (0..header.expected).find(|rank| !named.contains(*rank))
}
