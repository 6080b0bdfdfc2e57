//! What the arrays of a model are called: a job takes one worker's description of it.

use super::Server;
use super::job::Job;
use crate::push_pull::layout::Layout;
use crate::push_pull::segments::Present;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Refused;
use olaf_engine::{Instant, PeerId};
use olaf_wire::{Address, LAYOUT_PART, LayoutPart, Packet, Session, WorkerId, layout_parts};

/// What a job knows of its arrays.
#[derive(Default)]
pub(super) struct Description {
    pub(super) layout: Option<Layout>,
    coming: Option<Coming>,
}

/// A description on its way.
struct Coming {
    worker: WorkerId,
    session: Session,
    text: Vec<u8>,
    present: Present,
    last_progress: Instant,
}

impl Coming {
    fn is_by(&self, address: &Address) -> bool {
        self.worker == address.worker && self.session == address.session
    }

    fn is_stuck(&self, now: Instant, patience: Duration) -> bool {
        now.since(self.last_progress) >= patience
    }
}

impl Description {
    /// The first part that the job lacks and wants of this worker; `None`: none of it.
    pub(super) fn wanted(
        &self,
        now: Instant,
        address: &Address,
        patience: Duration,
    ) -> Option<u32> {
        if self.layout.is_some() {
            return None;
        }
        match &self.coming {
            Some(coming) if coming.is_by(address) => coming.present.first_missing(),
            Some(coming) if !coming.is_stuck(now, patience) => None,
            _ => Some(0),
        }
    }

    /// Takes in one part; the whole text when it is there.
    fn take(
        &mut self,
        now: Instant,
        part: &LayoutPart<'_>,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, Refused> {
        if self.layout.is_some() {
            return Err(Refused::NotAsked);
        }
        let total = part.total as usize;
        let coming = self.coming.take().filter(|coming| {
            let same = coming.is_by(&part.address) && coming.text.len() == total;
            // Of a worker that describes its model anew, nothing told before is of use.
            same || !coming.is_by(&part.address) && !coming.is_stuck(now, patience)
        });
        let coming = self.coming.insert(coming.unwrap_or_else(|| Coming {
            worker: part.address.worker,
            session: part.address.session,
            text: vec![0; total],
            present: Present::none_of(layout_parts(total)),
            last_progress: now,
        }));
        if !coming.is_by(&part.address) {
            return Err(Refused::NotAsked);
        }
        if !coming.present.insert(part.part) {
            return Err(Refused::Duplicate);
        }
        coming.last_progress = now;
        let start = part.part as usize * LAYOUT_PART;
        coming.text[start..start + part.text.len()].copy_from_slice(part.text);
        if !coming.present.is_complete() {
            return Ok(None);
        }
        Ok(self.coming.take().map(|coming| coming.text))
    }
}

impl Job {
    fn take_layout(
        &mut self,
        now: Instant,
        from: PeerId,
        part: &LayoutPart<'_>,
        patience: Duration,
    ) -> Result<(), Refused> {
        let member = self.member(from, &part.address)?;
        member.liveness.note(now);
        if member.bad_layout {
            return Err(Refused::NotAsked);
        }
        let Some(text) = self.description.take(now, part, patience)? else { return Ok(()) };
        match Layout::parse(&text, self.shape.parameters) {
            Ok(layout) => {
                self.description.layout = Some(layout);
                Ok(())
            }
            Err(_) => {
                // It would say the same again.
                self.member(from, &part.address)?.bad_layout = true;
                Err(Refused::BadLayout)
            }
        }
    }
}

impl Server {
    pub(super) fn handle_layout(
        &mut self,
        now: Instant,
        from: PeerId,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let part = LayoutPart::parse(packet).map_err(Refused::Malformed)?;
        let patience = self.config.silent_after;
        let job = self.jobs.get_mut(&part.address.job).ok_or(Refused::UnknownJob)?;
        job.take_layout(now, from, &part, patience)
    }

    /// What the arrays of a job's model are called, where a worker has said so.
    #[must_use]
    pub fn layout(&self, job: olaf_wire::JobId) -> Option<&Layout> {
        self.jobs.get(&job)?.description.layout.as_ref()
    }
}
