//! Any datagrams in any order at a worker of iSwitch, well-formed, odd and raw: nothing panics, no operation is
//! forgotten, every result and every vector of asynchronous training has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::{Ecn, Engine, Instant, JobId, PeerId, PortId, Session, Source, TrafficClass};
use olaf_host::collective::{
    Collective, Config, IswitchOptions, IswitchWorker, Label, Operation, OperationId, Options,
    Reduction,
};
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, CONTROL_CLASS, Control, DATA_CLASS, DataPacket, Halt, Outcome,
    Packets, Seg, emit_seg,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{LaneType, Reason};
use std::time::Duration;

const SWITCH: PeerId = PeerId(9);

#[derive(Arbitrary, Debug)]
struct Setting {
    deadline_ms: u8,
    sets_h: bool,
    window: u8,
    packet_floats: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Begin {
        lanes: u8,
        reduction: u8,
        accepts_partial: bool,
    },
    Contribute {
        lanes: u8,
        began: u8,
        bound: u8,
    },
    EndPipeline,
    GiveUp(u8),
    Welcome {
        generation: u8,
        rank: u8,
        slots: u8,
        floats: u8,
        operations: u8,
        outcome: u8,
        odd: u8,
    },
    Result {
        generation: u8,
        index: u8,
        missing: u8,
        last: bool,
        floats: u8,
        value: f32,
    },
    Help {
        generation: u8,
        index: u8,
        mask: u64,
    },
    Halt {
        generation: u8,
        reason: u8,
        culprit: u8,
        index: u8,
    },
    Ack {
        generation: u8,
        action: u8,
        outcome: u8,
        sent_at_us: u32,
    },
    Join,
    Leave,
    Reset,
    Halted,
    Wait(u16),
    Drain,
    Raw {
        class: u8,
        bytes: Vec<u8>,
    },
    Damage(u8, u8),
}

struct Run {
    worker: IswitchWorker,
    now: Instant,
    damage: Option<(u8, u8)>,
    begun: u64,
    done: u64,
    vectors: u64,
}

impl Run {
    fn recv(&mut self, class: u8, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some((at, by)) = self.damage.take()
            && !bytes.is_empty()
        {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= by;
        }
        let class = TrafficClass::new(class, Ecn::Capable0);
        let source = Source { class, ..Source::end(SWITCH) };
        self.worker.handle_packet(self.now, source, &bytes);
    }

    fn control(&mut self, message: Control) {
        let mut buf = [0; 256];
        let len = message.emit(&mut buf);
        self.recv(CONTROL_CLASS, &buf[..len]);
    }

