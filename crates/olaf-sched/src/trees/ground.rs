//! The state under the trees: the running jobs, the candidate trees of each job, and the users of
//! each resource.
//!
//! Policies change it by one verb, [`Ground::put`]; everything else here reads. A member's place is
//! *seated* if it belongs to the conflict-free set, else it *shares* with those it conflicts with.

use super::{Arrival, Reason};
use crate::topology::Node;
use crate::tree::Ways;
use crate::{Capacity, HostId, JobId, LinkId, SwitchId, Topology, Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A running job's number among those that run.
pub(super) type Slot = usize;

/// The trees that a job could have, by what others could want of them too.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    pub(super) roots: Vec<SwitchId>,
    uses: Vec<u32>,
    ends: Vec<u32>,
    /// What all of them use, ascending.
    pub(super) forced: Vec<u32>,
    /// What any of them uses, ascending.
    pub(super) reach: Vec<u32>,
}

impl Candidates {
    /// At most `limit` of a job's trees, drawn by `seed`; 0 for all.
    pub(super) fn new(ways: &mut Ways<'_>, capacity: Capacity, limit: usize, seed: u64) -> Self {
        let mut roots = ways.roots();
        if limit > 0 && limit < roots.len() {
            let mut rng = fastrand::Rng::with_seed(seed);
            rng.shuffle(&mut roots);
            roots.truncate(limit);
            roots.sort_unstable();
        }
        let mut of = Self { roots, ..Self::default() };
        for &root in &of.roots {
            let uses = ways.contested(root, capacity).expect("a root is above all hosts");
            if of.ends.is_empty() {
                of.forced.clone_from(&uses);
            } else {
                of.forced.retain(|resource| uses.binary_search(resource).is_ok());
            }
            of.uses.extend(uses);
            of.ends.push(u32::try_from(of.uses.len()).expect("fewer than 2^32 uses"));
        }
        of.reach.clone_from(&of.uses);
        of.reach.sort_unstable();
        of.reach.dedup();
        of
    }

    pub(super) fn len(&self) -> usize {
        self.roots.len()
    }

    /// What candidate `at` uses, ascending.
    pub(super) fn uses(&self, at: usize) -> &[u32] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.uses[begin..self.ends[at] as usize]
    }
}

/// Some candidates lead through a switch: what a drained one takes away.
impl Candidates {
    pub(super) fn lead_through(
        &self,
        topology: &Topology,
        rule: Capacity,
        switch: SwitchId,
    ) -> bool {
        let through = |resource: &u32| match rule {
            Capacity::PerPort(_) => {
                let link = topology.link(LinkId(*resource));
                link.parent == switch || link.child == Node::Switch(switch)
            }
            Capacity::PerSwitch(_) | Capacity::Slots(_) => *resource == switch.0,
        };
        self.roots.contains(&switch) || self.uses.iter().any(through)
    }
}

/// Which candidate a job's tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) candidate: usize,
    /// In the conflict-free set.
    pub(super) seated: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) arrival: Arrival,
    pub(super) candidates: Candidates,
    pub(super) place: Option<Place>,
    pub(super) tree: Option<Arc<Tree>>,
    pub(super) reason: Reason,
    /// Where it stood when the event began that is being handled.
    was: Option<Place>,
    /// Its place was touched since.
    touched: bool,
    /// Its tree may differ from that of its place though both have one root.
    rerouted: bool,
}

impl Member {
    pub(super) fn seat(&self) -> Option<usize> {
        self.place.filter(|place| place.seated).map(|place| place.candidate)
    }

    fn placed_uses(&self) -> &[u32] {
        self.uses_of(self.place)
    }

    fn uses_of(&self, place: Option<Place>) -> &[u32] {
        place.map_or(&[], |place| self.candidates.uses(place.candidate))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) topology: Arc<Topology>,
    /// What counts as a resource when trees are judged, and how many units it has.
    pub(super) rule: Capacity,
    members: Vec<Option<Member>>,
    vacant: Vec<Slot>,
    slots: BTreeMap<JobId, Slot>,
    /// Of each resource: whose trees use it, in the order in which they came.
    users: Vec<Vec<u32>>,
    /// Of each resource: units that seated trees hold. Wider than a job's: sharers add up.
    seated: Vec<u64>,
    /// Of each resource: units that all trees hold.
    held: Vec<u64>,
    pub(super) drained: Vec<bool>,
    /// Of each resource: the members with a candidate that uses it, in the order of their arrival.
    wanted: Vec<Vec<u32>>,
    /// Members whose place was touched since the event began that is being handled.
    touched: Vec<Slot>,
    /// Resources of members that left since, or whose candidates changed.
    freed: Vec<u32>,
}

