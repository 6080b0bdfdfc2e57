//! Bursts through `olaf_queue`: frames come in at their nanosecond, and a link takes them behind it.

use super::datagram::{Sent, frame};
use super::link::Link;
use super::tally::Tally;
use super::{Bursts, CYCLE_NS, Outcome};
use crate::design::Design;
use crate::frames::{Beat, EIGHT_SLOTS, Frame, In, bytes_of};
use olaf_wire::{Packet, Update};
use std::iter::Peekable;
use std::vec::IntoIter;

/// Bytes of the longest frame of the build.
pub(super) const LONGEST: usize = 256;
/// Bits of `fate`.
const APPENDED: u8 = 1;
const DROPPED: u8 = 1 << 4;
/// Cycles without a decision or a departure after which the hardware hangs, beyond those of the traffic.
const PATIENCE: u64 = 100_000;

/// Runs until everything has left.
///
/// # Errors
/// If the hardware contradicts itself.
pub fn through_queue(bursts: &Bursts) -> Result<Outcome, String> {
    let mut design = Design::new(&EIGHT_SLOTS, bursts.seed);
    design.settle(&In { rst: true, ..In::default() });
    design.tick();
    let mut tally = Tally::new(bursts);
    let mut line = Line::new(bursts);
    let mut sink = Sink { link: Link::new(bursts.rate_bps), sending: false, taken_at: None };
    let (mut decided, mut appended, mut received) = (0, 0, 0);
    let mut beats = Vec::new();
    let (mut cycle, mut moved_at) = (0, 0);
    while decided < bursts.at_ns.len() || received < appended {
        let mut pins = In::default();
        line.drive(cycle, &mut pins);
        // What leaves follows from registers alone: the link sees it before it says that it is ready.
        let before = design.settle(&pins);
        pins.tready = before.tvalid && sink.takes(cycle, u64::from(before.tkeep.count_ones()));
        let out = design.settle(&pins);
        if out.fate != 0 {
            moved_at = cycle;
            decided += 1;
            appended += usize::from(out.fate == APPENDED);
            if out.fate == DROPPED {
                tally.dropped();
            }
        }
        if pins.tvalid && out.s_tready {
            line.taken(pins.tlast);
        }
        if pins.tready {
            beats.push(out.beat());
            if out.tlast {
                received += 1;
                moved_at = cycle;
                departed(&mut tally, cycle, &std::mem::take(&mut beats))?;
            }
        }
        let sent = bursts.at_ns.last().map_or(0, |at_ns| at_ns / CYCLE_NS);
        if cycle > moved_at.max(sent) + PATIENCE {
            return Err(format!("cycle {cycle}: nothing leaves any more"));
        }
        design.tick();
        cycle += 1;
    }
    Ok(tally.outcome(cycle))
}

fn departed(tally: &mut Tally, cycle: u64, beats: &[Beat]) -> Result<(), String> {
    let bytes = bytes_of(beats).ok_or("a frame with bytes that are not kept")?;
    let packet = Packet::new_checked(&bytes).map_err(|why| why.to_string())?;
    let update = Update::parse(&packet).map_err(|why| why.to_string())?;
    let cluster = update.address.cluster.0;
    tally.departed(cycle * CYCLE_NS, cluster, update.contributors, update.generated_newest_ns);
    Ok(())
}

/// The line before the queue: each frame begins at its nanosecond, or when the one before is in.
struct Line {
    coming: Peekable<IntoIter<Sent>>,
    bytes: usize,
    /// The frame that is on its way in, and the beats of it that were taken.
    frame: Option<Frame>,
    taken: usize,
}

impl Line {
    fn new(bursts: &Bursts) -> Self {
        let coming = bursts.updates().collect::<Vec<_>>().into_iter().peekable();
        Self { coming, bytes: bursts.bytes, frame: None, taken: 0 }
    }

    fn drive(&mut self, cycle: u64, pins: &mut In) {
        if self.frame.is_none() {
            let sent = self.coming.next_if(|sent| sent.at_ns <= cycle * CYCLE_NS);
            self.frame = sent.map(|sent| frame(sent, self.bytes, LONGEST));
        }
        if let Some(frame) = &self.frame {
            pins.offer(&frame.beats[self.taken], self.taken + 1 == frame.beats.len());
        }
    }

    fn taken(&mut self, last: bool) {
        self.taken += 1;
        if last {
            (self.frame, self.taken) = (None, 0);
        }
    }
}

/// The link behind the queue: a beat is taken when its last byte has left.
struct Sink {
    link: Link,
    sending: bool,
    /// The cycle of the last beat.
    taken_at: Option<u64>,
}

impl Sink {
    fn takes(&mut self, cycle: u64, bytes: u64) -> bool {
        let now_ns = (cycle * CYCLE_NS) as f64;
        if !self.sending {
            self.sending = true;
            if self.taken_at.is_some_and(|at| at + 1 == cycle) {
                self.link.follow(bytes);
            } else {
                self.link.begin(now_ns, bytes);
            }
        }
        if self.link.is_free(now_ns) {
            self.sending = false;
            self.taken_at = Some(cycle);
        }
        !self.sending
    }
}
