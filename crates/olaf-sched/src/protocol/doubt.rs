//! A host that promised and then hears nothing asks the other hosts of its job.
//!
//! differs: MINA §IV-B says nothing of it. This is cooperative termination of two-phase commit: a
//! host that asks, or is asked, while in doubt takes the update from no controller any more. So when
//! all are in doubt and have said so, none has it and none will: all abort.
//!
//! Example with hosts 0 and 1, which both promised a ballot. The controller decides for a grant,
//! tells host 0, and dies. Host 1 hears nothing and asks host 0, which answers with the grant: both
//! have it. Now the controller dies before it told a host. Host 1 asks, and host 0 is in doubt too.
//! From here on neither would take the grant from the controller, so both may abort, even if a
//! delayed packet with the grant is still on its way.

use super::host::{Gone, Host};
use super::timing::has;
use super::{Ballot, Body, Party};

/// The lock: nothing is launched until the outcome of this ballot is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Promise {
    pub(super) ballot: Ballot,
    /// When to ask, or to ask again.
    at: u64,
    /// It asks the other hosts, or was asked by one: only they can tell it of an update now.
    doubts: bool,
    askings: u32,
    /// Ranks that are in doubt too, ascending.
    in_doubt: Vec<u16>,
}

impl Promise {
    pub(super) const fn new(ballot: Ballot, at: u64) -> Self {
        Self { ballot, at, doubts: false, askings: 0, in_doubt: Vec::new() }
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Would it take the controller's update?
    pub(super) const fn takes_late(&self) -> bool {
        !self.doubts
    }

    /// Somebody waits for the outcome: it asks now.
    pub(super) fn hurry(&mut self, now: u64) {
        if self.askings == 0 {
            self.at = self.at.min(now);
        }
    }
}

impl Host {
    /// The outcome is overdue: asks the hosts that have not answered, or gives up.
    pub(super) fn doubt(&mut self, now: u64) {
        let (rank, hosts, timing) = (self.rank, self.hosts, self.timing);
        let Some(promise) = &mut self.promise else { return };
        if has!(self.bug, NeverAsk) {
            promise.at = u64::MAX;
            return;
        }
        promise.doubts = true;
        let ballot = promise.ballot;
        let silent: Vec<u16> =
            (0..hosts).filter(|at| *at != rank && !promise.in_doubt.contains(at)).collect();
        let Some(&first) = silent.first().filter(|_| !has!(self.bug, AbortAlone)) else {
            return self.outcome(ballot, None, true);
        };
        if promise.askings >= timing.askings {
            self.failed = Some(Gone { host: first });
            return;
        }
        promise.askings += 1;
        promise.at = now + timing.ask_ns;
        for at in silent {
            self.send(Party::Host(at), ballot, Body::Ask);
        }
    }

    pub(super) fn handle_peer(&mut self, now: u64, from: u16, ballot: Ballot, body: Body) {
        let promised = self.promise.as_mut().filter(|promise| promise.ballot == ballot);
        match (body, promised) {
            (Body::Ask, Some(promise)) => {
                promise.doubts = true;
                promise.hurry(now);
                self.send(Party::Host(from), ballot, Body::InDoubt);
            }
            (Body::Ask, None) => {
                if !self.knows(ballot) {
                    if let Some(promise) = &mut self.promise {
                        // This host is locked for an earlier ballot. It must learn that outcome
                        // first; the asking host asks again.
                        return promise.hurry(now);
                    }
                    // It never promised this ballot, and from here on never will. The controller
                    // needs the promise of every host, so the ballot can only come to nothing.
                    self.settled = ballot;
                }
                self.send(Party::Host(from), ballot, self.told(ballot));
            }
            (Body::InDoubt, Some(promise)) => {
                if !promise.in_doubt.contains(&from) {
                    promise.in_doubt.push(from);
                    promise.in_doubt.sort_unstable();
                }
                if promise.in_doubt.len() + 1 == usize::from(self.hosts) {
                    self.outcome(ballot, None, true);
                }
            }
            (Body::Commit(grant), Some(_)) => self.outcome(ballot, Some(grant), true),
            (Body::Abort, Some(_)) => self.outcome(ballot, None, true),
            _ => {}
        }
    }
}
