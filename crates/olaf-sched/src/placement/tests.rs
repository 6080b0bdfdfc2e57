use super::choice::Choice;
use super::tables::Tables;
use super::*;
use crate::topology::PodId;
use crate::topology::{FatTree, HostSpec, SwitchSpec, TopologySpec};
use proptest::prelude::*;

fn ids(hosts: &[u32]) -> Vec<HostId> {
    hosts.iter().map(|&host| HostId(host)).collect()
}

fn fragments(alpha_millis: u32) -> Policy {
    Policy::Fragments { alpha_millis }
}

fn parse(word: &str) -> Topology {
    Topology::parse(word).expect("a form")
}

/// The placer with Algorithm 1's tables, where the cluster would allow the short cut.
fn with_tables(topology: &Topology, alpha: u32) -> Placer {
    let mut placer = Placer::new(topology, fragments(alpha));
    placer.choice = Choice::Tables(Box::new(Tables::new(placer.pods(), alpha)));
    placer
}

fn free_hosts(placer: &Placer) -> Vec<HostId> {
    placer.free.hosts().collect()
}

#[test]
fn the_papers_figure_6() {
    // Three ToR switches of two pods; a job of two is in two fragments wherever it is not alone.
    let topology = parse("fat-tree:2,2,2:1,1");
    let placer = Placer::new(&topology, fragments(500));
    assert_eq!(placer.fragments_of(&ids(&[0, 2])), placer.fragments_of(&ids(&[1, 2])));
}

#[test]
fn a_job_that_fits_a_tor_gets_one() {
    let mut placer = Placer::new(&parse("fat-tree:4"), fragments(500));
    assert_eq!(placer.place(1).expect("room").hosts, ids(&[0]));
    assert_eq!(placer.place(2).expect("room").hosts, ids(&[2, 3]));
    assert_eq!(placer.place(4).expect("room").hosts, ids(&[4, 5, 6, 7]));
    let filler = placer.place(1).expect("room");
    assert_eq!(filler.hosts, ids(&[1]), "the odd host breaks nothing");
    let reason = Reason::Fragments {
        job: 1,
        free_before: 3,
        free_after: 2,
        alpha_millis: 500,
        score_millis: 2000,
    };
    assert_eq!(filler.reason, reason);
    assert_eq!(
        reason.to_string(),
        "fewest fragments: 1 of the job + 0.5 x 2 of the free hosts (before: 3) = 2"
    );
}

#[test]
fn first_fit_takes_the_first() {
    let mut placer = Placer::new(&parse("fat-tree:4"), Policy::FirstFit);
    placer.take(&ids(&[1]));
    assert_eq!(placer.place(3).expect("room").hosts, ids(&[0, 2, 3]));
    placer.release(&ids(&[1]));
    assert_eq!(placer.place(2).expect("room").hosts, ids(&[1, 4]));
}

