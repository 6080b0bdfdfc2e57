//! What chaos needs of a job of sums, whatever its engine.

use super::MS;
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_host::collective::Failure;
use olaf_sim::{Network, Wire};

/// A job of workers around one switch. Workers and operations count from 0.
pub(crate) trait Arena {
    fn new(seed: u64, workers: u32, wire: Wire) -> Self;
    fn net(&mut self) -> &mut Network;
    fn worker(end: u32) -> PeerId;
    fn switch() -> PeerId;
    /// A living worker begins a sum of that many lanes.
    fn begin(&mut self, end: u32, lanes: usize, number: u32);
    fn run_for(&mut self, time: Duration);
    fn open(&self) -> usize;
    fn give_up(&mut self, end: u32, id: u64);
    /// How that operation ended, and whether its lanes are the sum of all; none: it has not.
    fn ended(&self, end: u32, id: u64, lanes: usize, number: u32) -> Option<Result<bool, Failure>>;
    /// The last operation that ended at a worker, as `ended`.
    fn last(&self, end: u32, lanes: usize, number: u32) -> Option<Result<bool, Failure>>;
    /// Forgets what ended at a worker: operations of its next life have the same numbers.
    fn forget(&mut self, end: u32);
    fn accounts(&self);

    /// Runs until nothing is open, at most for that long; whether nothing is.
    fn ends_within(&mut self, time: Duration) -> bool {
        let until = self.net().now() + time;
        while self.open() > 0 {
            if self.net().now() >= until {
                return false;
            }
            self.run_for(MS);
        }
        true
    }
}

/// An [`Arena`] of the module's `Job`, `Setting` and `Task`, whose worker is of that type.
macro_rules! arena {
    ($worker:ty) => {
        pub(crate) struct Arena(job::Job);

        impl crate::chaos::Arena for Arena {
            fn new(seed: u64, workers: u32, wire: olaf_sim::Wire) -> Self {
                let setting = job::Setting { seed, workers, wire, ..job::Setting::default() };
                Self(job::Job::new(setting))
            }
            fn net(&mut self) -> &mut olaf_sim::Network {
                &mut self.0.net
            }
            fn worker(end: u32) -> olaf_engine::PeerId {
                job::peer(end)
            }
            fn switch() -> olaf_engine::PeerId {
                job::SWITCH
            }
            fn begin(&mut self, end: u32, lanes: usize, number: u32) {
                self.0.begin(end, job::Task::sum(lanes, number));
            }
            fn run_for(&mut self, time: core::time::Duration) {
                self.0.run_for(time);
            }
            fn open(&self) -> usize {
                self.0.open()
            }
            fn give_up(&mut self, end: u32, id: u64) {
                use olaf_host::collective::{Collective, OperationId};
                let give_up = |worker: &mut $worker, now| worker.give_up(now, OperationId(id));
                self.0.net.with(job::peer(end), give_up);
            }
            fn ended(
                &self,
                end: u32,
                id: u64,
                lanes: usize,
                number: u32,
            ) -> Option<Result<bool, olaf_host::collective::Failure>> {
                let id = olaf_host::collective::OperationId(id);
                let ended = self.0.ended.get(&job::peer(end))?.get(&id)?;
                let all: Vec<u32> = (0..self.0.setting.workers).collect();
                let expected = job::Task::sum(lanes, number).expected(&all);
                Some(ended.outcome.map(|_| ended.lanes == expected))
            }
            fn last(
                &self,
                end: u32,
                lanes: usize,
                number: u32,
            ) -> Option<Result<bool, olaf_host::collective::Failure>> {
                let (id, _) = self.0.ended.get(&job::peer(end))?.last_key_value()?;
                self.ended(end, id.0, lanes, number)
            }
            fn forget(&mut self, end: u32) {
                self.0.ended.remove(&job::peer(end));
            }
            fn accounts(&self) {
                self.0.accounts();
            }
        }
    };
}
pub(crate) use arena;