impl Ground {
    pub(super) fn new(topology: Arc<Topology>, rule: Capacity) -> Self {
        let resources = rule.resources(&topology);
        let drained = vec![false; topology.switches().len()];
        Self {
            topology,
            rule,
            members: Vec::new(),
            vacant: Vec::new(),
            slots: BTreeMap::new(),
            users: vec![Vec::new(); resources],
            seated: vec![0; resources],
            held: vec![0; resources],
            drained,
            wanted: vec![Vec::new(); resources],
            touched: Vec::new(),
            freed: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, arrival: Arrival, candidates: Candidates) -> Slot {
        let slot = self.vacant.pop().unwrap_or(self.members.len());
        let before = self.slots.insert(arrival.job, slot);
        assert!(before.is_none(), "job {} arrives twice", arrival.job.0);
        let (reason, tree, place) = (Reason::Off, None, None);
        let member = Member {
            arrival,
            candidates: Candidates::default(),
            place,
            tree,
            reason,
            was: None,
            touched: true,
            rerouted: false,
        };
        if slot == self.members.len() {
            self.members.push(Some(member));
        } else {
            self.members[slot] = Some(member);
        }
        self.touched.push(slot);
        self.set_candidates(slot, candidates);
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Member {
        self.freed
            .extend_from_slice(self.members[slot].as_ref().expect("a slot in use").placed_uses());
        self.put(slot, None);
        self.set_candidates(slot, Candidates::default());
        let member = self.members[slot].take().expect("a member leaves once");
        self.touched.retain(|&touched| touched != slot);
        self.slots.remove(&member.arrival.job);
        self.vacant.push(slot);
        member
    }

    fn set_candidates(&mut self, slot: Slot, candidates: Candidates) {
        let (member, number) = (self.members[slot].as_mut().expect("in use"), slot32(slot));
        for &resource in &member.candidates.reach {
            let wanted = &mut self.wanted[resource as usize];
            let mine = wanted.iter().position(|&one| one == number).expect("it wants it");
            wanted.remove(mine);
        }
        for &resource in &candidates.reach {
            self.wanted[resource as usize].push(number);
        }
        member.candidates = candidates;
    }

    /// Gives `slot` another place, or none.
    pub(super) fn put(&mut self, slot: Slot, place: Option<Place>) {
        let member = self.members[slot].as_mut().expect("a slot in use");
        if member.place == place {
            return;
        }
        if !std::mem::replace(&mut member.touched, true) {
            self.touched.push(slot);
        }
        let (units, number) = (u64::from(member.arrival.units), slot32(slot));
        let seated = member.place.is_some_and(|place| place.seated);
        for &resource in member.placed_uses() {
            let at = resource as usize;
            let users = &mut self.users[at];
            let mine = users.iter().position(|&user| user == number).expect("it is a user");
            users.remove(mine);
            self.held[at] -= units;
            self.seated[at] -= if seated { units } else { 0 };
        }
        member.place = place;
        let seated = place.is_some_and(|place| place.seated);
        for &resource in member.placed_uses() {
            let at = resource as usize;
            self.users[at].push(number);
            self.held[at] += units;
            self.seated[at] += if seated { units } else { 0 };
        }
    }

    pub(super) fn seat(&mut self, slot: Slot, candidate: usize) {
        self.put(slot, Some(Place { candidate, seated: true }));
    }

    pub(super) fn share(&mut self, slot: Slot, candidate: usize) {
        self.put(slot, Some(Place { candidate, seated: false }));
    }

    /// Other candidates of a member, after a switch was drained or given back.
    pub(super) fn replace_candidates(&mut self, slot: Slot, candidates: Candidates) {
        let root =
            self.member(slot).place.map(|p| (self.member(slot).candidates.roots[p.candidate], p));
        let kept = root.and_then(|(root, place)| {
            let candidate = candidates.roots.binary_search(&root).ok()?;
            let old = self.member(slot).candidates.uses(place.candidate);
            (candidates.uses(candidate) == old).then_some(Place { candidate, ..place })
        });
        let member = self.member(slot);
        let freed = [member.uses_of(member.was), member.placed_uses()].concat();
        self.freed.extend(freed);
        self.put(slot, None);
        self.set_candidates(slot, candidates);
        if let Some(kept) = kept {
            self.put(slot, Some(kept));
        }
        let member = self.members[slot].as_mut().expect("a slot in use");
        member.was = member.place;
        member.rerouted |= kept.is_none();
    }

    pub(super) fn member(&self, slot: Slot) -> &Member {
        self.members[slot].as_ref().expect("a slot in use")
    }

    pub(super) fn slot(&self, job: JobId) -> Option<Slot> {
        self.slots.get(&job).copied()
    }

    /// All members, by job.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots.values().copied()
    }

    pub(super) fn gain(&self, slot: Slot) -> u64 {
        self.member(slot).arrival.gain
    }

    /// Nobody's tree conflicts with candidate `at` of `slot`, whose own place is not counted.
    pub(super) fn is_free(&self, slot: Slot, at: usize) -> bool {
        self.fits(slot, at, &self.held, |place| place.is_some())
    }

    /// No seated tree conflicts with it.
    pub(super) fn is_open(&self, slot: Slot, at: usize) -> bool {
        self.fits(slot, at, &self.seated, |place| place.is_some_and(|place| place.seated))
    }

    fn fits(
        &self,
        slot: Slot,
        at: usize,
        taken: &[u64],
        counts: impl Fn(Option<Place>) -> bool,
    ) -> bool {
        let member = self.member(slot);
        let [units, most] = [member.arrival.units, self.rule.units()].map(u64::from);
        let own: &[u32] = if counts(member.place) { member.placed_uses() } else { &[] };
        member.candidates.uses(at).iter().all(|resource| {
            let mine = if own.binary_search(resource).is_ok() { units } else { 0 };
            taken[*resource as usize] - mine + units <= most
        })
    }

    /// The rivals of candidate `at` of `slot`: the other users of each resource that the candidate
    /// would hold beyond its capacity. Ascending by slot.
    pub(super) fn rivals_at(&self, slot: Slot, at: usize) -> Vec<Slot> {
        self.rivals_without(slot, at, None)
    }

    /// The same as if `without` had no tree.
    fn rivals_without(&self, slot: Slot, at: usize, without: Option<Slot>) -> Vec<Slot> {
        let member = self.member(slot);
        let [units, most] = [member.arrival.units, self.rule.units()].map(u64::from);
        let own = member.placed_uses();
        let gone = without.map(|gone| self.member(gone));
        let mut rivals = Vec::new();
        for resource in member.candidates.uses(at) {
            let mine = if own.binary_search(resource).is_ok() { units } else { 0 };
            let gone = gone.filter(|gone| gone.placed_uses().binary_search(resource).is_ok());
            let gone = gone.map_or(0, |gone| u64::from(gone.arrival.units));
            if self.held[*resource as usize] - mine - gone + units > most {
                let users = self.users[*resource as usize].iter().map(|&user| user as usize);
                rivals.extend(users.filter(|&user| user != slot && Some(user) != without));
            }
        }
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }

    /// Seated users of `resource`.
    pub(super) fn seated_users(&self, resource: u32) -> impl Iterator<Item = Slot> + '_ {
        let users = self.users[resource as usize].iter().map(|&user| user as usize);
        users.filter(|&user| self.member(user).seat().is_some())
    }

