//! What comes down to a worker: welcomes, answers, notices.

use super::{JOIN_RETRY, OFFER_WINDOW, Standing, Worker};
use crate::host::{HostEvent, Refused};
use crate::liveness::Sign;
use crate::segments::Shape;
use crate::transmission::Feedback;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::{
    Address, Answer, Kind, Notice, Packet, QueueStatus, Welcome, WelcomeCode, WorkerId,
};

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
        if welcome.epoch != self.server.epoch() && self.models.is_old_epoch(welcome.epoch) {
            return Err(Refused::OldEpoch);
        }
        self.heard_switch(now, welcome.switch_epoch);
        self.awaits_admission = welcome.code == WelcomeCode::AdmissionPending;
        match welcome.code {
            WelcomeCode::AdmissionPending => {
                // Its join is held back on the way.
                self.server.excuse();
                return Ok(());
            }
            WelcomeCode::JoinAgain => {
                self.next_join = Some(now);
                return Ok(());
            }
            WelcomeCode::ServerSilent => {
                self.server.expect(now);
                return Ok(());
            }
            code if code.is_refusal() => {
                self.turned_away(now, code);
                return Err(Refused::TurnedAway(code));
            }
            _ => {}
        }
        self.heard_server(now, welcome.epoch);
        self.join_retry = JOIN_RETRY;
        self.rule = welcome.rule.or(self.rule);
        self.clock.exchange(
            welcome.echoed_sent_at_ns,
            welcome.received_at_ns,
            welcome.sent_at_ns,
            now.0,
        );
        if self.standing == Standing::Left {
            return Ok(());
        }
        self.asked_for_layout(now, &welcome);
        if welcome.ready {
            self.offer = None;
            self.want(now, welcome.version);
        } else if welcome.first_missing != u32::MAX && welcome.echoed_sent_at_ns == self.last_join.0
        {
            // Only the answer to the newest join: each window is sent once, however slow the link.
            let segments = self.shape.map_or(0, Shape::segments);
            let end = welcome.first_missing.saturating_add(OFFER_WINDOW).min(segments);
            self.offer = Some((welcome.first_missing, end));
            // Straight after the window the server is asked what it lacks.
            self.next_join = Some(now);
        }
        if self.standing != Standing::Joined && welcome.ready && self.models.newest().is_some() {
            self.joined(welcome.version);
        }
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
        self.heard_switch(now, 0);
        self.heard_server(now, answer.epoch);
        if answer.queue.switches > 0 {
            self.queue = answer.queue;
            let ns = |us: u32| u64::from(us) * 1000;
            // A slot holds a segment: so many whole updates of a cluster fit the queue.
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
            self.models.take(shape, &answer, packet.lanes())?;
            self.fetches_in_vain = 0;
            self.next_fetch = self.models.is_assembling().then(|| now + self.fetch_interval());
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
        if notice.address.cluster != self.config.address.cluster {
            return Err(Refused::NotForMe);
        }
        self.heard_switch(now, 0);
        self.counters.notices += 1;
        // What is from the future would silence this cluster for as long.
        self.transmission.taken(now, notice.taken_newest_ns.min(self.clock.server_time(now)));
        Ok(())
    }

    fn for_me(&self, address: &Address) -> Result<(), Refused> {
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

    fn joined(&mut self, version: u32) {
        self.standing = Standing::Joined;
        self.events.push_back(HostEvent::Joined { version });
    }

    fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        if self.standing != Standing::TurnedAway(code) {
            self.events.push_back(HostEvent::TurnedAway(code));
        }
        self.standing = Standing::TurnedAway(code);
        // An id in use may be this worker's own earlier life, which is forgotten soon; a model of
        // another size stays one.
        let may_pass = matches!(code, WelcomeCode::WorkerIdInUse | WelcomeCode::Full);
        self.next_join = may_pass.then(|| now + self.config.keepalive);
    }

    fn heard_switch(&mut self, now: Instant, epoch: u32) {
        match self.switch.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(HostEvent::SwitchBack),
            Sign::Restarted => {
                self.transmission.forget();
                self.events.push_back(HostEvent::SwitchRestarted);
            }
        }
    }

    fn heard_server(&mut self, now: Instant, epoch: u32) {
        let before = self.server.epoch();
        match self.server.heard(now, epoch) {
            Sign::Usual => {}
            Sign::Back => self.events.push_back(HostEvent::ServerBack),
            Sign::Restarted => {
                self.transmission.forget();
                self.models.new_epoch(before);
                self.next_join = Some(now);
                self.events.push_back(HostEvent::ServerRestarted);
            }
        }
    }

    /// The job has a model of that version: where nothing of it is on its way, it is asked for.
    fn want(&mut self, now: Instant, version: u32) {
        let Some(shape) = self.shape else { return };
        if self.models.want(shape, version) {
            self.next_fetch = Some(now);
        }
    }

    /// Before the first round trip is known it is found by waiting twice as long each time: on a
    /// slow path the wishes would otherwise crowd out what they wish for.
    pub(super) fn fetch_interval(&self) -> Duration {
        let first = self.config.fetch_after.max(self.outbox.round_trip().unwrap_or_default() * 2);
        let longer = first.saturating_mul(1 << self.fetches_in_vain.min(16));
        longer.min(self.config.keepalive.max(first))
    }
}
