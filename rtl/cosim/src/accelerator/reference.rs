//! The engine's switch, and what it leads one to expect of the hardware.

use crate::accelerator::counters::{COUNTERS, Counters, NAMES};
use crate::accelerator::datagram::Datagram;
use crate::mismatch::same;
use fastrand::Rng;
use olaf_engine::switch::iswitch::{Config, Switch};
use olaf_engine::{
    DropReason, Ecn, Engine, Instant, PeerId, PortId, Receivers, Source, TrafficClass, Verdict,
};
use olaf_wire::iswitch::{
    Ack, Action, Admission, CONTROL_CLASS, Control, DATA_CLASS, Outcome, SEG,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use std::collections::VecDeque;
use std::time::Duration;

/// The engine's time moves with the datagrams, so that no member draws more than the engine allows. Nothing else follows
/// from time: the hardware has no clock, its control plane looks for silent workers.
const BETWEEN: Duration = Duration::from_millis(100);
/// No worker is silent for this time.
const SILENCE: Duration = Duration::from_secs(365 * 24 * 3600);
/// A number proves an address for this time at least.
const PROVES: Duration = Duration::from_secs(600);
const NOT_A_NUMBER: u32 = 0x7fc0_0000;

/// What the workers know of the job.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) has_job: bool,
    /// The job has had a generation.
    pub(super) has_begun: bool,
    /// The generation is open.
    pub(super) is_open: bool,
    pub(super) generation: u8,
    /// Ports.
    pub(super) members: Vec<usize>,
    /// The first packet without a result.
    pub(super) first: u64,
    /// Most floats of a packet.
    pub(super) packet_floats: usize,
    /// The number that proves a port's address, if one has to.
    pub(super) numbers: Vec<Option<u32>>,
}

/// The engine's switch.
pub(super) struct Reference {
    engine: Switch,
    now: Instant,
    /// Bytes of the longest datagram that the hardware keeps.
    longest: usize,
    buffer: Vec<u8>,
    expected: VecDeque<Datagram>,
    counted: Counters,
    pub(super) view: View,
}

impl Reference {
    /// `secret`: addresses have to be proved, and this draws what the proofs are made of.
    pub(super) fn new(slots: u32, longest: usize, epoch: u8, secret: Option<Rng>) -> Self {
        let config =
            Config { jobs: 1, slots, silence: SILENCE, tells_numbered: false, ..Config::default() };
        let mut engine = Switch::new(config, epoch.into()).expect("a number of slots that can be");
        if let Some(mut secret) = secret {
            engine.demand_proofs(Box::new(move || secret.u32(..)));
        }
        Self {
            engine,
            now: Instant(1_000),
            longest,
            buffer: vec![0; MAX_DATAGRAM],
            expected: VecDeque::new(),
            counted: [0; COUNTERS],
            view: View::default(),
        }
    }

    /// Everything has left.
    pub(super) fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    fn count(&mut self, name: &str, more: u64) {
        let place = NAMES.iter().position(|known| *known == name).expect("a counter's name");
        self.counted[place] += more;
    }

    /// The hardware has taken a datagram.
    pub(super) fn take(&mut self, datagram: Datagram) -> Result<(), String> {
        let before = self.now;
        self.now = before + BETWEEN;
        if periods(self.now) != periods(before) {
            // A number that is on its way is still right.
            self.view.numbers.clear();
        }
        let peer = PeerId(datagram.ports.trailing_zeros());
        let dscp = if datagram.control { CONTROL_CLASS } else { DATA_CLASS };
        let ecn = if datagram.marked { Ecn::Marked } else { Ecn::NotCapable };
        let class = TrafficClass::new(dscp, ecn);
        let from = Source { port: PortId::DOWNLINK, peer, class };
        let verdict = self.engine.handle_packet(self.now, from, &datagram.body);
        self.count("datagrams", 1);
        self.refused(verdict, &datagram)?;
        if datagram.control && (1..=self.longest).contains(&datagram.body.len()) {
            // The control plane gets the message as it is.
            self.expected.push_back(datagram);
        }
        while let Some(out) =
            self.engine.poll_transmit(self.now, PortId::DOWNLINK, &mut self.buffer)
        {
            let body = &self.buffer[..out.len];
            if out.class.dscp() != DATA_CLASS {
                let answer = Control::parse(body);
                let refused = matches!(answer, Ok(Control::Ack(ack))
                    if ack.action == Action::SetH && ack.outcome == Outcome::Refused);
                self.count("set_h refused", refused.into());
                if let Ok(Control::Ack(Ack { admission: Some(Admission { nonce, .. }), .. })) =
                    answer
                    && nonce != 0
                {
                    let port = out.to.as_slice()[0].0 as usize;
                    if self.view.numbers.len() <= port {
                        self.view.numbers.resize(port + 1, None);
                    }
                    self.view.numbers[port] = Some(nonce);
                }
                continue;
            }
            let ports = out.to.as_slice().iter().fold(0, |ports, peer| ports | 1 << peer.0);
            let marked = out.class.ecn() == Ecn::Marked;
            let body = body.to_vec();
            self.expected.push_back(Datagram {
                body,
                ports,
                control: false,
                marked,
                confirmed: false,
            });
            match out.to {
                Receivers::One(_) => self.count("results again", 1),
                Receivers::Many(to) => self.count("results", to.len() as u64),
            }
        }
        while self.engine.poll_event().is_some() {}
        self.look();
        Ok(())
    }

