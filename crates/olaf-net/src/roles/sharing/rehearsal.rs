//! What stands for an all-reduce where no gradients are summed: nobody ends it before all hosts of
//! the job have launched it, and from then on it takes as long as one of its size in its mode.
//!
//! Each host says [`Here`] to the others when it launches, again while it waits, and in answer to a
//! host that is behind. The mode is said too, so that hosts that differ notice.

use olaf_sched::JobId;
use olaf_sched::protocol::Launch;
use olaf_wire::mina::Here;
use std::collections::VecDeque;

/// One host's part in the all-reduces of its job.
#[derive(Clone, Debug)]
pub(super) struct Rehearsal {
    job: JobId,
    rank: u16,
    /// By rank: the number of all-reduces that the host has launched.
    launched: Vec<u64>,
    /// The last all-reduce that this host launched.
    last: Option<Launch>,
    /// All-reduces that another host launched in another mode. There must be none.
    pub(super) mixed: u64,
    out: VecDeque<(u16, Here)>,
}

impl Rehearsal {
    pub(super) fn new(job: JobId, rank: u16, hosts: u16) -> Self {
        let launched = vec![0; usize::from(hosts)];
        Self { job, rank, launched, last: None, mixed: 0, out: VecDeque::new() }
    }

    /// This host launches.
    pub(super) fn launch(&mut self, launch: Launch) {
        self.last = Some(launch);
        self.saw(self.rank, launch.index);
    }

    /// Says to all other hosts what this host launched last.
    pub(super) fn say(&mut self) {
        let Some(last) = self.last else { return };
        let hosts = u16::try_from(self.launched.len()).expect("new() took a u16");
        for rank in (0..hosts).filter(|rank| *rank != self.rank) {
            self.out.push_back((rank, self.here(last, false)));
        }
    }

    /// Another host says what it launched; false where that cannot be. A host that is behind gets an
    /// answer.
    ///
    /// No all-reduce ends before all hosts have launched it, so a host is ahead by one at most. A larger
    /// index is forged: the host would count as there for ever. Before the first launch here, nothing is
    /// believed: hosts that wait say it again, and answer this host's first message.
    pub(super) fn handle(&mut self, here: &Here) -> bool {
        let Some(last) = self.last else { return true };
        if here.index > last.index.saturating_add(1) {
            return false;
        }
        self.saw(here.rank, here.index);
        self.mixed += u64::from(last.index == here.index && last.in_network != here.in_network);
        if last.index >= here.index && !here.answer {
            self.out.push_back((here.rank, self.here(last, true)));
        }
        true
    }

    /// The next message and the rank of its receiver.
    pub(super) fn poll_transmit(&mut self) -> Option<(u16, Here)> {
        self.out.pop_front()
    }

    /// The first host that has not launched this all-reduce.
    pub(super) fn missing(&self, index: u64) -> Option<u16> {
        (0..).zip(&self.launched).find(|(_, launched)| **launched <= index).map(|(rank, _)| rank)
    }

    fn saw(&mut self, rank: u16, index: u64) {
        if let Some(launched) = self.launched.get_mut(usize::from(rank)) {
            *launched = (*launched).max(index.saturating_add(1));
        }
    }

    fn here(&self, launch: Launch, answer: bool) -> Here {
        let Launch { index, in_network } = launch;
        Here { job: self.job, rank: self.rank, index, in_network, answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(3);

    fn of_other(index: u64, in_network: bool) -> Here {
        Here { job: JOB, rank: 1, index, in_network, answer: false }
    }

    #[test]
    fn another_mode_is_noticed_and_a_missing_host_is_named() {
        let mut rehearsal = Rehearsal::new(JOB, 0, 2);
        rehearsal.launch(Launch { index: 7, in_network: false });
        assert_eq!(rehearsal.missing(7), Some(1));
        rehearsal.handle(&of_other(7, true));
        assert_eq!(
            (rehearsal.mixed, rehearsal.missing(7), rehearsal.missing(8)),
            (1, None, Some(0))
        );
    }

    #[test]
    fn a_host_that_says_to_be_far_ahead_is_not_believed() {
        let mut rehearsal = Rehearsal::new(JOB, 0, 2);
        assert!(rehearsal.handle(&of_other(u64::MAX, false)), "it may be honest");
        rehearsal.launch(Launch { index: 7, in_network: false });
        assert_eq!(rehearsal.missing(7), Some(1), "but nothing is believed before a launch here");
        for index in [9, u64::MAX - 1, u64::MAX] {
            assert!(!rehearsal.handle(&of_other(index, false)));
            assert_eq!(rehearsal.missing(7), Some(1));
        }
        assert!(rehearsal.handle(&of_other(8, false)), "it may be one ahead");
        rehearsal.launch(Launch { index: 8, in_network: false });
        assert_eq!((rehearsal.missing(8), rehearsal.missing(9)), (None, Some(0)));
        rehearsal.launch(Launch { index: 9, in_network: false });
        assert_eq!(rehearsal.missing(9), Some(1));
    }

    #[test]
    fn a_host_that_is_behind_gets_an_answer_and_an_answer_gets_none() {
        let mut rehearsal = Rehearsal::new(JOB, 0, 3);
        rehearsal.handle(&of_other(7, false)); // nothing is launched here yet
        rehearsal.launch(Launch { index: 6, in_network: false });
        rehearsal.handle(&of_other(7, false)); // it is ahead
        assert_eq!(rehearsal.poll_transmit(), None);
        rehearsal.say();
        let said = Here { job: JOB, rank: 0, index: 6, in_network: false, answer: false };
        assert_eq!(rehearsal.poll_transmit(), Some((1, said)));
        assert_eq!(rehearsal.poll_transmit(), Some((2, said)));
        rehearsal.handle(&of_other(6, false));
        assert_eq!(rehearsal.poll_transmit(), Some((1, Here { answer: true, ..said })));
        rehearsal.handle(&Here { answer: true, ..of_other(6, false) });
        assert_eq!(rehearsal.poll_transmit(), None);
    }
}
