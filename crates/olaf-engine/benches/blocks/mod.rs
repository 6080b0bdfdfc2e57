//! Blocks of `reduce`: a piece of each worker in, and the result out.

use olaf_engine::switch::reduce::{Config, Switch};
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session, Source, Verdict};
use olaf_wire::reduce::offsets::HEADER;
use olaf_wire::reduce::{
    Address, Block, Join, LaneType, Marks, Operator, Piece, ReducePacket, Welcome, WelcomeCode,
    datagram_len,
};
use std::hint::black_box;

/// Lanes of a block, in bytes.
pub(crate) const BYTES: usize = 8960;
/// Workers of the job.
pub(crate) const WORKERS: u32 = 4;
/// Time stands still.
pub(crate) const NOW: Instant = Instant(1);
const JOB: JobId = JobId(1);
/// Results that a worker still holds.
const HELD: u32 = 32;

/// Bytes that begin at a page, as a driver has its buffers.
pub(crate) struct Page {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Page {
    /// A buffer of `len` zeros that begins where a page begins.
    pub(crate) fn new(len: usize) -> Self {
        let bytes = vec![0; len + 4096];
        let start = bytes.as_ptr().align_offset(4096);
        Self { bytes, start, len }
    }

    /// All of them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// All of them, to write into.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// The whole switch, from the bytes of a datagram to those of the result.
pub(crate) struct Whole {
    switch: Switch,
    datagram: Page,
    out: Page,
    generation: u32,
    block: u32,
}

impl Whole {
    /// A switch where the workers are in.
    pub(crate) fn new(slots: u32) -> Self {
        let config = Config { slots, memory_bytes: 1 << 40, ..Config::default() };
        let switch = Switch::new(config, 1).expect("a configuration");
        let len = datagram_len(0, LaneType::F32, BYTES / 4);
        let (datagram, out) = (Page::new(len), Page::new(len + 64));
        let mut whole = Self { switch, datagram, out, generation: 0, block: 0 };
        for rank in 0..WORKERS {
            whole.join(rank);
        }
        while let Some(sent) =
            whole.switch.poll_transmit(NOW, PortId::DOWNLINK, whole.out.bytes_mut())
        {
            let packet = ReducePacket::new_checked(&whole.out.bytes()[..sent.len]);
            let welcome = Welcome::parse(&packet.expect("a welcome")).expect("a welcome");
            if welcome.code == WelcomeCode::Welcome {
                assert_eq!((welcome.block_bytes as usize, welcome.slots), (BYTES, slots));
                whole.generation = welcome.address.generation;
            }
        }
        whole
    }

    fn address(&self, rank: u32) -> Address {
        Address { job: JOB, generation: self.generation, rank, session: Session(rank + 1) }
    }

    fn join(&mut self, rank: u32) {
        let join = Join {
            address: self.address(rank),
            workers: WORKERS,
            contributors: 1,
            deadline_us: 0,
            block_bytes: BYTES as u32,
            datagram_bytes: 9216,
            sent_at_us: 0,
            nonce: 0,
            operation: 0,
            program: 0,
        };
        let mut buf = [0; HEADER];
        let len = join.emit(&mut buf);
        assert_eq!(self.handle(rank, &buf[..len]), Verdict::Absorb);
    }

    fn handle(&mut self, rank: u32, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(NOW, Source::new(PortId::DOWNLINK, PeerId(rank)), bytes)
    }

    /// A block's pieces and its result.
    pub(crate) fn block(&mut self) {
        let number = self.block;
        for rank in 0..WORKERS {
            let piece = Piece {
                address: self.address(rank),
                block: Block {
                    number,
                    operation: 0,
                    first: 0,
                    lanes_of_operation: 1 << 40,
                    lane_type: LaneType::F32,
                    operator: Operator::Sum,
                    call: olaf_wire::Call::default(),
                },
                contributors: 1,
                holds: number.saturating_sub(HELD),
                sent_at_us: 1,
                marks: Marks::default(),
            };
            // One datagram's lanes serve for all workers, so that they are in the same cache as the
            // baseline's.
            piece.emit_header(&[], BYTES / 4, self.datagram.bytes_mut());
            let bytes = black_box(self.datagram.bytes());
            let from = Source::new(PortId::DOWNLINK, PeerId(rank));
            assert_eq!(self.switch.handle_packet(NOW, from, bytes), Verdict::Absorb);
        }
        let out = black_box(self.out.bytes_mut());
        let sent = self.switch.poll_transmit(NOW, PortId::DOWNLINK, out).expect("the result");
        assert_eq!((sent.len, sent.to.as_slice().len()), (HEADER + BYTES, WORKERS as usize));
        self.block += 1;
    }
}
