//! What a host did, a line for each begin and each end of an all-reduce.

use crate::error::StartError;
use olaf_sched::protocol::Launch;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;

#[derive(Debug)]
pub(super) struct Log {
    file: File,
    job: u64,
    host: u16,
}

/// What a launch cost beside the all-reduce.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Waited because the grant was being changed.
    pub(super) locked_ns: u64,
    /// Taking the mutex and deciding.
    pub(super) decide_ns: u64,
}

impl Log {
    pub(super) fn open(path: &str, job: u64, host: u16) -> Result<Self, StartError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|e| StartError::System(format!("log: cannot write {path}"), e))?;
        Ok(Self { file, job, host })
    }

    /// At once, so that what a killed host had begun is known.
    pub(super) fn launched(&mut self, ns: u64, launch: Launch, cost: Cost) -> std::io::Result<()> {
        let (job, host) = (self.job, self.host);
        let Launch { index, in_network } = launch;
        let Cost { locked_ns, decide_ns } = cost;
        let line = json!({"at": "launch", "job": job, "host": host, "index": index,
            "in_network": in_network, "ns": ns, "locked_ns": locked_ns, "decide_ns": decide_ns});
        writeln!(self.file, "{line}")
    }

    /// The last line: the summary of the steps that the host played.
    pub(super) fn ended(&mut self, summary: &serde_json::Value) -> std::io::Result<()> {
        let line = json!({"at": "ended", "summary": summary, "job": self.job, "host": self.host});
        writeln!(self.file, "{line}")
    }

    pub(super) fn done(&mut self, ns: u64, index: u64) -> std::io::Result<()> {
        let (job, host) = (self.job, self.host);
        let line = json!({"at": "done", "job": job, "host": host, "index": index, "ns": ns});
        writeln!(self.file, "{line}")
    }
}
