//! A driver in a thread of its own, and how other threads talk to it.

use super::Driver;
use crate::error::{AskError, StartError};
use crate::io::waker::{self, Waker};
use crate::keys::{self, Renewed};
use olaf_engine::Engine;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that has not answered within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

type Ask<E> = Box<dyn FnOnce(&mut Driver<E>) + Send>;

/// A driver: not yet running, running, or done.
pub(crate) struct Running<E: Engine + Send + 'static> {
    name: &'static str,
    address: String,
    core: Option<usize>,
    state: Mutex<State<E>>,
}

enum State<E: Engine + Send + 'static> {
    Idle(Box<Driver<E>>),
    Running(Thread<E>),
    Stopped(Box<Driver<E>>),
    Died(String),
}

struct Thread<E: Engine + Send + 'static> {
    asks: mpsc::Sender<Ask<E>>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Box<Driver<E>>>,
}

impl<E: Engine + Send + 'static> Running<E> {
    /// A driver that does not run yet; `core` is the core that its thread is to stay on.
    pub(crate) fn new(driver: Driver<E>, core: Option<usize>) -> Self {
        let (name, address) = (driver.role(), driver.address().to_owned());
        Self { name, address, core, state: Mutex::new(State::Idle(Box::new(driver))) }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Starts the thread; nothing when it runs already.
    pub(crate) fn start(&self) -> Result<(), StartError> {
        let mut state = self.lock();
        let driver = match std::mem::replace(&mut *state, State::Died(String::new())) {
            State::Idle(driver) => driver,
            other => {
                let again = matches!(other, State::Running(_));
                *state = other;
                let stopped = "was stopped, and its port is free: make a new one".to_owned();
                return if again { Ok(()) } else { Err(StartError::Config(stopped)) };
            }
        };
        let system = |error| StartError::System(format!("cannot start the {}", self.name), error);
        let waker = Arc::new(Waker::new().map_err(system)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (asks, asked) = mpsc::channel();
        let sources = driver.sources.clone();
        let (core, theirs, stopping) = (self.core, waker.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name(format!("olaf-{}", self.name))
            .spawn(move || drive(driver, &asked, &theirs, &stopping, core))
            .map_err(system)?;
        let renewed = sources.map_or(Ok(()), |sources| {
            let (asks, waker, stop) = (asks.clone(), waker.clone(), Arc::downgrade(&stop));
            keys::renew(&sources, move |renewed| {
                let runs = stop.upgrade().is_some_and(|stop| !stop.load(Ordering::Acquire));
                if !runs || matches!(renewed, Renewed::Nothing) {
                    return runs;
                }
                let ask: Ask<E> = Box::new(move |driver| driver.take_renewed(renewed));
                let sent = asks.send(ask).is_ok();
                waker.wake();
                sent
            })
        });
        *state = State::Running(Thread { asks, stop, waker, thread });
        renewed
    }

    /// Runs `question` where the driver is, and waits for its answer.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver<E>) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let mut state = self.lock();
        let thread = match &mut *state {
            State::Idle(driver) | State::Stopped(driver) => return Ok(question(driver)),
            State::Died(why) => return Err(AskError::Died(why.clone())),
            State::Running(thread) => thread,
        };
        let (answer, answered) = mpsc::sync_channel(1);
        let ask: Ask<E> = Box::new(move |driver| {
            let _ = answer.send(question(driver));
        });
        let sent = thread.asks.send(ask);
        thread.waker.wake();
        drop(state);
        let answer = match sent {
            Ok(()) => answered.recv_timeout(PATIENCE),
            Err(_) => Err(mpsc::RecvTimeoutError::Disconnected),
        };
        answer.map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => AskError::Late,
            mpsc::RecvTimeoutError::Disconnected => match self.stop() {
                Err(died) => died,
                // It was stopped meanwhile, from elsewhere.
                Ok(()) => AskError::Late,
            },
        })
    }

    /// Ends the thread and frees the port; nothing when it does not run.
    pub(crate) fn stop(&self) -> Result<(), AskError> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Died(String::new())) {
            State::Running(thread) => {
                thread.stop.store(true, Ordering::Release);
                thread.waker.wake();
                match thread.thread.join() {
                    Ok(driver) => *state = State::Stopped(driver),
                    Err(panic) => {
                        let why = text_of(&*panic);
                        *state = State::Died(why.clone());
                        return Err(AskError::Died(why));
                    }
                }
            }
            State::Idle(mut driver) => {
                driver.close();
                *state = State::Stopped(driver);
            }
            other => *state = other,
        }
        match &*state {
            State::Died(why) => Err(AskError::Died(why.clone())),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Engine + Send + 'static> Drop for Running<E> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn drive<E: Engine + Send + 'static>(
    mut driver: Box<Driver<E>>,
    asked: &mpsc::Receiver<Ask<E>>,
    waker: &Waker,
    stop: &AtomicBool,
    core: Option<usize>,
) -> Box<Driver<E>> {
    waker::end_waits_on_time();
    if let Some(core) = core {
        waker::pin(core).unwrap_or_else(|error| panic!("cannot run on core {core}: {error}"));
    }
    while !stop.load(Ordering::Acquire) {
        driver.turn(waker).unwrap_or_else(|error| panic!("cannot wait for datagrams: {error}"));
        while let Ok(ask) = asked.try_recv() {
            driver.note_cpu();
            ask(&mut driver);
        }
    }
    driver.note_cpu();
    driver.close();
    driver
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
