//! `olaf replay` against a second, independent account of the same rules: a list of events, sorted
//! again after every change, time in exact fractions of a nanosecond.

use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use olaf_sim::study::replay::{Head, Parameters, replay};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Copy, Debug)]
struct Line {
    t_ns: u64,
    cluster: u8,
    worker: u8,
    reward: f64,
    bytes: u32,
}

#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Event {
    // In this order at the same time.
    Ends,
    Arrives(usize),
}

/// What waits: lines whose updates are in it. `who` is set as long as one worker's newer update
/// may replace it.
struct Waiting {
    lines: Vec<usize>,
    cluster: u8,
    who: Option<u8>,
    /// Departures when it took its slot.
    joined: usize,
}

/// What the age-optimal queue knows of a cluster: time of the newest line that began to leave, and
/// arrivals in a row that were no newer.
#[derive(Clone, Copy)]
struct Known {
    newest: u64,
    no_news: usize,
}

#[derive(Debug)]
struct Left {
    start: u64,
    end: u64,
    lines: Vec<usize>,
}

struct Model<'a> {
    lines: &'a [Line],
    /// The first is on the wire when `busy`, unless `gone` is.
    queue: Vec<Waiting>,
    gone: Option<Waiting>,
    busy: Option<u128>,
    events: Vec<(u128, Event)>,
    fates: Vec<&'static str>,
    left: Vec<Left>,
    rate: u128,
    known: BTreeMap<u8, Known>,
    begun: usize,
}

fn mean_reward(lines: &[Line], of: &[usize]) -> f64 {
    of.iter().map(|line| lines[*line].reward).sum::<f64>() / of.len() as f64
}

impl Model<'_> {
    // Time counts in 1/rate nanoseconds, so that every duration is whole.
    fn whole(&self, time: u128) -> u64 {
        time.div_ceil(self.rate) as u64
    }

    /// By how much lines would make their cluster younger, and the bytes they take: compared by
    /// the square of the one over the other, in whole numbers. Infinite for an unknown cluster.
    fn helps(&self, cluster: u8, lines: &[usize]) -> (u128, u128) {
        let newest = lines.iter().map(|line| self.lines[*line].t_ns).max().unwrap();
        let bytes = lines.iter().map(|line| self.lines[*line].bytes).max().unwrap();
        match self.known.get(&cluster) {
            Some(known) => (u128::from(newest.saturating_sub(known.newest)), u128::from(bytes)),
            None => (u128::from(u32::MAX), 1),
        }
    }

    fn helps_more(&self, a: (u8, &[usize]), b: (u8, &[usize])) -> bool {
        let (a, b) = (self.helps(a.0, a.1), self.helps(b.0, b.1));
        a.0 * a.0 * b.1 > b.0 * b.0 * a.1
    }

    /// Brings to the front what the age-optimal queue sends next.
    fn choose(&mut self, p: &Parameters) {
        if self.begun - self.queue[0].joined < 8 * p.slots {
            let mut best = 0;
            for at in 1..self.queue.len() {
                let (a, b) = (&self.queue[at], &self.queue[best]);
                if self.helps_more((a.cluster, &a.lines), (b.cluster, &b.lines)) {
                    best = at;
                }
            }
            let best = self.queue.remove(best);
            self.queue.insert(0, best);
        }
        let first = &self.queue[0];
        let newest = first.lines.iter().map(|line| self.lines[*line].t_ns).max().unwrap();
        let known = self.known.entry(first.cluster).or_insert(Known { newest, no_news: 0 });
        known.newest = known.newest.max(newest);
        self.begun += 1;
    }

    /// Where the full queue has something that helps less than a line: the last of the least.
    fn victim(&self, line: usize, p: &Parameters) -> Option<usize> {
        let of = |at: usize| (self.queue[at].cluster, &self.queue[at].lines[..]);
        let mut least = None;
        for at in self.first_open(p)..self.queue.len() {
            if least.is_none_or(|least| !self.helps_more(of(at), of(least))) {
                least = Some(at);
            }
        }
        least.filter(|least| self.helps_more((self.lines[line].cluster, &[line]), of(*least)))
    }

    /// Where in the queue begins what can still be merged into or evicted.
    fn first_open(&self, p: &Parameters) -> usize {
        usize::from(self.busy.is_some() && p.head == Head::Locked)
    }

    fn hears(&mut self, line: usize) {
        let Line { t_ns, cluster, .. } = self.lines[line];
        if let Some(known) = self.known.get_mut(&cluster) {
            known.no_news = if t_ns > known.newest { 0 } else { known.no_news + 1 };
            if known.no_news == 16 {
                self.known.remove(&cluster);
            }
        }
    }

    fn send_next(&mut self, time: u128, p: &Parameters) {
        if self.busy.is_none() && !self.queue.is_empty() {
            if p.engine == QueueKind::Freshest {
                self.choose(p);
            }
            let bytes = self.queue[0].lines.iter().map(|line| self.lines[*line].bytes).max();
            self.busy = Some(time);
            if p.head == Head::Gone {
                self.gone = Some(self.queue.remove(0));
            }
            let ends = time + u128::from(bytes.unwrap()) * 8 * 1_000_000_000;
            self.events.push((ends, Event::Ends));
        }
    }

    fn arrives(&mut self, line: usize, p: &Parameters) -> &'static str {
        let this = self.lines[line];
        if !this.reward.is_finite() {
            return "rejected";
        }
        let locked = self.first_open(p);
        let open = (locked..self.queue.len())
            .find(|at| p.engine != QueueKind::Fifo && self.queue[*at].cluster == this.cluster);
        let Some(open) = open else {
            if self.queue.len() == p.slots {
                let victim = match p.engine {
                    QueueKind::Freshest => self.victim(line, p),
                    _ => None,
                };
                let Some(victim) = victim else { return "dropped" };
                for gone in self.queue.remove(victim).lines {
                    self.fates[gone] = "dropped";
                }
            }
            let (cluster, who, joined) = (this.cluster, Some(this.worker), self.begun);
            self.queue.push(Waiting { lines: vec![line], cluster, who, joined });
            return "waits";
        };
        let waiting = &mut self.queue[open];
        let better = this.reward - mean_reward(self.lines, &waiting.lines);
        if waiting.who == Some(this.worker) || p.gate.is_some_and(|threshold| better > threshold) {
            for old in std::mem::replace(&mut waiting.lines, vec![line]) {
                self.fates[old] = "replaced";
            }
            waiting.who = Some(this.worker);
        } else if p.gate.is_some_and(|threshold| better < -threshold) {
            return "filtered";
        } else {
            waiting.lines.push(line);
            waiting.who = None;
        }
        "waits"
    }

    fn run(&mut self, p: &Parameters) {
        while !self.events.is_empty() {
            self.events.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let (time, event) = self.events.remove(0);
            match event {
                Event::Ends => {
                    let sent = self.gone.take().unwrap_or_else(|| self.queue.remove(0));
                    let fate = if sent.lines.len() == 1 { "delivered" } else { "merged" };
                    for line in &sent.lines {
                        self.fates[*line] = fate;
                    }
                    let start = self.busy.take().map(|start| self.whole(start)).unwrap();
                    self.left.push(Left { start, end: self.whole(time), lines: sent.lines });
                }
                Event::Arrives(line) => {
                    self.fates[line] = self.arrives(line, p);
                    if self.fates[line] != "rejected" {
                        self.hears(line);
                    }
                }
            }
            // Arrivals of one instant on an idle link come one after the other: the first leaves.
            self.send_next(time, p);
        }
    }
}

