//! One end against hand-made messages of a switch. Each method of [`Trace`] is one line of a trace.

mod closing;
mod missing;
mod operations;
mod torture;

use super::{Reducer, Standing};
use crate::collective::{
    Collective, Config, Done, Label, Operation, OperationId, Options, Reduction,
};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session, Source, Verdict, WorkerEvent};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{
    ALL, Address, Ask, Block, BlockResult, Blocks, Closed, Join, Kind, LaneType, Leave, Marks,
    Operator, Piece, Reason, ReducePacket, Want, Welcome, WelcomeCode,
};

const JOB: JobId = JobId(7);
const ME: Session = Session(42);
const SWITCH: PeerId = PeerId(1);
const GENERATION: u32 = 100;
/// Two lanes of `f32`.
const BLOCK_BYTES: u32 = 8;
const SLOTS: u32 = 8;

/// What an end sent, in short.
#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Join {
        generation: u32,
    },
    Piece {
        block: u32,
        lanes: Vec<f32>,
        resent: bool,
    },
    Ask(Vec<u32>),
    /// An acknowledgement: `holds`.
    Ack(u32),
    Leave(u32),
}

struct Trace {
    end: Reducer,
    now: Instant,
    /// `sent_at_us` of each block's last piece.
    sent_at_us: Vec<u32>,
}

fn config() -> Config {
    let options = Options { window_blocks: Some(64), ..Options::default() };
    Config { workers: 2, options, ..Config::new(JOB, ME, SWITCH) }
}

fn elastic() -> Config {
    Config { workers: 0, ..config() }
}

fn sum(lanes: &[f32]) -> Operation {
    reduce(Reduction::Sum, lanes)
}

fn reduce(reduction: Reduction, lanes: &[f32]) -> Operation {
    Operation {
        lane_type: LaneType::F32,
        reduction,
        buffer: Box::new(bytes(lanes)),
        accepts_partial: false,
        label: Label::default(),
    }
}

fn bytes(lanes: &[f32]) -> Vec<u8> {
    lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|lane| f32::from_le_bytes(*lane)).collect()
}

/// The result of a block of a sum with as many lanes.
fn result(block: u32, operation: u32, first: u32, lanes_of_operation: u64) -> BlockResult {
    BlockResult {
        address: Address { job: JOB, generation: GENERATION, rank: ALL, session: Session(0) },
        block: Block {
            number: block,
            operation,
            first,
            lanes_of_operation,
            lane_type: LaneType::F32,
            operator: Operator::Sum,
            call: olaf_wire::Call::default(),
        },
        contributors: 2,
        expected: 2,
        sent_at_us: 0,
        marks: Marks::default(),
    }
}

impl Trace {
    fn new(config: Config) -> Self {
        let mut end = Reducer::new(config);
        let now = Instant(1_000_000_000);
        end.join(now);
        Self { end, now, sent_at_us: Vec::new() }
    }

    /// An end of rank 0 in a generation of two.
    fn joined(config: Config) -> Self {
        let mut trace = Self::new(config);
        trace.sends(&[Sent::Join { generation: 0 }]);
        trace.welcome(GENERATION, 0);
        trace
    }

