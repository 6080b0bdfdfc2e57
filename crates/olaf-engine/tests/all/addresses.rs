//! The engines that sum, and an attacker who writes a victim's address into his datagrams: he takes part
//! himself, so he hears the number of the generation, and makes the victim a member beside him.

use core::time::Duration;
use olaf_engine::party::Chance;
use olaf_engine::switch::{iswitch, reduce, trio};
use olaf_engine::{Ecn, Engine, Instant, PeerId, PortId, Source, TrafficClass};
use olaf_wire::iswitch as is;
use olaf_wire::reduce as re;
use olaf_wire::trio as tr;
use olaf_wire::{JobId, Session};

pub(crate) const ATTACKER: PeerId = PeerId(1);
pub(crate) const VICTIM: PeerId = PeerId(2);
/// Workers of the job: the two.
const BOTH: u32 = 2;
/// Blocks that the attacker has summed, and then asks for.
const BLOCKS: u64 = 32;

/// A switch, and what it received from and sent to each of the two.
pub(crate) struct Wire<E> {
    pub(crate) engine: E,
    pub(crate) now: Instant,
    pub(crate) class: u8,
    from_victim: usize,
    to_victim: usize,
    /// Datagrams to the attacker and to the victim.
    pub(crate) heard: [Vec<Vec<u8>>; 2],
}

impl<E: Engine> Wire<E> {
    fn new(engine: E) -> Self {
        let now = Instant(1 << 40);
        Self { engine, now, class: 0, from_victim: 0, to_victim: 0, heard: [vec![], vec![]] }
    }

    pub(crate) fn says(&mut self, peer: PeerId, write: impl FnOnce(&mut [u8]) -> usize) {
        let mut buf = vec![0; 2048];
        let len = write(&mut buf);
        self.from_victim += if peer == VICTIM { len } else { 0 };
        let class = TrafficClass::new(self.class, Ecn::NotCapable);
        let from = Source { port: PortId::DOWNLINK, peer, class };
        self.engine.handle_packet(self.now, from, &buf[..len]);
        // Sums that wait for a deadline leave, too.
        self.now = self.now + Duration::from_micros(200);
        while self.engine.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            self.engine.handle_timeout(self.now);
        }
        while let Some(sent) = self.engine.poll_transmit(self.now, PortId::DOWNLINK, &mut buf) {
            for to in sent.to.as_slice() {
                self.to_victim += if *to == VICTIM { sent.len } else { 0 };
                let heard = &mut self.heard[usize::from(*to == VICTIM)];
                heard.push(buf[..sent.len].to_vec());
            }
        }
    }

    /// What the peer has heard, newest first.
    pub(crate) fn newest<T>(&self, peer: PeerId, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        self.heard[usize::from(peer == VICTIM)].iter().rev().find_map(|bytes| read(bytes))
    }

    #[track_caller]
    fn spares_the_victim(&self) {
        let (sent, got) = (self.from_victim, self.to_victim);
        assert!(sent > 0 && got <= 3 * sent, "{sent} bytes in its name, {got} bytes to the victim");
    }
}

fn chance() -> Chance {
    let mut last = 40;
    Box::new(move || {
        last += 1;
        last
    })
}

pub(crate) mod of_reduce {
    use super::*;

    pub(crate) const LANES: usize = 256;

    pub(crate) fn join(peer: PeerId, nonce: u32) -> re::Join {
        re::Join {
            address: address(peer, 0),
            workers: BOTH,
            contributors: 1,
            deadline_us: 1_000,
            block_bytes: 4 * LANES as u32,
            datagram_bytes: 1472,
            sent_at_us: 1,
            nonce,
            operation: 0,
            program: 0,
        }
    }

    pub(crate) fn address(peer: PeerId, generation: u32) -> re::Address {
        let rank = peer.0 - 1;
        re::Address { job: JobId(1), generation, rank, session: Session(rank + 1) }
    }

    pub(crate) fn welcome(bytes: &[u8]) -> Option<re::Welcome> {
        re::Welcome::parse(&re::ReducePacket::new_checked(bytes).ok()?).ok()
    }

    pub(crate) fn piece(peer: PeerId, generation: u32, number: u32) -> re::Piece {
        re::Piece {
            address: address(peer, generation),
            block: re::Block {
                number,
                operation: 0,
                first: 0,
                lanes_of_operation: BLOCKS * LANES as u64,
                lane_type: re::LaneType::F32,
                operator: re::Operator::Sum,
                call: olaf_wire::Call::default(),
            },
            contributors: 1,
            holds: 0,
            sent_at_us: 1,
            marks: re::Marks::default(),
        }
    }
}

