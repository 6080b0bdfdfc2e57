//! Fewest fragments on any tree: the tables of MINA's Algorithm 1, kept between placements.
//!
//! Of each pod: the least score of taking 0, 1, 2 .. of its hosts, merged from its parts' from left
//! to right. Kept with all the steps between; a host that comes or goes makes stale the steps from
//! its part on, in its own pod and in those above, and only they are computed again, when a job asks.
//! No table is longer than the largest job that has been placed.
//!
//! differs: as printed, line 16 of Algorithm 1 allocates j hosts of a part where it means those that
//! the parts before it leave, j - k, and lines 17 to 19 read row i - 1 at j where they mean k. Here
//! it is the equation of the text.

use super::free::Free;
use crate::HostId;
use crate::topology::{Part, PodId, Pods};
use std::ops::Range;

/// The tables of all pods.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    alpha: u32,
    /// The largest job that they hold.
    width: usize,
    nodes: Vec<Node>,
    /// Of each host: its pod, and the piece of it.
    of_host: Vec<(PodId, u32)>,
}

/// The tables of one pod.
#[derive(Clone, Debug)]
struct Node {
    /// The pod above, and which piece of it this is.
    above: Option<(PodId, u32)>,
    pieces: Vec<Piece>,
    /// At `i`: of the pieces up to `i` together, the least score, in thousandths, of taking each
    /// number of hosts.
    merged: Vec<Vec<u32>>,
    /// The same of the pod: the last of `merged`, unless all of it is free.
    whole: Vec<u32>,
    /// The first step that does not hold any more.
    stale: u32,
}

/// A smaller pod, or hosts side by side.
#[derive(Clone, Debug)]
enum Piece {
    Pod(PodId),
    Hosts(Range<u32>),
}

const FRESH: u32 = u32::MAX;
/// Least number of hosts that a table grows by.
const STEP: usize = 16;

impl Tables {
    pub(super) fn new(pods: &Pods, alpha: u32) -> Self {
        let mut of_host = vec![(PodId::CLUSTER, 0); pods.order().len()];
        let mut above = vec![None; pods.all().len()];
        let mut nodes = Vec::with_capacity(pods.all().len());
        for (number, pod) in (0u32..).zip(pods.all()) {
            let number = PodId(number);
            let mut pieces: Vec<Piece> = Vec::new();
            for part in &pod.parts {
                match (*part, pieces.last_mut()) {
                    (Part::Pod(part), _) => pieces.push(Piece::Pod(part)),
                    (Part::Host(_), Some(Piece::Hosts(run))) => run.end += 1,
                    (Part::Host(host), _) => {
                        let place = pods.place(host);
                        pieces.push(Piece::Hosts(place..place + 1));
                    }
                }
                let last = u32::try_from(pieces.len() - 1).expect("fewer pieces than hosts");
                match *part {
                    Part::Pod(part) => above[part.index()] = Some((number, last)),
                    Part::Host(host) => of_host[host.index()] = (number, last),
                }
            }
            nodes.push(Node {
                // A pod comes before its parts.
                above: above[number.index()],
                merged: vec![Vec::new(); pieces.len()],
                pieces,
                whole: Vec::new(),
                stale: 0,
            });
        }
        Self { alpha, width: 0, nodes, of_host }
    }

    /// The host became free, or is no more.
    pub(super) fn changed(&mut self, host: HostId) {
        let mut next = Some(self.of_host[host.index()]);
        while let Some((pod, piece)) = next {
            let node = &mut self.nodes[pod.index()];
            if node.stale <= piece {
                // Then so are those above.
                return;
            }
            node.stale = piece;
            next = node.above;
        }
    }

    /// `count` of the free hosts, and their score.
    pub(super) fn choose(&mut self, free: &Free, count: u32) -> (Vec<HostId>, u64) {
        if self.width < count as usize {
            self.width = (count as usize).next_multiple_of(STEP);
            self.nodes.iter_mut().for_each(|node| node.stale = 0);
        }
        self.refresh(free, PodId::CLUSTER);
        let score = self.nodes[0].whole[count as usize];
        let mut hosts = Vec::with_capacity(count as usize);
        self.pick(free, PodId::CLUSTER, count, &mut hosts);
        (hosts, score.into())
    }

