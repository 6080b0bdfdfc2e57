//! Random frames. What is drawn changes with every spell: how many flows, how long the updates, how wild
//! their numbers, and how many frames are something else.

use crate::frames::frame::{BEAT, Frame, is_update};
use fastrand::Rng;
use olaf_wire::offsets::{MAGIC, VERSION, answer, common, update};
use olaf_wire::{
    Address, Ages, Answer, ClusterId, Ends, JobId, QueueStatus, Session, Update, WorkerId,
};

/// Draws frames.
pub(crate) struct Generator {
    chance: Rng,
    longest: usize,
    slots: u32,
    spell: Spell,
}

/// What is drawn for a while.
struct Spell {
    flows: u32,
    workers: u32,
    lanes: usize,
    numbers: Numbers,
    others: f64,
    faults: f64,
}

#[derive(Clone, Copy)]
enum Numbers {
    /// Whole numbers, whose sums are exact.
    Whole,
    /// Any finite numbers.
    Any,
    /// Numbers whose sums overflow.
    Huge,
}

impl Generator {
    pub(crate) fn new(seed: u64, longest: usize, slots: u32) -> Self {
        let spell = Spell {
            flows: 1,
            workers: 4,
            lanes: 8,
            numbers: Numbers::Whole,
            others: 0.0,
            faults: 0.0,
        };
        let mut this = Self { chance: Rng::with_seed(seed), longest, slots, spell };
        this.next_spell();
        this
    }

    pub(crate) fn next_spell(&mut self) {
        let most = (self.longest - update::PAYLOAD) / 4;
        let chance = &mut self.chance;
        self.spell = Spell {
            flows: *pick(chance, &[1, 1, 2, self.slots, 3 * self.slots]),
            workers: *pick(chance, &[1, 4, 40]),
            // Two beats, three, and as many as there can be.
            lanes: *pick(chance, &[1, 8, 9, most, 1 + chance_lanes(most)]),
            numbers: *pick(
                chance,
                &[Numbers::Whole, Numbers::Whole, Numbers::Any, Numbers::Any, Numbers::Huge],
            ),
            others: *pick(chance, &[0.0, 0.0, 0.1, 0.1, 0.9]),
            faults: *pick(chance, &[0.0, 0.05, 0.05, 0.3]),
        };
    }

    pub(crate) fn draw(&mut self) -> Frame {
        let padding = self.chance.u8(..);
        let mut bytes =
            if self.chance.f64() < self.spell.others { self.other() } else { self.update() };
        let faulty = self.chance.f64() < self.spell.faults;
        if faulty {
            self.spoil(&mut bytes);
        }
        let mut frame = Frame::new(&bytes, padding, self.longest);
        if faulty && self.chance.u8(..4) == 0 {
            let mut beats = frame.beats;
            let at = self.chance.usize(..beats.len());
            // A hole, the end of a beat, or all of it.
            beats[at].keep &= *pick(
                &mut self.chance,
                &[!(1 << 17), u64::MAX >> 9, !1, 0, !0b1000, 0xffff_ffff_0000_ffff],
            );
            frame = Frame::of_beats(beats, self.longest);
        }
        frame
    }

