//! Drives `olaf_queue` and its reference model.

use crate::Shim;
use crate::counters::{Reader, same_counters};
use crate::design::Design;
use crate::ends::{Sink, Source};
use crate::frames::counters::{COUNTERS, Counters, NAMES, TYPE};
use crate::frames::frame::{Beat, Frame, bytes_of};
use crate::frames::generator::Generator;
use crate::frames::pins::{In, Out};
use crate::frames::reference::{Reference, Settings};
use crate::mismatch::{Mismatch, Run};
use crate::phase::Phase;
use fastrand::Rng;

/// A build of `olaf_queue`: its pins and its parameters.
#[derive(Clone, Copy)]
pub struct Queue {
    /// The build.
    pub shim: &'static Shim<In, Out>,
    /// `SLOTS`.
    pub slots: usize,
    /// `FRAME`, bytes.
    pub longest: usize,
    /// `GATE`.
    pub gate: bool,
}

/// Cycles between two changes of the traffic.
const SPELL: u64 = 300;
/// Cycles in which a queue without input must be empty: each entry waits for a division, and the sink is
/// always ready.
const DRAIN: u64 = 1500;
/// Runs both. Frames come in and leave at random; now and then nothing comes until the queue is empty, and the
/// counters are read and compared.
///
/// Returns the sums of the counters.
///
/// # Errors
/// The first difference.
pub fn compare(queue: Queue, run: Run) -> Result<Counters, Mismatch> {
    let mut bench = Bench::new(queue, run.seed);
    let mut cycle = 0;
    // The last part of a run is always a drain.
    while cycle < run.cycles || bench.phase != Phase::Traffic {
        if cycle + 1 >= run.cycles && bench.phase == Phase::Traffic {
            bench.phase = Phase::drain(cycle);
        }
        bench.cycle(cycle).map_err(|what| Mismatch { run, cycle, what })?;
        cycle += 1;
    }
    Ok(bench.total)
}

struct Bench {
    queue: Queue,
    design: Design<In, Out>,
    chance: Rng,
    generator: Generator,
    source: Source<Frame>,
    sink: Sink<Beat>,
    settings: Settings,
    reference: Reference,
    reader: Reader,
    phase: Phase,
    reset: bool,
    total: Counters,
}

impl Bench {
    fn new(queue: Queue, seed: u64) -> Self {
        let mut chance = Rng::with_seed(seed);
        let generator = Generator::new(chance.u64(..), queue.longest, queue.slots as u32);
        let settings = settings(&mut chance, queue.gate);
        Self {
            queue,
            design: Design::new(queue.shim, seed),
            chance,
            generator,
            source: Source::new(),
            sink: Sink::new(),
            settings,
            reference: reference(queue, settings),
            reader: Reader::default(),
            phase: Phase::Traffic,
            reset: true,
            total: [0; COUNTERS],
        }
    }

    fn cycle(&mut self, cycle: u64) -> Result<(), String> {
        if cycle.is_multiple_of(SPELL) && self.phase == Phase::Traffic {
            self.source.next_spell(&mut self.chance);
            self.generator.next_spell();
            self.sink.next_spell(&mut self.chance);
            if self.chance.u8(..40) == 0 {
                self.phase = Phase::drain(cycle);
            }
        }
        self.reset |= self.chance.u32(..20_000) == 0;
        let pins = self.pins();
        let out = self.design.settle(&pins);
        if self.reset {
            self.restart();
        } else {
            self.events(cycle, &out)?;
            self.ends(cycle, &pins, &out)?;
            self.advance(cycle, &pins, &out)?;
        }
        self.design.tick();
        Ok(())
    }

    fn pins(&mut self) -> In {
        let Settings { session, gate, active_clusters, round_us } = self.settings;
        let mut pins = In {
            rst: self.reset,
            session,
            gate: gate.is_some(),
            gate_threshold: gate.unwrap_or_default().to_bits(),
            active_clusters,
            round_us,
            ..In::default()
        };
        if self.phase != Phase::Traffic {
            self.sink.drain();
        }
        let more = self.phase == Phase::Traffic;
        let draw = || more.then(|| self.generator.draw());
        if let Some((beat, last)) = self.source.drive(&mut self.chance, draw) {
            pins.offer(&beat, last);
        }
        pins.tready = self.sink.drive(&mut self.chance);
        if self.phase == Phase::Read {
            pins.ask = self.reader.drive(self.chance.bool());
        }
        pins
    }

    /// A reset forgets everything, in the hardware and here.
    fn restart(&mut self) {
        self.reset = false;
        self.settings = settings(&mut self.chance, self.queue.gate);
        self.reference = reference(self.queue, self.settings);
        self.source.reset();
        self.sink.reset();
        self.reader = Reader::default();
        self.phase = Phase::Traffic;
    }

    /// The hardware's order within a cycle: an entry ends, the next is locked, an update is decided about.
    fn events(&mut self, cycle: u64, out: &Out) -> Result<(), String> {
        self.reference.observe_used(cycle);
        if out.ended {
            self.reference.end()?;
        }
        if out.begun {
            self.reference.begin()?;
        }
        if out.fate != 0 {
            self.reference.arrive(out.fate)?;
        }
        Ok(())
    }

    fn ends(&mut self, cycle: u64, pins: &In, out: &Out) -> Result<(), String> {
        if let Some((beat, frame)) = self.source.observe(out.s_tready) {
            self.reference.beat_in(cycle, beat);
            if let Some(frame) = frame {
                self.reference.frame_in(frame);
            }
        }
        if let Some(beats) = self.sink.observe(pins.tready, out.offered())? {
            let bytes = bytes_of(&beats).ok_or("a frame leaves with bytes that are not kept")?;
            self.reference.frame_out(&bytes)?;
        }
        Ok(())
    }

    fn advance(&mut self, cycle: u64, pins: &In, out: &Out) -> Result<(), String> {
        match self.phase {
            Phase::Traffic => {}
            Phase::Drain { .. } => {
                let comes = !self.source.is_idle();
                if comes {
                    self.source.load = 1.0;
                }
                let busy = out.tvalid || !self.reference.is_empty();
                if self.phase.drained(cycle, comes, busy, DRAIN)? {
                    self.reference.drained()?;
                }
            }
            Phase::Read => {
                if let Some(counters) = self.reader.observe(TYPE, pins.ask, out.answer)? {
                    same_counters(&NAMES, counters, self.reference.counters)?;
                    for (total, counter) in self.total.iter_mut().zip(counters) {
                        *total += counter;
                    }
                    // The counters go on from here; a reset begins them, and everything, anew.
                    self.reset = true;
                    self.phase = Phase::Traffic;
                }
            }
        }
        Ok(())
    }
}

fn settings(chance: &mut Rng, gate: bool) -> Settings {
    let thresholds = [0.0, 5.0, chance.f64() * 10.0, f64::INFINITY];
    Settings {
        session: chance.u32(..),
        gate: (gate && chance.bool()).then(|| thresholds[chance.usize(..4)]),
        active_clusters: chance.u16(..20),
        round_us: chance.u32(..1 << 20),
    }
}

fn reference(queue: Queue, settings: Settings) -> Reference {
    // The ring for other frames: two of the longest, and eight beats before and behind.
    let beats = 2 * queue.longest.div_ceil(64) + 16;
    Reference::new(settings, queue.slots, beats.next_power_of_two())
}