    fn refresh(&mut self, free: &Free, pod: PodId) {
        let from = std::mem::replace(&mut self.nodes[pod.index()].stale, FRESH);
        if from == FRESH {
            return;
        }
        for at in from as usize..self.nodes[pod.index()].pieces.len() {
            let merged = match self.nodes[pod.index()].pieces[at].clone() {
                Piece::Pod(part) => {
                    self.refresh(free, part);
                    let node = &self.nodes[pod.index()];
                    merge(node.before(at), &self.nodes[part.index()].whole, self.width)
                }
                Piece::Hosts(places) => {
                    let hosts = self.hosts_table(free, places);
                    merge(self.nodes[pod.index()].before(at), &hosts, self.width)
                }
            };
            self.nodes[pod.index()].merged[at] = merged;
        }
        let node = &mut self.nodes[pod.index()];
        node.whole.clone_from(node.merged.last().expect("a pod has parts"));
        let tally = free.tally(pod);
        if tally.free == free.pods().pod(pod).places.len() as u32 {
            node.whole[0] = self.alpha;
            if let Some(all) = node.whole.get_mut(tally.free as usize) {
                *all = 1000;
            }
        }
    }

    /// Each host that is taken is a fragment of the job, each that stays is a free one.
    fn hosts_table(&self, free: &Free, places: Range<u32>) -> Vec<u32> {
        let there = u32::try_from(free.at(places).count()).expect("fewer than 2^32");
        let most = there.min(u32::try_from(self.width).unwrap_or(u32::MAX));
        (0..=most).map(|taken| self.alpha * (there - taken) + 1000 * taken).collect()
    }

    /// Of the choices with the least score the one with the fewest hosts in the last piece, then in
    /// the last but one, and so on.
    fn pick(&self, free: &Free, pod: PodId, count: u32, hosts: &mut Vec<HostId>) {
        if count == free.tally(pod).free {
            return hosts.extend(free.at(free.pods().pod(pod).places.clone()));
        }
        let node = &self.nodes[pod.index()];
        let mut left = count as usize;
        let mut taken = Vec::new();
        for (at, piece) in node.pieces.iter().enumerate().rev() {
            let table = match piece {
                Piece::Pod(part) => &self.nodes[part.index()].whole,
                Piece::Hosts(places) => &self.hosts_table(free, places.clone()),
            };
            let before = node.before(at);
            let target = node.merged[at][left];
            let here = (left.saturating_sub(before.len() - 1)..=left.min(table.len() - 1))
                .find(|&here| table[here] + before[left - here] == target)
                .expect("the least score is that of some choice");
            taken.push((piece, here));
            left -= here;
        }
        for (piece, here) in taken.into_iter().rev().filter(|(_, here)| *here > 0) {
            match piece {
                Piece::Hosts(places) => hosts.extend(free.at(places.clone()).take(here)),
                Piece::Pod(part) => {
                    let here = u32::try_from(here).expect("no more than count");
                    self.pick(free, *part, here, hosts);
                }
            }
        }
    }
}

impl Node {
    /// The table of the pieces before this one.
    fn before(&self, piece: usize) -> &[u32] {
        piece.checked_sub(1).map_or(&[0], |before| &self.merged[before])
    }
}

/// The least score of taking each number of hosts, up to `width`, from two groups together.
/// At most 4,000 x 2^20: within u32.
fn merge(one: &[u32], other: &[u32], width: usize) -> Vec<u32> {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let mut merged = vec![u32::MAX; (short.len() + long.len() - 1).min(width + 1)];
    for (taken, &score) in short.iter().enumerate().take(merged.len()) {
        for (least, &with) in merged[taken..].iter_mut().zip(long) {
            *least = (*least).min(score + with);
        }
    }
    merged
}
