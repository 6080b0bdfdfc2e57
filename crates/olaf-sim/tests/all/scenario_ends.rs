//! A scenario's ends as engines: what they send, when, and what they come to.

use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_sim::study::scenario::{
    Contributor, End, HopFates, Notices, Scenario, ServerEnd, WorkerEnd,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Answer, Notice, Packet, QueueStatus, Update};
use serde_json::json;

const MS: u64 = 1_000_000;

/// Two clusters of two workers, each with an update every 10 ms.
fn scenario(control: &str) -> Scenario {
    serde_json::from_value(json!({
        "seed": 1, "duration_ns": 100 * MS,
        "switches": [{"name": "A", "queue": "olaf", "slots": 2, "rate_bps": 1_000_000}],
        "groups": [{"name": "G", "switch": "A", "clusters": 2, "workers": 2, "in_step": true,
                    "interval_ns": 10 * MS, "packet_bytes": 1030}],
        "control": {"kind": control, "unsent": "discard"},
    }))
    .unwrap()
}

fn worker(scenario: &Scenario, number: u32) -> End {
    End::Worker(Box::new(WorkerEnd::new(scenario, number, 3).unwrap()))
}

fn server(scenario: &Scenario) -> End {
    End::Server(Box::new(ServerEnd::new(scenario).unwrap()))
}

/// What an end sends now: receivers and bytes.
fn sent(end: &mut End, now: Instant) -> Vec<(Vec<PeerId>, Vec<u8>)> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let mut all = Vec::new();
    while let Some(transmit) = end.engine_mut().poll_transmit(now, PortId(0), &mut buf) {
        all.push((transmit.to.as_slice().to_vec(), buf[..transmit.len].to_vec()));
    }
    all
}

#[test]
fn without_a_queue_between_them_every_update_is_delivered_and_answered() {
    let scenario = scenario("off");
    let mut ends: Vec<End> = (0..4).map(|number| worker(&scenario, number)).collect();
    ends.push(server(&scenario));
    loop {
        let times = ends
            .iter()
            .enumerate()
            .filter_map(|(at, end)| Some((end.engine().poll_timeout()?.0, at)));
        let Some((now, at)) = times.min().filter(|(now, _)| now.0 < 100 * MS) else { break };
        ends[at].engine_mut().handle_timeout(now);
        for (to, bytes) in sent(&mut ends[at], now) {
            for to in to {
                let to = if at == 4 { to.0 as usize } else { 4 };
                let from = Source::end(PeerId(u32::try_from(at).unwrap()));
                ends[to].engine_mut().handle_packet(now, from, &bytes);
            }
        }
    }
    let ends: Vec<&End> = ends.iter().collect();
    let outcome = scenario.outcome(&ends, vec![HopFates::default()]).unwrap();
    assert_eq!((outcome.fates.generated, outcome.fates.delivered), (40, 40));
    assert_eq!((outcome.fates.on_the_way, outcome.packets_sent), (0, 40));
    assert_eq!(outcome.fan_in, [0, 40]);
    // Each sawtooth climbs from 0 to 10 ms.
    assert_eq!(outcome.clusters[1].age_mean_ns, Some(5e6));
    assert_eq!(outcome.clusters[1].worker_age_mean_ns, Some(5e6));
    let answers = ends[..4].iter().map(|end| {
        olaf_host::json::of(&|_| 0.into(), |to| {
            end.engine().report(Instant(100 * MS), to);
        })
    });
    assert!(answers.into_iter().all(|report| report["answers"] == 10));
}

#[test]
fn an_outcome_needs_the_server_and_each_worker_once() {
    let scenario = scenario("off");
    let ends =
        [worker(&scenario, 0), worker(&scenario, 1), worker(&scenario, 2), server(&scenario)];
    let [a, b, c, top] = &ends;
    let hops = || vec![HopFates::default()];
    assert!(scenario.outcome(&[a, b, c, top], hops()).unwrap_err().0.contains("each worker"));
    assert!(scenario.outcome(&[a, b, c, c, top], hops()).unwrap_err().0.contains("each worker"));
    let last = worker(&scenario, 3);
    assert!(scenario.outcome(&[a, b, c, &last], hops()).unwrap_err().0.contains("one server"));
    assert!(scenario.outcome(&[&last, a, b, c, top], hops()).is_ok());
    assert!(scenario.outcome(&[&last, a, b, c, top], vec![]).unwrap_err().0.contains("switch"));
    assert!(WorkerEnd::new(&scenario, 4, 3).is_err());
    assert!(WorkerEnd::new(&scenario, 0, 0).is_err());
}

