//! Gradient fragment packets: what the server adds, and the parameter packets that follow.

use super::AtpServer;
use super::fragments::{Fragment, Says, Taken};
use alloc::vec::Vec;
use olaf_engine::sums::Dispute;
use olaf_engine::switch::NonFinite;
use olaf_engine::{Ecn, Instant, JobId, PeerId, Receivers, Refused, Source, SumEvent};
use olaf_wire::Sides;
use olaf_wire::atp::{AtpPacket, Header, Key};
use olaf_wire::reduce::Reason;

impl AtpServer {
    pub(super) fn handle_gradient(
        &mut self,
        now: Instant,
        from: Source,
        packet: &AtpPacket<'_>,
    ) -> Result<(), Refused> {
        self.counts.gradients.received += 1;
        let mut header = Header::parse(packet).map_err(Refused::Malformed)?;
        header.ecn |= from.class.ecn() == Ecn::Marked;
        let of = (header.job, header.server);
        let job = self.jobs.get_mut(&of).ok_or(Refused::UnknownJob)?;
        let workers = job.workers;
        let current = job.current.as_mut().ok_or(Refused::OtherGeneration)?;
        if header.key.generation != current.number {
            return Err(Refused::OtherGeneration);
        }
        if !current.has_peer(from.peer) {
            return Err(Refused::UnknownPeer);
        }
        let mut ranks: Vec<u64> = alloc::vec![0; workers.div_ceil(64) as usize];
        let known = current.seating.ranks(&header, |rank| {
            if let Some(word) = ranks.get_mut(rank as usize / 64) {
                *word |= 1 << (rank % 64);
            }
        });
        if !known {
            return Err(Refused::UnknownWorker);
        }
        // Nobody speaks for a worker that is elsewhere. Switches have looked at the workers below them.
        if !current.are_at(&ranks, from.peer) {
            return Err(Refused::UnknownPeer);
        }
        // A sum is a heartbeat of all its workers.
        for (at, word) in ranks.iter().enumerate().filter(|(_, word)| **word != 0) {
            let members = current.members.iter_mut().skip(at * 64).take(64).enumerate();
            let heard = members.filter(|(bit, _)| word >> bit & 1 == 1);
            heard.for_each(|(_, member)| member.heard = now);
        }
        let values = packet.values();
        if values.len() / 4 > usize::from(current.values) {
            return Err(Refused::WrongSize);
        }
        let tenant = self.config.tenants.of(JobId(of.0.into()));
        let most = tenant.map_or(0, |tenant| tenant.most_parameters());
        if u64::from(header.tensor_length) > most {
            // A sum may be of several workers: the first one is named.
            let culprit = ranks.iter().enumerate().find(|(_, word)| **word != 0);
            let culprit = culprit.map(|(at, word)| at * 64 + word.trailing_zeros() as usize);
            self.close(now, of, Reason::Refused, culprit);
            return Err(Refused::TooManyParameters);
        }
        let is_disputed = current.dispute.is_some();
        let says = (header.tensor_length, header.key.call);
        let fragments = &mut current.fragments;
        let sequence = header.key.sequence(header.sequence, fragments.open());
        let tensor = header.key.tensor_near(fragments.newest_tensor());
        let scale = current.factors.at(sequence);
        let fragment = fragments
            .at(sequence)
            .map_err(|is_early| if is_early { Refused::TooEarly } else { Refused::Duplicate })?;
        let is_over = current.end.is_some() && !fragment.is_done();
        if is_over {
            self.repeat_closed(now, of);
            return Err(Refused::OtherGeneration);
        }
        let taken = fragment.take(&header, tensor, &ranks, values, (workers, scale));
        let is_finite = fragment.latest_is_finite();
        let is_added = matches!(taken, Taken::Added | Taken::Completed | Taken::RanOver);
        let is_refused = self.config.non_finite == NonFinite::Refuse
            && is_added
            && fragment.take_back_non_finite();
        let agrees = taken == Taken::Late || fragments.agrees(tensor, header.tensor_length);
        let by_switch = ranks.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() > 1;
        // Switches add no f32: such a packet is one worker's.
        let mut one = ranks.iter().enumerate().filter(|(_, word)| **word != 0 && !by_switch);
        let one = one.next().map(|(at, word)| at * 64 + word.trailing_zeros() as usize);
        if agrees && !is_finite {
            self.counts.non_finite += u64::from(!is_refused);
            if let Some(rank) = one.filter(|rank| fragments.is_news(tensor, *rank)) {
                let operation = u32::try_from(tensor).unwrap_or(u32::MAX);
                let rank = rank as u32;
                self.events.push(JobId(of.0.into()), SumEvent::NonFinite { rank, operation });
            }
        }
        self.counts.collisions += u64::from(header.collision);
        if agrees && is_refused {
            // Finite values whose sum no f32 holds may be any worker's fault.
            self.close(now, of, Reason::Refused, one.filter(|_| !is_finite));
            return Err(Refused::NonFinite);
        }
        let fates = &mut self.counts.gradients;
        match taken {
            _ if !agrees => fates.mismatched += 1,
            Taken::Mismatch => fates.mismatched += 1,
            Taken::Added | Taken::Completed if by_switch => fates.sums += 1,
            Taken::Added | Taken::Completed => fates.singles += 1,
            Taken::RanOver => fates.ran_over += 1,
            Taken::NotFloat => fates.not_float += 1,
            Taken::Repeated => fates.repeated += 1,
            Taken::Overlaps => fates.overlapping += 1,
            Taken::Late => fates.late += 1,
        }
        match taken {
            _ if !agrees || taken == Taken::Mismatch => {
                self.handle_mismatch(now, of, tensor, (&ranks, says, one));
            }
            Taken::Completed => {
                fragments.complete(tensor);
                self.counts.fragments += 1;
                self.send_parameters(now, of, sequence, None);
            }
            // Whoever sends it again lacks the answer.
            Taken::Late if header.resend => {
                let lacks = Some((ranks.as_slice(), from.peer));
                if !self.send_parameters(now, of, sequence, lacks) {
                    self.counts.gradients.late -= 1;
                    return Err(Refused::TooOften);
                }
            }
            Taken::RanOver | Taken::NotFloat => self.ask_for_floats(now, of, sequence),
            // The others may have said what they call.
            Taken::Added | Taken::Repeated if is_disputed => {
                self.handle_mismatch(now, of, tensor, (&ranks, says, one));
            }
            _ => {}
        }
        Ok(())
    }

