//! Models on their way down: put together version by version, never torn.

use crate::push_pull::segments::Present;
use alloc::vec;
use alloc::vec::Vec;
use olaf_engine::party::Shape;
use olaf_engine::{Instant, Refused};
use olaf_wire::offsets::LANE;
use olaf_wire::update::read_lanes;
use olaf_wire::{Address, Answer, Fetch};

/// A complete model: every parameter of one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The server's count of models.
    pub version: u32,
    /// The parameters.
    pub lanes: Vec<f32>,
}

/// The newest complete model, and at most two on their way: the one that began first, so that
/// frequent versions do not keep each other from ever being complete, and the newest.
#[derive(Debug, Default)]
pub(super) struct Models {
    newest: Option<Model>,
    first: Option<Assembly>,
    next: Option<Assembly>,
    /// The server's incarnation before this one, and when this one was heard first.
    old_epoch: u32,
    renewed_at: Instant,
    newest_seen: u32,
    pub(super) completed: u64,
    pub(super) missed: u64,
    spare: Vec<Vec<f32>>,
    /// A whole model waits until it is accepted or refused: its signature is checked first.
    pub(super) checked: bool,
    /// Whole models that wait, at most two: the first that came, so that each wait ends, and the last.
    held: Vec<Held>,
    /// The newest version that was accepted in this life of the server. The server has no older one
    /// as its newest any more, whatever a switch says.
    accepted: u32,
}

/// A whole model that waits for its signature.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) model: Model,
    pub(super) since: Instant,
}

#[derive(Debug)]
struct Assembly {
    version: u32,
    lanes: Vec<f32>,
    present: Present,
}

impl Models {
    pub(super) const fn newest(&self) -> Option<&Model> {
        self.newest.as_ref()
    }

    /// The newest version that anything was heard of.
    pub(super) fn newest_version_seen(&self) -> u32 {
        self.newest_seen
    }

    pub(super) fn is_old_epoch(&self, epoch: u32) -> bool {
        self.old_epoch != 0 && self.old_epoch == epoch
    }

    /// When the server's present incarnation was heard first; 0 for its first.
    pub(super) const fn renewed_at(&self) -> Instant {
        self.renewed_at
    }

    /// The server began a new incarnation: what was on its way from the old one never comes.
    pub(super) fn new_epoch(&mut self, now: Instant, old: u32) {
        (self.old_epoch, self.renewed_at) = (old, now);
        self.missed += u64::from(self.first.is_some()) + u64::from(self.next.is_some());
        (self.first, self.next) = (None, None);
        self.missed += self.held.len() as u64;
        self.held.clear();
        self.accepted = 0;
    }

    /// The server is in its incarnation of before again: a switch said otherwise, or sent to another server meanwhile.
    pub(super) fn is_back(&mut self) {
        self.old_epoch = 0;
    }

