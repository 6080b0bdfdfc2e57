//! What comes down to a worker: welcomes, answers, notices.

use super::{FETCH_BYTES, FETCHES_AT_ONCE, Standing, Worker};
use crate::transmission::Feedback;
use core::time::Duration;
use olaf_engine::party::Shape;
use olaf_engine::party::Sign;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::offsets::{LANE, SEGMENT_HEADER};
use olaf_wire::{
    Address, Answer, Kind, Notice, Packet, QueueStatus, Welcome, WelcomeCode, WorkerId,
};

/// Between two joins of a worker that was turned away for a reason that does not pass by itself.
const REFUSED_AGAIN: Duration = Duration::from_secs(2);

impl Worker {
    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let welcome = Welcome::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&welcome.address)?;
        if welcome.address.worker == WorkerId::ALL {
            return Err(Refused::NotForMe);
        }
        let asked = self.joins.asked_at(welcome.echoed_sent_at_ns);
        if welcome.epoch != self.server.epoch() && self.models.is_old_epoch(welcome.epoch) {
            // It may have been on its way for long. But an incarnation that answers what was asked after its successor was
            // heard is there again: a switch was pointed at another server, and back.
            let is_later = welcome.echoed_sent_at_ns > self.models.renewed_at().0;
            if asked.is_none() || !is_later {
                return Err(Refused::OldEpoch);
            }
            self.models.is_back();
        }
        let Some(version_seen) = asked else {
            return self.unasked(now, &welcome);
        };
        self.heard_switch(now, welcome.switch_epoch);
        self.awaits_admission = welcome.code == WelcomeCode::AdmissionPending;
        match welcome.code {
            WelcomeCode::AdmissionPending => {
                // Its join is held back on the way.
                self.server.excuse();
                return Ok(());
            }
            WelcomeCode::JoinAgain => {
                self.prove(now, welcome.nonce);
                self.join_at_once(now);
                return Ok(());
            }
            WelcomeCode::ServerSilent => {
                self.server.expect(now);
                return Ok(());
            }
            WelcomeCode::WrongSegmentLanes if self.take_over_cut(now, &welcome) => {
                self.heard_server(now, welcome.epoch);
                return Ok(());
            }
            code if code.is_refusal() => {
                self.turned_away(now, code);
                return Err(Refused::TurnedAway(code));
            }
            _ => {}
        }
        if self.signatures.doubts(welcome.epoch) {
            // The server restarted, or the switch says so: the server's own word is asked for.
            self.ask_for_proof(now);
            return Err(Refused::UnknownEpoch);
        }
        if !self.signatures.is_proven() {
            self.ask_for_proof(now);
        }
        self.heard_server(now, welcome.epoch);
        if matches!(self.standing, Standing::TurnedAway(_)) {
            // It has passed, or was forged: this one is no refusal.
            self.path.refused = None;
            self.standing = Standing::Joining;
        }
        self.rule = welcome.rule.or(self.rule);
        let held = welcome.sent_at_ns.saturating_sub(welcome.received_at_ns);
        self.joins.answered(now, welcome.echoed_sent_at_ns, held);
        self.clock.exchange(
            welcome.echoed_sent_at_ns,
            welcome.received_at_ns,
            welcome.sent_at_ns,
            now.0,
        );
        if self.standing == Standing::Left {
            return Ok(());
        }
        if welcome.code == WelcomeCode::Path {
            self.heard_of_path(now, packet, &welcome);
            return Ok(());
        }
        self.asked_for_layout(now, &welcome);
        if welcome.ready {
            self.offer = None;
            if welcome.version < version_seen {
                // The server read the join after this worker had heard of a later version, and does
                // not have it: that version was forged, or is of an earlier life of the server.
                let version = self.models.forget_above(welcome.version);
                self.basis = self.basis.min(version);
            }
            self.want(now, welcome.version);
        }
        self.put_off_join(welcome.ready);
        self.prove(now, welcome.nonce);
        if !welcome.ready && welcome.first_missing != u32::MAX {
            self.offer(now, &welcome);
        }
        if self.standing != Standing::Joined && welcome.ready && self.models.newest().is_some() {
            self.joined(welcome.version);
        }
        Ok(())
    }

    /// A welcome that answers no recent join: no life of a switch or of a server is believed of it,
    /// and no refusal. A switch that restarted asks its workers so to join again.
    fn unasked(&mut self, now: Instant, welcome: &Welcome) -> Result<(), Refused> {
        if welcome.code != WelcomeCode::JoinAgain {
            return Err(Refused::NotAsked);
        }
        self.heard_switch(now, 0);
        self.ask_soon(now);
        Ok(())
    }

    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let answer = Answer::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&answer.address)?;
        if answer.epoch != self.server.epoch() && self.models.is_old_epoch(answer.epoch) {
            return Err(Refused::OldEpoch);
        }
        if answer.epoch != 0 && answer.epoch != self.server.epoch() {
            // The server restarted, or the answer is forged: the answer to a join says which.
            self.ask_soon(now);
            self.ask_for_proof(now);
            return Err(Refused::UnknownEpoch);
        }
        if answer.epoch == 0 && answer.address.worker == WorkerId::ALL {
            // A switch speaks to each of its workers by name.
            return Err(Refused::NotForMe);
        }
        self.heard_switch(now, 0);
        self.outbox.note_ends(answer.segment, &answer.ends);
        if answer.epoch == 0 {
            // Of a switch, which only says what became of updates that it will not send on.
            return Ok(());
        }
        self.heard_server(now, answer.epoch);
        if answer.queue.switches > 0 {
            self.queue = answer.queue;
            let ns = |us: u32| u64::from(us) * 1000;
            // A slot holds one segment, so the queue holds `slots / segments` whole updates.
            let segments = self.shape.map_or(1, Shape::segments).max(1);
            let slots = u32::from(answer.queue.slots) / segments;
            let slots = u16::try_from(slots).unwrap_or(u16::MAX);
            let feedback = Feedback {
                queue: QueueStatus { slots, ..answer.queue },
                round_ns: ns(answer.queue.round_us),
                own_age_ns: ns(answer.ages.own_us),
                mean_age_ns: ns(answer.ages.mean_us),
            };
            self.transmission.hear(now, &feedback);
        }
        if answer.acknowledges > 0 {
            self.counters.acknowledgements += 1;
            self.outbox.acknowledge(now, answer.acknowledges);
        }
        if packet.kind() == Kind::Model {
            let shape = self.shape.ok_or(Refused::UnknownWorker)?;
            if answer.acknowledges == 0 {
                // Not the answer to an update but to a wish: older versions are no longer kept.
                self.models.give_up_below(answer.model_version);
            }
            let before = self.models.awaited();
            let taken = self.models.take(now, shape, &answer, packet.lanes());
            self.check_held(now);
            let here = self.models.newest().map_or(0, |model| model.version);
            // Only the answer to a wish acknowledges nothing.
            self.refreshing &= answer.acknowledges != 0
                || here < answer.model_version
                || answer.model_version < self.asked_with;
            if self.refreshing && answer.acknowledges == 0 {
                self.refreshed_by = Some(answer.model_version);
            }
            taken?;
            let awaited = self.models.awaited();
            // What comes of a newer version is no sign that the rest of the awaited one still
            // comes.
            if awaited != before || awaited == Some(answer.model_version) {
                self.fetches_in_vain = 0;
                let more = self.has_all_asked_for();
                if awaited != before {
                    self.asked.clear();
                }
                let again = if more { now } else { now + self.fetch_interval() };
                self.next_fetch = self.models.is_assembling().then_some(again);
            } else if self.asked.is_empty() {
                // What is behind by more than the path varies was lost, and a server keeps few
                // versions: over a long path there is no time to wait for a round trip first.
                let overtaken = self.config.fetch_after.max(self.joins.round_trip.varies());
                let soon = now + overtaken;
                self.next_fetch = self.next_fetch.map(|at| at.min(soon));
            }
            if self.standing == Standing::Joining && self.models.newest().is_some() {
                self.joined(answer.model_version);
            }
        }
        Ok(())
    }

    pub(super) fn handle_notice(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let notice = Notice::parse(packet).map_err(Refused::Malformed)?;
        self.for_me(&notice.address)?;
        let is_for_all = notice.address.worker == WorkerId::ALL;
        if is_for_all || notice.address.cluster != self.config.address.cluster {
            return Err(Refused::NotForMe);
        }
        self.heard_switch(now, 0);
        self.counters.notices += 1;
        // What is from the future would silence this cluster for as long.
        self.transmission.taken(now, notice.taken_newest_ns.min(self.clock.server_time(now)));
        Ok(())
    }

    pub(super) fn for_me(&self, address: &Address) -> Result<(), Refused> {
        let own = &self.config.address;
        if address.job != own.job {
            return Err(Refused::UnknownJob);
        }
        // Straight from a server, without a switch that fans out, an answer is for all.
        let all = address.worker == WorkerId::ALL && address.cluster == own.cluster;
        if all || (address.worker == own.worker && address.session == own.session) {
            Ok(())
        } else {
            Err(Refused::NotForMe)
        }
    }

    pub(super) fn joined(&mut self, version: u32) {
        self.standing = Standing::Joined;
        self.events.push_back(WorkerEvent::Joined { version });
    }

    fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        if self.standing != Standing::TurnedAway(code) {
            self.events.push_back(WorkerEvent::TurnedAway(code));
        }
        self.standing = Standing::TurnedAway(code);
        // An id in use may be this worker's own earlier incarnation, which is forgotten soon; a model of
        // another size stays one. But anybody who sees a join can forge its refusal: no refusal ends the asking.
        if code.may_pass() {
            let at = now + self.config.keepalive;
            if self.path.is_searching() {
                self.path.ask_anew(at);
            } else {
                self.next_join = Some(at);
            }
        } else {
            self.path.stop();
            self.next_join = Some(now + REFUSED_AGAIN);
        }
    }

    pub(super) fn heard_switch(&mut self, now: Instant, epoch: u32) {
        match self.switch.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(WorkerEvent::SwitchBack),
            Sign::Restarted => {
                self.transmission.forget();
                self.outbox.give_up();
                self.events.push_back(WorkerEvent::SwitchRestarted);
            }
        }
    }

    pub(super) fn heard_server(&mut self, now: Instant, epoch: u32) {
        if self.signatures.doubts(epoch) {
            return self.ask_for_proof(now);
        }
        let before = self.server.epoch();
        match self.server.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(WorkerEvent::ServerBack),
            Sign::Restarted => {
                self.transmission.forget();
                self.models.new_epoch(now, before);
                self.outbox.give_up();
                self.join_at_once(now);
                self.events.push_back(WorkerEvent::ServerRestarted);
            }
        }
    }

    /// The job has a model of that version: where nothing of it is on its way, it is asked for.
    pub(super) fn want(&mut self, now: Instant, version: u32) {
        let Some(shape) = self.shape else { return };
        if self.models.want(shape, version) {
            self.next_fetch = Some(now);
        }
    }

    /// Asks for what is missing of the models on their way.
    pub(super) fn plan_fetches(&mut self, now: Instant) {
        let window = self.shape.map_or(1, |shape| 64 * (SEGMENT_HEADER + shape.lanes(0) * LANE));
        let at_once = (FETCH_BYTES / window).clamp(4, FETCHES_AT_ONCE);
        self.fetches = self.models.missing(self.config.address).take(at_once).collect();
        self.asked = self.fetches.iter().copied().collect();
        let again = now + self.fetch_interval();
        self.fetches_in_vain += 1;
        self.suspect_path(now);
        self.next_fetch = self.models.is_assembling().then_some(again);
    }

    /// Returns true if everything that was asked for last has come; true once.
    fn has_all_asked_for(&mut self) -> bool {
        let all = !self.asked.is_empty() && self.asked.iter().all(|fetch| self.models.has(fetch));
        if all {
            self.asked.clear();
        }
        all
    }

    /// Before the first round trip is known it is found by waiting twice as long each time: on a
    /// slow path the wishes would otherwise crowd out what they wish for.
    pub(super) fn fetch_interval(&self) -> Duration {
        let path = self.joins.round_trip.retry_after();
        // An update's answer also waits in queues, and so do models.
        let answers = self.outbox.round_trip().unwrap_or_default() * 2;
        let first = self.config.fetch_after.max(path).max(answers);
        let longer = first.saturating_mul(1 << self.fetches_in_vain.min(16));
        longer.min(self.config.keepalive.max(first))
    }

    /// A party that owes an answer for longer is silent: what is asked takes the path's time too.
    pub(super) fn silent_after(&self) -> Duration {
        self.config.silent_after + self.joins.round_trip.patience().unwrap_or_default()
    }
}
