//! What happened to a worker, for its driver.

use alloc::collections::VecDeque;
use olaf_engine::WorkerEvent;

/// Events kept for a driver that does not fetch them.
const LIMIT: usize = 1024;

/// The newest events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<WorkerEvent>,
}

impl Events {
    pub(crate) fn tell(&mut self, event: WorkerEvent) {
        if self.queue.len() == LIMIT {
            self.queue.pop_front();
        }
        self.queue.push_back(event);
    }

    pub(crate) fn poll(&mut self) -> Option<WorkerEvent> {
        self.queue.pop_front()
    }
}