/// Both join, with the nonces that they heard. The victim says nothing itself: `victim_answers` is false.
pub(crate) fn both_join_reduce(
    wire: &mut Wire<reduce::Switch>,
    victim_answers: bool,
) -> Option<u32> {
    use of_reduce::{join, welcome};
    for _ in 0..2 {
        for peer in [ATTACKER, VICTIM] {
            let nonce = wire.newest(peer, |bytes| Some(welcome(bytes)?.nonce));
            let nonce = nonce.filter(|_| peer == ATTACKER || victim_answers);
            wire.says(peer, |buf| join(peer, nonce.unwrap_or(0)).emit(buf));
        }
    }
    let began = |bytes: &[u8]| welcome(bytes).filter(|one| one.code == re::WelcomeCode::Welcome);
    wire.newest(ATTACKER, began).map(|one| one.address.generation)
}

pub(crate) fn a_reduce(demands: bool) -> Wire<reduce::Switch> {
    let mut switch = reduce::Switch::new(reduce::Config::default(), 100).unwrap();
    if demands {
        switch.demand_proofs(chance());
    }
    Wire::new(switch)
}

fn attack_reduce(wire: &mut Wire<reduce::Switch>) {
    let generation = both_join_reduce(wire, false).unwrap_or(100);
    let lanes = [0; 4 * of_reduce::LANES];
    for number in 0..BLOCKS as u32 {
        let piece = of_reduce::piece(ATTACKER, generation, number);
        wire.says(ATTACKER, |buf| piece.emit(&[], &lanes, buf));
    }
    // Long enough for the blocks to end without the victim.
    wire.now = wire.now + Duration::from_millis(2);
    for _ in 0..10 {
        let blocks = re::Blocks { first: 0, mask: (1 << BLOCKS) - 1 };
        let address = of_reduce::address(VICTIM, generation);
        let ask = re::Ask { address, operation: 0, blocks, holds: 0, sent_at_us: 1, awaits: None };
        wire.says(VICTIM, |buf| ask.emit(buf));
    }
    // He joins where he is, and then says that he has moved to the victim's address.
    let moved =
        re::Join { address: of_reduce::address(ATTACKER, 0), ..of_reduce::join(ATTACKER, 7) };
    wire.says(VICTIM, |buf| moved.emit(buf));
}

#[test]
fn reduce_sends_no_results_to_an_address_that_proved_nothing() {
    let mut wire = a_reduce(true);
    attack_reduce(&mut wire);
    wire.spares_the_victim();
    let statistics = wire.engine.statistics(wire.now);
    assert_eq!(statistics.refused.get("not_proven"), Some(&1), "{:?}", statistics.refused);
    // The witness: where addresses are believed, the attack does what it says.
    let mut believing = a_reduce(false);
    attack_reduce(&mut believing);
    assert!(believing.to_victim > 20 * believing.from_victim);
}

#[test]
fn reduce_sums_for_workers_that_proved_their_addresses() {
    let mut wire = a_reduce(true);
    let generation = both_join_reduce(&mut wire, true).expect("both are in");
    for peer in [ATTACKER, VICTIM] {
        let piece = of_reduce::piece(peer, generation, 0);
        wire.says(peer, |buf| piece.emit(&[], &[0; 4 * of_reduce::LANES], buf));
    }
    let is_result = |bytes: &[u8]| {
        let packet = re::ReducePacket::new_checked(bytes).ok()?;
        re::BlockResult::parse(&packet).ok()
    };
    assert_eq!(wire.newest(VICTIM, is_result).map(|result| result.contributors), Some(2));
}

pub(crate) mod of_iswitch {
    use super::*;

    pub(crate) fn join(peer: PeerId, nonce: u32) -> is::Control {
        is::Control::Join(is::Join {
            generation: 0,
            sender: is::Sender::Worker,
            job: JobId(1),
            session: Session(peer.0),
            rank: peer.0 - 1,
            workers: BOTH,
            contributors: 1,
            packet_floats: 366,
            operations: is::ANY,
            program: 0,
            nonce,
        })
    }

    pub(crate) fn answer(bytes: &[u8]) -> Option<is::Ack> {
        match is::Control::parse(bytes).ok()? {
            is::Control::Ack(ack) if ack.action == is::Action::Join => Some(ack),
            _ => None,
        }
    }
}

