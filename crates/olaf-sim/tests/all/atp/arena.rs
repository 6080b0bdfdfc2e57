//! A job of ATP as chaos wants it: workers behind one switch, and a server.

use super::job::{Jobs, Setting, TOP, Task, worker};
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_host::collective::atp::Worker;
use olaf_host::collective::{Collective, Failure, OperationId};
use olaf_sim::{Network, Wire};

pub(crate) struct Arena(Jobs);

impl crate::chaos::Arena for Arena {
    fn new(seed: u64, workers: u32, wire: Wire) -> Self {
        let racks = vec![workers];
        let setting = Setting { seed, racks, wire, trunk: wire, ..Setting::default() };
        Self(Jobs::new(setting))
    }
    fn net(&mut self) -> &mut Network {
        &mut self.0.net
    }
    fn worker(end: u32) -> PeerId {
        worker(0, end)
    }
    fn switch() -> PeerId {
        TOP
    }
    fn begin(&mut self, end: u32, lanes: usize, number: u32) {
        self.0.begin(0, end, Task::sum(lanes, number));
    }
    fn run_for(&mut self, time: Duration) {
        self.0.run_for(time);
    }
    fn open(&self) -> usize {
        self.0.open()
    }
    fn give_up(&mut self, end: u32, id: u64) {
        let give_up = |worker: &mut Worker, now| worker.give_up(now, OperationId(id));
        self.0.net.with(worker(0, end), give_up);
    }
    fn ended(&self, end: u32, id: u64, lanes: usize, number: u32) -> Option<Result<bool, Failure>> {
        let ended = self.0.ended.get(&worker(0, end))?.get(&OperationId(id))?;
        let expected = Task::sum(lanes, number).expected(self.0.setting.workers());
        Some(ended.outcome.map(|_| ended.lanes == expected))
    }
    fn last(&self, end: u32, lanes: usize, number: u32) -> Option<Result<bool, Failure>> {
        let (id, _) = self.0.ended.get(&worker(0, end))?.last_key_value()?;
        self.ended(end, id.0, lanes, number)
    }
    fn forget(&mut self, end: u32) {
        self.0.ended.remove(&worker(0, end));
    }
    fn accounts(&self) {
        self.0.accounts();
    }
}