    fn refused(&mut self, verdict: Verdict, datagram: &Datagram) -> Result<(), String> {
        let is_leave = datagram.control && datagram.body.first() == Some(&(Action::Leave as u8));
        let name = match (verdict, datagram.control) {
            // Counted by the table of sums.
            (Verdict::Absorb | Verdict::Drop(DropReason::Piece(_)), _) => return Ok(()),
            // Counted as a Join alone.
            (Verdict::Drop(DropReason::NotProven), true) => return Ok(()),
            (Verdict::Drop(DropReason::Malformed(_)), _) => "malformed",
            (Verdict::Drop(DropReason::UnknownGeneration), false) => "unknown_generation",
            (Verdict::Drop(DropReason::UnknownGeneration), true) => {
                "messages of an unknown generation"
            }
            (Verdict::Drop(DropReason::UnknownJob | DropReason::NotAMember), true) if is_leave => {
                "leaves refused"
            }
            (Verdict::Drop(DropReason::NotAMember), false) => "not_a_member",
            (Verdict::Drop(DropReason::NotAMember), true) => "messages of no member",
            (Verdict::Drop(DropReason::SumJoinRefused(_)), true) => "joins refused",
            _ => return Err(format!("the engine's verdict is {verdict:?} of {datagram:?}")),
        };
        self.count(name, 1);
        Ok(())
    }

    fn look(&mut self) {
        let mut statistics = self.engine.statistics(self.now);
        let view = &mut self.view;
        view.has_job = !statistics.jobs.is_empty();
        view.members.clear();
        (view.is_open, view.has_begun) = (false, false);
        let Some(job) = statistics.jobs.pop() else { return };
        view.generation = job.generation.unwrap_or(view.generation);
        view.has_begun = job.generation.is_some();
        view.is_open = job.generation.is_some() && job.closed.is_none();
        view.members.extend(job.members.iter().map(|member| member.address.0 as usize));
        view.first = job.packets;
        view.packet_floats = job.packet_floats as usize;
    }

    /// A datagram has left the hardware.
    pub(super) fn left(&mut self, hardware: &Datagram) -> Result<(), String> {
        let expected =
            self.expected.pop_front().ok_or("a datagram leaves, and the engine sent none")?;
        let about = |of: &Datagram| (of.control, of.ports, of.marked, of.body.len());
        same("control, receivers, mark and bytes", about(hardware), about(&expected))?;
        if hardware.control {
            return same("a message", &hardware.body, &expected.body);
        }
        let (ours, theirs) = (hardware.body.split_at(SEG), expected.body.split_at(SEG));
        same("Seg", ours.0, theirs.0)?;
        for (number, (ours, theirs)) in
            ours.1.chunks_exact(4).zip(theirs.1.chunks_exact(4)).enumerate()
        {
            let bits = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let (ours, theirs) = (bits(ours), bits(theirs));
            // differs: the adders make one NaN, where a processor keeps bits of an operand.
            let is_the_nan = ours == NOT_A_NUMBER && f32::from_bits(theirs).is_nan();
            if ours != theirs && !is_the_nan {
                return same(&format!("bits of float {number}"), ours, theirs);
            }
        }
        Ok(())
    }

    /// What the hardware must have counted when everything has left.
    pub(super) fn counters(&self) -> Counters {
        let statistics = self.engine.statistics(self.now);
        let pieces = &statistics.pieces;
        let of = |counts: &std::collections::BTreeMap<&'static str, u64>, name: &str| {
            counts.get(name).copied().unwrap_or(0)
        };
        std::array::from_fn(|place| match NAMES[place] {
            "taken" => pieces.summed + pieces.waiting + pieces.given_up,
            "late" => pieces.late,
            "repeated" => pieces.repeated,
            "held" => pieces.held,
            "occupied" => pieces.occupied,
            "summed" => pieces.summed,
            "given_up" => pieces.given_up,
            "forced" => statistics.forced_packets,
            "began" => statistics.generations,
            "ended" => statistics.closed_generations.values().sum(),
            name @ ("closed" | "too_early" | "impossible" | "wrong_size" | "mismatch") => {
                of(&pieces.refused, name)
            }
            name @ ("join" | "leave" | "reset" | "set_h" | "fbcast" | "help" | "halt" | "ack") => {
                of(&statistics.controls_received, name)
            }
            _ => self.counted[place],
        })
    }
}

fn periods(now: Instant) -> u128 {
    u128::from(now.0) / PROVES.as_nanos()
}
