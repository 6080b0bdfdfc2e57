//! The authors' rule (MINA §III-D; the paper gives the principle, their simulator the formula).
//!
//! An operation is worth what its step gains by it, times the job's hosts, over the time from now
//! until it would end: `gain x hosts / (start + with - now)`. It yields when another job of the
//! group starts one that is worth more before this one would end.
//!
//! differs: the authors' simulator leaves out the hosts in some revisions; they are in here, since
//! the score that MINA is judged by weighs jobs by their hosts.

use super::{Decision, Next, Reason, Running};

/// Gain in host-nanoseconds, and the nanoseconds in which it is won.
#[derive(Clone, Copy)]
struct Worth {
    gain: u128,
    ns: u64,
}

impl Worth {
    fn of(next: &Next<'_>, hosts: u32, now_ns: u64) -> Self {
        let gain = u128::from(next.gain_ns()) * u128::from(hosts);
        Self { gain, ns: next.end_with_ns() - now_ns }
    }

    /// Compared by multiplying across: no rounding decides.
    fn exceeds(self, other: Self) -> bool {
        self.gain.saturating_mul(other.ns.into()) > other.gain.saturating_mul(self.ns.into())
    }
}

pub(super) fn decide(now_ns: u64, me: &Running<'_>, rivals: &[Running<'_>]) -> Decision {
    if rivals.iter().any(|rival| rival.running && rival.in_network_now) {
        return Decision::BUSY;
    }
    let Some(mine) = Next::of(me, now_ns) else {
        return Decision::yes(Reason::Free);
    };
    let worth = Worth::of(&mine, me.hosts, now_ns);
    let mut reason = Reason::Free;
    for rival in rivals {
        let Some(theirs) = Next::of(rival, now_ns) else { continue };
        if theirs.start_ns >= mine.end_with_ns() {
            continue;
        }
        if Worth::of(&theirs, rival.hosts, now_ns).exceeds(worth) {
            return Decision::no(Reason::Yields { to: rival.job });
        }
        reason = Reason::Ahead;
    }
    Decision::yes(reason)
}
