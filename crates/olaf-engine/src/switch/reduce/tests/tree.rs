//! Two lower switches below an upper one, with two workers each.

use super::*;

const UPPER: PeerId = PeerId(99);

/// The upper switch sees lower switch `i` as peer `i`; worker `r` is behind lower switch `r / 2`.
struct Tree {
    upper: Trace,
    lower: [Trace; 2],
    /// Datagrams up, and datagrams down, are lost.
    cut: [bool; 2],
}

impl Tree {
    fn new() -> Self {
        Self::with_cores(1)
    }

    /// The lower switches have one core, and the upper one has that many.
    fn with_cores(cores: u32) -> Self {
        let lower = |epoch| {
            let config = Config { silence: CONTESTED, ..Config::default() };
            let mut trace = Trace::new(config.clone());
            trace.switch = Switch::new(config, epoch).expect("a good configuration");
            trace.switch.set_upstream(UPPER, 9000);
            trace
        };
        let upper = Trace::new(Config { cores, ..Config::default() });
        Self { upper, lower: [lower(500), lower(600)], cut: [false; 2] }
    }

    /// A tree whose four workers are in a generation.
    fn joined() -> Self {
        let mut tree = Self::new();
        for rank in 0..4 {
            tree.lower[rank as usize / 2].joins(rank, 4);
            tree.carry();
        }
        for at in 0..2 {
            let sent = tree.lower[at].sent();
            let welcome = sent.iter().rev().find_map(|(_, out)| match out {
                Out::Welcome(welcome) => Some(*welcome),
                _ => None,
            });
            let welcome = welcome.expect("the upper switch has let everybody in");
            assert_eq!((welcome.code, welcome.workers), (WelcomeCode::Welcome, 2));
            tree.lower[at].generation = welcome.address.generation;
        }
        tree
    }

