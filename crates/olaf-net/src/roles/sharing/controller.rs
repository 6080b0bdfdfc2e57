//! The sharing controller: its socket and clock.

use super::config::{SharingConfig, resolve, steps};
use super::waiting::{Lateness, readable};
use super::{MOST_DATAGRAMS, monotonic_ns, send};
use crate::error::StartError;
use olaf_sched::JobId;
use olaf_sched::protocol::{Controller, Event, Foresight, Members, Packet, Party, Sharer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// See [`SharingConfig`]. Runs in the thread that calls [`run`](Self::run).
#[derive(Debug)]
pub struct SharingController {
    socket: UdpSocket,
    address: String,
    controller: Controller<Foresight>,
    hosts: BTreeMap<(JobId, u16), SocketAddr>,
    granted: u64,
    aborted: u64,
    datagrams: u64,
    lateness: Lateness,
}

impl SharingController {
    /// Takes its port, and asks every job what it holds when it first runs.
    ///
    /// # Errors
    /// What of the set-up cannot be, or why the port cannot be had.
    pub fn bind(config: &SharingConfig) -> Result<Self, StartError> {
        let listen = resolve("listen", &config.listen)?;
        let system = |error| StartError::System(format!("cannot listen on {listen}"), error);
        let socket = UdpSocket::bind(listen).map_err(system)?;
        let address = socket.local_addr().map_err(system)?.to_string();
        let capacity = config.capacity.clone();
        let policy = Foresight::new(config.policy, config.ahead_ns, capacity.clone());
        let mut controller =
            Controller::new(config.epoch.max(1), config.seed, config.timing(), capacity, policy);
        let mut hosts = BTreeMap::new();
        for (at, job) in config.jobs.iter().enumerate() {
            let (key, id) = (format!("jobs[{at}]"), JobId(job.job));
            let steps = steps(&key, &job.pattern, &config.network, job.hosts.len())?;
            for (rank, host) in (0..).zip(&job.hosts) {
                hosts.insert((id, rank), resolve(&format!("{key}.hosts[{rank}]"), host)?);
            }
            let hosts = u16::try_from(job.hosts.len()).expect("steps() checked it");
            let (resources, units) = (job.resources.clone(), job.units);
            let members = Members { hosts, resources: resources.clone(), units };
            let sharer = Sharer { steps, hosts: hosts.into(), count: job.steps, resources, units };
            controller.policy_mut().add(id, sharer);
            let bad = |error| StartError::Config(format!("{key} (job {}): {error}", job.job));
            controller.submit(monotonic_ns(), id, members).map_err(bad)?;
        }
        socket.set_nonblocking(true).map_err(system)?;
        let (granted, aborted, datagrams) = (0, 0, 0);
        let lateness = Lateness::default();
        Ok(Self { socket, address, controller, hosts, granted, aborted, datagrams, lateness })
    }

    /// Where the hosts reach it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Works for so long, or until something happened that the caller must act on: what happened, as
    /// JSON lines.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(&mut self, time: Duration) -> std::io::Result<Vec<String>> {
        let until = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(0));
        let mut events = Vec::new();
        loop {
            let urgent = self.give_out(&mut events);
            let now = monotonic_ns();
            if urgent || now >= until {
                return Ok(events);
            }
            let due = self.controller.poll_timeout().unwrap_or(u64::MAX);
            if due > now {
                readable(&self.socket, due.min(until))?;
            }
            self.receive()?;
            let woke = monotonic_ns();
            if due <= woke {
                self.lateness.add(woke - due);
            }
            self.controller.handle_timeout(woke);
        }
    }

    /// What it did so far, as JSON: rounds, and how late its timers were.
    #[must_use]
    pub fn statistics(&self) -> String {
        json!({
            "granted": self.granted, "aborted": self.aborted, "datagrams": self.datagrams,
            "timers": self.lateness.total(), "late_us_p50": self.lateness.quantile_us(500),
            "late_us_p99": self.lateness.quantile_us(990),
        })
        .to_string()
    }

    /// The switches refuse the job from now on.
    pub fn fenced(&mut self, job: u64) {
        self.controller.fenced(monotonic_ns(), JobId(job));
    }

    /// The job has ended or failed: its tree is to be torn down.
    pub fn fail(&mut self, job: u64) {
        self.controller.fail(JobId(job));
    }

    /// What has come; not all of a flood, so that timers go on.
    fn receive(&mut self) -> std::io::Result<()> {
        let mut buf = [0; 128];
        for _ in 0..MOST_DATAGRAMS {
            match self.socket.recv_from(&mut buf) {
                Ok((len, from)) => self.take_in(&buf[..len], from),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A refusal of something sent before says nothing about what may come.
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                    ) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn take_in(&mut self, bytes: &[u8], from: SocketAddr) {
        self.datagrams += 1;
        let Ok(packet) = Packet::parse(bytes) else { return };
        let Party::Host(rank) = packet.from else { return };
        if self.hosts.get(&(packet.job, rank)) == Some(&from) {
            self.controller.handle_packet(monotonic_ns(), &packet);
        }
    }

    /// Sends, and collects what happened; is there something to act on?
    fn give_out(&mut self, events: &mut Vec<String>) -> bool {
        let mut urgent = false;
        while let Some(packet) = self.controller.poll_transmit() {
            if let Party::Host(rank) = packet.to
                && let Some(to) = self.hosts.get(&(packet.job, rank))
            {
                send(&self.socket, &packet.emit(), *to);
            }
        }
        while let Some(event) = self.controller.poll_event() {
            self.granted += u64::from(matches!(event, Event::Granted(..)));
            self.aborted += u64::from(matches!(event, Event::Aborted(_)));
            urgent |= matches!(event, Event::Fence(..) | Event::Superseded(_) | Event::Left(_));
            events.push(line(event).to_string());
        }
        urgent
    }
}

fn line(event: Event) -> Value {
    let ns = monotonic_ns();
    match event {
        Event::Granted(job, grant) => {
            json!({"event": "granted", "job": job, "from": grant.from, "to": grant.to, "ns": ns})
        }
        Event::Aborted(job) => json!({"event": "aborted", "job": job, "ns": ns}),
        Event::Free(job) => json!({"event": "free", "job": job, "ns": ns}),
        Event::Fence(job, why) => {
            json!({"event": "fence", "job": job, "why": why.to_string(), "ns": ns})
        }
        Event::Left(job) => json!({"event": "left", "job": job, "ns": ns}),
        Event::Superseded(epoch) => json!({"event": "superseded", "epoch": epoch, "ns": ns}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_taken_in_by_parts() {
        let config = r#"{"listen": "127.0.0.1:0", "epoch": 1, "capacity": {"0": 1}, "jobs": [],
            "network": {"bytes_per_second": 1, "speedup_millis": 2000, "latency_ns": 1}}"#;
        let config = SharingConfig::from_json(config).expect("it is well formed");
        let mut controller = SharingController::bind(&config).expect("a free port");
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        for _ in 0..100 {
            stranger.send_to(b"noise", controller.address()).expect("it is there");
        }
        controller.receive().expect("a socket");
        assert_eq!(controller.datagrams, 64);
        controller.receive().expect("a socket");
        assert_eq!(controller.datagrams, 100);
    }
}