    pub(super) fn seated_units(&self, resource: u32) -> u64 {
        self.seated[resource as usize]
    }

    /// Those whose trees conflict with the member's: direct rivals, by job.
    pub(super) fn rivals(&self, slot: Slot) -> Vec<JobId> {
        let Some(place) = self.member(slot).place else { return Vec::new() };
        self.jobs(self.rivals_at(slot, place.candidate))
    }

    /// The component of conflicts that `slot` is in, as if `without` had no tree; ascending.
    pub(super) fn group(&self, slot: Slot, without: Option<Slot>) -> Vec<Slot> {
        let (mut group, mut next) = (vec![slot], 0);
        while let Some(&one) = group.get(next) {
            next += 1;
            let Some(place) = self.member(one).place else { continue };
            for rival in self.rivals_without(one, place.candidate, without) {
                if !group.contains(&rival) {
                    group.push(rival);
                }
            }
        }
        group.sort_unstable();
        group
    }

    pub(super) fn jobs(&self, slots: Vec<Slot>) -> Vec<JobId> {
        let mut jobs: Vec<_> = slots.into_iter().map(|s| self.member(s).arrival.job).collect();
        jobs.sort_unstable();
        jobs
    }

    /// The jobs in the way of the candidates: rivals at any of them.
    pub(super) fn in_the_way(&self, slot: Slot) -> Vec<JobId> {
        let candidates = 0..self.member(slot).candidates.len();
        let mut rivals: Vec<_> = candidates.flat_map(|at| self.rivals_at(slot, at)).collect();
        rivals.sort_unstable();
        rivals.dedup();
        self.jobs(rivals)
    }