pub(crate) fn an_iswitch(demands: bool) -> Wire<iswitch::Switch> {
    let mut switch = iswitch::Switch::new(iswitch::Config::default(), 77).unwrap();
    if demands {
        switch.demand_proofs(chance());
    }
    Wire::new(switch)
}

pub(crate) fn both_join_iswitch(
    wire: &mut Wire<iswitch::Switch>,
    victim_answers: bool,
) -> Option<u8> {
    use of_iswitch::{answer, join};
    wire.class = is::CONTROL_CLASS;
    for _ in 0..2 {
        for peer in [ATTACKER, VICTIM] {
            let nonce = wire.newest(peer, |bytes| Some(answer(bytes)?.admission?.nonce));
            let nonce = nonce.filter(|_| peer == ATTACKER || victim_answers);
            wire.says(peer, |buf| join(peer, nonce.unwrap_or(0)).emit(buf));
        }
    }
    let began = |bytes: &[u8]| answer(bytes).filter(|ack| ack.outcome == is::Outcome::Success);
    wire.newest(ATTACKER, began).map(|ack| ack.generation)
}

pub(crate) fn send_floats(
    wire: &mut Wire<iswitch::Switch>,
    peer: PeerId,
    generation: u8,
    index: u64,
) {
    wire.class = is::DATA_CLASS;
    wire.says(peer, |buf| {
        let start = is::emit_seg(is::Seg { generation, last: false, missing: 0, index }, buf);
        start + 4 * 300
    });
    wire.class = is::CONTROL_CLASS;
}

fn attack_iswitch(wire: &mut Wire<iswitch::Switch>) {
    let generation = both_join_iswitch(wire, false).unwrap_or(77);
    for index in 0..BLOCKS {
        send_floats(wire, ATTACKER, generation, index);
    }
    let packets = is::Packets { generation, sent_at_us: 1, index: 0, mask: (1 << BLOCKS) - 1 };
    wire.says(ATTACKER, |buf| is::Control::FBcast(packets).emit(buf));
    for _ in 0..10 {
        wire.says(VICTIM, |buf| is::Control::Help(packets).emit(buf));
    }
    wire.says(VICTIM, |buf| is::Control::Reset { generation: 9 }.emit(buf));
}

#[test]
fn iswitch_sends_no_sums_to_an_address_that_proved_nothing() {
    let mut wire = an_iswitch(true);
    attack_iswitch(&mut wire);
    wire.spares_the_victim();
    let mut believing = an_iswitch(false);
    attack_iswitch(&mut believing);
    assert!(believing.to_victim > 20 * believing.from_victim);
}

#[test]
fn iswitch_sums_for_workers_that_proved_their_addresses() {
    let mut wire = an_iswitch(true);
    let generation = both_join_iswitch(&mut wire, true).expect("both are in");
    for peer in [ATTACKER, VICTIM] {
        send_floats(&mut wire, peer, generation, 0);
    }
    let sum = |bytes: &[u8]| is::DataPacket::new_checked(bytes).ok().map(|data| data.seg.index);
    assert_eq!(wire.newest(VICTIM, sum), Some(0));
}

/// The shortest messages that a stranger can send draw answers at most three times as long.
#[test]
fn iswitch_answers_strangers_briefly() {
    for message in [
        is::Control::Reset { generation: 9 },
        is::Control::SetH { generation: 9, h: 1 },
        is::Control::Leave(is::Leave { generation: 9, job: JobId(1), session: Session(1) }),
    ] {
        let mut wire = an_iswitch(true);
        wire.class = is::CONTROL_CLASS;
        wire.says(VICTIM, |buf| message.emit(buf));
        wire.spares_the_victim();
    }
    // A join of another version, as short as may be.
    for len in 1..48 {
        let mut wire = an_iswitch(true);
        wire.class = is::CONTROL_CLASS;
        wire.says(VICTIM, |buf| {
            buf[..4].copy_from_slice(&[is::Action::Join as u8, 0, 9, 0]);
            len
        });
        wire.spares_the_victim();
    }
}

pub(crate) mod of_trio {
    use super::*;

    pub(crate) fn hello(peer: PeerId, nonce: u32) -> tr::Hello {
        tr::Hello {
            job: 1,
            term: 0,
            source: (peer.0 - 1) as u8,
            sources: 1,
            newest: 0,
            session: Session(peer.0),
            workers: BOTH as u8,
            gradients: 300,
            timeout_ms: 1,
            window: 64,
            sent_at_us: 1,
            nonce,
            program: 0,
        }
    }

