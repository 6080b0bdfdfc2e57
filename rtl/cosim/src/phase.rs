//! What a bench does at the moment: traffic, or a pause in which everything leaves and the counters are read.

/// Cycles in which nothing must leave any more, so that the counters stand still.
const QUIET: u64 = 64;

/// What a bench does at the moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Datagrams come in and leave.
    Traffic,
    /// No new datagram; what is there leaves. Nothing has been offered for `quiet` cycles.
    Drain {
        /// The source had nothing to finish since then.
        since: u64,
        /// Cycles.
        quiet: u64,
    },
    /// The counters are read.
    Read,
}

impl Phase {
    pub(crate) fn drain(cycle: u64) -> Self {
        Self::Drain { since: cycle, quiet: 0 }
    }

    /// A cycle of a drain has passed. `comes`: the source still had a datagram to finish. `busy`: something has
    /// not left. Whether all is quiet now.
    ///
    /// # Errors
    /// If something is there after `longest` cycles without input.
    pub(crate) fn drained(
        &mut self,
        cycle: u64,
        comes: bool,
        busy: bool,
        longest: u64,
    ) -> Result<bool, String> {
        let Self::Drain { since, quiet } = self else { return Ok(false) };
        *quiet = if comes || busy { 0 } else { *quiet + 1 };
        if comes {
            *since = cycle;
        }
        if *quiet == QUIET {
            *self = Self::Read;
            return Ok(true);
        }
        if cycle - *since > longest {
            return Err(format!("not empty after {longest} cycles without input"));
        }
        Ok(false)
    }
}
