//! How an end gets into a term: hellos, repeated until a welcome says that it has begun.

use super::early::Early;
use super::{Term, Worker};
use crate::collective::path::{micros, since};
use crate::collective::{Failure, Standing, window};
use alloc::collections::VecDeque;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::reduce::WelcomeCode;
use olaf_wire::trio::{ANY, Hello, Leave, TrioPacket, Welcome};

impl Worker {
    pub(super) fn begin_to_join(&mut self, now: Instant) {
        self.joining.begin(now, self.config.workers);
        self.told = None;
        self.asking.stop();
        self.window.forget();
    }

    /// When the next hello leaves.
    pub(super) fn joins_at(&self) -> Option<Instant> {
        self.joining.at().filter(|_| self.leaving.at().is_none())
    }

    pub(super) fn emit_hello(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.joins_at().filter(|at| *at <= now)?;
        self.joining.sent(now);
        self.quiet.expect(now);
        self.counts.hellos += 1;
        self.told.get_or_insert(self.newest);
        let options = &self.config.options;
        let timeout = options.deadline.map_or(0, |deadline| deadline.as_millis().max(1));
        let byte = |number: u32| u8::try_from(number).expect("Options::check() has seen to it");
        let hello = Hello {
            job: byte(self.config.job.0),
            term: self.last_term,
            source: self.config.rank.map_or(ANY, byte),
            sources: 1,
            newest: self.newest,
            session: self.config.session,
            workers: byte(self.config.workers),
            gradients: self.gradients,
            timeout_ms: u16::try_from(timeout).unwrap_or(u16::MAX),
            window: self.own.window,
            sent_at_us: micros(now),
            nonce: self.joining.nonce(),
            program: self.config.options.program,
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
            // It is for an earlier incarnation of this worker, or for another worker of this address.
            return Err(Refused::NotForMe);
        }
        match self.joining.standing() {
            // The answers to a hello and to its repetition.
            Standing::In { generation, .. } if generation == welcome.term => {
                self.heard();
                return Ok(());
            }
            // This end has left that term before it took part. If the leaves were lost, it leaves once more.
            Standing::Joining { .. } if welcome.term != 0 && welcome.term == self.passed_term => {
                if self.leaving.at().is_none() {
                    self.pass_over(now, &welcome);
                }
                return Err(Refused::OldEpoch);
            }
            Standing::Joining { .. } if welcome.term == 0 || welcome.term != self.last_term => {}
            // The welcome to the term that has just ended was late.
            Standing::Joining { .. } => return Err(Refused::OldEpoch),
            // This end has left or was turned away, or the welcome is to another term than the one it is in.
            _ => return Err(Refused::NotAsked),
        }
        self.heard();
        if welcome.code == WelcomeCode::Waiting {
            // A welcome may answer a hello of long ago; this one answers at once.
            self.path.sample_question(since(now, welcome.sent_at_us));
        }
        match welcome.code {
            WelcomeCode::Welcome if self.is_unheard(&welcome) => self.pass_over(now, &welcome),
            WelcomeCode::Welcome => self.enter(now, &welcome),
            WelcomeCode::Waiting => {
                let (here, workers) = (welcome.here.into(), welcome.workers.into());
                self.joining.heard(now, here, workers, welcome.nonce);
            }
            code => {
                self.joining.turned_away(code);
                self.events.tell(WorkerEvent::JoinRefused(code));
                self.quiet.excuse();
                let waiting = core::mem::take(&mut self.waiting);
                self.fail(now, waiting, Failure::Refused(code));
                return Err(Refused::NotAdmitted(code));
            }
        }
        Ok(())
    }

    /// An operation was given up while this end joined, and the switch may have heard an older count. That operation has to fail at
    /// the other workers, too: the term ends before this end takes part in it, and the next hello says the new count.
    fn pass_over(&mut self, now: Instant, welcome: &Welcome) {
        let Welcome { term, source, .. } = *welcome;
        (self.passed_term, self.told) = (term, Some(self.newest));
        self.leaving.begin(now, Leave { term, source, ..self.leave_of_term() });
    }

    /// Returns true if the switch says that all are behind this end, and may have heard an older count of it; see
    /// [`Progress::is_unheard`](crate::collective::member::Progress::is_unheard).
    fn is_unheard(&self, welcome: &Welcome) -> bool {
        let ahead = self.newest.wrapping_sub(welcome.newest);
        let is_ahead = self.last_term != 0 && (1..1 << 15).contains(&ahead);
        is_ahead && self.told.is_some_and(|told| told != self.newest)
    }

    /// A term begins.
    fn enter(&mut self, now: Instant, welcome: &Welcome) {
        let Welcome { term: number, source, workers, first, .. } = *welcome;
        let gradients = usize::from(welcome.gradients);
        let asked = self.config.options.window_blocks;
        let most = u32::from(welcome.window.min(self.own.window));
        // differs: the paper has a fixed window. Where none is asked for, ours follows congestion.
        let block_bytes = u32::from(welcome.gradients) * 4;
        self.window = window::of_generation(asked, workers.into(), block_bytes, most);
        // A newcomer is where the others are. So is an end that is ahead of what the switch says.
        let is_new = self.last_term == 0;
        let behind = if is_new { 0 } else { welcome.newest.wrapping_sub(self.newest) };
        let behind = if behind < 1 << 15 { behind } else { 0 };
        self.doomed.set(behind.into());
        // Operations that are still to fail count as not begun, also if the term ends before they have.
        self.newest = first.wrapping_sub(1).wrapping_sub(behind);
        self.last_term = number;
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
        self.joining.enter(number, rank, workers);
        self.events.tell(WorkerEvent::InGeneration { generation: number, rank, workers });
        self.counts.terms += 1;
        self.asking.start(now, self.config.options.keepalive);
        self.place_all(now);
    }
}
