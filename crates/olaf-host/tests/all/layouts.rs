//! A worker tells the server what the arrays of its model are called.

use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::{LayoutError, Refused, Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{
    Address, ClusterId, JobId, Kind, LAYOUT_PART, LayoutPart, Packet, Session, WorkerId,
};
use std::time::Duration;

const JOB: JobId = JobId(1);
const SERVER: PeerId = PeerId(1000);

struct Net {
    now: Instant,
    server: Server,
    workers: Vec<Worker>,
    /// Drops the n-th part of a layout that is sent, where it says so.
    lose: fn(usize) -> bool,
    parts_sent: usize,
}

fn address(id: u32) -> Address {
    Address { job: JOB, cluster: ClusterId(0), worker: WorkerId(id), session: Session(100 + id) }
}

impl Net {
    fn new(workers: u32) -> Self {
        let worker = |id| Worker::new(WorkerConfig::new(address(id), SERVER));
        Self {
            now: Instant(1_000_000),
            server: Server::new(ServerConfig::default(), 9).unwrap(),
            workers: (0..workers).map(worker).collect(),
            lose: |_| false,
            parts_sent: 0,
        }
    }

    fn run(&mut self, milliseconds: u64) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for _ in 0..milliseconds {
            for (id, worker) in self.workers.iter_mut().enumerate() {
                let peer = PeerId(u32::try_from(id).unwrap());
                while let Some(sent) = worker.poll_transmit(self.now, PortId(0), &mut buf) {
                    let bytes = &buf[..sent.len];
                    if Packet::new_checked(bytes).unwrap().kind() == Kind::Layout {
                        self.parts_sent += 1;
                        if (self.lose)(self.parts_sent) {
                            continue;
                        }
                    }
                    let _ = self.server.handle_packet(self.now, Source::end(peer), bytes);
                }
            }
            while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
                let to = &mut self.workers[sent.to.one().expect("one receiver").0 as usize];
                let _ = to.handle_packet(self.now, Source::end(SERVER), &buf[..sent.len]);
            }
            self.now = self.now + Duration::from_millis(1);
            self.workers.iter_mut().for_each(|worker| worker.handle_timeout(self.now));
            self.server.handle_timeout(self.now);
        }
    }

    fn names(&self) -> Vec<&str> {
        let arrays = self.server.layout(JOB).map_or(&[][..], |layout| layout.arrays());
        arrays.iter().map(|array| array.name.as_str()).collect()
    }

    fn refused(&self, reason: &str) -> u64 {
        self.server.statistics(self.now).refused.get(reason).copied().unwrap_or(0)
    }
}

