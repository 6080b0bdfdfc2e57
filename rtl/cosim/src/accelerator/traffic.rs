//! Random datagrams of workers that mostly keep to the protocol, and sometimes do anything. What is drawn changes with
//! every spell: how many messages, how many packets for one sum, how wild the numbers.

use crate::accelerator::datagram::Datagram;
use crate::accelerator::reference::View;
use fastrand::Rng;
use olaf_wire::iswitch::offsets::{control, join, leave};
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, Control, Halt, Join, Leave, Outcome, Packets, SEG, Seg, Sender,
    emit_seg,
};
use olaf_wire::{JobId, Session, reduce::Reason};

/// Of a build.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) ports: usize,
    /// `SLOTS`.
    pub(super) slots: u64,
    /// Floats of the first beat, and of the longest packet.
    pub(super) shortest: usize,
    pub(super) longest: usize,
}

/// Draws datagrams.
pub(super) struct Traffic {
    limits: Limits,
    spell: Spell,
    /// The next packet of each port in `generation`.
    next: Vec<u64>,
    generation: Option<u8>,
    /// Workers of the job, as the workers believe.
    workers: u32,
    lives: u32,
    /// Has just left, and may not know it yet.
    leaver: Option<usize>,
}

/// What is drawn for a while.
struct Spell {
    /// Shares of control messages, of datagrams with a fault, of packets that are the next of their worker.
    messages: f64,
    faults: f64,
    in_order: f64,
    wild: bool,
}

