//! Asks a role for its statistics in a thread of its own, as seldom as readers allow.

use super::ready;
use crate::error::AskError;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A sample younger than this is given again.
const FRESH: Duration = Duration::from_millis(250);
/// A reader waits this long for a new sample; then it gets the last one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks a role for its status.
pub(crate) type Source = Box<dyn Fn() -> Result<Value, AskError> + Send>;

/// What the role answered last.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The last status, and when the role gave it. None: it has given none yet.
    pub(super) status: Option<(Instant, Arc<Value>)>,
    /// Why it gave none the last time.
    pub(super) failure: Option<AskError>,
    asked: Instant,
}

/// The readers' end.
#[derive(Clone)]
pub(super) struct Samples {
    ask: SyncSender<()>,
    last: watch::Receiver<Option<Sample>>,
}

/// Starts the thread. It ends when the last reader's end is gone.
pub(super) fn start(source: Source) -> io::Result<Samples> {
    // One question may wait while another is asked: the answer of the next serves all who came since.
    let (ask, asked) = sync_channel(1);
    let (tell, last) = watch::channel(None);
    std::thread::Builder::new()
        .name("olaf-sampler".into())
        .spawn(move || sample(&source, &asked, &tell))?;
    Ok(Samples { ask, last })
}

impl Samples {
    /// A sample that is young, or else the last one there is.
    pub(super) async fn now(&self) -> Option<Sample> {
        let is_young = |sample: &Option<Sample>| {
            sample.as_ref().is_some_and(|sample| sample.asked.elapsed() < FRESH)
        };
        let mut last = self.last.clone();
        if !is_young(&last.borrow()) {
            if let Err(TrySendError::Disconnected(())) = self.ask.try_send(()) {
                return last.borrow().clone();
            }
            // Late: the last sample says when the role answered.
            let _ = tokio::time::timeout(PATIENCE, last.wait_for(is_young)).await;
        }
        last.borrow().clone()
    }
}

fn sample(source: &Source, asked: &Receiver<()>, tell: &watch::Sender<Option<Sample>>) {
    while asked.recv().is_ok() {
        let lately = tell.borrow().as_ref().is_some_and(|last| last.asked.elapsed() < FRESH);
        if lately {
            continue;
        }
        let answer = source();
        let before = tell.borrow().as_ref().and_then(|last| last.status.clone());
        let (status, failure) = match answer {
            Ok(status) => (Some((Instant::now(), Arc::new(complete(status)))), None),
            Err(failure) => (before, Some(failure)),
        };
        // The pause begins with the answer: a slow role is not asked without one.
        tell.send_replace(Some(Sample { status, failure, asked: Instant::now() }));
    }
}

/// The status with what a reader needs to know about it.
fn complete(mut status: Value) -> Value {
    let reasons = ready::reasons(&status);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    status["olaf"] = json!({
        "version": env!("CARGO_PKG_VERSION"), "wire_version": olaf_wire::offsets::VERSION,
        "at_unix_s": since.as_secs_f64(), "pid": std::process::id(),
    });
    status["ready"] = json!({"ready": reasons.is_empty(), "reasons": reasons});
    status
}