    /// Workers call different operations: ends the generation once it is clear whom to name. `one`: who has sent the
    /// packet, if it is of one worker.
    fn handle_mismatch(
        &mut self,
        now: Instant,
        of: (u16, u8),
        tensor: u64,
        (ranks, says, one): (&[u64], Says, Option<usize>),
    ) {
        let Some(job) = self.jobs.get_mut(&of) else { return };
        let workers = job.workers as usize;
        let Some(current) = job.current.as_mut() else { return };
        let (at, dispute) = current.dispute.get_or_insert_with(|| (tensor, Dispute::new(now)));
        if *at == tensor {
            for_each_rank(ranks, |rank| dispute.note(rank, says));
            for (known, have) in current.fragments.said_of(tensor) {
                for_each_rank(have, |rank| dispute.note(rank, known));
            }
        }
        if !dispute.has_sides() {
            // The packet is out of place, whatever its sender calls.
            current.dispute = None;
            self.close(now, of, Reason::Mismatch, one);
        } else if let Some(odd) = dispute.odd(now, workers) {
            let ((_, calls), (_, others)) = (odd.calls, odd.others);
            let (rank, sides) = (odd.member as usize, Sides::new(calls, others));
            self.close_between(now, of, Reason::Mismatch, Some(rank), sides);
        }
    }

    /// Sends the result of a fragment once to each switch before this server; the switches copy it.
    /// `again`: the workers that lack it, and the peer that says so; false where that peer has had too many.
    fn send_parameters(
        &mut self,
        now: Instant,
        of: (u16, u8),
        sequence: u64,
        again: Option<(&[u64], PeerId)>,
    ) -> bool {
        let repeat = self.config.repeat;
        let Some(job) = self.jobs.get_mut(&of) else { return true };
        let workers = job.workers;
        let Some(current) = job.current.as_mut() else { return true };
        let (number, to) = (current.number, current.group());
        let Ok(fragment) = current.fragments.at(sequence) else { return true };
        if let Some((from, peer)) = again {
            let is_lost = fragment.asks_again(from);
            let is_fresh = fragment.sent.is_some_and(|sent| now.since(sent) < repeat);
            if is_fresh && !is_lost {
                return true;
            }
            if !current.may_draw(now, peer) {
                return false;
            }
        }
        let Ok(fragment) = current.fragments.at(sequence) else { return true };
        if again.is_none() && current.factors.is_dynamic() {
            current
                .range
                .see(fragment.bound(workers, current.factors.at(sequence)), current.window);
            fragment.factor = current.range.code(workers);
            current.factors.set(sequence, fragment.factor);
        }
        if again.is_none() && fragment.collided {
            fragment.new_index = current.indices.replace(sequence);
            self.counts.replaced += u64::from(fragment.new_index.is_some());
        }
        fragment.is_sent(now, again.map_or(&[], |(from, _)| from));
        let mut header = Header {
            ecn: fragment.ecn,
            fan_in0: fragment.factor,
            ..answer(of, number, sequence, fragment)
        };
        if let Some(index) = fragment.new_index {
            (header.collision, header.bitmap0) = (true, index.into());
        }
        let mut bytes = alloc::vec![0; olaf_wire::atp::datagram_len(fragment.result().len() / 4)];
        header.emit(fragment.result(), &mut bytes);
        let sent = &mut self.counts.parameters;
        *(if again.is_some() { &mut sent.again } else { &mut sent.sent }) += to.len() as u64;
        self.push(now, Receivers::Many(to), bytes);
        true
    }

    /// Asks all workers for a fragment in f32 (ATP §3.8).
    fn ask_for_floats(&mut self, now: Instant, of: (u16, u8), sequence: u64) {
        let repeat = self.config.repeat;
        let Some(current) = self.jobs.get_mut(&of).and_then(|job| job.current.as_mut()) else {
            return;
        };
        let (number, to) = (current.number, current.group());
        let Ok(fragment) = current.fragments.at(sequence) else { return };
        if fragment.sent.is_some_and(|sent| now.since(sent) < repeat) {
            return;
        }
        fragment.sent = Some(now);
        let answer = answer(of, number, sequence, fragment);
        let header = Header { overflow: true, ..answer };
        self.counts.parameters.requests += to.len() as u64;
        self.send(now, Receivers::Many(to), |buf| header.emit(&[], buf));
    }
}

/// Calls with each rank of a set, 64 a word.
fn for_each_rank(ranks: &[u64], mut call: impl FnMut(u32)) {
    for (rank, word) in (0..).step_by(64).zip(ranks) {
        (0..64).filter(|bit| word >> bit & 1 == 1).for_each(|bit| call(rank + bit));
    }
}

fn answer((job, server): (u16, u8), generation: u16, sequence: u64, fragment: &Fragment) -> Header {
    Header {
        ack: true,
        job,
        server,
        sequence: sequence as u16,
        index: fragment.index,
        key: Key::new(generation, fragment.tensor, sequence).calling(fragment.call),
        tensor_length: fragment.tensor_length,
        ..Header::default()
    }
}