/// A layout of 100 numbers in as many arrays, longer than three parts.
fn long(prefix: &str) -> String {
    let entry = |n| format!(r#"{{"name": "{prefix}/layers.{n}.weight", "shape": [1]}}"#);
    format!("[{}]", (0..100).map(entry).collect::<Vec<_>>().join(", "))
}

#[test]
fn a_long_layout_arrives_although_parts_are_lost() {
    let mut net = Net::new(1);
    net.lose = |n| n % 2 == 1;
    net.workers[0].describe(&long("a"), 100).unwrap();
    net.workers[0].join(net.now, &[&[0.0; 100]]).unwrap();
    net.run(3000);
    assert_eq!(net.names().len(), 100);
    assert_eq!(net.names()[99], "a/layers.99.weight");
    assert_eq!(net.server.statistics(net.now).jobs[0].arrays, Some(100));
    let sent = net.parts_sent;
    net.run(2000);
    assert_eq!(net.parts_sent, sent, "nobody asks for what is there");
}

#[test]
fn a_worker_without_names_is_asked_in_vain_and_another_s_are_taken() {
    let mut net = Net::new(2);
    net.workers[0].join(net.now, &[&[0.0; 100]]).unwrap();
    net.run(100);
    assert_eq!((net.names().len(), net.parts_sent), (0, 0));
    net.workers[1].describe(&long("b"), 100).unwrap();
    net.workers[1].join(net.now, &[&[0.0; 100]]).unwrap();
    net.run(100);
    assert_eq!(net.names()[0], "b/layers.0.weight");
}

#[test]
fn who_stops_in_the_middle_gives_way_after_a_while() {
    let mut net = Net::new(2);
    net.lose = |n| n > 1;
    for (id, name) in [(0, "a"), (1, "b")] {
        net.workers[id].describe(&long(name), 100).unwrap();
        net.workers[id].join(net.now, &[&[0.0; 100]]).unwrap();
    }
    net.run(2);
    // One part of worker 0's is there, and it says no more.
    net.workers[0].leave();
    net.lose = |_| false;
    net.run(1000);
    assert_eq!(net.names().len(), 0, "worker 0 may only be slow");
    net.run(2000);
    assert_eq!(net.names()[0], "b/layers.0.weight");
}

#[test]
fn a_layout_of_another_model_is_refused_and_not_asked_for_again() {
    let mut net = Net::new(1);
    let text = r#"[{"name": "w", "shape": [4]}]"#;
    let error = net.workers[0].describe(text, 5).unwrap_err();
    assert_eq!(error, LayoutError::WrongSize { have: 4, need: 5 });
    // A worker that does not check sends it all the same.
    net.workers[0].join(net.now, &[&[0.0; 5]]).unwrap();
    net.run(10);
    net.workers[0].describe(text, 4).unwrap();
    net.run(5000);
    assert_eq!((net.refused("bad_layout"), net.parts_sent), (1, 1));
    assert_eq!(net.names().len(), 0);
}

/// A part that says another length than the one before begins a new text. It is written into no old one.
#[test]
fn a_worker_that_changes_the_length_in_the_middle_begins_anew() {
    let mut net = Net::new(1);
    net.lose = |_| true;
    net.workers[0].describe(&long("a"), 100).unwrap();
    net.workers[0].join(net.now, &[&[0.0; 100]]).unwrap();
    net.run(100);
    let (long, longer) = (long("a"), long("a-longer-name"));
    assert!(longer.len() > long.len() + LAYOUT_PART);
    let mut buf = vec![0; MAX_DATAGRAM];
    let mut says = |net: &mut Net, text: &str, part: u32| {
        let len = LayoutPart::of(text.as_bytes(), address(0), part).unwrap().emit(&mut buf);
        net.server.handle_packet(net.now, Source::end(PeerId(0)), &buf[..len])
    };
    assert_eq!(says(&mut net, &long, 0), Verdict::Absorb);
    let parts = olaf_wire::layout_parts(longer.len());
    assert_eq!(says(&mut net, &longer, parts - 1), Verdict::Absorb, "beyond the end of the first");
    for part in 0..olaf_wire::layout_parts(long.len()) {
        assert_eq!(net.names().len(), 0);
        assert_eq!(says(&mut net, &long, part), Verdict::Absorb);
    }
    assert_eq!(net.names()[99], "a/layers.99.weight");
}

#[test]
fn only_members_describe_and_only_when_asked() {
    let mut net = Net::new(2);
    net.workers[0].describe(&long("a"), 100).unwrap();
    net.workers[0].join(net.now, &[&[0.0; 100]]).unwrap();
    let text = long("b");
    let part = |id| LayoutPart::of(text.as_bytes(), address(id), 0).unwrap();
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = part(1).emit(&mut buf);
    assert_eq!(
        net.server.handle_packet(net.now, Source::end(PeerId(1)), &buf[..len]),
        Verdict::refused(Refused::UnknownJob)
    );
    net.run(100);
    assert_eq!(
        net.server.handle_packet(net.now, Source::end(PeerId(1)), &buf[..len]),
        Verdict::refused(Refused::UnknownWorker)
    );
    let len = part(0).emit(&mut buf);
    assert_eq!(
        net.server.handle_packet(net.now, Source::end(PeerId(1)), &buf[..len]),
        Verdict::refused(Refused::UnknownPeer)
    );
    assert_eq!(
        net.server.handle_packet(net.now, Source::end(PeerId(0)), &buf[..len]),
        Verdict::refused(Refused::NotAsked)
    );
    assert_eq!(net.names()[0], "a/layers.0.weight");
}
