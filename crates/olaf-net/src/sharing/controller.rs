//! The sharing controller: its socket and clock.

use super::config::{SharingConfig, resolve, steps};
use super::{monotonic_ns, send};
use crate::error::StartError;
use olaf_sched::JobId;
use olaf_sched::protocol::{Controller, Event, Members, Party, Turns, Worth, codec};
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
    controller: Controller<Turns>,
    hosts: BTreeMap<(JobId, u16), SocketAddr>,
    rounds: u64,
    datagrams: u64,
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
        let policy = Turns::new(config.ahead_ns);
        let capacity = config.capacity.clone();
        let mut controller =
            Controller::new(config.epoch.max(1), config.seed, config.timing(), capacity, policy);
        let mut hosts = BTreeMap::new();
        for (at, job) in config.jobs.iter().enumerate() {
            let (key, id) = (format!("jobs[{at}]"), JobId(job.job));
            let steps = steps(&key, &job.pattern, &config.network, job.hosts.len())?;
            for (rank, host) in (0..).zip(&job.hosts) {
                hosts.insert((id, rank), resolve(&format!("{key}.hosts[{rank}]"), host)?);
            }
            controller.policy_mut().add(id, Worth::of(&steps));
            let members = Members {
                hosts: u16::try_from(job.hosts.len()).expect("steps() checked it"),
                resources: job.resources.clone(),
                units: job.units,
            };
            let bad = |error| StartError::Config(format!("{key} (job {}): {error}", job.job));
            controller.submit(monotonic_ns(), id, members).map_err(bad)?;
        }
        Ok(Self { socket, address, controller, hosts, rounds: 0, datagrams: 0 })
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
        let mut buf = [0; 128];
        loop {
            let urgent = self.give_out(&mut events);
            let now = monotonic_ns();
            if urgent || now >= until {
                return Ok(events);
            }
            let due = self.controller.poll_timeout().unwrap_or(u64::MAX);
            let wait = due.min(until).saturating_sub(now).max(1000);
            self.socket.set_read_timeout(Some(Duration::from_nanos(wait)))?;
            match self.socket.recv_from(&mut buf) {
                Ok((len, from)) => self.take_in(&buf[..len], from),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(e) => return Err(e),
            }
            self.controller.handle_timeout(monotonic_ns());
        }
    }

    /// The switches refuse the job from now on.
    pub fn fenced(&mut self, job: u64) {
        self.controller.fenced(monotonic_ns(), JobId(job));
    }

    /// The job has ended or failed: its tree is to be torn down.
    pub fn fail(&mut self, job: u64) {
        self.controller.fail(JobId(job));
    }

    fn take_in(&mut self, bytes: &[u8], from: SocketAddr) {
        self.datagrams += 1;
        let Ok(packet) = codec::parse(bytes) else { return };
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
                send(&self.socket, &codec::emit(&packet), *to);
            }
        }
        while let Some(event) = self.controller.poll_event() {
            self.rounds += u64::from(matches!(event, Event::Granted(..) | Event::Aborted(_)));
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