    /// The server has no version above `version`: forgets what is here of later ones. A version that the
    /// server has signed stays. Returns the highest version that the server may have.
    pub(super) fn forget_above(&mut self, version: u32) -> u32 {
        let version = version.max(self.accepted);
        self.newest_seen = version;
        let (kept, later) = core::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.model.version <= version);
        self.held = kept;
        let later: Vec<Held> = later;
        self.missed += later.len() as u64;
        if let Some(model) = self.newest.take_if(|model| model.version > version) {
            self.spare.push(model.lanes);
        }
        for assembly in [&mut self.first, &mut self.next] {
            if let Some(assembly) = assembly.take_if(|assembly| assembly.version > version) {
                self.missed += 1;
                self.spare.push(assembly.lanes);
            }
        }
        self.first = self.first.take().or_else(|| self.next.take());
        self.spare.truncate(2);
        version
    }

    /// The version that began first of those on their way.
    pub(super) fn awaited(&self) -> Option<u32> {
        self.first.as_ref().map(|assembly| assembly.version)
    }

    pub(super) const fn is_assembling(&self) -> bool {
        self.first.is_some()
    }

    /// Wants `version` where none of its segments is on its way. Returns whether there is now something
    /// to fetch.
    pub(super) fn want(&mut self, shape: Shape, version: u32) -> bool {
        self.newest_seen = self.newest_seen.max(version);
        let here = self.newest.iter().chain(self.held.iter().map(|held| &held.model));
        if self.is_assembling()
            || here.max_by_key(|m| m.version).is_some_and(|m| m.version >= version)
        {
            return false;
        }
        self.first = Some(self.begin(shape, version));
        true
    }

    /// Takes in one segment.
    pub(super) fn take(
        &mut self,
        now: Instant,
        shape: Shape,
        answer: &Answer,
        lanes: &[u8],
    ) -> Result<(), Refused> {
        if answer.parameters != shape.parameters
            || answer.segments != shape.segments()
            || shape.lanes(answer.segment) * LANE != lanes.len()
        {
            return Err(Refused::WrongSize);
        }
        if !olaf_engine::lanes::all_finite(lanes) {
            return Err(Refused::NonFinite);
        }
        let version = answer.model_version;
        self.newest_seen = self.newest_seen.max(version);
        match self.newest.as_ref().map(|model| model.version) {
            // What is here already: the answer to an update that changed nothing.
            Some(newest) if newest == version => return Ok(()),
            Some(newest) if newest > version => return Err(Refused::Duplicate),
            _ => {}
        }
        if self.held.iter().any(|held| held.model.version == version) {
            return Ok(());
        }
        let assembly = self.assembly(shape, version).ok_or(Refused::Duplicate)?;
        if !assembly.present.insert(answer.segment) {
            return Err(Refused::Duplicate);
        }
        read_lanes(lanes, &mut assembly.lanes[shape.range(answer.segment)]);
        if assembly.present.is_complete() {
            self.complete(now, version);
        }
        Ok(())
    }

    /// What to ask for, the first begun first.
    pub(super) fn missing(&self, address: Address) -> impl Iterator<Item = Fetch> + '_ {
        let assemblies = self.first.iter().chain(&self.next);
        assemblies.flat_map(move |assembly| {
            assembly.present.missing_windows().map(move |(first, mask)| Fetch {
                address,
                version: assembly.version,
                first,
                mask,
                have_version: self.newest.as_ref().map_or(0, |model| model.version),
            })
        })
    }

    /// Returns true if all segments that were asked for have come.
    pub(super) fn has(&self, fetch: &Fetch) -> bool {
        let assembly = self.first.iter().chain(&self.next).find(|a| a.version == fetch.version);
        assembly.is_none_or(|a| fetch.segments().all(|segment| a.present.contains(segment)))
    }

    /// The server has nothing older than this version any more.
    pub(super) fn give_up_below(&mut self, version: u32) {
        if self.first.as_ref().is_some_and(|assembly| assembly.version < version) {
            let given_up = self.first.take();
            self.recycle(given_up);
            self.first = self.next.take();
        }
    }

    fn assembly(&mut self, shape: Shape, version: u32) -> Option<&mut Assembly> {
        let at = |assembly: &Option<Assembly>| assembly.as_ref().map(|a| a.version);
        let (first, next) = (at(&self.first), at(&self.next));
        if first == Some(version) {
            return self.first.as_mut();
        }
        if next == Some(version) {
            return self.next.as_mut();
        }
        // If no segment of the wanted version has come, any version that comes replaces the wish.
        let unbegun = self.first.as_ref().is_some_and(|a| a.present.is_empty());
        if first.is_none() || (unbegun && first < Some(version)) {
            let begun = self.begin(shape, version);
            return Some(self.first.insert(begun));
        }
        if next.is_none_or(|next| next < version) && first < Some(version) {
            let begun = self.begin(shape, version);
            let dropped = self.next.replace(begun);
            self.recycle(dropped);
            return self.next.as_mut();
        }
        None
    }

    fn begin(&mut self, shape: Shape, version: u32) -> Assembly {
        let parameters = shape.parameters as usize;
        let mut lanes = self.spare.pop().unwrap_or_default();
        if lanes.len() != parameters {
            lanes = vec![0.0; parameters];
        }
        Assembly { version, lanes, present: Present::none_of(shape.segments()) }
    }

    fn recycle(&mut self, dropped: Option<Assembly>) {
        if let Some(assembly) = dropped {
            self.missed += 1;
            self.spare.push(assembly.lanes);
        }
    }

    /// Returns true if the newest model was accepted in this life of the server.
    pub(super) fn is_of_this_life(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.version == self.accepted)
    }

    /// The whole models that wait, the first that came first.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// The signature of a held model is right: it is the newest. Older ones that wait are of no use.
    pub(super) fn accept(&mut self, version: u32) {
        let Some(at) = self.held.iter().position(|held| held.model.version == version) else {
            return;
        };
        let accepted = self.held.remove(at).model;
        self.accepted = version;
        self.completed += 1;
        self.refuse_below(version);
        for assembly in [&mut self.first, &mut self.next] {
            if let Some(older) = assembly.take_if(|assembly| assembly.version <= version) {
                self.missed += 1;
                self.spare.push(older.lanes);
            }
        }
        self.first = self.first.take().or_else(|| self.next.take());
        if let Some(old) = self.newest.replace(accepted) {
            self.spare.push(old.lanes);
        }
        self.spare.truncate(2);
    }

    /// A held model is not taken.
    pub(super) fn refuse(&mut self, version: u32) {
        self.refuse_where(|of| of == version);
    }

    /// Nor are any held models that are older than this version.
    pub(super) fn refuse_below(&mut self, version: u32) {
        self.refuse_where(|of| of < version);
    }

    fn refuse_where(&mut self, is_refused: impl Fn(u32) -> bool) {
        let before = self.held.len();
        self.held.retain(|held| !is_refused(held.model.version));
        self.missed += (before - self.held.len()) as u64;
    }

    fn hold(&mut self, model: Model, since: Instant) {
        if self.held.len() == 2 {
            let last = self.held.remove(1);
            self.missed += 1;
            self.spare.push(last.model.lanes);
        }
        self.held.push(Held { model, since });
    }

    fn complete(&mut self, now: Instant, version: u32) {
        let first = self.first.take();
        let next = self.next.take();
        let (done, other) = match first {
            Some(first) if first.version == version => (Some(first), next),
            first => (next, first),
        };
        let Some(done) = done else { return };
        // Only what is newer than the complete one is still of use; one that waits for its signature
        // may be forged.
        match other {
            Some(other) if other.version > version || self.checked => self.first = Some(other),
            other => self.recycle(other),
        }
        let model = Model { version, lanes: done.lanes };
        if self.checked {
            self.hold(model, now);
        } else {
            self.completed += 1;
            if let Some(old) = self.newest.replace(model) {
                self.spare.push(old.lanes);
            }
        }
        self.spare.truncate(2);
    }
}
