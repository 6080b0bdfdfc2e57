//! What a message from the switch changes.

use super::generation::State;
use super::{Wish, Worker};
use crate::collective::path::since;
use olaf_engine::{Ecn, Instant, Refused, Source, WorkerEvent};
use olaf_wire::Refusal;
use olaf_wire::iswitch::{
    Ack, Action, CONTROL_CLASS, Control, DATA_CLASS, DataPacket, Outcome, Packets,
};
use olaf_wire::reduce::WelcomeCode;

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
        match from.class.dscp() {
            DATA_CLASS => {
                let packet = DataPacket::new_checked(bytes).map_err(Refused::Malformed)?;
                self.heard();
                self.take_result(now, from.class.ecn() == Ecn::Marked, &packet)
            }
            CONTROL_CLASS => {
                let message = Control::parse(bytes).map_err(Refused::Malformed)?;
                self.heard();
                self.take_control(now, &message)
            }
            _ => Err(Refused::Malformed(Refusal::NotOurs)),
        }
    }

    /// The switch was heard.
    fn heard(&mut self) {
        if self.quiet.heard() {
            self.events.tell(WorkerEvent::SwitchBack);
        }
    }

    fn take_result(
        &mut self,
        now: Instant,
        ecn: bool,
        packet: &DataPacket<'_>,
    ) -> Result<(), Refused> {
        self.counts.results += 1;
        let taken = self.take_floats(now, ecn, packet);
        match taken {
            Ok(()) => {
                self.counts.taken += 1;
                self.finish(now);
            }
            Err(Refused::Duplicate) => self.counts.results_again += 1,
            Err(Refused::TooEarly) => self.counts.early += 1,
            Err(_) => self.counts.results_refused += 1,
        }
        taken
    }

    fn take_floats(
        &mut self,
        now: Instant,
        ecn: bool,
        packet: &DataPacket<'_>,
    ) -> Result<(), Refused> {
        let seg = packet.seg;
        let generation = self.generation.as_mut();
        let generation = generation.filter(|generation| generation.number == seg.generation);
        let generation = generation.ok_or(Refused::OtherGeneration)?;
        if seg.index < generation.holds {
            return Err(Refused::Duplicate);
        }
        // The result of an operation that has not begun here stays in the switch until this end holds it.
        let Some(entry) = generation.entry(seg.index).copied() else {
            generation.early = generation.early.max(seg.index + 1);
            return Err(Refused::TooEarly);
        };
        if entry.state == State::Done {
            return Err(Refused::Duplicate);
        }
        let vectors = seg.vectors_of(generation.workers);
        let open = generation.open_of(seg.index).ok_or(Refused::TooEarly)?;
        open.take(seg.index, seg.last, vectors, packet.floats)?;
        let clash = open.clash();
        generation.done(now, seg.index);
        if entry.state == State::Sent && !generation.has_ended {
            let is_sample = !entry.resent && entry.asked.is_none();
            let round_trip = is_sample.then(|| now.since(entry.at));
            if let Some(sample) = round_trip {
                self.path.sample(sample);
            }
            if entry.overtaken && !entry.resent {
                // The result was lost on the way here.
                self.counts.lost_results += 1;
                self.window.on_loss(now);
            }
            self.counts.answered += 1;
            self.window.on_result(now, round_trip, ecn);
        }
        if entry.takes_room && !generation.has_ended {
            self.counts.answered += 1;
            self.window.on_result(now, None, ecn);
        }
        if let Some((clash, is_odd)) = clash {
            // The others wait for the word of the one that is named.
            self.clash = Some(clash);
            if is_odd {
                self.wish_for(now, Wish::Mismatch);
            }
        }
        Ok(())
    }

    fn take_control(&mut self, now: Instant, message: &Control) -> Result<(), Refused> {
        match message {
            Control::Ack(ack) => self.take_ack(now, ack),
            Control::Help(wanted) => self.take_help(now, wanted),
            Control::Halt(halt) => self.handle_halt(now, halt),
            Control::Join(_)
            | Control::Leave(_)
            | Control::Reset { .. }
            | Control::SetH { .. }
            | Control::FBcast(_) => Err(Refused::WrongDirection),
        }
    }

    fn take_ack(&mut self, now: Instant, ack: &Ack) -> Result<(), Refused> {
        if let Some(admission) = &ack.admission {
            if ack.sent_at_us != 0 {
                self.path.sample_question(since(now, ack.sent_at_us));
            }
            return self.handle_join_answer(now, ack, admission);
        }
        if ack.action == Action::Leave {
            self.leaving.stop();
            return Ok(());
        }
        let generation = self.generation.as_mut();
        let generation = generation.filter(|generation| generation.number == ack.generation);
        let generation = generation.ok_or(Refused::OtherGeneration)?;
        if ack.sent_at_us != 0 {
            self.path.sample_question(since(now, ack.sent_at_us));
        }
        if ack.action == Action::Help && ack.outcome == Outcome::Waiting {
            // Results that the switch has came before this answer.
            generation.wait_for_others();
        }
        if ack.action == Action::SetH && generation.set_h_at.take().is_some() {
            match ack.outcome {
                Outcome::Success => {}
                // The switch has fewer members than H.
                _ => self.turned_away(now, WelcomeCode::Refused),
            }
        }
        Ok(())
    }

    /// The switch lacks packets of this end.
    fn take_help(&mut self, now: Instant, wanted: &Packets) -> Result<(), Refused> {
        let generation = self.generation.as_mut();
        let generation = generation.filter(|generation| generation.number == wanted.generation);
        let generation = generation.ok_or(Refused::OtherGeneration)?;
        if wanted.sent_at_us != 0 {
            self.path.sample_question(since(now, wanted.sent_at_us));
        }
        for index in wanted.iter() {
            let Some(entry) = generation.entry(index) else { continue };
            let was_sent = entry.state == State::Sent || entry.takes_room;
            if !was_sent || entry.state == State::Done {
                continue;
            }
            self.counts.wanted += 1;
            let is_new = generation.resend.insert((index, 0));
            if is_new {
                self.window.on_loss(now);
            }
        }
        Ok(())
    }
}
