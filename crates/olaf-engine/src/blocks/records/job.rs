//! A job record (Trio-ML, Figure 17).

use super::progress::Progress;
use super::sources::Sources;
use alloc::vec;
use alloc::vec::Vec;

/// What a job record is made of.
#[derive(Clone, Copy, Debug)]
pub struct JobSpec {
    /// The sources of the job: `src_mask`.
    pub sources: Sources,
    /// Incomplete blocks at most: `block_cnt_max`.
    ///
    /// differs: the paper prints 12 bits, and a window of up to 65,535 packets (§5), which 12 bits
    /// cannot count. `block_curr_cnt` has 16 bits: so has this.
    pub block_cnt_max: u16,
    /// Gradients of a block at most: `block_grad_max`.
    pub block_grad_max: u16,
    /// Visits of the timers after which a block without a new piece ages out; 0: never. `block_exp`
    /// in units of the timers' interval.
    pub visits: u16,
    /// The first generation.
    pub first: u16,
}

/// What a source has taken part in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceCounts {
    /// Pieces in sums.
    pub pieces: u64,
    /// Pieces whose block went without them.
    pub late: u64,
    /// Blocks that aged out without it: the straggler events of §5.
    pub events: u64,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    /// `src_mask`.
    pub(super) sources: Sources,
    /// Permanent stragglers: blocks do not wait for them.
    pub(super) excused: Sources,
    pub(super) block_cnt_max: u16,
    pub(super) block_grad_max: u16,
    pub(super) visits: u16,
    /// `block_curr_cnt`: incomplete blocks.
    pub(super) open: u32,
    /// Records, with those that keep a result.
    pub(super) used: u32,
    /// `block_total_cnt`.
    pub(super) total: u64,
    pub(super) progress: Progress,
    /// For each source: it holds all results before this generation, and of this generation before
    /// this block.
    pub(super) holds: Vec<(u16, u32)>,
    /// Results before this one are released.
    pub(super) released: (u16, u32),
    pub(super) counts: Vec<SourceCounts>,
}

/// Records of a job for each incomplete block it may have. Workers send at most a window ahead of the
/// first result that they lack, and a window is `block_cnt_max` blocks. Results that somebody may lack
/// therefore take two windows, and those that nobody has said to hold yet a part of one.
pub(super) const RECORDS_PER_BLOCK: u32 = 4;

impl Job {
    pub(super) fn new(spec: &JobSpec) -> Self {
        let sources = spec.sources.iter().last().map_or(0, |last| usize::from(last) + 1);
        let span = RECORDS_PER_BLOCK * u32::from(spec.block_cnt_max);
        Self {
            sources: spec.sources,
            excused: Sources::default(),
            block_cnt_max: spec.block_cnt_max,
            block_grad_max: spec.block_grad_max,
            visits: spec.visits,
            open: 0,
            used: 0,
            total: 0,
            progress: Progress::new(spec.first, span),
            holds: vec![(spec.first, 0); sources],
            released: (spec.first, 0),
            counts: vec![SourceCounts::default(); sources],
        }
    }

    /// Returns true if there is room for one more block.
    pub(super) fn has_room(&self) -> bool {
        let most = u32::from(self.block_cnt_max);
        self.open < most && self.used < most * RECORDS_PER_BLOCK
    }

    /// The sources that a block waits for.
    pub(super) fn awaited(&self) -> Sources {
        self.sources.without(&self.excused)
    }

    /// How far behind the first generation a place is, in serial order; before it: at its start.
    fn rank(&self, (generation, block): (u16, u32)) -> (u16, u32) {
        let ahead = generation.wrapping_sub(self.progress.first());
        if ahead < 1 << 15 { (ahead, block) } else { (0, 0) }
    }

    /// Notes what a source holds; an older word of its changes nothing.
    pub(super) fn note_holds(&mut self, source: u8, holds: (u16, u32)) {
        let Some(known) = self.holds.get(usize::from(source)).copied() else { return };
        if self.rank(known) < self.rank(holds) {
            self.holds[usize::from(source)] = holds;
        }
    }

    /// Blocks wait for a source again. What is released is gone for it too.
    pub(super) fn welcome_back(&mut self, source: u8) {
        self.excused.remove(source);
        self.note_holds(source, self.released);
    }

    /// What every source holds that blocks wait for.
    pub(super) fn held_by_all(&self) -> Option<(u16, u32)> {
        let awaited = self.awaited();
        let holds = awaited.iter().map(|source| self.holds[usize::from(source)]);
        holds.min_by_key(|holds| self.rank(*holds))
    }

    /// Returns true if the results of a place are released.
    pub(super) fn is_released(&self, place: (u16, u32)) -> bool {
        let ahead = place.0.wrapping_sub(self.progress.first());
        ahead >= 1 << 15 || self.rank(place) < self.rank(self.released)
    }

    pub(super) fn counts_of(&mut self, source: u8) -> Option<&mut SourceCounts> {
        self.counts.get_mut(usize::from(source))
    }
}
