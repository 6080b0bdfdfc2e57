//! One host of a job: a synchronisation thread and an execution thread around one engine.

mod engine;
mod played;
mod player;
mod source;

use super::config::{SharingHostConfig, resolve, steps};
use super::log::Log;
use crate::driver::shared::Shared;
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys;
use crate::roles::exposure;
use crate::watch::{Setting, Watch};
use engine::HostEngine;
use olaf_sched::JobId;
use played::Played;
use player::Player;
use source::{Seen, Thread};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// See [`SharingHostConfig`].
pub struct SharingHost {
    shared: Arc<Shared<HostEngine>>,
    stop: Arc<AtomicBool>,
    execution: Mutex<Option<JoinHandle<Result<String, String>>>>,
    synchronisation: Thread,
    watch: Option<Watch>,
}

impl SharingHost {
    /// Takes its port and begins to answer and to play.
    ///
    /// # Errors
    /// What of the set-up cannot be, or why the port cannot be had.
    pub fn start(config: &SharingHostConfig) -> Result<Self, StartError> {
        let steps = steps("pattern", &config.pattern, &config.network, config.hosts.len())?;
        let named = |(at, text): (usize, &String)| resolve(&format!("hosts[{at}]"), text);
        let addresses =
            config.hosts.iter().enumerate().map(named).collect::<Result<Vec<_>, _>>()?;
        let Some(listen) = addresses.get(usize::from(config.rank)).copied() else {
            let (rank, all) = (config.rank, addresses.len());
            return Err(StartError::Config(format!(
                "rank = {rank}: must be below {all}, the number of hosts"
            )));
        };
        let controller = resolve("controller", &config.controller)?;
        let log = Log::open(&config.log, config.job, config.rank)?;
        let keys = keys::secrets("key_file", config.key_file.as_slice(), &[], &[])?;
        let is_secret = keys::are_secret(config.key_file.as_deref().into_iter(), &[]);
        let key = format!("hosts[{}]", config.rank);
        exposure::check("host", &key, listen, is_secret || config.insecure)?;
        let socket = Socket::bind(listen)?;
        let mut peers = Peers::new();
        let controller = peers.fix(controller);
        let hosts: Vec<_> = addresses.into_iter().map(|address| peers.fix(address)).collect();
        // Of two hosts the one of the higher rank begins the handshake.
        let above = hosts[..usize::from(config.rank)].to_vec();
        let (job, rank) = (JobId(config.job), config.rank);
        let engine = HostEngine::new(job, rank, SharingHostConfig::timing(), controller, hosts);
        let system = |error| StartError::System(format!("cannot start host {rank}"), error);
        let shared = Arc::new(Shared::among(socket, peers, engine, keys, &above).map_err(system)?);
        shared.renew_keys()?;
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let theirs = shared.clone();
        let synchronisation =
            thread("olaf-synchronise").spawn(move || theirs.run()).map_err(system)?;
        let synchronisation = Arc::new(Mutex::new(Some(synchronisation)));
        let played = Arc::new(Played::default());
        if let Some(watch) = &watch {
            let (shared, thread) = (shared.clone(), synchronisation.clone());
            watch.start(Seen::new(shared, thread, played.clone(), listen).source())?;
        }
        let mut player = Player {
            shared: shared.clone(),
            stop: stop.clone(),
            job,
            rank,
            steps,
            count: config.steps,
            patience_ns: config.patience_ns,
            log,
            played,
        };
        let execution = thread("olaf-execute").spawn(move || player.play()).map_err(system)?;
        Ok(Self { shared, stop, execution: Mutex::new(Some(execution)), synchronisation, watch })
    }

    /// The address that it serves metrics on, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// Has it played everything, or failed?
    #[must_use]
    pub fn is_done(&self) -> bool {
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
        execution.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it, and says what it did, as JSON.
    ///
    /// # Errors
    /// What broke; the outer one a bug, the inner one with the peer's name.
    pub fn finish(&self) -> Result<Result<String, String>, AskError> {
        if !self.is_done() {
            self.stop.store(true, Ordering::Release);
            // Ends a wait of the execution thread.
            self.shared.transmit();
        }
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner).take();
        let died = |_| AskError::Died("the execution thread panicked".into());
        let said = match execution {
            Some(thread) => thread.join().map_err(died)?,
            None => Err("the host had ended before".to_owned()),
        };
        // Who still looks would see a host whose thread has ended.
        self.watch.iter().for_each(Watch::stop);
        self.shared.stop();
        let mut thread = self.synchronisation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            thread
                .join()
                .map_err(|_| AskError::Died("its synchronisation thread panicked".into()))?;
        }
        Ok(said)
    }
}

impl Drop for SharingHost {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.finish();
    }
}
