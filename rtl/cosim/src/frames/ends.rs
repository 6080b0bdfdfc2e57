//! The two ends of the bench: a source of frames with gaps, and a sink with pauses.

use crate::frames::frame::{Beat, Frame};
use crate::frames::generator::Generator;
use crate::frames::pins::{In, Out};
use fastrand::Rng;

/// Offers frames beat by beat. A beat that is offered stays until it is taken.
pub(super) struct Source {
    generator: Generator,
    frame: Option<Frame>,
    /// Beats of it that were taken.
    taken: usize,
    /// The beat is on the pins.
    offered: bool,
    /// Chance of a beat in a cycle.
    pub(super) load: f64,
}

impl Source {
    pub(super) fn new(generator: Generator) -> Self {
        Self { generator, frame: None, taken: 0, offered: false, load: 1.0 }
    }

    pub(super) fn next_spell(&mut self, chance: &mut Rng) {
        self.load = [0.05, 0.5, 0.9, 1.0, 1.0, 1.0][chance.usize(..6)];
        self.generator.next_spell();
    }

    /// Puts a beat on the pins. Without `more`, no new frame is begun.
    pub(super) fn drive(&mut self, chance: &mut Rng, more: bool, pins: &mut In) {
        if self.frame.is_none() && more {
            self.frame = Some(self.generator.draw());
        }
        self.offered |= self.frame.is_some() && (self.load >= 1.0 || chance.f64() < self.load);
        if let (Some(frame), true) = (&self.frame, self.offered) {
            pins.offer(&frame.beats[self.taken], self.taken + 1 == frame.beats.len());
        }
    }

    /// After [`Source::drive`]: the number of the beat that was taken, and with the last one the frame.
    pub(super) fn observe(&mut self, pins: &In, out: &Out) -> Option<(usize, Option<Frame>)> {
        if !(pins.tvalid && out.s_tready) {
            return None;
        }
        self.offered = false;
        let beat = self.taken;
        self.taken += 1;
        if !pins.tlast {
            return Some((beat, None));
        }
        self.taken = 0;
        Some((beat, self.frame.take()))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.frame.is_none()
    }

    pub(super) fn reset(&mut self) {
        (self.frame, self.taken, self.offered) = (None, 0, false);
    }
}

/// Takes beats, and checks that an offered one stays as it is.
pub(super) struct Sink {
    beats: Vec<Beat>,
    waiting: Option<(Beat, bool)>,
    /// Chance of being ready in a cycle.
    pub(super) ready: f64,
    /// Cycles left in which it is not ready at all.
    pause: u32,
}

impl Sink {
    pub(super) fn new() -> Self {
        Self { beats: Vec::new(), waiting: None, ready: 1.0, pause: 0 }
    }

    pub(super) fn next_spell(&mut self, chance: &mut Rng) {
        self.ready = [0.05, 0.3, 0.9, 1.0, 1.0, 1.0][chance.usize(..6)];
        self.pause = if chance.u8(..6) == 0 { chance.u32(..600) } else { 0 };
    }

    pub(super) fn drive(&mut self, chance: &mut Rng, pins: &mut In) {
        self.pause = self.pause.saturating_sub(1);
        pins.tready = self.pause == 0 && (self.ready >= 1.0 || chance.f64() < self.ready);
    }

    /// After [`Sink::drive`]: the beats of a frame whose last beat was taken.
    pub(super) fn observe(&mut self, pins: &In, out: &Out) -> Result<Option<Vec<Beat>>, String> {
        let offered = out.tvalid.then(|| (out.beat(), out.tlast));
        if self.waiting.is_some() && offered != self.waiting {
            return Err(format!("{:?} was offered, and then {offered:?}", self.waiting));
        }
        self.waiting = offered.filter(|_| !pins.tready);
        if let (Some((beat, last)), true) = (offered, pins.tready) {
            self.beats.push(beat);
            if last {
                return Ok(Some(std::mem::take(&mut self.beats)));
            }
        }
        Ok(None)
    }

    pub(super) fn drain(&mut self) {
        (self.ready, self.pause) = (1.0, 0);
    }

    pub(super) fn reset(&mut self) {
        self.beats.clear();
        self.waiting = None;
    }
}