    /// Carries datagrams between the switches until none is left.
    fn carry(&mut self) {
        let mut buf = alloc::vec![0; MAX_DATAGRAM];
        loop {
            let mut moved = false;
            for at in 0..2 {
                let now = self.lower[at].now;
                while let Some(up) =
                    self.lower[at].switch.poll_transmit(now, PortId::UPLINK, &mut buf)
                {
                    moved = true;
                    if !self.cut[0] {
                        self.upper.recv(at as u32, &buf[..up.len]);
                    }
                }
            }
            let now = self.upper.now;
            while let Some(down) = self.upper.switch.poll_transmit(now, PortId::DOWNLINK, &mut buf)
            {
                moved = true;
                for peer in down.to.as_slice().iter().filter(|_| !self.cut[1]) {
                    let from = Source::new(PortId::UPLINK, UPPER);
                    let lower = &mut self.lower[peer.0 as usize];
                    lower.switch.handle_packet(lower.now, from, &buf[..down.len]);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn piece(&mut self, rank: u32, number: u32, of: u32, lane: f32) {
        self.sends(rank, number, of, lane);
        self.carry();
    }

    /// A piece to the worker's switch, which counts its ranks from 0.
    fn sends(&mut self, rank: u32, number: u32, of: u32, lane: f32) {
        let lower = &mut self.lower[rank as usize / 2];
        let address = Address { rank: rank % 2, session: Session(rank + 1), ..lower.address(0) };
        let piece = Piece {
            address,
            block: Block {
                number,
                operation: 0,
                first: 0,
                lanes_of_operation: u64::from(of) * LANES as u64,
                lane_type: LaneType::F32,
                operator: Operator::Sum,
                call: olaf_wire::Call::default(),
            },
            contributors: 1,
            holds: 0,
            sent_at_us: 9,
            marks: Marks::default(),
        };
        let lanes: Vec<u8> = [lane; LANES].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let mut buf = [0; 256];
        let len = piece.emit(&[], &lanes, &mut buf);
        assert_eq!(lower.recv(rank, &buf[..len]), Verdict::Absorb);
    }

    fn asks(&mut self, rank: u32, first: u32) {
        let lower = &mut self.lower[rank as usize / 2];
        let ask = Ask {
            address: Address { rank: rank % 2, session: Session(rank + 1), ..lower.address(0) },
            operation: 0,
            blocks: Blocks { first, mask: 1 },
            holds: 0,
            sent_at_us: 11,
            awaits: None,
        };
        let mut buf = [0; 256];
        let len = ask.emit(&mut buf);
        lower.recv(rank, &buf[..len]);
        self.carry();
    }

    fn wait(&mut self, time: Duration) {
        for trace in self.lower.iter_mut().chain([&mut self.upper]) {
            trace.wait(time);
        }
        self.carry();
    }
}

#[test]
fn all_workers_of_a_tree_get_the_sum_of_all() {
    let mut tree = Tree::joined();
    for rank in 0..4 {
        tree.piece(rank, 0, 1, [1.0, 2.0, 4.0, 8.0][rank as usize]);
    }
    assert_eq!(tree.lower[0].results(), [(alloc::vec![0, 1], 0, 15.0, 4)]);
    assert_eq!(tree.lower[1].results(), [(alloc::vec![2, 3], 0, 15.0, 4)]);
    for trace in [&tree.upper, &tree.lower[0], &tree.lower[1]] {
        trace.adds_up();
    }
    let pieces = tree.upper.switch.statistics(tree.upper.now).pieces;
    assert_eq!(pieces.received, 2, "one sum of each lower switch");
}

#[test]
fn a_sum_that_was_lost_between_the_switches_is_asked_for() {
    let mut tree = Tree::joined();
    for rank in 0..3 {
        tree.piece(rank, 0, 1, 1.0);
    }
    tree.cut = [true; 2];
    tree.piece(3, 0, 1, 1.0);
    tree.cut = [false; 2];
    // The upper switch lacks the sum of lower switch 1, so a question of worker 2 leads to it.
    tree.asks(2, 0);
    assert_eq!(tree.lower[0].results(), [(alloc::vec![0, 1], 0, 4.0, 4)]);
    assert_eq!(tree.lower[1].results(), [(alloc::vec![2, 3], 0, 4.0, 4)]);
}

#[test]
fn a_result_that_was_lost_between_the_switches_is_asked_for() {
    let mut tree = Tree::joined();
    for rank in 0..3 {
        tree.piece(rank, 0, 1, 1.0);
    }
    // The sum goes up; both results are lost.
    tree.cut = [false, true];
    tree.piece(3, 0, 1, 1.0);
    tree.cut = [false, false];
    assert_eq!(tree.lower[0].results(), []);
    tree.asks(0, 0);
    assert_eq!(tree.lower[0].results(), [(alloc::vec![0, 1], 0, 4.0, 4)]);
    assert_eq!(tree.lower[1].results(), [], "each lower switch asks for its own workers");
    tree.asks(3, 0);
    assert_eq!(tree.lower[1].results(), [(alloc::vec![2, 3], 0, 4.0, 4)]);
}

#[test]
fn a_death_below_one_switch_is_named_below_all() {
    let mut tree = Tree::joined();
    for rank in 0..3 {
        tree.piece(rank, 0, 1, 1.0);
    }
    tree.wait(Duration::from_millis(1000));
    tree.asks(0, 0);
    tree.asks(1, 0);
    tree.asks(2, 0);
    tree.wait(Duration::from_millis(1000));
    tree.wait(Duration::from_millis(600));
    let closed = Out::Closed { operation: 0, culprit: 3, reason: Reason::Dead };
    for (at, members) in [(0, [0, 1]), (1, [2, 3])] {
        let sent = tree.lower[at].sent();
        assert!(sent.contains(&(members.to_vec(), closed.clone())), "{sent:?}");
    }
}

#[test]
fn a_silent_upper_switch_ends_the_generation_below() {
    let mut tree = Tree::joined();
    // The sum is complete here, and has no result.
    tree.piece(0, 0, 1, 1.0);
    tree.piece(1, 0, 1, 1.0);
    tree.cut = [true; 2];
    for _ in 0..12 {
        tree.wait(Duration::from_millis(250));
        tree.asks(0, 0);
        tree.asks(1, 0);
    }
    let closed = Out::Closed { operation: 0, culprit: ALL, reason: Reason::SwitchSilent };
    let sent = tree.lower[0].sent();
    assert!(sent.contains(&(alloc::vec![0, 1], closed)), "{sent:?}");
}

#[test]
fn a_fixed_job_below_two_switches_needs_ranks() {
    let mut tree = Tree::new();
    let join = Join {
        address: Address { job: JOB, generation: 0, rank: ALL, session: Session(5) },
        workers: 4,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 0,
        datagram_bytes: 1472,
        sent_at_us: 0,
        nonce: 0,
        operation: 0,
        program: 0,
    };
    let mut buf = [0; 64];
    let len = join.emit(&mut buf);
    assert_eq!(dropped(tree.lower[0].recv(5, &buf[..len])), "refused");
}

#[test]
fn a_switch_with_fewer_cores_than_the_one_above_refuses_its_workers() {
    let mut tree = Tree::with_cores(2);
    for rank in 0..4 {
        tree.lower[rank as usize / 2].joins(rank, 4);
        tree.carry();
    }
    for at in 0..2 {
        let refused = tree.lower[at].sent().into_iter().filter_map(|(to, out)| match out {
            Out::Welcome(welcome) if welcome.code.is_refusal() => Some((to, welcome.code)),
            _ => None,
        });
        let peers = [2 * at as u32, 2 * at as u32 + 1];
        let expected = peers.map(|peer| (alloc::vec![peer], WelcomeCode::Refused));
        assert_eq!(refused.collect::<Vec<_>>(), expected);
        let events = core::iter::from_fn(|| tree.lower[at].switch.poll_event());
        let event = Event::Sum(JOB, SumEvent::CoresDiffer { here: 1, above: 2 });
        assert_eq!(events.filter(|told| *told == event).count(), 1);
    }
}

#[test]
fn a_lower_switch_proves_its_address_to_the_one_above() {
    let mut tree = Tree::new();
    tree.upper.switch.demand_proofs(alloc::boxed::Box::new(|| 40));
    for rank in 0..4 {
        tree.lower[rank as usize / 2].joins(rank, 4);
        tree.carry();
    }
    for lower in &mut tree.lower {
        let sent = lower.sent().into_iter();
        let mut codes = sent.rev().filter_map(|(_, out)| match out {
            Out::Welcome(welcome) => Some(welcome.code),
            _ => None,
        });
        // No time passed: the second join left at once.
        assert_eq!(codes.next(), Some(WelcomeCode::Welcome));
    }
    assert!(tree.upper.switch.statistics(tree.upper.now).refused.is_empty());
}

/// The results of a switch above that is mistaken, or was replaced: the first one said that four
/// workers belong into each sum, so another number is of another generation's sum.
#[test]
fn a_result_of_another_number_of_workers_is_not_believed() {
    let mut tree = Tree::joined();
    for rank in 0..4 {
        tree.piece(rank, 0, 2, 1.0);
    }
    for lower in &mut tree.lower {
        lower.sent();
    }
    for rank in 0..3 {
        tree.piece(rank, 1, 2, 1.0);
    }
    // The last sum goes up by hand, so that the result is in hand, too.
    tree.sends(3, 1, 2, 1.0);
    let now = tree.upper.now;
    let mut result = alloc::vec![0; MAX_DATAGRAM];
    let up = tree.lower[1].switch.poll_transmit(now, PortId::UPLINK, &mut result);
    tree.upper.recv(1, &result[..up.expect("both workers have sent").len]);
    let down = tree.upper.switch.poll_transmit(now, PortId::DOWNLINK, &mut result);
    result.truncate(down.expect("the block is complete").len);

    let packet = ReducePacket::new_checked(&result).expect("a good message");
    let good = BlockResult::parse(&packet).expect("a result");
    assert_eq!((good.contributors, good.expected), (4, 4));
    let mut forged = alloc::vec![0; MAX_DATAGRAM];
    let other = BlockResult { contributors: 5, expected: 5, ..good };
    let len = other.emit(&[], packet.lanes(), &mut forged);
    let lower = &mut tree.lower[0];
    let from = Source::new(PortId::UPLINK, UPPER);
    assert_eq!(dropped(lower.switch.handle_packet(lower.now, from, &forged[..len])), "mismatch");
    assert_eq!(lower.results(), []);
    assert_eq!(lower.switch.handle_packet(lower.now, from, &result), Verdict::Absorb);
    assert_eq!(lower.results(), [(alloc::vec![0, 1], 1, 4.0, 4)]);
}
