//! What happens to a party.

use super::MS;
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_sim::{Network, Wire};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A worker dies for good.
    Kill,
    /// A worker dies, and comes back in another life.
    Restart,
    /// The switch dies, and comes back in another life.
    Switch,
    /// A worker does nothing for a while: what it sends and gets arrives when it goes on.
    Stop,
    /// Nothing passes between a worker and its switch for a while.
    Partition,
}

pub(super) const EACH: [Fault; 5] =
    [Fault::Kill, Fault::Restart, Fault::Switch, Fault::Stop, Fault::Partition];

impl Fault {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "worker killed",
            Self::Restart => "worker killed and restarted",
            Self::Switch => "switch killed and restarted",
            Self::Stop => "worker stopped",
            Self::Partition => "worker cut off",
        }
    }

    /// Does it, and undoes it after `away`. `run` lets time pass.
    pub(super) fn happen<T>(
        self,
        job: &mut T,
        net: impl Fn(&mut T) -> &mut Network,
        run: impl Fn(&mut T, Duration),
        (worker, switch, wire): (PeerId, PeerId, Wire),
        away: Duration,
    ) {
        let now = net(job).now();
        match self {
            Self::Kill => net(job).kill_at(now, worker),
            Self::Restart | Self::Switch => {
                let id = if self == Self::Switch { switch } else { worker };
                net(job).kill_at(now, id);
                net(job).start_at(now + away, id);
                run(job, away + MS);
            }
            Self::Stop | Self::Partition => {
                let held = Wire { delay: wire.delay + away, ..wire };
                let cut = Wire { loss: 1.0, ..wire };
                net(job).join(worker, switch, if self == Self::Stop { held } else { cut });
                run(job, away);
                net(job).join(worker, switch, wire);
                run(job, away);
            }
        }
    }
}
