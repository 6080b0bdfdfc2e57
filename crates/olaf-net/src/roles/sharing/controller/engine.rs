//! The sharing controller as an engine: bytes in, bytes out, and the events that its caller must
//! act on.

use super::shown::Shown;
use super::told::Told;
use crate::clock;
use crate::driver::events;
use crate::roles::sharing::refusals::Refusals;
use crate::roles::sharing::waiting::Lateness;
use olaf_engine::drop::Refused;
use olaf_engine::report::{Report, walk};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_sched::JobId;
use olaf_sched::protocol::{self, Body, Controller, Foresight, Packet, Party};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The controller, and the hosts that it talks to.
pub(super) struct ControllerEngine {
    pub(super) controller: Controller<Foresight>,
    hosts: BTreeMap<(JobId, u16), PeerId>,
    /// When each host was heard last, until it leaves.
    pub(super) heard: BTreeMap<(JobId, u16), Instant>,
    told: Arc<Told>,
    pub(super) granted: u64,
    pub(super) aborted: u64,
    pub(super) datagrams: u64,
    pub(super) lateness: Lateness,
    refusals: Refusals,
}

/// Rounds so far, and how late timers were.
#[derive(Serialize)]
pub(super) struct Statistics {
    granted: u64,
    aborted: u64,
    datagrams: u64,
    timers: u64,
    late_us_p50: f64,
    late_us_p99: f64,
}

impl ControllerEngine {
    pub(super) fn new(
        controller: Controller<Foresight>,
        hosts: BTreeMap<(JobId, u16), PeerId>,
        told: Arc<Told>,
    ) -> Self {
        let (granted, aborted, datagrams) = (0, 0, 0);
        let (lateness, refusals) = (Lateness::default(), Refusals::default());
        let heard = BTreeMap::new();
        Self { controller, hosts, heard, told, granted, aborted, datagrams, lateness, refusals }
    }

    pub(super) const fn controller(&mut self) -> &mut Controller<Foresight> {
        &mut self.controller
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            granted: self.granted,
            aborted: self.aborted,
            datagrams: self.datagrams,
            timers: self.lateness.total(),
            late_us_p50: self.lateness.quantile_us(500),
            late_us_p99: self.lateness.quantile_us(990),
        }
    }

    fn take_in(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Result<(), Refused> {
        let packet = Packet::parse(bytes).map_err(Refused::Malformed)?;
        let Party::Host(rank) = packet.from else { return Err(Refused::WrongDirection) };
        if self.hosts.get(&(packet.job, rank)) != Some(&from.peer) {
            return Err(Refused::UnknownPeer);
        }
        if packet.body == Body::Bye {
            self.heard.remove(&(packet.job, rank));
        } else {
            self.heard.insert((packet.job, rank), now);
        }
        self.controller.handle_packet(now.0, &packet);
        Ok(())
    }
}

impl Engine for ControllerEngine {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.datagrams += 1;
        let result = self.take_in(now, from, bytes);
        self.refusals.count(result)
    }

    fn poll_transmit(&mut self, _: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let packet = self.controller.poll_transmit()?;
            let Party::Host(rank) = packet.to else { continue };
            if let Some(to) = self.hosts.get(&(packet.job, rank)) {
                let bytes = packet.emit();
                buf[..bytes.len()].copy_from_slice(&bytes);
                return Some(Transmit::to(*to, bytes.len()));
            }
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.controller.poll_timeout().map(|at| (Instant(at), Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(due) = self.controller.poll_timeout().filter(|due| *due <= now.0) {
            self.lateness.add(now.0 - due);
        }
        self.controller.handle_timeout(now.0);
    }

    /// A driver may forget events, and the caller must act on each of the controller's: they go to
    /// [`Told`]. Those that need the caller are few, and an operator wants to see them, too.
    fn poll_event(&mut self) -> Option<Event> {
        while let Some(event) = self.controller.poll_event() {
            self.granted += u64::from(matches!(event, protocol::Event::Granted(..)));
            self.aborted += u64::from(matches!(event, protocol::Event::Aborted(_)));
            let (line, urgent) = (line(event), wants_action(event));
            self.told.add(line.to_string(), urgent);
            if urgent {
                return Some(events::of_json(&without_time(line)));
            }
        }
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.hosts.values().copied().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        walk(&Shown::of(self, now), to);
        self.refusals.report(to);
    }
}

/// The driver says when it was.
fn without_time(mut line: Value) -> Value {
    if let Some(fields) = line.as_object_mut() {
        fields.remove("ns");
    }
    line
}

const fn wants_action(event: protocol::Event) -> bool {
    use protocol::Event as E;
    matches!(event, E::Fence(..) | E::Superseded(_) | E::Left(_))
}

fn line(event: protocol::Event) -> Value {
    use protocol::Event as E;
    let ns = clock::machine_ns();
    match event {
        E::Granted(job, grant) => {
            json!({"event": "granted", "job": job, "from": grant.from, "to": grant.to, "ns": ns})
        }
        E::Aborted(job) => json!({"event": "aborted", "job": job, "ns": ns}),
        E::Free(job) => json!({"event": "free", "job": job, "ns": ns}),
        E::Fence(job, why) => {
            json!({"event": "fence", "job": job, "why": why.to_string(), "ns": ns})
        }
        E::Left(job) => json!({"event": "left", "job": job, "ns": ns}),
        E::Superseded(epoch) => json!({"event": "superseded", "epoch": epoch, "ns": ns}),
    }
}