    fn after_ms(&mut self, ms: u64) -> &mut Self {
        let until = Instant(self.now.0 + ms * 1_000_000);
        while let Some((at, _)) = self.end.poll_timeout().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            self.end.handle_timeout(self.now);
            if self.end.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                // The rest is for poll_transmit().
                break;
            }
        }
        self.now = until;
        self.end.handle_timeout(until);
        self
    }

    fn receives(&mut self, emit: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
        let mut buf = vec![0; MAX_DATAGRAM];
        let len = emit(&mut buf);
        self.end.handle_packet(self.now, Source::end(SWITCH), &buf[..len])
    }

    #[track_caller]
    fn takes(&mut self, emit: impl FnOnce(&mut [u8]) -> usize) {
        assert_eq!(self.receives(emit), Verdict::Absorb);
    }

    fn refuses(&mut self, name: &str, emit: impl FnOnce(&mut [u8]) -> usize) {
        match self.receives(emit) {
            Verdict::Drop(reason) => assert_eq!(reason.name(), name),
            other => panic!("{other:?}"),
        }
    }

    fn welcome_message(&self, generation: u32, operation: u32) -> Welcome {
        Welcome {
            address: Address { job: JOB, generation, rank: 0, session: ME },
            code: WelcomeCode::Welcome,
            operation,
            workers: 2,
            here: 2,
            slots: SLOTS,
            block_bytes: BLOCK_BYTES,
            cores: 1,
            sent_at_us: 0,
            nonce: 0,
        }
    }

    #[track_caller]
    fn welcome(&mut self, generation: u32, operation: u32) {
        let welcome = self.welcome_message(generation, operation);
        self.takes(|buf| welcome.emit(buf));
    }

    #[track_caller]
    fn result(&mut self, header: BlockResult, lanes: &[f32]) {
        self.takes(|buf| header.emit(&[], &bytes(lanes), buf));
    }

    #[track_caller]
    fn wants(&mut self, first: u32, mask: u64) {
        let address = Address { job: JOB, generation: GENERATION, rank: 0, session: ME };
        let blocks = Blocks { first, mask };
        let want = Want { address, operation: 0, blocks, holds: 0, sent_at_us: 0 };
        self.takes(|buf| want.emit(buf));
    }

    #[track_caller]
    fn closes(&mut self, operation: u32, reason: Reason, culprit: u32) {
        let address =
            Address { job: JOB, generation: GENERATION, rank: ALL, session: Session::default() };
        let closed = Closed { address, operation, culprit, reason, clash: None };
        self.takes(|buf| closed.emit(buf));
    }

    /// The switch confirms a leave.
    #[track_caller]
    fn confirms(&mut self, generation: u32, rank: u32) {
        let address = Address { job: JOB, generation, rank, session: ME };
        let closed =
            Closed { address, operation: 0, culprit: rank, reason: Reason::Left, clash: None };
        self.takes(|buf| closed.emit(buf));
    }

    fn begin(&mut self, operation: Operation) -> OperationId {
        self.end.begin(self.now, operation).expect("the operation begins")
    }

    fn sent(&mut self) -> Vec<Sent> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut sent = Vec::new();
        while let Some(transmit) = self.end.poll_transmit(self.now, PortId(0), &mut buf) {
            let packet = ReducePacket::new_checked(&buf[..transmit.len]).expect("well-formed");
            sent.push(match packet.kind() {
                Kind::Join => {
                    let join = Join::parse(&packet).expect("a join");
                    Sent::Join { generation: join.address.generation }
                }
                Kind::Piece => {
                    let piece = Piece::parse(&packet).expect("a piece");
                    let block = piece.block.number;
                    let at = block as usize;
                    self.sent_at_us.resize(self.sent_at_us.len().max(at + 1), 0);
                    self.sent_at_us[at] = piece.sent_at_us;
                    Sent::Piece { block, lanes: floats(packet.lanes()), resent: piece.marks.resent }
                }
                Kind::Ask => {
                    let ask = Ask::parse(&packet).expect("a question");
                    match ask.blocks.mask {
                        0 => Sent::Ack(ask.holds),
                        _ => Sent::Ask(ask.blocks.iter().collect()),
                    }
                }
                Kind::Leave => Sent::Leave(Leave::parse(&packet).expect("a leave").operation),
                kind => panic!("an end sends no {kind:?}"),
            });
        }
        sent
    }

    #[track_caller]
    fn sends(&mut self, expected: &[Sent]) {
        assert_eq!(self.sent(), expected);
    }

    #[track_caller]
    fn ends(&mut self) -> Done {
        self.end.poll_done().expect("an operation has ended")
    }

    fn events(&mut self) -> Vec<WorkerEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.end.poll_event() {
            let olaf_engine::Event::Worker(_, _, event) = event else { panic!("{event:?}") };
            events.push(event);
        }
        events
    }

    #[track_caller]
    fn accounts(&self) {
        let statistics = self.end.statistics(self.now);
        let of = statistics.operations;
        assert_eq!(of.begun, of.done + of.failed + of.open);
        let pieces = statistics.pieces;
        assert_eq!(pieces.sent, pieces.answered + pieces.in_flight + pieces.abandoned);
        let results = statistics.results;
        assert_eq!(results.received, results.taken + results.early + results.refused);
        let early = results.early_used + results.early_discarded + results.early_waiting;
        assert_eq!(results.early, early);
    }
}

