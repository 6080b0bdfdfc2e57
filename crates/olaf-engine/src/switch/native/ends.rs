//! The end of each update, reported to its sender: not whether it was answered, but whether it
//! arrived.
//!
//! [`super::answers`] decides which parties get an answer. This module only keeps which of a
//! receiver's own numbers were in departures that arrived above, and which of them never will arrive.

use super::Switch;
use super::answers::{Receiver, UNANSWERED_LIMIT};
use super::job::Cluster;
use super::ports::Message;
use crate::ids::Flow;
use crate::party::ends::{FlowEnds, Numbers, Order};
use crate::table::{Hint, Table};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::{Ages, Answer, Ends, QueueStatus, serial};

/// A departure this far behind the newest answered one will never be reported.
const FORGOTTEN: u32 = 256;

/// Whose updates are in an entry, by their own numbers.
pub(super) type Holds = Vec<(Receiver, Numbers)>;

/// Of one cluster.
#[derive(Default)]
pub(super) struct ClusterEnds {
    /// What is known of each sender's numbers, segment by segment.
    known: Table<(Receiver, u32), FlowEnds>,
    /// This switch's own count of the updates that it sent, segment by segment.
    sent: BTreeMap<u32, u32>,
    /// Departures without a word from above yet.
    departed: VecDeque<Departed>,
}

/// What left for the server.
struct Departed {
    segment: u32,
    number: u32,
    holds: Holds,
}

/// What is to be told beside what is known of the newest numbers.
type Told = Vec<(Receiver, Ends)>;

impl ClusterEnds {
    /// An update comes. Says whether it may be taken, and the ends that its sender must be told now
    /// because they are forgotten from here on.
    #[inline]
    pub(super) fn arrives(
        &mut self,
        receiver: Receiver,
        segment: u32,
        number: u32,
        hint: &mut Hint,
    ) -> (bool, Option<Ends>) {
        // A worker's segment is never taken after a newer one of its own.
        let order = if matches!(receiver, Receiver::Worker(_)) { Order::Kept } else { Order::Any };
        let known = self.known.at_or_insert((receiver, segment), hint, FlowEnds::default);
        let untold = known.would_forget(number).then(|| known.tell());
        (known.arrives(number, order), untold)
    }

    /// An entry leaves; its number in its flow, counted from where this switch's life begins.
    pub(super) fn departs(&mut self, segment: u32, holds: Holds, life: u32) -> u32 {
        let sent = self.sent.entry(segment).or_insert_with(|| serial::of_life(life));
        *sent = serial::next(*sent);
        if self.departed.len() == UNANSWERED_LIMIT {
            self.departed.pop_front();
        }
        self.departed.push_back(Departed { segment, number: *sent, holds });
        *sent
    }

    /// What is known of a sender's newest numbers. The caller tells the sender.
    pub(super) fn tell(&mut self, receiver: Receiver, segment: u32) -> Ends {
        self.known.get_mut(&(receiver, segment)).map_or(Ends::NONE, FlowEnds::tell)
    }

    /// The server, or the switch above, reported the ends of departures. Returns what each receiver
    /// must be told: the ends of its newest numbers once, and those of older numbers separately.
    ///
    /// Example: departure 7 merged number 3 of worker A and number 5 of worker B. If the server
    /// says that 7 arrived, A is told that 3 arrived and B that 5 arrived.
    pub(super) fn settle(&mut self, segment: u32, said: &Ends) -> Told {
        let (mut told, mut concerned) = (Told::new(), BTreeSet::new());
        let departed = core::mem::take(&mut self.departed);
        for one in departed {
            let delivered = said.is_delivered(one.number);
            if one.segment != segment || !(delivered || said.has_ended(one.number)) {
                let behind = said.newest.wrapping_sub(one.number);
                if one.segment != segment || !(FORGOTTEN..1 << 31).contains(&behind) {
                    self.departed.push_back(one);
                }
                continue;
            }
            for (receiver, numbers) in one.holds {
                told.extend(self.note(receiver, segment, numbers.ends(delivered)));
                concerned.insert(receiver);
            }
        }
        told.extend(concerned.into_iter().map(|receiver| (receiver, self.tell(receiver, segment))));
        told
    }