    pub(crate) fn welcome(bytes: &[u8]) -> Option<tr::Welcome> {
        tr::Welcome::parse(&tr::TrioPacket::new_checked(bytes).ok()?).ok()
    }

    pub(crate) fn block(peer: PeerId, generation: u16, block: u32) -> tr::Block {
        let (job, source) = (1, (peer.0 - 1) as u8);
        let [aged, is_final, degraded] = [false; 3];
        tr::Block { job, block, aged, is_final, degraded, source, sources: 1, generation, call: 0 }
    }
}

pub(crate) fn a_trio(demands: bool) -> Wire<trio::Switch> {
    let mut switch = trio::Switch::new(trio::Config::default(), 7).unwrap();
    if demands {
        switch.demand_proofs(chance());
    }
    Wire::new(switch)
}

pub(crate) fn both_say_hello(
    wire: &mut Wire<trio::Switch>,
    victim_answers: bool,
) -> Option<tr::Welcome> {
    use of_trio::{hello, welcome};
    for _ in 0..2 {
        for peer in [ATTACKER, VICTIM] {
            let nonce = wire.newest(peer, |bytes| Some(welcome(bytes)?.nonce));
            let nonce = nonce.filter(|_| peer == ATTACKER || victim_answers);
            wire.says(peer, |buf| hello(peer, nonce.unwrap_or(0)).emit(buf));
        }
    }
    wire.newest(ATTACKER, |bytes| welcome(bytes).filter(|one| one.code == re::WelcomeCode::Welcome))
}

fn attack_trio(wire: &mut Wire<trio::Switch>) {
    let began = both_say_hello(wire, false);
    let (term, generation) = began.map_or((7, 128), |one| (one.term, one.first));
    for number in 0..BLOCKS as u32 {
        let block = of_trio::block(ATTACKER, generation, number);
        wire.says(ATTACKER, |buf| block.emit(&[0; 300], buf));
    }
    // Long enough for the blocks to age out.
    wire.now = wire.now + Duration::from_millis(20);
    for _ in 0..10 {
        let ask = tr::Ask {
            job: 1,
            term,
            source: 1,
            session: Session(VICTIM.0),
            generation,
            block: 0,
            mask: (1 << BLOCKS) - 1,
            held_generation: generation,
            held_block: 0,
            sent_at_us: 1,
        };
        wire.says(VICTIM, |buf| ask.emit(buf));
    }
    let moved = tr::Hello { nonce: 7, ..of_trio::hello(ATTACKER, 0) };
    wire.says(VICTIM, |buf| moved.emit(buf));
}

#[test]
fn trio_sends_no_results_to_an_address_that_proved_nothing() {
    let mut wire = a_trio(true);
    attack_trio(&mut wire);
    wire.spares_the_victim();
    let mut believing = a_trio(false);
    attack_trio(&mut believing);
    assert!(believing.to_victim > 20 * believing.from_victim);
}

#[test]
fn trio_sums_for_workers_that_proved_their_addresses() {
    let mut wire = a_trio(true);
    let began = both_say_hello(&mut wire, true).expect("both are in");
    for peer in [ATTACKER, VICTIM] {
        let block = of_trio::block(peer, began.first, 0);
        wire.says(peer, |buf| block.emit(&[1; 300], buf));
    }
    let result = |bytes: &[u8]| tr::Block::parse(&tr::TrioPacket::new_checked(bytes).ok()?).ok();
    assert_eq!(wire.newest(VICTIM, result).map(|block| block.sources), Some(2));
}

mod of_atp {
    use super::*;
    use olaf_wire::atp::{ANY, Join};

    pub(crate) const SERVER: PeerId = PeerId(99);

    pub(crate) fn join(peer: PeerId, nonce: u32) -> Join {
        Join {
            job: 1,
            server: 0,
            session: Session(peer.0),
            rank: peer.0 - 1,
            workers: BOTH,
            generation: 0,
            closed: 0,
            values: 62,
            aggregators: 0,
            switches: [0; 4],
            sent_at_us: 1,
            scale: 1e8,
            servers: 1,
            window: 200,
            nonce,
            operations: ANY,
            program: 0,
        }
    }

    pub(crate) fn nonce(bytes: &[u8]) -> Option<u32> {
        let packet = olaf_wire::atp::AtpPacket::new_checked(bytes).ok()?;
        Some(olaf_wire::atp::Welcome::parse(&packet).ok()?.nonce)
    }