    fn update(&mut self) -> Vec<u8> {
        let chance = &mut self.chance;
        let spell = &self.spell;
        let number = chance.u32(..spell.flows);
        let contributors = match chance.u8(..40) {
            0..6 => *pick(chance, &[2, 3, 7]),
            6 => u32::MAX,
            _ => 1,
        };
        let (oldest, newest) = pair(chance.u64(..64), chance.u64(..64));
        let (version_oldest, version_newest) = pair(chance.u32(..8), chance.u32(..8));
        // Rarely the highest bits too.
        let (high, version_high) = if chance.u8(..8) == 0 { (1 << 63, 1 << 31) } else { (0, 0) };
        let header = Update {
            address: Address {
                job: JobId(number % 2),
                cluster: ClusterId(number / 2 % 3),
                worker: WorkerId(chance.u32(..spell.workers)),
                session: Session(chance.u32(..)),
            },
            sequence: chance.u32(..),
            hop_sequence: chance.u32(..),
            flow_sequence: chance.u32(..),
            segment: number / 6,
            segments: number / 6 + chance.u32(1..9),
            generated_oldest_ns: oldest,
            generated_newest_ns: newest | high,
            version_oldest,
            version_newest: version_newest | version_high,
            contributors,
            weight: weight(chance, spell.numbers),
            reward: reward(chance, spell.numbers),
            hops: *pick(chance, &[0, 0, 1, 2, 254, 255]),
        };
        // Updates of a flow are equally long, but for a few.
        let most = (self.longest - update::PAYLOAD) / 4;
        let lanes = if chance.u8(..40) == 0 {
            chance.usize(1..=most)
        } else {
            (spell.lanes + number as usize % 3).min(most)
        };
        let mut lanes: Vec<f32> = (0..lanes).map(|_| lane(chance, spell.numbers)).collect();
        if chance.u8(..50) == 0 {
            let at = chance.usize(..lanes.len());
            lanes[at] = *pick(chance, &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        }
        let mut bytes = vec![0; Update::datagram_len(lanes.len())];
        header.emit(&lanes, &mut bytes);
        bytes
    }

    /// An answer, another message of ours, or anything.
    fn other(&mut self) -> Vec<u8> {
        if self.chance.bool() {
            return self.answer();
        }
        let chance = &mut self.chance;
        let longest = self.longest;
        let length = *pick(chance, &[1, 63, 64, 65, 112, 113, 128, longest - 1, longest]);
        let length = if chance.bool() { chance.usize(1..=longest) } else { length };
        let mut bytes: Vec<u8> = (0..length).map(|_| chance.u8(..)).collect();
        let mut begin = [0; common::LEN];
        begin[..4].copy_from_slice(&MAGIC);
        begin[common::VERSION] = VERSION;
        begin[common::KIND] = *pick(chance, &[2, 3, 2, 3, 2, 3, 4, 9, 0]);
        match chance.u8(..8) {
            0 => return bytes,
            1 => begin[common::VERSION] = chance.u8(..),
            2 => begin[common::FLAGS] = 1,
            _ => {}
        }
        let common = length.min(common::WORKER);
        bytes[..common].copy_from_slice(&begin[..common]);
        bytes
    }

    /// An answer, with the status of a switch above that is more crowded than ours, or less.
    fn answer(&mut self) -> Vec<u8> {
        let chance = &mut self.chance;
        let most = (self.longest - answer::PAYLOAD) / 4;
        let lanes = *pick(chance, &[0, 0, 1, most, chance_lanes(most)]);
        let (segment, delivered) = (chance.u32(..1 << 31), chance.u64(..));
        let header = Answer {
            address: Address {
                job: JobId(chance.u32(..)),
                cluster: ClusterId(chance.u32(..)),
                worker: WorkerId(chance.u32(..)),
                session: Session(chance.u32(..)),
            },
            acknowledges: chance.u32(..),
            segment,
            segments: segment + chance.u32(1..9),
            model_version: chance.u32(..),
            parameters: lanes as u32 + *pick(chance, &[0, 1, 1 << 31]),
            epoch: chance.u32(..),
            delivered_version: chance.u32(..),
            delivered_newest_ns: chance.u64(..),
            server_time_ns: chance.u64(..),
            queue: QueueStatus {
                active_clusters: chance.u16(..20),
                slots: chance.u16(..20),
                used: chance.u16(..),
                switches: *pick(chance, &[0, 1, 2, 255]),
                round_us: chance.u32(..) >> *pick(chance, &[0, 16]),
            },
            ages: Ages { own_us: chance.u32(..), mean_us: chance.u32(..) },
            ends: Ends { newest: chance.u32(..), delivered, ended: chance.u64(..) & !delivered },
        };
        let lanes: Vec<u8> = (0..4 * lanes).map(|_| chance.u8(..)).collect();
        let mut bytes = vec![0; answer::PAYLOAD + lanes.len()];
        header.emit_in_wire_order(&lanes, &mut bytes);
        // The byte behind the number of switches is no field.
        bytes[answer::SWITCHES + 1] = chance.u8(..);
        bytes
    }

    /// Another length, or another bit of the header.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        let chance = &mut self.chance;
        match chance.u8(..6) {
            0 => bytes.truncate(chance.usize(1..=bytes.len())),
            1 => bytes.resize(bytes.len() + chance.usize(1..2 * BEAT), 0),
            2 => bytes.resize(self.longest + chance.usize(1..=4 * BEAT), 0),
            3 => {
                let of_update =
                    [update::WEIGHT, update::CONTRIBUTORS, update::LANES, update::SEGMENTS];
                let of_answer =
                    [answer::ENDED, answer::PARAMETERS, answer::LANES, answer::SEGMENTS];
                let fields = if is_update(bytes) { of_update } else { of_answer };
                let field = *pick(chance, &fields);
                let value = *pick(chance, &[0, 0xff]);
                let len = bytes.len();
                bytes[field.min(len)..(field + 8).min(len)].fill(value);
            }
            _ => {
                let at = chance.usize(..bytes.len().min(answer::PAYLOAD));
                bytes[at] ^= 1 << chance.u8(..8);
            }
        }
    }
}

/// A length between, the same for all spells of a build.
fn chance_lanes(most: usize) -> usize {
    most * 5 / 8
}

fn weight(chance: &mut Rng, numbers: Numbers) -> f64 {
    match (numbers, chance.u8(..40)) {
        (_, 0) => *pick(chance, &[f64::MAX, f64::from_bits(1), f64::MIN_POSITIVE]),
        (Numbers::Whole, _) => f64::from(chance.u32(1..8)),
        (Numbers::Any, _) => 2f64.powi(chance.i32(-9..9)) * (1.0 + chance.f64()),
        (Numbers::Huge, _) => 2f64.powi(chance.i32(1000..1024)),
    }
}

fn reward(chance: &mut Rng, numbers: Numbers) -> f64 {
    match (numbers, chance.u8(..40)) {
        (_, 0) => *pick(chance, &[f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, -0.0]),
        (Numbers::Whole, _) => f64::from(chance.i32(-9..9)),
        (Numbers::Any, _) => (chance.f64() - 0.5) * 2f64.powi(chance.i32(-9..9)),
        (Numbers::Huge, _) => (chance.f64() - 0.5) * 2f64.powi(chance.i32(-30..30)),
    }
}

fn lane(chance: &mut Rng, numbers: Numbers) -> f32 {
    match numbers {
        Numbers::Whole => chance.i32(-99..99) as f32,
        Numbers::Any => {
            let any = f32::from_bits(chance.u32(..));
            // Below 2^64: sums stay finite.
            if any.abs() < 1.8e19 { any } else { f32::from_bits(chance.u32(..0x0100_0000)) }
        }
        Numbers::Huge => {
            let sign = if chance.bool() { 1.0 } else { -1.0 };
            sign * f32::MAX * *pick(chance, &[1.0, 0.5, 0.25, 1e-9, 1e-30])
        }
    }
}

fn pair<T: Ord>(a: T, b: T) -> (T, T) {
    if a <= b { (a, b) } else { (b, a) }
}

fn pick<'a, T>(chance: &mut Rng, of: &'a [T]) -> &'a T {
    &of[chance.usize(..of.len())]
}