impl Traffic {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            spell: Spell { messages: 0.12, faults: 0.02, in_order: 0.5, wild: false },
            next: vec![0; limits.ports],
            generation: None,
            workers: 1,
            lives: 0,
            leaver: None,
        }
    }

    pub(super) fn next_spell(&mut self, chance: &mut Rng) {
        self.spell = Spell {
            messages: *pick(chance, &[0.0, 0.02, 0.12, 0.12, 0.6]),
            faults: *pick(chance, &[0.0, 0.02, 0.02, 0.2]),
            in_order: *pick(chance, &[0.5, 0.5, 0.9, 1.0, 0.1]),
            wild: chance.bool(),
        };
    }

    pub(super) fn draw(&mut self, chance: &mut Rng, view: &View) -> Datagram {
        let anybody = view.members.is_empty() || !view.is_open || chance.f64() < 0.05;
        let mut port =
            if anybody { chance.usize(..self.limits.ports) } else { *pick(chance, &view.members) };
        let mut is_message = chance.f64() < self.spell.messages;
        let joins = !view.is_open && chance.f64() < 0.7;
        if let Some(leaver) = self.leaver.take() {
            (port, is_message) = (leaver, chance.bool());
        } else if joins {
            is_message = true;
        }
        let mut body = match is_message {
            true if joins => self.join(chance, view, port),
            true => self.message(chance, view, port),
            false => self.packet(chance, view, port),
        };
        if chance.f64() < self.spell.faults {
            self.spoil(chance, &mut body);
            self.keep_to_differences(view, &mut body, is_message, port);
        }
        let marked = chance.u8(..10) == 0;
        let confirmed = match Control::parse(&body) {
            // The control plane sends a Join again if its number is that of the address. In the name of a port, as
            // each datagram here: which of the two it was is nobody's matter.
            Ok(Control::Join(join)) if is_message => number_of(view, port) == Some(join.nonce),
            _ => chance.bool(),
        };
        Datagram { body, ports: 1 << port, control: is_message, marked, confirmed }
    }

    /// Other bytes, another length, or another byte.
    fn spoil(&self, chance: &mut Rng, body: &mut Vec<u8>) {
        let longest = SEG + 4 * self.limits.longest;
        match chance.u8(..8) {
            0 => body.resize(*pick(chance, &[0, 0, 1, 4, 7, 8, 9, 11, 12, 13, 36, 50, longest]), 7),
            // Longer than the hardware keeps.
            1 => body.resize(longest + chance.usize(1..4 * self.limits.longest), 1),
            // A message that ends with a number, or with 0 in its place.
            2 => {
                body.resize(*pick(chance, &[36, 48]), 0);
                body.resize(body.len() + 4, *pick(chance, &[0, 0, 7]));
            }
            3 => {
                body.resize(*pick(chance, &[4, 8, 12, 16, 24, 36, 40, 48, 50, 52, longest]), 0);
                chance.fill(body);
            }
            _ if body.is_empty() => {}
            _ => {
                let at = chance.usize(..body.len().min(52));
                body[at] = chance.u8(..);
            }
        }
    }

    /// Where the hardware is known to differ (`rtl/README.md`), nothing is drawn: numbers of vectors that only the
    /// software takes, packets longer than the hardware keeps but not than the Joins agreed on, a life that
    /// comes from two ports, another program, and another job before this one has begun.
    fn keep_to_differences(&self, view: &View, body: &mut [u8], is_message: bool, port: usize) {
        if !is_message {
            if let Some(seg) = body.get_mut(..SEG) {
                let was = Seg::from_bits(u64::from_be_bytes(seg.try_into().expect("8 bytes")));
                let missing = was.missing % self.limits.ports as u16;
                emit_seg(Seg { missing, ..was }, seg);
            }
            return;
        }
        if body.first() != Some(&(Action::Join as u8)) {
            return;
        }
        if let Some(job) = body.get_mut(join::JOB..leave::SESSION).filter(|_| !view.has_begun) {
            job.copy_from_slice(&7u32.to_be_bytes());
        }
        if let Some(life) = body.get_mut(leave::SESSION..leave::LEN) {
            life[0] = port as u8;
        }
        if let Some(program) = body.get_mut(join::PROGRAM..join::LEN) {
            // The hardware sums whoever joins.
            program.fill(0);
        }
        if let Some(floats) = body.get_mut(join::PACKET_FLOATS..join::OPERATIONS) {
            floats[..3].fill(0);
            floats[3] = floats[3].min(self.limits.longest as u8);
        }
    }

    fn session(port: usize, life: u32) -> Session {
        Session((port as u32) << 24 | life)
    }

    fn join(&mut self, chance: &mut Rng, view: &View, port: usize) -> Vec<u8> {
        if !view.has_job {
            self.workers = chance.u32(1..=self.limits.ports as u32);
        }
        self.lives = (self.lives + 1) % (1 << 20);
        let is_switch = chance.u8(..10) == 0 && self.workers > 1;
        let gives_up = chance.u8(..20) == 0;
        // A life that stays joins with the same session.
        let life = if chance.u8(..10) < 3 { 100 + self.lives } else { 1 };
        let message = Join {
            generation: if gives_up { view.generation } else { 0 },
            sender: if is_switch { Sender::Switch } else { Sender::Worker },
            job: JobId(if chance.u8(..30) == 0 && view.has_begun { 8 } else { 7 }),
            session: Self::session(port, life),
            rank: *pick(chance, &[ANY, ANY, port as u32, 1]),
            workers: self.workers,
            contributors: if is_switch { chance.u32(1..=self.workers) } else { 1 },
            packet_floats: chance.u32(self.limits.longest as u32 / 2..=self.limits.longest as u32),
            operations: if gives_up { 3 } else { ANY },
            // The hardware sums whoever joins.
            program: 0,
            nonce: number(chance, view, port),
        };
        written(&Control::Join(message))
    }

    fn message(&mut self, chance: &mut Rng, view: &View, port: usize) -> Vec<u8> {
        let generation = if chance.u8(..20) == 0 { chance.u8(..) } else { view.generation };
        let slots = self.limits.slots;
        let index = (view.first + chance.u64(..3 * slots)).saturating_sub(2 * slots);
        let sent_at_us = chance.u32(..);
        let mask = chance.u64(..) & u64::from(chance.u8(..));
        let asked = Packets { generation, sent_at_us, index, mask };
        written(&match chance.u8(..36) {
            0..8 => Control::FBcast(asked),
            8..16 => Control::Help(asked),
            16..22 => {
                let most = self.limits.ports as u32 + 1;
                let h = if chance.u8(..8) == 0 { 2047 } else { chance.u32(1..=most) };
                Control::SetH { generation, h }
            }
            22..30 => Control::Ack(Ack {
                generation,
                outcome: Outcome::Success,
                sent_at_us,
                index,
                ..answer(chance, view, port)
            }),
            30..33 => {
                self.leaver = Some(port);
                let session = Self::session(port, 1);
                Control::Leave(Leave { generation, job: JobId(7), session })
            }
            33 => Control::Reset { generation },
            34 => Control::Halt(Halt {
                generation,
                reason: *pick(chance, &Reason::EACH),
                culprit: chance.u32(..),
                index,
                calls: chance.u8(..),
            }),
            _ => return self.join(chance, view, port),
        })
    }

    fn packet(&mut self, chance: &mut Rng, view: &View, port: usize) -> Vec<u8> {
        if self.generation != Some(view.generation) {
            self.generation = Some(view.generation);
            self.next.fill(0);
        }
        let slots = self.limits.slots;
        let next = &mut self.next[port];
        let index = if chance.f64() < self.spell.in_order && *next < view.first + slots {
            *next += 1;
            *next - 1
        } else if chance.u8(..5) > 0 {
            view.first + chance.u64(..slots)
        } else {
            (view.first + chance.u64(..5 * slots)).saturating_sub(3 * slots)
        };
        let missing = if chance.u8(..7) == 0 { chance.u16(..self.limits.ports as u16) } else { 0 };
        let most = view.packet_floats.max(1);
        // Packets of one beat, of all beats, or of any number: the same for all members.
        let hash = index as usize * 7 + usize::from(view.generation);
        let mut floats = match view.generation % 4 {
            0 => 1 + hash % self.limits.shortest.min(most),
            1 => most,
            _ => 1 + hash % most,
        };
        let mut last = index % 3 == 2;
        match chance.u16(..500) {
            0 | 1 => floats = chance.usize(1..=self.limits.longest + 2),
            2 | 3 => last = !last,
            _ => {}
        }
        let generation = if chance.u8(..50) == 0 { chance.u8(..) } else { view.generation };
        let mut body = vec![0; SEG];
        emit_seg(Seg { generation, last, missing, index }, &mut body);
        for _ in 0..floats {
            body.extend_from_slice(&float(chance, self.spell.wild).to_le_bytes());
        }
        body
    }
}