    /// The server lets everyone in whose join has come up.
    fn lets_in(wire: &mut Wire<olaf_engine::switch::atp::Switch>, peer: PeerId) {
        let welcome = olaf_wire::atp::Welcome {
            rank: peer.0 - 1,
            workers: BOTH,
            generation: 1,
            life: 1,
            values: 62,
            window: 200,
            bitmap0: 1 << (peer.0 - 1),
            bitmap1: 1,
            fan_in0: 2,
            fan_in1: 1,
            ..olaf_wire::atp::Welcome::without_place(&join(peer, 0), re::WelcomeCode::Welcome)
        };
        let mut buf = [0; 128];
        let len = welcome.emit(&mut buf);
        wire.engine.handle_packet(wire.now, Source::new(PortId::UPLINK, SERVER), &buf[..len]);
    }

    /// The server sends that many parameter packets of the job, which others run.
    pub(crate) fn parameters(wire: &mut Wire<olaf_engine::switch::atp::Switch>, count: u32) {
        lets_in(wire, VICTIM);
        for sequence in 0..count {
            let header = olaf_wire::atp::Header {
                job: 1,
                ack: true,
                sequence: sequence as u16,
                tensor_length: 62 * count,
                ..olaf_wire::atp::Header::default()
            };
            let mut bytes = vec![0; header.datagram_len(62)];
            header.emit(&[0; 248], &mut bytes);
            let from = Source::new(PortId::UPLINK, SERVER);
            wire.engine.handle_packet(wire.now, from, &bytes);
        }
        // What has come down leaves with the next datagram.
        wire.says(ATTACKER, |_| 1);
    }
}

fn an_atp(demands: bool) -> Wire<olaf_engine::switch::atp::Switch> {
    let config = olaf_engine::switch::atp::Config::default();
    let mut switch = olaf_engine::switch::atp::Switch::new(config, 1).unwrap();
    switch.set_servers(&[of_atp::SERVER]);
    if demands {
        switch.demand_proofs(chance());
    }
    Wire::new(switch)
}

#[test]
fn atp_copies_no_parameters_to_an_address_that_proved_nothing() {
    let attack = |demands| {
        let mut wire = an_atp(demands);
        for nonce in [0, 7] {
            wire.says(VICTIM, |buf| of_atp::join(VICTIM, nonce).emit(buf));
        }
        of_atp::parameters(&mut wire, 200);
        wire
    };
    let wire = attack(true);
    wire.spares_the_victim();
    assert_eq!(wire.engine.statistics().refused.get("not_proven"), Some(&1));
    let believing = attack(false);
    assert!(believing.to_victim > 20 * believing.from_victim);
}

#[test]
fn atp_copies_parameters_to_workers_that_proved_their_addresses() {
    let mut wire = an_atp(true);
    wire.says(VICTIM, |buf| of_atp::join(VICTIM, 0).emit(buf));
    let nonce = wire.newest(VICTIM, of_atp::nonce).expect("an answer");
    wire.says(VICTIM, |buf| of_atp::join(VICTIM, nonce).emit(buf));
    of_atp::parameters(&mut wire, 3);
    assert!(wire.to_victim > 3 * 248);
}

#[test]
fn a_switch_of_atp_proves_its_own_address_to_the_server() {
    let mut wire = an_atp(false);
    let up = |wire: &mut Wire<olaf_engine::switch::atp::Switch>| {
        wire.says(ATTACKER, |buf| of_atp::join(ATTACKER, 5).emit(buf));
        let mut buf = [0; 256];
        let sent = wire.engine.poll_transmit(wire.now, PortId::UPLINK, &mut buf).expect("a join");
        let packet = olaf_wire::atp::AtpPacket::new_checked(&buf[..sent.len]).unwrap();
        olaf_wire::atp::Join::parse(&packet).unwrap()
    };
    let join = up(&mut wire);
    assert_eq!(join.nonce, 0, "the worker's number is not the switch's");
    let code = re::WelcomeCode::Waiting;
    let asked = olaf_wire::atp::Welcome {
        nonce: 77,
        ..olaf_wire::atp::Welcome::without_place(&join, code)
    };
    let mut buf = [0; 128];
    let len = asked.emit(&mut buf);
    wire.engine.handle_packet(wire.now, Source::new(PortId::UPLINK, of_atp::SERVER), &buf[..len]);
    assert_eq!(up(&mut wire).nonce, 77);
}
