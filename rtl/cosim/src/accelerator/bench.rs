//! Drives `iswitch_accelerator` and its reference model.

use crate::Shim;
use crate::accelerator::counters::{COUNTERS, Counters, NAMES, TYPE};
use crate::accelerator::datagram::{Beat, Offered, Shape};
use crate::accelerator::pins::{In, Out};
use crate::accelerator::reference::Reference;
use crate::accelerator::traffic::{Limits, Traffic};
use crate::counters::{Reader, same_counters};
use crate::design::Design;
use crate::ends::{Sink, Source};
use crate::mismatch::{Mismatch, Run};
use crate::phase::Phase;
use fastrand::Rng;

/// A build of `iswitch_accelerator`: its pins and its parameters.
#[derive(Clone, Copy)]
pub struct Accelerator {
    /// The build.
    pub shim: &'static Shim<In, Out>,
    /// `PORTS`.
    pub ports: usize,
    /// `SLOTS`.
    pub slots: u32,
    /// `LANES`: 32-bit words of a beat.
    pub lanes: usize,
    /// `BEATS` of the longest datagram.
    pub beats: usize,
    /// Addresses have to be proved.
    pub proofs: bool,
}

impl Accelerator {
    fn shape(&self) -> Shape {
        Shape { ports: self.ports, bytes: 4 * self.lanes }
    }

    /// Bytes of the longest datagram.
    fn longest(&self) -> usize {
        4 * self.lanes * self.beats
    }

    /// The engine's switch, as after a reset. It draws a secret of its own where addresses have to be proved.
    fn reference(&self, epoch: u8, chance: &mut Rng) -> Reference {
        let secret = self.proofs.then(|| chance.fork());
        Reference::new(self.slots, self.longest(), epoch, secret)
    }
}

/// Cycles between two changes of the traffic.
const SPELL: u64 = 300;
/// Cycles in which everything must have left when nothing comes any more and the sink is always ready: an
/// FBcast or a Help names up to 64 packets, and a few datagrams wait behind it.
const DRAIN: u64 = 3000;

/// Runs both. Datagrams come in and leave at random; now and then nothing comes until all have left, and the
/// counters are read and compared.
///
/// Returns the sums of the counters.
///
/// # Errors
/// The first difference.
pub fn compare(of: Accelerator, run: Run) -> Result<Counters, Mismatch> {
    let mut bench = Bench::new(of, run.seed);
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
    of: Accelerator,
    design: Design<In, Out>,
    chance: Rng,
    traffic: Traffic,
    source: Source<Offered>,
    sink: Sink<Beat>,
    reference: Reference,
    reader: Reader,
    phase: Phase,
    reset: bool,
    epoch: u8,
    /// When the counters were read before, since the reset.
    read: Counters,
    total: Counters,
}

impl Bench {
    fn new(of: Accelerator, seed: u64) -> Self {
        let mut chance = Rng::with_seed(seed);
        let epoch = chance.u8(..);
        let limits = Limits {
            ports: of.ports,
            slots: of.slots.into(),
            shortest: of.lanes - 2,
            longest: of.lanes * of.beats - 2,
        };
        Self {
            of,
            design: Design::new(of.shim, seed),
            traffic: Traffic::new(limits),
            source: Source::new(),
            sink: Sink::new(),
            reference: of.reference(epoch, &mut chance),
            chance,
            reader: Reader::default(),
            phase: Phase::Traffic,
            reset: true,
            epoch,
            read: [0; COUNTERS],
            total: [0; COUNTERS],
        }
    }

    fn cycle(&mut self, cycle: u64) -> Result<(), String> {
        if cycle.is_multiple_of(SPELL) && self.phase == Phase::Traffic {
            self.source.next_spell(&mut self.chance);
            self.sink.next_spell(&mut self.chance);
            self.traffic.next_spell(&mut self.chance);
            if self.chance.u8(..40) == 0 {
                self.phase = Phase::drain(cycle);
            }
        }
        self.reset |= self.chance.u32(..40_000) == 0;
        let pins = self.pins();
        let out = self.design.settle(&pins);
        if self.reset {
            self.restart();
        } else {
            self.ends(&pins, &out)?;
            self.advance(cycle, &pins, &out)?;
        }
        self.design.tick();
        Ok(())
    }

    fn pins(&mut self) -> In {
        let (epoch, proofs) = (self.epoch, self.of.proofs);
        let mut pins = In { rst: self.reset, epoch, proofs, ..In::default() };
        if self.phase != Phase::Traffic {
            self.sink.drain();
        }
        let more = self.phase == Phase::Traffic;
        // The source needs its own chance while the next datagram is drawn.
        let mut gaps = self.chance.fork();
        let draw = || {
            more.then(|| {
                let padding = self.chance.u8(..);
                let datagram = self.traffic.draw(&mut self.chance, &self.reference.view);
                self.of.shape().offer(datagram, padding)
            })
        };
        if let Some((beat, last)) = self.source.drive(&mut gaps, draw) {
            pins.offer(&beat, last);
        }
        pins.tready = self.sink.drive(&mut self.chance);
        if self.phase == Phase::Read {
            pins.ask = self.reader.drive(self.chance.bool());
        }
        pins
    }

    /// A reset forgets everything, in the hardware and here. The number of the first generation is read in it.
    fn restart(&mut self) {
        self.reset = false;
        self.reference = self.of.reference(self.epoch, &mut self.chance);
        self.epoch = self.chance.u8(..);
        self.source.reset();
        self.sink.reset();
        self.reader = Reader::default();
        self.read = [0; COUNTERS];
        self.phase = Phase::Traffic;
    }

    fn ends(&mut self, pins: &In, out: &Out) -> Result<(), String> {
        if let Some(beats) = self.sink.observe(pins.tready, out.offered())? {
            self.reference.left(&self.of.shape().left(&beats)?)?;
        }
        if let Some((_, Some(offered))) = self.source.observe(out.s_tready) {
            self.reference.take(offered.datagram)?;
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
                self.phase.drained(cycle, comes, busy, DRAIN)?;
            }
            Phase::Read => {
                if let Some(counters) = self.reader.observe(TYPE, pins.ask, out.answer)? {
                    same_counters(&NAMES, counters, self.reference.counters())?;
                    let since = counters.iter().zip(self.read).map(|(now, read)| now - read);
                    for (total, more) in self.total.iter_mut().zip(since) {
                        *total += more;
                    }
                    self.read = counters;
                    self.reader = Reader::default();
                    // Often the counters and the generation go on.
                    self.reset = self.chance.u8(..4) == 0;
                    self.phase = Phase::Traffic;
                }
            }
        }
        Ok(())
    }
}