#[test]
fn random_hosts_are_the_seeds() {
    let topology = parse("fat-tree:8");
    let draw = |seed| {
        let mut placer = Placer::new(&topology, Policy::Random { seed });
        placer.drain(HostId(5));
        let placed: Vec<_> = (1..9).map(|n| placer.place(n).expect("room").hosts).collect();
        assert!(placed.iter().all(|hosts| hosts.is_sorted()));
        assert!(!placed.concat().contains(&HostId(5)));
        placed
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    // A seed stands for its draw: on every platform, and from version to version.
    assert_eq!(draw(7)[1], ids(&[35, 52]));
}

#[test]
fn random_reaches_every_host() {
    let mut placer = Placer::new(&parse("leaf-spine:2,2,1"), Policy::Random { seed: 1 });
    let mut seen = [0; 4];
    for _ in 0..4000 {
        let hosts = placer.place(2).expect("room").hosts;
        hosts.iter().for_each(|host| seen[host.index()] += 1);
        placer.release(&hosts);
    }
    assert!(seen.iter().all(|times| (1850..2150).contains(times)), "{seen:?}");
}

#[test]
fn drained_hosts_are_not_given_and_their_jobs_stay() {
    let mut placer = Placer::new(&parse("leaf-spine:2,2,1"), fragments(500));
    let job = placer.place(2).expect("room").hosts;
    assert!(placer.drain(HostId(0)) && placer.drain(HostId(2)) && !placer.drain(HostId(2)));
    assert_eq!((placer.free(), placer.usable(), placer.free_fragments()), (1, 2, 1));
    placer.release(&job);
    assert_eq!((placer.free(), placer.free_fragments()), (2, 2));
    assert_eq!(placer.place(2).expect("room").hosts, ids(&[1, 3]));
    assert!(placer.undrain(HostId(0)) && !placer.undrain(HostId(1)));
    assert_eq!(placer.place(1).expect("room").hosts, ids(&[0]));
    assert!(placer.is_drained(HostId(2)) && !placer.is_free(HostId(2)));
}

#[test]
fn why_there_is_no_room() {
    let mut placer = Placer::new(&parse("leaf-spine:2,2,1"), fragments(500));
    placer.drain(HostId(3));
    placer.place(2).expect("room");
    let no = |placer: &mut Placer, hosts| placer.place(hosts).expect_err("no room");
    assert_eq!(no(&mut placer, 0), NoRoom::NoHosts);
    assert_eq!(no(&mut placer, 2), NoRoom::Busy { hosts: 2, free: 1 });
    assert_eq!(no(&mut placer, 4), NoRoom::Drained { hosts: 4, usable: 3, cluster: 4 });
    assert_eq!(no(&mut placer, 5), NoRoom::TooLarge { hosts: 5, cluster: 4 });
    let last = [0, 2, 4, 5].map(|hosts| no(&mut placer, hosts).is_final());
    assert_eq!(last, [true, false, false, true]);
    assert_eq!(placer.free(), 1, "a refusal takes nothing");
}

#[test]
#[should_panic(expected = "host 0 is taken twice")]
fn a_host_is_taken_once() {
    let mut placer = Placer::new(&parse("leaf-spine:2,2,1"), Policy::FirstFit);
    placer.take(&ids(&[0]));
    placer.take(&ids(&[0]));
}

#[test]
fn policies_read_from_files() {
    let read = |json| serde_json::from_str::<Policy>(json);
    assert_eq!(read(r#"{"policy": "fragments"}"#).expect("a policy"), fragments(500));
    let alpha = read(r#"{"policy": "fragments", "alpha_millis": 250}"#);
    assert_eq!(alpha.expect("a policy"), fragments(250));
    let error = read(r#"{"policy": "fragments", "alpha_millis": 4001}"#).expect_err("too large");
    assert!(error.to_string().contains("alpha_millis: 4001; from 0 to 4000"), "{error}");
}

#[test]
fn a_large_cluster_places_as_the_tables_do() {
    let topology = Topology::fat_tree(FatTree { down: [8, 8, 16], up: [8, 8] }).expect("small");
    let mut rng = fastrand::Rng::with_seed(11);
    for alpha in [0, 250, 500, 1000] {
        let (mut short, mut long) =
            (Placer::new(&topology, fragments(alpha)), with_tables(&topology, alpha));
        let mut running: Vec<Vec<HostId>> = Vec::new();
        for _ in 0..400 {
            let hosts = if rng.u32(..8) > 0 { rng.u32(1..=64) } else { rng.u32(1..=700) };
            while short.free() < hosts {
                let job = running.swap_remove(rng.usize(..running.len()));
                short.release(&job);
                long.release(&job);
            }
            let (one, other) =
                (short.place(hosts).expect("room"), long.place(hosts).expect("room"));
            assert_eq!(one, other);
            running.push(one.hosts);
        }
    }
}

/// Trees of two or three levels, alike or not, of 1 to 12 hosts.
fn small_clusters() -> impl Strategy<Value = Topology> {
    let alike = prop_oneof![
        Just("fat-tree:2,2,2:1,1"),
        Just("fat-tree:2,2,3:1,1"),
        Just("fat-tree:3,2,2:1,1"),
        Just("fat-tree:1,2,3:1,1"),
        Just("leaf-spine:3,4,2"),
        Just("leaf-spine:1,5,1"),
        Just("fat-tree:2"),
    ];
    // Hosts of each ToR, whose pod or, for 3, straight below the top; 0 to 2 hosts there too.
    let tors = prop::collection::vec((1usize..5, 0usize..4), 1..5);
    let uneven = (tors, 0usize..3).prop_map(|(tors, loose)| {
        let mut spec = TopologySpec::default();
        let mut host = |up: String| {
            let name = format!("h{}", spec.hosts.len());
            spec.hosts.push(HostSpec { name, count: None, up: vec![up] });
        };
        for (tor, &(hosts, _)) in tors.iter().enumerate() {
            (0..hosts.min(4)).for_each(|_| host(format!("tor{tor}")));
        }
        (0..loose).for_each(|_| host("top".into()));
        spec.hosts.truncate(12);
        let mut used = Vec::new();
        for (tor, &(_, pod)) in tors.iter().enumerate() {
            let name = format!("tor{tor}");
            if spec.hosts.iter().any(|host| host.up[0] == name) {
                let up = if pod == 3 { "top".into() } else { format!("pod{pod}") };
                used.extend((pod != 3).then_some(pod));
                spec.switches.push(SwitchSpec { name, up: vec![up] });
            }
        }
        used.sort_unstable();
        used.dedup();
        for pod in used {
            let up = vec!["top".into()];
            spec.switches.push(SwitchSpec { name: format!("pod{pod}"), up });
        }
        spec.switches.push(SwitchSpec { name: "top".into(), up: vec![] });
        spec.build().expect("a tree")
    });
    prop_oneof![alike.prop_map(parse), uneven]
}

#[derive(Clone, Debug)]
enum Step {
    Place(u32),
    Release(prop::sample::Index),
    Drain(prop::sample::Index),
    Undrain(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u32..7).prop_map(Step::Place),
        3 => any::<prop::sample::Index>().prop_map(Step::Release),
        1 => any::<prop::sample::Index>().prop_map(Step::Drain),
        1 => any::<prop::sample::Index>().prop_map(Step::Undrain),
    ];
    prop::collection::vec(step, 1..24)
}

proptest! {
    /// Every placement is the promised one of all that there are, and everything that is kept up
    /// to date is what a fresh count gives.
    #[test]
    fn each_placement_is_the_best_of_all(
        topology in small_clusters(),
        alpha in prop::sample::select(vec![0u32, 1, 333, 500, 1000, 1001, 2500]),
        steps in steps(),
    ) {
        let mut placer = Placer::new(&topology, fragments(alpha));
        let mut tables = with_tables(&topology, alpha);
        let mut running: Vec<Vec<HostId>> = Vec::new();
        let host = |at: &prop::sample::Index| HostId(at.index(topology.hosts().len()) as u32);
        for step in &steps {
            match step {
                Step::Place(count) => {
                    let free = free_hosts(&placer);
                    let placed = placer.place(*count);
                    prop_assert_eq!(&placed, &tables.place(*count));
                    let Ok(Placement { hosts, reason }) = placed else {
                        prop_assert!((free.len() as u32) < *count);
                        continue;
                    };
                    let pods = Pods::of(&topology);
                    prop_assert_eq!(&hosts, &reference::choice(&pods, &free, *count as usize, alpha));
                    let Reason::Fragments { job, free_before, free_after, score_millis, .. } = reason
                    else { panic!("a policy of fragments says so") };
                    prop_assert_eq!(score_millis, reference::score(&pods, &free, &hosts, alpha));
                    prop_assert_eq!(job, placer.fragments_of(&hosts));
                    prop_assert_eq!(free_before, placer.fragments_of(&free));
                    prop_assert_eq!(free_after, placer.free_fragments());
                    running.push(hosts);
                }
                Step::Release(at) if !running.is_empty() => {
                    let job = running.swap_remove(at.index(running.len()));
                    placer.release(&job);
                    tables.release(&job);
                }
                Step::Release(_) => {}
                Step::Drain(at) => {
                    prop_assert_eq!(placer.drain(host(at)), tables.drain(host(at)));
                }
                Step::Undrain(at) => {
                    prop_assert_eq!(placer.undrain(host(at)), tables.undrain(host(at)));
                }
            }
            let free = free_hosts(&placer);
            prop_assert_eq!(placer.free() as usize, free.len());
            let in_set = |host| free.contains(&host);
            let counted = reference::fragments(placer.pods(), PodId::CLUSTER, &in_set);
            prop_assert_eq!(placer.free_fragments(), counted);
            prop_assert_eq!(placer.fragments_of(&free), counted);
        }
        // All come back: the cluster is as it was, less what is drained.
        running.iter().for_each(|job| placer.release(job));
        for number in 0..topology.hosts().len() {
            placer.undrain(HostId(number as u32));
        }
        let fresh = Free::all(Pods::of(&topology));
        prop_assert_eq!(fresh.tallies(), placer.free.tallies());
    }
}