    /// Notes what became of some numbers of a sender; what is too old to be noted is to be told.
    fn note(&mut self, receiver: Receiver, segment: u32, ends: Ends) -> Option<(Receiver, Ends)> {
        let known = self.known.get_or_insert((receiver, segment), FlowEnds::default);
        known.note(&ends);
        let oldest = 63 - (ends.delivered | ends.ended).leading_zeros();
        (!known.remembers(ends.newest.wrapping_sub(oldest))).then_some((receiver, ends))
    }

    /// Waiting numbers will never leave. Returns what their receivers must be told now; `later` hears
    /// of its numbers in its next answer, or when the switch would forget them.
    pub(super) fn end(&mut self, segment: u32, holds: Holds, later: Option<Receiver>) -> Told {
        let mut told = Told::new();
        for (receiver, numbers) in holds {
            told.extend(self.note(receiver, segment, numbers.ends(false)));
            if Some(receiver) != later {
                told.push((receiver, self.tell(receiver, segment)));
            }
        }
        told
    }

    /// The server restarted: no party will report the ends of departures to its old life.
    pub(super) fn give_up(&mut self) {
        self.departed.clear();
    }

    /// Forgets senders that are gone.
    pub(super) fn keep(&mut self, is_here: impl Fn(Receiver) -> bool) {
        self.known.retain(|(receiver, _), _| is_here(*receiver));
    }
}

impl Cluster {
    /// Notes that a number that came will never leave, for its sender's next answer.
    pub(super) fn ended(&mut self, receiver: Receiver, segment: u32, number: u32) {
        if number != 0 {
            self.ends.end(segment, vec![(receiver, Numbers::one(number))], Some(receiver));
        }
    }
}

impl Switch {
    /// What waited in an entry will never leave: it was replaced, or its entry was evicted. Its
    /// senders are told at once, because they may have no other update on the way whose answer
    /// could say it. `later` is not told now: the answer to its newer update says it.
    pub(super) fn end_all(
        &mut self,
        now: Instant,
        flow: Flow,
        holds: Holds,
        later: Option<Receiver>,
    ) {
        let Some(job) = self.jobs.get_mut(&flow.job) else { return };
        let cluster = job.clusters.get_or_insert(flow.cluster, Cluster::default);
        let told = cluster.ends.end(flow.segment, holds, later);
        self.tell_ends(now, flow, told);
    }

    /// An update that came will never leave: tells its sender at once.
    pub(super) fn end_at_once(
        &mut self,
        now: Instant,
        flow: Flow,
        receiver: Receiver,
        number: u32,
    ) {
        let Some(job) = self.jobs.get_mut(&flow.job) else { return };
        if number == 0 {
            return;
        }
        let cluster = job.clusters.get_or_insert(flow.cluster, Cluster::default);
        let told = cluster.ends.end(flow.segment, vec![(receiver, Numbers::one(number))], None);
        self.tell_ends(now, flow, told);
    }

    /// Says by itself what became of updates: no word of the server's, so that it names no life of
    /// it, and no receiver takes it for a sign that the server is there.
    pub(super) fn tell_ends(&mut self, now: Instant, flow: Flow, told: Told) {
        let Flow { job: id, cluster, segment } = flow;
        let Some(shape) = self.jobs.get(&id).and_then(|job| job.shape) else { return };
        for (receiver, ends) in told {
            let Some((place, address)) = self.place_of(id, cluster, receiver) else { continue };
            if ends == Ends::NONE {
                continue;
            }
            let answer = Answer {
                address,
                acknowledges: 0,
                segment,
                segments: shape.segments(),
                model_version: 0,
                parameters: shape.parameters,
                epoch: 0,
                delivered_version: 0,
                delivered_newest_ns: 0,
                server_time_ns: 0,
                queue: QueueStatus::default(),
                ages: Ages::default(),
                ends,
            };
            self.say(now, place, Message::Answer(answer, Arc::default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkerId;

    #[test]
    fn departures_without_a_word_are_remembered_up_to_a_limit_and_the_oldest_gives_way() {
        let mut ends = ClusterEnds::default();
        let receiver = Receiver::Worker(WorkerId(1));
        let mut first = 0;
        for number in 1..=5_000 {
            let holds = vec![(receiver, Numbers::one(number))];
            let sent = ends.departs(0, holds, 1);
            first = if number == 1 { sent } else { first };
        }
        assert_eq!(ends.departed.len(), UNANSWERED_LIMIT);
        let oldest = ends.departed.front().map(|one| one.number.wrapping_sub(first));
        assert_eq!(oldest, Some(5_000 - UNANSWERED_LIMIT as u32));
    }
}