/// Average and mean peak of a cluster's age, from squares of ages instead of trapezia.
fn ages(lines: &[Line], left: &[Left], cluster: u8) -> (Option<f64>, Option<f64>) {
    let last = i128::from(left.last().map_or(0, |left| left.end));
    let mut of: Vec<(i128, i128)> = left
        .iter()
        .filter(|left| lines[left.lines[0]].cluster == cluster)
        .map(|left| {
            let newest = left.lines.iter().map(|line| lines[*line].t_ns).max().unwrap();
            (i128::from(left.end), i128::from(newest))
        })
        .collect();
    // All are observed from the first departure's end; a cluster is as old as that is ago until
    // its own.
    let start = i128::from(left.first().map_or(0, |left| left.end));
    let Some(first) = of.first().copied() else {
        return ((last > start).then(|| (last - start) as f64 / 2.0), None);
    };
    of.push((last, i128::MAX));
    let (mut twice_area, mut peaks) = ((first.0 - start).pow(2), Vec::new());
    let mut newest = first.1;
    for pair in of.windows(2) {
        let (from, to) = (pair[0].0, pair[1].0);
        newest = newest.max(pair[0].1);
        twice_area += (to - newest).pow(2) - (from - newest).pow(2);
        if pair[1].1 != i128::MAX && pair[1].1 > newest {
            peaks.push((to - newest) as f64);
        }
    }
    let mean = (last > start).then(|| twice_area as f64 / 2.0 / (last - start) as f64);
    let peak = (!peaks.is_empty()).then(|| peaks.iter().sum::<f64>() / peaks.len() as f64);
    (mean, peak)
}

fn near(found: &Value, expected: Option<f64>) -> bool {
    match (found.as_f64(), expected) {
        (None, None) => found.is_null(),
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
        _ => false,
    }
}