/// The number that proves the address of a port, as the engine said.
fn number_of(view: &View, port: usize) -> Option<u32> {
    view.numbers.get(port).copied().flatten()
}

/// The last word of a Join: mostly what was asked for, otherwise none or a wrong one.
fn number(chance: &mut Rng, view: &View, port: usize) -> u32 {
    match chance.u8(..10) {
        0 => 0,
        // That of another port, or any.
        1 => view.numbers.iter().flatten().next().copied().unwrap_or(chance.u32(..)),
        2 => 1 << chance.u8(..32),
        _ => number_of(view, port).unwrap_or(0),
    }
}

/// An Ack of an Ack, or sometimes of a Join, with a number and without.
fn answer(chance: &mut Rng, view: &View, port: usize) -> Ack {
    let of_join = chance.u8(..3) == 0;
    let admission = Admission { nonce: number(chance, view, port), ..Admission::default() };
    Ack {
        generation: 0,
        action: if of_join { Action::Join } else { Action::Ack },
        outcome: Outcome::Success,
        sent_at_us: 0,
        index: 0,
        admission: of_join.then_some(admission),
    }
}

/// The bits of an ordinary number; or also of tiny ones, huge ones, and no numbers.
fn float(chance: &mut Rng, wild: bool) -> u32 {
    match chance.u8(..20) {
        0..3 if wild => chance.u32(..) & 0x80ff_ffff,
        3..6 if wild => chance.u32(..),
        _ => ((chance.f32() - 0.5) * 2f32.powi(chance.i32(-9..9))).to_bits(),
    }
}

fn written(message: &Control) -> Vec<u8> {
    let mut body = vec![0; olaf_wire::iswitch::offsets::LONGEST_CONTROL];
    let len = message.emit(&mut body);
    assert_eq!(body[control::ACTION], message.action() as u8);
    body.truncate(len);
    body
}

fn pick<'a, T>(chance: &mut Rng, of: &'a [T]) -> &'a T {
    &of[chance.usize(..of.len())]
}
