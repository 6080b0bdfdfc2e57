use super::*;
use proptest::prelude::*;

fn spec(hosts: &[(&str, &[&str])], switches: &[(&str, &[&str])]) -> TopologySpec {
    let names = |up: &[&str]| up.iter().map(|&name| name.into()).collect();
    TopologySpec {
        hosts: hosts
            .iter()
            .map(|&(name, up)| HostSpec { name: name.into(), count: None, up: names(up) })
            .collect(),
        switches: switches
            .iter()
            .map(|&(name, up)| SwitchSpec { name: name.into(), up: names(up) })
            .collect(),
    }
}

fn said(spec: &TopologySpec) -> String {
    spec.build().expect_err("none").to_string()
}

#[test]
fn a_file_names_hosts_and_switches() {
    let json = r#"{
        "hosts": [{"name": "a", "count": 3, "up": ["rack0"]}, {"name": "login", "up": ["rack1"]}],
        "switches": [{"name": "rack0", "up": ["spine"]}, {"name": "rack1", "up": ["spine"]},
                     {"name": "spine"}]
    }"#;
    let spec: TopologySpec = serde_json::from_str(json).expect("a spec");
    let topology = spec.build().expect("a tree");
    let names: Vec<_> = topology.hosts().iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a0", "a1", "a2", "login"]);
    let levels: Vec<_> = topology.switches().iter().map(|switch| switch.level).collect();
    assert_eq!(levels, [1, 1, 2]);
    assert_eq!(topology.describe(), "4 hosts, 3 switches on 2 levels (2, 1), 6 links");
}

#[test]
fn a_key_that_is_not_known_is_refused() {
    let json = r#"{"hosts": [{"name": "a", "ups": []}], "switches": []}"#;
    let error = serde_json::from_str::<TopologySpec>(json).expect_err("a slip").to_string();
    assert!(error.contains("ups"), "{error}");
}

#[test]
fn a_cycle_is_named() {
    let cyclic =
        spec(&[("h", &["a"])], &[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[])]);
    let cycle =
        |names: &[&str]| Err(TopologyError::Cycle(names.iter().map(|&name| name.into()).collect()));
    let found = cyclic.build();
    assert!(found == cycle(&["b", "c"]) || found == cycle(&["c", "b"]), "{found:?}");
    assert!(said(&cyclic).contains("a cycle, "));
    assert_eq!(spec(&[("h", &["a"])], &[("a", &["a"])]).build(), cycle(&["a"]));
}

#[test]
fn what_is_wrong_is_named() {
    let top: (&str, &[&str]) = ("s", &[]);
    assert_eq!(said(&spec(&[("h", &["t"])], &[top])), "h.up: no switch is called \"t\"");
    let host = spec(&[("h", &["s"]), ("g", &["h"])], &[top]);
    assert_eq!(said(&host), "g.up: \"h\" is a host; links lead up to switches");
    let twice = spec(&[("s", &["s"])], &[top]);
    assert!(said(&twice).starts_with("name \"s\": given twice"));
    let mut many = spec(&[("h", &["s"]), ("h1", &["s"])], &[top]);
    many.hosts[0].count = Some(2);
    assert!(said(&many).starts_with("name \"h1\": given twice"));
    let loose = spec(&[("h", &[])], &[top]);
    assert!(said(&loose).starts_with("h.up: empty; a host has at least one link"));
    assert!(said(&spec(&[], &[top])).starts_with("hosts: none"));
    assert!(said(&spec(&[("", &["s"])], &[top])).starts_with("hosts[0].name: empty"));
    assert!(said(&spec(&[("h", &["s"])], &[top, ("", &[])])).starts_with("switches[1].name"));
    let bare = spec(&[("h", &["s"])], &[top, ("t", &["s"])]);
    assert!(said(&bare).starts_with("switch \"t\": no host is below it"));
    let apart = spec(&[("h", &["s"]), ("g", &["t"])], &[top, ("t", &[])]);
    assert!(said(&apart).starts_with("h and g are not connected"));
}

#[test]
fn too_large_is_said_before_memory_is_asked_for() {
    let mut large = spec(&[("h", &["s", "s"])], &[("s", &[])]);
    large.hosts[0].count = Some(u32::MAX);
    assert_eq!(said(&large), "4294967295 hosts: at most 1048576");
    large.hosts[0].count = Some(1 << 20);
    large.hosts[0].up = vec!["s".into(); 9];
    assert_eq!(said(&large), "9437184 links: at most 8388608");
    let names: Vec<String> = (0..65).map(|n| format!("s{n}")).collect();
    let mut chain = spec(&[("h", &["s0"])], &[]);
    for n in 0..65 {
        let up = names.get(n + 1).cloned().into_iter().collect();
        chain.switches.push(SwitchSpec { name: names[n].clone(), up });
    }
    assert_eq!(said(&chain), "65 levels: at most 64");
}

#[test]
fn hosts_without_a_switch_left_are_cut_off() {
    let topology = spec(
        &[("a", &["s"]), ("b", &["s", "t"]), ("c", &["t"])],
        &[("s", &["top"]), ("t", &["top"]), ("top", &[])],
    );
    let topology = topology.build().expect("a graph");
    let cut_off = |switches: &[u32]| {
        topology.cut_off(&switches.iter().map(|&number| SwitchId(number)).collect())
    };
    assert_eq!(cut_off(&[0]), [HostId(0)]);
    assert_eq!(cut_off(&[0, 1]), [HostId(0), HostId(1), HostId(2)]);
    assert!(cut_off(&[2]).is_empty() && cut_off(&[]).is_empty());
}

#[test]
fn a_generated_cluster_says_itself() {
    for word in ["fat-tree:4", "fat-tree:3,2,5:1,2", "leaf-spine:3,4,2"] {
        let topology = Topology::parse(word).expect("a form");
        assert_eq!(topology.spec().build().as_ref(), Ok(&topology), "{word}");
    }
}

proptest! {
    #[test]
    fn any_graph_is_built_or_refused_in_words(
        hosts in prop::collection::vec(prop::collection::vec(0usize..6, 0..3), 0..8),
        switches in prop::collection::vec(prop::collection::vec(0usize..7, 0..3), 0..6),
    ) {
        let name = |n: &usize| format!("s{n}");
        let spec = TopologySpec {
            hosts: hosts.iter().enumerate().map(|(n, up)| HostSpec {
                name: format!("h{n}"), count: None, up: up.iter().map(name).collect(),
            }).collect(),
            switches: switches.iter().enumerate().map(|(n, up)| SwitchSpec {
                name: name(&n), up: up.iter().map(name).collect(),
            }).collect(),
        };
        match spec.build() {
            Ok(topology) => {
                prop_assert_eq!(topology.spec(), spec);
                for link in topology.links() {
                    if let Node::Switch(child) = link.child {
                        let level = |s: SwitchId| topology.switches()[s.index()].level;
                        prop_assert!(level(child) < level(link.parent), "links lead up");
                    }
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
