//! What a host tells those who watch.

use super::engine::HostEngine;
use super::played::Played;
use crate::clock;
use crate::driver::aged;
use crate::driver::shared::Shared;
use crate::error::AskError;
use crate::watch::Source;
use olaf_engine::Instant;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The synchronisation thread, until somebody joins it.
pub(super) type Thread = Arc<Mutex<Option<JoinHandle<()>>>>;

/// Where all of it is.
pub(super) struct Seen {
    shared: Arc<Shared<HostEngine>>,
    synchronisation: Thread,
    played: Arc<Played>,
    address: SocketAddr,
    started: Instant,
}

impl Seen {
    pub(super) fn new(
        shared: Arc<Shared<HostEngine>>,
        synchronisation: Thread,
        played: Arc<Played>,
        address: SocketAddr,
    ) -> Self {
        Self { shared, synchronisation, played, address, started: clock::now() }
    }

    pub(super) fn source(self) -> Source {
        Box::new(move || self.status())
    }

    fn status(&self) -> Result<Value, AskError> {
        let thread = self.synchronisation.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(AskError::Died("its synchronisation thread has ended".into()));
        }
        drop(thread);
        let now = clock::now();
        let mut all = self.shared.report();
        all["role"] = "sharing host".into();
        all["address"] = self.address.to_string().into();
        all["uptime_s"] = now.since(self.started).as_secs_f64().into();
        all["played"] = serde_json::to_value(self.played.shown()).expect("counts are plain data");
        let io = self.shared.io_statistics();
        all["io"] = serde_json::to_value(io).expect("counts are plain data");
        all["recent_events"] = aged(self.shared.recent_events(), now).into();
        Ok(all)
    }
}