#[test]
fn a_worker_sends_until_it_hears_of_a_crowd() {
    // Nothing was heard: it sends. A slot for every sixty thousand clusters: hardly ever.
    let scenario = scenario("paper");
    let (mut end, mut top) = (worker(&scenario, 0), server(&scenario));
    end.engine_mut().handle_timeout(Instant(0));
    let first = sent(&mut end, Instant(0));
    assert_eq!((first.len(), first[0].0.as_slice()), (1, [PeerId(0)].as_slice()));
    top.engine_mut().handle_packet(Instant(0), Source::end(PeerId(0)), &first[0].1);
    let delay = scenario.answers.delay_ns;
    assert_eq!(top.engine().poll_timeout().unwrap().0, Instant(delay));
    assert_eq!(sent(&mut top, Instant(delay - 1)), []);
    let answers = sent(&mut top, Instant(delay));
    let answer = Answer::parse(&Packet::new_checked(&answers[0].1).unwrap()).unwrap();
    let queue = QueueStatus { active_clusters: 60_000, slots: 1, switches: 1, ..answer.queue };
    let mut bytes = vec![0; MAX_DATAGRAM];
    let len = Answer { queue, ..answer }.emit(&[], &mut bytes);
    end.engine_mut().handle_packet(Instant(delay), Source::end(PeerId(0)), &bytes[..len]);
    end.engine_mut().handle_timeout(Instant(99 * MS));
    assert_eq!(sent(&mut end, Instant(99 * MS)), []);
    let report = olaf_host::json::of(&|_| 0.into(), |to| end.engine().report(Instant(0), to));
    assert_eq!((&report["generated"], &report["discarded"]), (&json!(10), &json!(9)));
}

#[test]
fn all_that_met_in_an_update_hear_its_answer_and_only_the_summed_grow_younger() {
    let scenario = scenario("off");
    let (mut end, mut top) = (worker(&scenario, 0), ServerEnd::new(&scenario).unwrap());
    end.engine_mut().handle_timeout(Instant(0));
    let first = sent(&mut end, Instant(0));
    let met = |worker, summed| Contributor { worker, generated_ns: 0, summed };
    top.met(vec![met(1, true), met(3, false), met(0, true)]);
    top.handle_packet(Instant(5), Source::end(PeerId(0)), &first[0].1);
    let mut top = End::Server(Box::new(top));
    let now = Instant(5 + scenario.answers.delay_ns);
    assert_eq!(sent(&mut top, now)[0].0, [PeerId(0), PeerId(1), PeerId(3)]);
    let mut ends = vec![end];
    ends.extend((1..4).map(|number| worker(&scenario, number)));
    ends.push(top);
    let ends: Vec<&End> = ends.iter().collect();
    let outcome = scenario.outcome(&ends, vec![HopFates::default()]).unwrap();
    assert_eq!(outcome.clusters[0].workers_unheard, 0);
    assert_eq!(outcome.clusters[1].workers_unheard, 2);
}

#[test]
fn what_a_queue_has_taken_in_is_told_to_the_cluster_after_a_time() {
    let scenario = scenario("fair");
    assert!(scenario.wants_notices().unwrap());
    let mut end = worker(&scenario, 2);
    let mut notices = End::Notices(Box::new(Notices::new(&scenario).unwrap()));
    end.engine_mut().handle_timeout(Instant(0));
    let update = sent(&mut end, Instant(0)).swap_remove(0).1;
    assert!(Update::parse(&Packet::new_checked(&update).unwrap()).is_ok());
    notices.engine_mut().handle_packet(Instant(7), Source::end(PeerId(2)), &update);
    let now = notices.engine().poll_timeout().unwrap().0;
    assert_eq!(now, Instant(7 + scenario.answers.delay_ns));
    let told = sent(&mut notices, now);
    assert_eq!(told[0].0, [PeerId(2), PeerId(3)]);
    let notice = Notice::parse(&Packet::new_checked(&told[0].1).unwrap()).unwrap();
    assert_eq!((notice.address.cluster.0, notice.taken_newest_ns), (1, 0));
}

#[test]
fn every_end_counts_what_it_refuses() {
    let scenario = scenario("fair");
    let notices = End::Notices(Box::new(Notices::new(&scenario).unwrap()));
    for mut end in [worker(&scenario, 0), server(&scenario), notices] {
        let verdict = end.engine_mut().handle_packet(Instant(0), Source::end(PeerId(0)), b"OLAF?");
        assert!(matches!(verdict, Verdict::Drop(_)), "{verdict:?}");
        let report = olaf_host::json::of(&|_| 0.into(), |to| end.engine().report(Instant(0), to));
        assert_eq!(report["refused"], 1);
    }
}

#[test]
fn an_outcome_with_more_ends_than_contributions_is_refused() {
    let scenario = scenario("off");
    let mut ends: Vec<End> = (0..4).map(|number| worker(&scenario, number)).collect();
    ends.push(server(&scenario));
    let ends: Vec<&End> = ends.iter().collect();
    let dropped = HopFates { dropped: 1, ..HopFates::default() };
    assert!(scenario.outcome(&ends, vec![dropped]).is_err(), "nothing was made yet");
    assert!(scenario.outcome(&ends, vec![HopFates::default()]).is_ok());
}
