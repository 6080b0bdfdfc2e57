//! The two ends of a bench: a source with gaps, and a sink with pauses.

use fastrand::Rng;

/// What moves beat by beat.
pub(crate) trait Beats {
    /// What moves in a cycle.
    type Beat: Copy;
    /// At least one.
    fn beats(&self) -> &[Self::Beat];
}

/// Offers frames beat by beat. A beat that is offered stays until it is taken.
pub(crate) struct Source<F> {
    frame: Option<F>,
    /// Beats of it that were taken.
    taken: usize,
    /// The beat is on the pins.
    offered: bool,
    /// Chance of a beat in a cycle.
    pub(crate) load: f64,
}

impl<F: Beats> Source<F> {
    pub(crate) fn new() -> Self {
        Self { frame: None, taken: 0, offered: false, load: 1.0 }
    }

    pub(crate) fn next_spell(&mut self, chance: &mut Rng) {
        self.load = [0.05, 0.5, 0.9, 1.0, 1.0, 1.0][chance.usize(..6)];
    }

    /// The beat that is on the pins in this cycle, and whether it is the last one of its frame. `draw` gives the
    /// next frame, if there is to be one.
    pub(crate) fn drive(
        &mut self,
        chance: &mut Rng,
        draw: impl FnOnce() -> Option<F>,
    ) -> Option<(F::Beat, bool)> {
        if self.frame.is_none() {
            self.frame = draw();
        }
        self.offered |= self.frame.is_some() && (self.load >= 1.0 || chance.f64() < self.load);
        let frame = self.frame.as_ref().filter(|_| self.offered)?;
        Some((frame.beats()[self.taken], self.taken + 1 == frame.beats().len()))
    }

    /// After [`Source::drive`], if the hardware was `ready`: the number of the beat that was taken, and with the
    /// last one the frame.
    pub(crate) fn observe(&mut self, ready: bool) -> Option<(usize, Option<F>)> {
        if !(self.offered && ready) {
            return None;
        }
        self.offered = false;
        let beat = self.taken;
        self.taken += 1;
        if self.taken < self.frame.as_ref().map_or(0, |frame| frame.beats().len()) {
            return Some((beat, None));
        }
        self.taken = 0;
        Some((beat, self.frame.take()))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.frame.is_none()
    }

    pub(crate) fn reset(&mut self) {
        (self.frame, self.taken, self.offered) = (None, 0, false);
    }
}

/// Takes beats, and checks that an offered one stays as it is.
pub(crate) struct Sink<B> {
    beats: Vec<B>,
    waiting: Option<(B, bool)>,
    /// Chance of being ready in a cycle.
    ready: f64,
    /// Cycles left in which it is not ready at all.
    pause: u32,
}

impl<B: Copy + PartialEq + std::fmt::Debug> Sink<B> {
    pub(crate) fn new() -> Self {
        Self { beats: Vec::new(), waiting: None, ready: 1.0, pause: 0 }
    }

    pub(crate) fn next_spell(&mut self, chance: &mut Rng) {
        self.ready = [0.05, 0.3, 0.9, 1.0, 1.0, 1.0][chance.usize(..6)];
        self.pause = if chance.u8(..6) == 0 { chance.u32(..600) } else { 0 };
    }

    /// Whether it is ready in this cycle.
    pub(crate) fn drive(&mut self, chance: &mut Rng) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0 && (self.ready >= 1.0 || chance.f64() < self.ready)
    }

    /// After [`Sink::drive`], which said `ready`: the beats of a frame whose last beat was taken. `offered` is the
    /// hardware's beat, and whether it is the last one of its frame.
    pub(crate) fn observe(
        &mut self,
        ready: bool,
        offered: Option<(B, bool)>,
    ) -> Result<Option<Vec<B>>, String> {
        if self.waiting.is_some() && offered != self.waiting {
            return Err(format!("{:?} was offered, and then {offered:?}", self.waiting));
        }
        self.waiting = offered.filter(|_| !ready);
        if let (Some((beat, last)), true) = (offered, ready) {
            self.beats.push(beat);
            if last {
                return Ok(Some(std::mem::take(&mut self.beats)));
            }
        }
        Ok(None)
    }

    pub(crate) fn drain(&mut self) {
        (self.ready, self.pause) = (1.0, 0);
    }

    pub(crate) fn reset(&mut self) {
        self.beats.clear();
        self.waiting = None;
    }
}
