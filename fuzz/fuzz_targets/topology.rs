//! Any words and any file as a topology: built, with pods that hold together and room for jobs, or
//! refused in words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olaf_sched::placement::{Placer, Policy};
use olaf_sched::topology::{
    Capacity, HostSpec, MOST_HOSTS, PodId, Pods, SwitchSpec, Topology, TopologySpec,
};

#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'a> {
    text: &'a str,
    /// Of each host, and of each switch: the switches above, modulo a few more than there are.
    hosts: Vec<(Option<u8>, Vec<u8>)>,
    switches: Vec<Vec<u8>>,
    /// Jobs that come; even ones leave again.
    jobs: Vec<u8>,
    alpha: u16,
}

fuzz_target!(|input: Input<'_>| {
    if let Ok(capacity) = Capacity::parse(input.text) {
        assert!(capacity.units() > 0);
    }
    // What is large and allowed takes its time: seconds, for a million hosts.
    let numbers = input.text.split(|c: char| !c.is_ascii_digit());
    if numbers.flat_map(str::parse).all(|n: u64| n <= 12 || n > MOST_HOSTS) {
        check(Topology::parse(input.text).map_err(|error| error.to_string()), &input);
    }
    if let Ok(spec) = serde_json::from_str::<TopologySpec>(input.text)
        && spec.hosts.iter().all(|host| host.count.is_none_or(|n| n < 100))
    {
        check(spec.build().map_err(|error| error.to_string()), &input);
    }
    let most = input.switches.len() + 2;
    let up = |up: &[u8]| up.iter().map(|n| format!("s{}", usize::from(*n) % most)).collect();
    let host = |(at, (count, parents)): (usize, &(Option<u8>, Vec<u8>))| HostSpec {
        name: format!("h{at}."),
        count: count.map(|n| u32::from(n % 8)),
        up: up(parents),
    };
    let spec = TopologySpec {
        hosts: input.hosts.iter().enumerate().map(host).collect(),
        switches: (0..)
            .zip(&input.switches)
            .map(|(at, parents): (usize, _)| SwitchSpec { name: format!("s{at}"), up: up(parents) })
            .collect(),
    };
    check(spec.build().map_err(|error| error.to_string()), &input);
});

fn check(topology: Result<Topology, String>, input: &Input<'_>) {
    let topology = match topology {
        Ok(topology) => topology,
        Err(error) => return assert!(!error.is_empty()),
    };
    assert_eq!(topology.spec().build().as_ref(), Ok(&topology));
    assert!(!topology.describe().is_empty());
    let pods = Pods::of(&topology);
    let mut order = pods.order().to_vec();
    assert_eq!(pods.fragments_of(&order), 1, "the cluster is one fragment");
    order.sort_unstable();
    assert!(order.iter().zip(0..).all(|(host, number)| host.0 == number));
    for (number, pod) in (0..).zip(pods.all()) {
        assert!(pods.hosts(PodId(number)).iter().all(|&host| pods.contains(PodId(number), host)));
        if let Some(parent) = pod.parent {
            let outer = &pods.pod(parent).places;
            assert!(outer.start <= pod.places.start && pod.places.end <= outer.end);
        }
    }
    let mut placer =
        Placer::new(&topology, Policy::Fragments { alpha_millis: u32::from(input.alpha) % 4001 });
    for &hosts in &input.jobs {
        if let Ok(placement) = placer.place(hosts.into()) {
            assert_eq!(placement.hosts.len(), usize::from(hosts));
            assert!(placement.hosts.is_sorted_by(|one, next| one < next));
            if hosts % 2 == 0 {
                placer.release(&placement.hosts);
            }
        }
    }
}
