//! What stands for an all-reduce where no gradients are summed: nobody ends it before all hosts of
//! the job have launched it, and from then on it takes as long as one of its size in its mode.
//!
//! Each host says [`Here`] to the others when it launches, again while it waits, and in answer to a
//! host that is behind. The mode is said too, so that hosts that differ notice.

use olaf_sched::protocol::Launch;
use olaf_wire::mina::Here;

/// How far the hosts of the job are.
#[derive(Clone, Debug)]
pub(super) struct Gathering {
    /// By rank: launched so many.
    launched: Vec<u64>,
    /// All-reduces that another host launched in another mode: there are none.
    pub(super) mixed: u64,
}

impl Gathering {
    pub(super) fn new(hosts: usize) -> Self {
        Self { launched: vec![0; hosts], mixed: 0 }
    }

    /// The host of that rank has launched everything up to that all-reduce.
    pub(super) fn launched(&mut self, rank: u16, index: u64) {
        if let Some(launched) = self.launched.get_mut(usize::from(rank)) {
            *launched = (*launched).max(index.saturating_add(1));
        }
    }

    /// Another host says what it has launched; `mine` is the last that this host launched.
    pub(super) fn saw(&mut self, here: &Here, mine: Option<Launch>) {
        self.launched(here.rank, here.index);
        let differs = |mine: Launch| mine.index == here.index && mine.in_network != here.in_network;
        self.mixed += u64::from(mine.is_some_and(differs));
    }

    /// The first host that has not launched it.
    pub(super) fn missing(&self, index: u64) -> Option<u16> {
        (0..).zip(&self.launched).find(|(_, launched)| **launched <= index).map(|(rank, _)| rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use olaf_sched::JobId;

    #[test]
    fn another_mode_is_noticed_and_who_is_missing_is_known() {
        let launch = Launch { index: 7, in_network: true };
        let here = Here { job: JobId(3), rank: 1, index: 7, in_network: true, answer: false };
        let mut gathering = Gathering::new(2);
        gathering.saw(&here, Some(Launch { index: 7, in_network: false }));
        gathering.saw(&Here { rank: 0, ..here }, Some(launch));
        assert_eq!(
            (gathering.mixed, gathering.missing(7), gathering.missing(8)),
            (1, None, Some(0))
        );
    }
}
