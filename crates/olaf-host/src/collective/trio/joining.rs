//! How an end gets into a term: hellos, repeated until a welcome says that it has begun.

use super::early::Early;
use super::missing::micros;
use super::{Term, Worker};
use crate::collective::window::{Aimd, Fixed, Window};
use crate::collective::{Failure, Standing};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::reduce::WelcomeCode;
use olaf_wire::trio::{ANY, Hello, TrioPacket, Welcome};

/// A hello is repeated after this time, then after twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// The first windows of all workers together have this many bytes: a switch's socket takes as many
/// without a loss.
const FIRST_BYTES_OF_ALL: usize = 256 << 10;
/// The first window of a worker has at most this many bytes.
const FIRST_BYTES: usize = 64 << 10;

/// Hellos on their way.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// When the next leaves; none: the end is in, or out.
    next: Option<Instant>,
    wait: Duration,
    /// The term in which the end was last.
    pub(super) term: u32,
    /// The number with which the end proves its address; 0: none asked for.
    nonce: u32,
}

impl Worker {
    pub(super) fn begin_to_join(&mut self, now: Instant) {
        (self.joining.next, self.joining.wait) = (Some(now), FIRST_WAIT);
        self.standing = Standing::Joining { here: 0, workers: self.config.workers };
        self.asking.stop();
        self.window.forget();
    }

    /// When the next hello leaves.
    pub(super) fn joins_at(&self) -> Option<Instant> {
        let is_joining = matches!(self.standing, Standing::Joining { .. });
        self.joining.next.filter(|_| is_joining && self.leaving.at().is_none())
    }

    pub(super) fn emit_hello(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.joins_at().filter(|at| *at <= now)?;
        self.joining.next = Some(now + self.joining.wait);
        self.joining.wait = (self.joining.wait * 2).min(LONGEST_WAIT);
        self.quiet.expect(now);
        self.counts.hellos += 1;
        let options = &self.config.options;
        let timeout = options.deadline.map_or(0, |deadline| deadline.as_millis().max(1));
        let byte = |number: u32| u8::try_from(number).expect("Options::check() has seen to it");
        let hello = Hello {
            job: byte(self.config.job.0),
            term: self.joining.term,
            source: self.config.rank.map_or(ANY, byte),
            sources: 1,
            newest: self.newest,
            session: self.config.session,
            workers: byte(self.config.workers),
            gradients: self.gradients,
            timeout_ms: u16::try_from(timeout).unwrap_or(u16::MAX),
            window: self.own.window,
            sent_at_us: micros(now),
            nonce: self.joining.nonce,
        };
        Some(hello.emit(buf))
    }

    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        packet: &TrioPacket<'_>,
    ) -> Result<(), Refused> {
        let welcome = Welcome::parse(packet).map_err(Refused::Malformed)?;
        if welcome.session != self.config.session {
            return Err(Refused::NotForMe);
        }
        let is_joining = matches!(self.standing, Standing::Joining { .. });
        match self.standing {
            // The answers to a hello and to its repetition.
            Standing::In { generation, .. } if generation == welcome.term => {
                self.heard();
                return Ok(());
            }
            Standing::Joining { .. } if welcome.term == 0 || welcome.term != self.joining.term => {}
            _ if is_joining => return Err(Refused::OldEpoch),
            _ => return Err(Refused::NotAsked),
        }
        self.heard();
        if is_joining && welcome.code == WelcomeCode::Waiting {
            // A welcome may answer a hello of long ago; this one answers at once.
            self.asking.answered(now, welcome.sent_at_us);
        }
        match welcome.code {
            WelcomeCode::Welcome => self.enter(now, &welcome),
            WelcomeCode::Waiting => {
                let (here, workers) = (welcome.here.into(), welcome.workers.into());
                self.standing = Standing::Joining { here, workers };
                self.prove_address(now, welcome.nonce);
            }
            code => {
                self.standing = Standing::Refused(code);
                self.tell(WorkerEvent::JoinRefused(code));
                self.quiet.excuse();
                let waiting = core::mem::take(&mut self.waiting);
                self.fail(now, waiting, Failure::Refused(code));
                return Err(Refused::NotAdmitted(code));
            }
        }
        Ok(())
    }

    /// The switch lets this end in once it says hello with that number: at once. 0: nothing is left to
    /// prove.
    fn prove_address(&mut self, now: Instant, nonce: u32) {
        if nonce != 0 && nonce != self.joining.nonce {
            self.joining.nonce = nonce;
            (self.joining.next, self.joining.wait) = (Some(now), FIRST_WAIT);
        }
    }

    /// A term begins.
    fn enter(&mut self, now: Instant, welcome: &Welcome) {
        let Welcome { term: number, source, workers, first, .. } = *welcome;
        let gradients = usize::from(welcome.gradients);
        let asked = self.config.options.window_blocks;
        let most = u32::from(welcome.window.min(self.own.window));
        // differs: the paper has a fixed window. Where none is asked for, ours follows congestion.
        let share = FIRST_BYTES_OF_ALL / usize::from(workers.max(1));
        let first_blocks = share.min(FIRST_BYTES) / (gradients * 4);
        let aimd = || Aimd::new(u32::try_from(first_blocks).unwrap_or(2).max(2), most);
        self.window = match asked {
            Some(blocks) => Box::new(Fixed::new(blocks.min(most))) as Box<dyn Window>,
            None => Box::new(aimd()),
        };
        // A newcomer is where the others are.
        let is_new = self.joining.term == 0;
        let behind = if is_new { 0 } else { welcome.newest.wrapping_sub(self.newest) };
        let behind = if behind < 1 << 15 { behind } else { 0 };
        self.doomed.set(behind.into());
        // Operations that are still to fail count as not begun, also if the term ends before they have.
        self.newest = first.wrapping_sub(1).wrapping_sub(behind);
        self.joining.term = number;
        self.joining.next = None;
        self.term = Some(Term {
            number,
            source,
            workers,
            gradients,
            window: most.into(),
            next: first,
            base: 0,
            open: VecDeque::new(),
            early: Early::default(),
            closed: None,
        });
        let (rank, workers) = (source.into(), workers.into());
        self.standing = Standing::In { generation: number, rank, workers };
        self.tell(WorkerEvent::InGeneration { generation: number, rank, workers });
        self.counts.terms += 1;
        self.asking.start(now, self.config.options.keepalive);
        self.place_all(now);
    }
}