fn compare(lines: &[Line], p: &Parameters) -> Result<(), TestCaseError> {
    let mut csv = String::from("t_ns,cluster,worker,seq,reward,bytes\n");
    for (at, line) in lines.iter().enumerate() {
        let Line { t_ns, cluster, worker, reward, bytes } = line;
        writeln!(csv, "{t_ns},{cluster},w{worker},{at},{reward},{bytes}").unwrap();
    }
    let found = serde_json::to_value(replay(csv.as_bytes(), p).unwrap()).unwrap();

    let rate = u128::from(p.rate.get());
    let arrives = |(at, line): (usize, &Line)| (u128::from(line.t_ns) * rate, Event::Arrives(at));
    let mut model = Model {
        lines,
        queue: Vec::new(),
        gone: None,
        busy: None,
        events: lines.iter().enumerate().map(arrives).collect(),
        fates: vec!["missing"; lines.len()],
        left: Vec::new(),
        rate,
        known: BTreeMap::new(),
        begun: 0,
    };
    model.run(p);

    let fates: Vec<_> =
        found["fates"].as_array().unwrap().iter().map(|f| f["fate"].as_str().unwrap()).collect();
    prop_assert_eq!(&fates, &model.fates, "fates of\n{}", csv);
    let departures = found["departures"].as_array().unwrap();
    prop_assert_eq!(departures.len(), model.left.len());
    for (found, left) in departures.iter().zip(&model.left) {
        let mut names: Vec<String> =
            left.lines.iter().map(|line| format!("w{}:{line}", lines[*line].worker)).collect();
        names.sort();
        let times = left.lines.iter().map(|line| lines[*line].t_ns);
        let expected = serde_json::json!({
            "start_ns": left.start, "end_ns": left.end,
            "cluster": lines[left.lines[0]].cluster, "contributors": names,
            "weight": left.lines.len() as f64, "reward": found["reward"],
            "oldest_ns": times.clone().min(), "newest_ns": times.max(),
        });
        prop_assert_eq!(found, &expected);
        prop_assert!(near(&found["reward"], Some(mean_reward(lines, &left.lines))));
    }

    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    for summary in found["summary"]["clusters"].as_array().unwrap() {
        let cluster = u8::try_from(summary["cluster"].as_u64().unwrap()).unwrap();
        let (mean, peak) = ages(lines, &model.left, cluster);
        prop_assert!(near(&summary["aom_mean_ns"], mean), "{summary} is not {mean:?}");
        prop_assert!(near(&summary["aom_peak_mean_ns"], peak), "{summary} is not {peak:?}");
        if let Some(mean) = mean {
            (sum, squares, n) = (sum + mean, squares + mean * mean, n + 1.0);
        }
        let mut arrivals = 0;
        for fate in ["delivered", "merged", "replaced", "filtered", "dropped", "rejected"] {
            let own =
                |(at, line): (usize, &Line)| line.cluster == cluster && model.fates[at] == fate;
            let count = lines.iter().enumerate().filter(|x| own(*x)).count() as u64;
            prop_assert_eq!(summary[fate].as_u64(), Some(count), "{} of {}", fate, summary);
            arrivals += count;
        }
        prop_assert_eq!(summary["arrivals"].as_u64(), Some(arrivals));
        let loss = summary["dropped"].as_f64().unwrap() / arrivals as f64;
        prop_assert!(near(&summary["loss"], Some(loss)));
    }
    let fairness = (n > 0.0).then(|| if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 });
    prop_assert!(near(&found["summary"]["fairness"], fairness));
    Ok(())
}

fn traces() -> impl Strategy<Value = Vec<Line>> {
    let reward = prop_oneof![
        8 => (-4i8..4).prop_map(f64::from),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ];
    // Many ties, and gaps around the time that a departure takes.
    let gap = prop_oneof![3 => Just(0u64), 3 => 1u64..20, 2 => 90u64..110, 1 => 200u64..2000];
    let line = (gap, 0u8..4, 0u8..3, reward, prop_oneof![Just(100u32), 1u32..200]);
    prop::collection::vec(line, 0..60).prop_map(|lines| {
        let mut t_ns = 0;
        let arrive = |(gap, cluster, worker, reward, bytes)| {
            t_ns += gap;
            Line { t_ns, cluster, worker, reward, bytes }
        };
        lines.into_iter().map(arrive).collect()
    })
}

fn settings() -> impl Strategy<Value = Parameters> {
    // With these thresholds no mean of whole rewards is exactly at the gate, where the last bit
    // of a mean would decide.
    let gate = prop_oneof![Just(None), Just(Some(0.0371)), Just(Some(1.437)), Just(Some(3.119))];
    let engine = prop_oneof![
        3 => Just(QueueKind::Merging),
        1 => Just(QueueKind::Fifo),
        3 => Just(QueueKind::Freshest),
    ];
    let rate = prop_oneof![
        Just(8_000_000_000u64), // whole: a byte is a nanosecond
        Just(2_048_000_000),
        Just(40_000_000_000), // a fifth of a nanosecond
        Just(7_777_777_777),
        Just(1_900_000),
        1u64..20_000_000_000,
    ];
    let head = prop_oneof![2 => Just(Head::Locked), 1 => Just(Head::Open), 1 => Just(Head::Gone)];
    (engine, 1usize..6, rate, gate, head).prop_map(|(engine, slots, rate, gate, head)| {
        // Of an open head that queue decides at the end what it was that was sent.
        let locked = engine == QueueKind::Freshest && head == Head::Open;
        let head = if locked { Head::Locked } else { head };
        let rate = BitsPerSecond::new(rate).unwrap();
        Parameters { engine, slots, rate, gate, head, full: true }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(2000), ..ProptestConfig::default() })]
    #[test]
    fn the_engine_and_the_list_of_events_tell_the_same_story(lines in traces(), p in settings()) {
        compare(&lines, &p)?;
    }
}
