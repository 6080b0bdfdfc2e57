//! A driver in a thread of its own, and how other threads talk to it.

use crate::driver::{Driver, Party};
use crate::error::{AskError, StartError};
use crate::io::waker::{self, Waker};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that has not answered for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

type Ask<P> = Box<dyn FnOnce(&mut Driver<P>) + Send>;

/// A driver: not yet running, running, or done.
pub(crate) struct Running<P: Party> {
    name: &'static str,
    address: String,
    core: Option<usize>,
    state: Mutex<State<P>>,
}

enum State<P: Party> {
    Idle(Box<Driver<P>>),
    Running(Thread<P>),
    Stopped(Box<Driver<P>>),
    Died(String),
}

struct Thread<P: Party> {
    asks: mpsc::Sender<Ask<P>>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Box<Driver<P>>>,
}

impl<P: Party> Running<P> {
    pub(crate) fn new(name: &'static str, driver: Driver<P>, core: Option<usize>) -> Self {
        let address = driver.address().to_owned();
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
                let stopped = "was stopped and its port is free: make a new one".to_owned();
                return if again { Ok(()) } else { Err(StartError::Config(stopped)) };
            }
        };
        let system = |error| StartError::System(format!("cannot start the {}", self.name), error);
        let waker = Arc::new(Waker::new().map_err(system)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (asks, asked) = mpsc::channel();
        let (core, theirs, stopping) = (self.core, waker.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name(format!("olaf-{}", self.name))
            .spawn(move || drive(driver, &asked, &theirs, &stopping, core))
            .map_err(system)?;
        *state = State::Running(Thread { asks, stop, waker, thread });
        Ok(())
    }

    /// Runs `question` where the driver is, and waits for its answer.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver<P>) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let mut state = self.lock();
        let thread = match &mut *state {
            State::Idle(driver) | State::Stopped(driver) => return Ok(question(driver)),
            State::Died(why) => return Err(AskError::Died(why.clone())),
            State::Running(thread) => thread,
        };
        let (answer, answered) = mpsc::sync_channel(1);
        let ask: Ask<P> = Box::new(move |driver| {
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

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Party> Drop for Running<P> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn drive<P: Party>(
    mut driver: Box<Driver<P>>,
    asked: &mpsc::Receiver<Ask<P>>,
    waker: &Waker,
    stop: &AtomicBool,
    core: Option<usize>,
) -> Box<Driver<P>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::PassOn;
    use crate::io::peers::Peers;
    use crate::io::socket::Socket;
    use olaf_engine::{Instant, PeerId, Transmit};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::net::UdpSocket;

    /// Sends back what it gets; breaks on "break".
    #[derive(Default)]
    struct Echo(Vec<(PeerId, Vec<u8>)>);

    impl Party for Echo {
        fn handle_packet(&mut self, _: Instant, from: PeerId, bytes: &[u8]) -> PassOn {
            assert_ne!(bytes, b"break", "told to");
            self.0.push((from, bytes.to_vec()));
            PassOn::No
        }
        fn poll_transmit(&mut self, _: Instant, buf: &mut [u8]) -> Option<Transmit> {
            let (peer, bytes) = self.0.pop()?;
            buf[..bytes.len()].copy_from_slice(&bytes);
            Some(Transmit::to(peer, bytes.len()))
        }
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_event(&mut self, _: &Peers) -> Option<Value> {
            None
        }
        fn must_send_first(&self) -> bool {
            false
        }
        fn peers(&self) -> BTreeSet<PeerId> {
            BTreeSet::new()
        }
        fn statistics(&self, _: Instant, _: &Peers) -> Value {
            json!({"role": "echo"})
        }
    }

    fn echo() -> (Running<Echo>, UdpSocket) {
        let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let running =
            Running::new("echo", Driver::new(Echo::default(), Peers::new(), socket), None);
        let plain = UdpSocket::bind("127.0.0.1:0").expect("a port");
        plain.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        plain.connect(running.address()).expect("loopback");
        (running, plain)
    }

    #[test]
    fn it_answers_before_while_and_after_it_runs() {
        let (running, plain) = echo();
        let role = |running: &Running<Echo>| {
            let text = running.ask(Driver::statistics).expect("an answer");
            let all: Value = serde_json::from_str(&text).expect("JSON");
            (all["role"].clone(), all["io"]["received_datagrams"].as_u64())
        };
        assert_eq!(role(&running), ("echo".into(), Some(0)));
        running.start().expect("a thread");
        running.start().expect("it runs already");
        plain.send(b"hello").expect("loopback");
        let mut buf = [0; 10];
        assert_eq!(plain.recv(&mut buf).expect("an echo"), 5);
        assert_eq!(role(&running), ("echo".into(), Some(1)));
        running.stop().expect("it stops");
        running.stop().expect("it has stopped");
        assert_eq!(role(&running), ("echo".into(), Some(1)));
        assert!(running.start().is_err_and(|error| error.to_string().contains("make a new one")));
        UdpSocket::bind(running.address()).expect("its port is free");
    }

    #[test]
    fn a_panic_of_its_thread_is_told_to_whoever_asks() {
        let (running, plain) = echo();
        running.start().expect("a thread");
        plain.send(b"break").expect("loopback");
        let began = std::time::Instant::now();
        let died = loop {
            match running.ask(Driver::statistics) {
                Ok(_) if began.elapsed() > PATIENCE => panic!("its thread lives on"),
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert!(matches!(&died, AskError::Died(why) if why.contains("told to")), "{died}");
        assert!(matches!(running.stop(), Err(AskError::Died(_))));
    }
}