    /// The member's candidates as things are, switches that are drained left out.
    pub(super) fn find_candidates(&self, hosts: &[HostId], limit: usize, seed: u64) -> Candidates {
        let mut ways = self.ways(hosts);
        Candidates::new(&mut ways, self.rule, limit, seed)
    }

    /// Drained switches above `hosts`.
    pub(super) fn drained_above(&self, hosts: &[HostId]) -> Vec<SwitchId> {
        let ways = Ways::new(&self.topology, hosts, |_| true);
        let mut above = ways.above().to_vec();
        above.retain(|switch| self.drained[switch.index()]);
        above.sort_unstable();
        above
    }

    pub(super) fn is_above(&self, switch: SwitchId, hosts: &[HostId]) -> bool {
        Ways::new(&self.topology, hosts, |_| true).above().contains(&switch)
    }

    fn ways<'a>(&'a self, hosts: &'a [HostId]) -> Ways<'a> {
        Ways::new(&self.topology, hosts, |switch| !self.drained[switch.index()])
    }

    /// The resources, before and now, of members with another place than when the event began.
    /// Ascending.
    pub(super) fn stirred(&self) -> Vec<u32> {
        let mut stirred = self.freed.clone();
        for &slot in &self.touched {
            let member = self.member(slot);
            if member.place != member.was {
                stirred.extend_from_slice(member.uses_of(member.was));
                stirred.extend_from_slice(member.placed_uses());
            }
        }
        stirred.sort_unstable();
        stirred.dedup();
        stirred
    }

    /// Members with a candidate that uses one of `resources`, ascending.
    pub(super) fn who_wants(&self, resources: &[u32]) -> Vec<Slot> {
        let wanted = resources.iter().flat_map(|&resource| &self.wanted[resource as usize]);
        let mut who: Vec<Slot> = wanted.map(|&slot| slot as usize).collect();
        who.sort_unstable();
        who.dedup();
        who
    }

    /// What the member uses now.
    pub(super) fn uses(&self, slot: Slot) -> &[u32] {
        self.member(slot).placed_uses()
    }

    /// Ends the event: members whose trees are no longer those of their places, ascending by job;
    /// and those whose reason may have changed with them, ascending.
    pub(super) fn take_touched(&mut self) -> (Vec<Slot>, Vec<Slot>) {
        let stirred = self.stirred();
        let users = stirred.iter().flat_map(|&resource| &self.users[resource as usize]);
        let mut stale: Vec<Slot> = users.map(|&slot| slot as usize).collect();
        self.freed.clear();
        let mut changed = std::mem::take(&mut self.touched);
        stale.extend(&changed);
        stale.sort_unstable();
        stale.dedup();
        changed.retain(|&slot| {
            let member = self.members[slot].as_mut().expect("a slot in use");
            (member.was, member.touched) = (member.place, false);
            let root = member.place.map(|place| member.candidates.roots[place.candidate]);
            member.rerouted || root != member.tree.as_ref().map(|tree| tree.root)
        });
        changed.sort_unstable_by_key(|&slot| self.member(slot).arrival.job);
        (changed, stale)
    }

    /// Makes the member's tree that of its place. Returns what it had and has.
    pub(super) fn plant(&mut self, slot: Slot) -> [Option<Arc<Tree>>; 2] {
        let member = self.member(slot);
        let tree = member.place.map(|place| {
            let root = member.candidates.roots[place.candidate];
            Arc::new(
                self.ways(&member.arrival.hosts).tree(root).expect("a root is above its hosts"),
            )
        });
        let member = self.members[slot].as_mut().expect("a slot in use");
        member.rerouted = false;
        [std::mem::replace(&mut member.tree, tree.clone()), tree]
    }

    pub(super) fn set_reason(&mut self, slot: Slot, reason: Reason) {
        self.members[slot].as_mut().expect("a slot in use").reason = reason;
    }

    /// What it holds is what its trees hold.
    #[cfg(test)]
    pub(super) fn audit(&self) {
        let mut held = vec![0; self.held.len()];
        let mut seated = held.clone();
        for member in self.members.iter().flatten() {
            for &resource in member.placed_uses() {
                held[resource as usize] += u64::from(member.arrival.units);
                if member.seat().is_some() {
                    seated[resource as usize] += u64::from(member.arrival.units);
                }
            }
        }
        assert_eq!((&held, &seated), (&self.held, &self.seated));
        assert!(seated.iter().all(|&units| units <= self.rule.units().into()));
    }
}

fn slot32(slot: Slot) -> u32 {
    u32::try_from(slot).expect("fewer than 2^32 jobs run")
}
