//! How long the controller and the hosts wait. Safety depends on none of these times.

use super::SharingOptions;

/// The controller's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Time between two sendings of a packet that is not answered.
    pub resend_ns: u64,
    /// Longest time that hosts are locked while others are not ready; then the round ends.
    pub prepare_ns: u64,
    /// A host that has not answered this number of sendings is dead.
    pub sendings: u32,
    /// The same of a host that was never heard: it may still be starting.
    pub first_sendings: u32,
    /// Between two questions whether a grant is used up; also how soon a dead holder is missed.
    pub poll_ns: u64,
    /// A grant that is not used up this time after it was given is asked back.
    pub hold_ns: u64,
    /// A job that was asked back this number of times and did not release is failed.
    pub take_backs: u32,
    /// Pause of a job after a round without agreement. A random part of up to the same length is
    /// added.
    pub retry_ns: u64,
}

impl Default for Timing {
    /// For hosts in one cluster: a round trip is tens to hundreds of microseconds.
    fn default() -> Self {
        let hosts = SharingOptions::default();
        let timing = Self {
            resend_ns: 2_000_000,
            prepare_ns: 10_000_000,
            sendings: 0,
            first_sendings: 0,
            poll_ns: 20_000_000,
            hold_ns: 5_000_000_000,
            take_backs: 5,
            retry_ns: 500_000,
        };
        timing.waiting_for_hosts(hosts.silent_ns, hosts.start_ns)
    }
}

/// A host's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostTiming {
    /// A host that is locked for this time without an outcome asks the other hosts of its job.
    pub doubt_ns: u64,
    /// Between two such questions.
    pub ask_ns: u64,
    /// A host that has not answered this number of questions is dead, and the job with it.
    pub askings: u32,
    /// Between two leaves of a host that the controller has not answered.
    pub farewell_ns: u64,
    /// A host repeats its leave for this time. 0: it is sent once.
    pub farewells_ns: u64,
}

impl Default for HostTiming {
    /// Longer than the controller's [`Timing::prepare_ns`]; at most 0.9 s locked in the worst case.
    fn default() -> Self {
        Self {
            doubt_ns: 30_000_000,
            ask_ns: 5_000_000,
            askings: 170,
            farewell_ns: 50_000_000,
            farewells_ns: 10_000_000_000,
        }
    }
}

/// Mistakes that the checks plant to see that they find them. In a build that is not a test there
/// is only one value, and `has` is constantly false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bug {
    /// As it should be.
    #[default]
    None,
    /// Takes a grant back though the hosts' indices differ.
    #[cfg(test)]
    SkipIndices,
    /// Gives on what a dead job held before its tree is torn down.
    #[cfg(test)]
    SkipFence,
    /// Gives on as soon as the outcome is known, not when nothing is held.
    #[cfg(test)]
    SkipRelease,
    /// Gives grants before it has asked the hosts what they hold.
    #[cfg(test)]
    SkipAsking,
    /// A host in doubt aborts by itself.
    #[cfg(test)]
    AbortAlone,
    /// A host that said it is in doubt takes the controller's late outcome.
    #[cfg(test)]
    TakeLate,
    /// A host that is locked prepares for the next ballot and forgets the first.
    #[cfg(test)]
    ForgetDoubt,
    /// A host launches while it is locked.
    #[cfg(test)]
    SkipLock,
    /// A host in doubt does not ask.
    #[cfg(test)]
    NeverAsk,
}

macro_rules! has {
    ($bug:expr, $name:ident) => {{
        #[cfg(test)]
        {
            $bug == $crate::protocol::Bug::$name
        }
        #[cfg(not(test))]
        {
            let _ = $bug;
            false
        }
    }};
}
pub(crate) use has;