/// Pieces of one block each, with these lanes.
fn piece(block: u32, lanes: &[f32]) -> Sent {
    Sent::Piece { block, lanes: lanes.to_vec(), resent: false }
}

#[test]
fn a_join_is_repeated_until_the_generation_begins() {
    let mut trace = Trace::new(config());
    let join = Sent::Join { generation: 0 };
    trace.sends(core::slice::from_ref(&join));
    trace.sends(&[]);
    trace.after_ms(20).sends(core::slice::from_ref(&join));
    trace.after_ms(20).sends(&[]);
    trace.after_ms(20).sends(core::slice::from_ref(&join));
    let waiting = Welcome {
        code: WelcomeCode::Waiting,
        here: 1,
        slots: 0,
        block_bytes: 0,
        workers: 2,
        ..trace.welcome_message(GENERATION, 0)
    };
    trace.takes(|buf| waiting.emit(buf));
    assert_eq!(trace.end.standing(), Standing::Joining { here: 1, workers: 2 });
    trace.after_ms(80).sends(&[join]);
    trace.welcome(GENERATION, 0);
    let rank_0 = Standing::In { generation: GENERATION, rank: 0, workers: 2 };
    assert_eq!(trace.end.standing(), rank_0);
    trace.after_ms(300).sends(&[]);
}

#[test]
fn an_end_proves_its_address_at_once_and_goes_on_doing_so() {
    let mut trace = Trace::new(config());
    trace.sent();
    let asked =
        Welcome { code: WelcomeCode::Waiting, nonce: 77, ..trace.welcome_message(GENERATION, 0) };
    let mut buf = [0; 256];
    let nonce_of = |trace: &mut Trace, buf: &mut [u8]| {
        let sent = trace.end.poll_transmit(trace.now, PortId(0), buf)?;
        let packet = ReducePacket::new_checked(&buf[..sent.len]).expect("a message");
        Join::parse(&packet).ok().map(|join| join.nonce)
    };
    assert_eq!(nonce_of(&mut trace, &mut buf), None, "the next join has its time");
    trace.takes(|buf| asked.emit(buf));
    assert_eq!(nonce_of(&mut trace, &mut buf), Some(77));
    trace.takes(|buf| asked.emit(buf));
    assert_eq!(nonce_of(&mut trace, &mut buf), None, "the same number asks for nothing new");
    trace.now = trace.now + Duration::from_millis(20);
    assert_eq!(nonce_of(&mut trace, &mut buf), Some(77));
}

#[test]
fn a_worker_that_is_turned_away_stops() {
    let mut trace = Trace::new(config());
    trace.sent();
    trace.begin(sum(&[1.0]));
    let full = Welcome { code: WelcomeCode::Full, ..trace.welcome_message(GENERATION, 0) };
    trace.refuses("full", |buf| full.emit(buf));
    assert_eq!(trace.end.standing(), Standing::Refused(WelcomeCode::Full));
    assert!(trace.ends().outcome.is_err());
    trace.after_ms(1000).sends(&[]);
    assert_eq!(trace.events(), [WorkerEvent::JoinRefused(WelcomeCode::Full)]);
}
