//! The surroundings of the jobs that a sharing policy looks at.

use super::course::Course;
use super::running::Running;
use super::sharers::JobIndex;
use olaf_sched::sharing::Surroundings;

/// What the cluster knows of those that a job's policy looks at.
pub(super) struct Around<'a> {
    pub(super) running: &'a [Option<Box<Running>>],
    pub(super) rivals: &'a [JobIndex],
    pub(super) asking: JobIndex,
}

impl Around<'_> {
    fn of(&self, job: JobIndex) -> &Running {
        self.running[job as usize].as_deref().expect("a rival runs")
    }
}

impl Surroundings for Around<'_> {
    fn conflict(&self, a: usize, b: usize) -> bool {
        self.of(self.rivals[a]).rivals.binary_search(&self.rivals[b]).is_ok()
    }

    fn free_ns(&self, rival: usize) -> u64 {
        let others = self.of(self.rivals[rival]).rivals.iter().filter(|&&job| job != self.asking);
        let uses = others.map(|&job| &self.of(job).course).filter(|course| course.in_network());
        uses.filter_map(Course::running_until_ns).max().unwrap_or(0)
    }
}
