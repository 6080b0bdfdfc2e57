//! Notices to workers that an update of their cluster was taken in: transmission control needs
//! them.

use super::Switch;
use super::ports::Message;
use crate::ids::WorkerId;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::{Address, Notice, Update};

impl Switch {
    /// Tells the workers of a cluster that asked for it what was taken in: only the first switch
    /// does, and of a model of several segments once.
    pub(super) fn notify(&mut self, now: Instant, update: &Update) {
        if update.hops > 0 || update.segment > 0 {
            return;
        }
        let address = update.address;
        let Some(job) = self.jobs.get_mut(&address.job) else { return };
        let Some(cluster) = job.clusters.get_mut(&address.cluster) else { return };
        let here = |worker: &WorkerId| {
            job.members.get(worker).filter(|member| member.cluster == address.cluster)
        };
        cluster.wants_notices.retain(|worker| here(worker).is_some());
        let told = cluster.wants_notices.iter().filter_map(|worker| {
            let proven = |peer| self.proofs.is_proven(&(address.job, peer));
            let member = here(worker).filter(|m| !m.behind_switch && proven(m.peer))?;
            Some((member.place(), Address { worker: *worker, session: member.session, ..address }))
        });
        for (place, address) in told.collect::<Vec<_>>() {
            let notice = Notice { address, taken_newest_ns: update.generated_newest_ns };
            self.say(now, place, Message::Notice(notice));
        }
    }
}