    fn drain(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for sent in 0.. {
            assert!(sent < 10_000, "the worker sends for ever");
            let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) else {
                break;
            };
            let bytes = &buf[..sent.len];
            match sent.class.dscp() {
                DATA_CLASS => drop(DataPacket::new_checked(bytes).expect("a data packet")),
                CONTROL_CLASS => drop(Control::parse(bytes).expect("a control message")),
                other => panic!("class {other}"),
            }
        }
        while self.worker.poll_event().is_some() {}
        while self.worker.poll_done().is_some() {
            self.done += 1;
        }
    }

    fn check(&self) {
        let of = self.worker.statistics(self.now);
        let operations = of.operations;
        assert_eq!(operations.begun, self.begun);
        assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
        let vectors = of.vectors;
        let fates = vectors.sent + vectors.stale + vectors.surplus + vectors.without_sum;
        assert_eq!((vectors.committed, fates), (self.vectors, self.vectors));
        let results = of.results;
        let fates = results.taken + results.again + results.early + results.refused;
        assert_eq!(results.received, fates);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Begin { lanes, reduction, accepts_partial } => {
                let operation = Operation {
                    lane_type: LaneType::F32,
                    reduction: match reduction % 5 {
                        0 => Reduction::Sum,
                        1 => Reduction::Mean,
                        2 => Reduction::Broadcast { root: u32::from(reduction / 5 % 5) },
                        3 => Reduction::Pipelined { iteration: u64::from(reduction / 5) },
                        _ => Reduction::Max,
                    },
                    buffer: Box::new(vec![1u8; 4 * usize::from(lanes)]),
                    accepts_partial,
                    label: Label::default(),
                };
                self.begun += u64::from(self.worker.begin(self.now, operation).is_ok());
            }
            Step::Contribute { lanes, began, bound } => {
                let vector = Box::new(vec![1u8; 4 * usize::from(lanes)]);
                let (began, bound) = (u64::from(began), u64::from(bound % 4));
                let committed = self.worker.contribute(self.now, began, bound, vector);
                self.vectors += u64::from(committed.is_ok());
            }
            Step::EndPipeline => self.worker.end_pipeline(self.now),
            Step::GiveUp(id) => {
                self.worker.give_up(self.now, OperationId(u64::from(id)));
            }
            Step::Welcome { generation, rank, slots, floats, operations, outcome, odd } => {
                let admission = Admission {
                    member: 1,
                    rank: if odd == 1 { ANY } else { u32::from(rank % 4) },
                    workers: 3 + u32::from(odd == 2),
                    here: 3,
                    slots: u32::from(slots % 9),
                    packet_floats: u32::from(floats % 9),
                    operations: u32::from(operations % 8),
                    session: Session(7 + u32::from(odd == 3)),
                    nonce: 0,
                };
                self.control(Control::Ack(Ack {
                    generation: generation % 4,
                    action: Action::Join,
                    outcome: Outcome::EACH[usize::from(outcome) % 5],
                    sent_at_us: 1,
                    index: 0,
                    admission: Some(admission),
                }));
            }
            Step::Result { generation, index, missing, last, floats, value } => {
                let mut buf = [0; 256];
                let seg = Seg {
                    generation: generation % 4,
                    last,
                    missing: u16::from(missing % 5),
                    index: u64::from(index),
                };
                let start = emit_seg(seg, &mut buf);
                let end = start + 4 * usize::from(floats % 9);
                for float in buf[start..end].as_chunks_mut().0 {
                    *float = value.to_le_bytes();
                }
                self.recv(DATA_CLASS, &buf[..end]);
            }
            Step::Help { generation, index, mask } => {
                let (generation, index) = (generation % 4, u64::from(index));
                self.control(Control::Help(Packets { generation, sent_at_us: 1, index, mask }));
            }
            Step::Halt { generation, reason, culprit, index } => {
                self.control(Control::Halt(Halt {
                    generation: generation % 4,
                    reason: Reason::EACH[usize::from(reason) % Reason::EACH.len()],
                    culprit: u32::from(culprit % 5),
                    index: u64::from(index),
                    calls: reason,
                }));
            }
            Step::Ack { generation, action, outcome, sent_at_us } => {
                self.control(Control::Ack(Ack {
                    generation: generation % 4,
                    action: Action::EACH[1 + usize::from(action) % 7],
                    outcome: Outcome::EACH[usize::from(outcome) % 5],
                    sent_at_us,
                    index: 0,
                    admission: None,
                }));
            }
            Step::Join => self.worker.join(self.now),
            Step::Leave => self.worker.leave(self.now),
            Step::Reset => self.worker.reset(self.now),
            Step::Halted => self.worker.halt(self.now),
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(ms));
                if self.worker.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    self.worker.handle_timeout(self.now);
                }
                self.drain();
                let next = self.worker.poll_timeout().map(|(at, _)| at);
                assert!(next.is_none_or(|at| at > self.now), "the worker would spin");
            }
            Step::Drain => self.drain(),
            Step::Raw { class, ref bytes } => {
                let class = [0, DATA_CLASS, CONTROL_CLASS][usize::from(class % 3)];
                self.recv(class, bytes);
            }
            Step::Damage(at, by) => self.damage = Some((at, by)),
        }
    }
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let mut config = Config::new(JobId(1), Session(7), SWITCH);
    config.workers = 3;
    config.datagram_bytes = 256;
    config.options = Options {
        deadline: (setting.deadline_ms > 0)
            .then(|| Duration::from_millis(setting.deadline_ms.into())),
        window_blocks: (setting.window > 0).then_some(u32::from(setting.window)),
        ..Options::default()
    };
    let own = IswitchOptions {
        packet_floats: Some(1 + u32::from(setting.packet_floats % 8)),
        threshold: setting.sets_h.then_some(2),
    };
    let mut worker = IswitchWorker::new(config, own).expect("a set-up in range");
    worker.join(Instant(1 << 40));
    let mut run =
        Run { worker, now: Instant(1 << 40), damage: None, begun: 0, done: 0, vectors: 0 };
    for step in &steps {
        run.step(step);
        run.check();
    }
    // A switch that is silent ends every operation.
    run.now = run.now + Duration::from_secs(60);
    run.worker.leave(run.now);
    run.drain();
    run.check();
    assert_eq!(run.begun, run.done);
});
