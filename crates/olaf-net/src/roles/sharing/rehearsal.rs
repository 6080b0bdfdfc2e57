//! What stands for an all-reduce where no gradients are summed: nobody ends it before all hosts of
//! the job have launched it, and from then on it takes as long as one of its size in its mode.
//!
//! Each host says `HERE` to the others when it launches, again while it waits, and in answer to a
//! host that is behind. The mode is said too, so that hosts that differ notice.

use olaf_sched::JobId;
use olaf_sched::protocol::Launch;

/// Bytes of every datagram: magic, job, index, rank, mode, is it an answer.
pub(super) const LEN: usize = 24;
const MAGIC: [u8; 4] = *b"HERE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Here {
    pub(super) job: JobId,
    pub(super) rank: u16,
    pub(super) launch: Launch,
    pub(super) answer: bool,
}

impl Here {
    pub(super) fn emit(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.job.0.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.launch.index.to_be_bytes());
        bytes[20..22].copy_from_slice(&self.rank.to_be_bytes());
        bytes[22] = u8::from(self.launch.in_network);
        bytes[23] = u8::from(self.answer);
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok().filter(|b: &&[u8; LEN]| b[..4] == MAGIC)?;
        let u64_at = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"));
        Some(Self {
            job: JobId(u64_at(4)),
            rank: u16::from_be_bytes([bytes[20], bytes[21]]),
            launch: Launch { index: u64_at(12), in_network: bytes[22] == 1 },
            answer: bytes[23] == 1,
        })
    }
}

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

    pub(super) fn saw(&mut self, here: &Here, mine: Option<Launch>) {
        if let Some(launched) = self.launched.get_mut(usize::from(here.rank)) {
            *launched = (*launched).max(here.launch.index.saturating_add(1));
        }
        let differs = |mine: Launch| {
            mine.index == here.launch.index && mine.in_network != here.launch.in_network
        };
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

    #[test]
    fn what_is_said_is_heard() {
        let launch = Launch { index: 7, in_network: true };
        let here = Here { job: JobId(3), rank: 1, launch, answer: false };
        assert_eq!(Here::parse(&here.emit()), Some(here));
        assert_eq!(Here::parse(b"MINA"), None);
        let mut gathering = Gathering::new(2);
        gathering.saw(&here, Some(Launch { index: 7, in_network: false }));
        gathering.saw(&Here { rank: 0, ..here }, Some(launch));
        assert_eq!(
            (gathering.mixed, gathering.missing(7), gathering.missing(8)),
            (1, None, Some(0))
        );
    }
}
