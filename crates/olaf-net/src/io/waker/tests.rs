//! Both ways to wait, by the same words.

use super::{Ready, pin};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

fn pair() -> (UdpSocket, UdpSocket) {
    let bound = || UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let (here, there) = (bound(), bound());
    there.connect(here.local_addr().expect("bound")).expect("loopback");
    here.set_nonblocking(true).expect("a socket");
    (here, there)
}

macro_rules! waits {
    ($name:ident, $waker:ty) => {
        mod $name {
            use super::*;

            #[test]
            fn a_datagram_ends_a_wait_until_it_is_taken() {
                let ((here, there), waker) = (pair(), <$waker>::new().expect("a waker"));
                there.send(b"one").expect("loopback");
                there.send(b"two").expect("loopback");
                let mut buf = [0; 8];
                // Not drained between two waits: what is still there counts.
                for _ in 0..2 {
                    let ready = waker.wait(&here, false, Some(LONG)).expect("a wait");
                    assert!(ready.readable && !ready.writable);
                    assert_eq!(here.recv(&mut buf).expect("a datagram"), 3);
                }
                let ready = waker.wait(&here, false, Some(Duration::from_millis(1)));
                assert_eq!(ready.expect("a wait"), Ready::default());
            }

            #[test]
            fn an_empty_socket_is_writable_and_only_when_asked() {
                let ((here, _there), waker) = (pair(), <$waker>::new().expect("a waker"));
                for _ in 0..2 {
                    let ready = waker.wait(&here, true, Some(LONG)).expect("a wait");
                    assert!(ready.writable && !ready.readable);
                }
                let ready = waker.wait(&here, false, Some(Duration::ZERO)).expect("a wait");
                assert_eq!(ready, Ready::default());
            }

            #[test]
            fn a_call_ends_the_next_wait_and_no_other() {
                let ((here, _there), waker) = (pair(), <$waker>::new().expect("a waker"));
                waker.wake();
                waker.wake();
                let began = Instant::now();
                waker.wait(&here, false, Some(LONG)).expect("a wait");
                assert!(began.elapsed() < LONG, "it was called");
                let again = Instant::now();
                waker.wait(&here, false, Some(Duration::from_millis(20))).expect("a wait");
                assert!(again.elapsed() >= Duration::from_millis(15), "nobody called twice");
            }

            #[test]
            fn a_call_of_another_thread_ends_a_wait() {
                let ((here, _there), waker) = (pair(), Arc::new(<$waker>::new().expect("one")));
                let theirs = waker.clone();
                let began = Instant::now();
                let thread = std::thread::spawn(move || theirs.wake());
                waker.wait(&here, false, Some(LONG)).expect("a wait");
                assert!(began.elapsed() < LONG);
                thread.join().expect("it only calls");
            }

            #[test]
            fn another_socket_may_be_waited_for_next() {
                let waker = <$waker>::new().expect("a waker");
                for _ in 0..3 {
                    // Closed after each round: the next may have the same number.
                    let (here, there) = pair();
                    there.send(b"hello").expect("loopback");
                    assert!(waker.wait(&here, false, Some(LONG)).expect("a wait").readable);
                }
            }
        }
    };
}

waits!(portable, crate::io::waker::portable::Waker);
#[cfg(all(target_os = "linux", not(feature = "portable")))]
waits!(linux, crate::io::waker::linux::Waker);

#[test]
fn a_core_that_is_not_there_is_refused() {
    assert!(pin(1 << 20).is_err());
}
