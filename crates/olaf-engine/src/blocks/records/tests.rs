use super::reference::Reference;
use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const INTERVAL: Duration = Duration::from_millis(10);
const JOB: u8 = 3;

fn spec(sources: u8) -> JobSpec {
    JobSpec {
        sources: (0..sources).collect(),
        block_cnt_max: 8,
        block_grad_max: 4,
        visits: 1,
        first: 0,
    }
}

fn key(generation: u16, block: u32) -> Key {
    Key { job: JOB, generation, block }
}

fn bytes(gradients: &[i32]) -> Vec<u8> {
    gradients.iter().flat_map(|gradient| gradient.to_be_bytes()).collect()
}

/// A table with one job, which steps read like a trace of packets.
struct Trace(Records);

impl Trace {
    fn new(spec: &JobSpec, threads: u32) -> Self {
        let mut records = Records::new(16, INTERVAL, threads);
        records.add_job(JOB, spec);
        Self(records)
    }

    fn meet(&mut self, at: u64, source: u8, key: Key, gradients: &[i32]) -> Met {
        let gradients = &bytes(gradients);
        let is_final = key.block == 9;
        let (degraded, aged, call) = (false, false, 0);
        let piece = Piece { key, source, sources: 1, degraded, aged, is_final, call, gradients };
        let met = self.0.meet(Instant(at), &piece);
        if met == Met::Complete {
            self.0.finish(key);
        }
        assert!(self.0.counts().add_up());
        met
    }

    fn sum(&self, key: Key) -> &[i32] {
        self.0.record(key).expect("the block has a record").sum()
    }
}

#[test]
fn a_block_is_complete_with_the_pieces_of_all_sources() {
    let mut table = Trace::new(&spec(3), 1);
    assert_eq!(table.meet(1, 0, key(0, 0), &[1, 2]), Met::Opened);
    assert_eq!(table.meet(2, 2, key(0, 0), &[10, i32::MAX]), Met::Added);
    assert_eq!(table.meet(3, 2, key(0, 0), &[10, 20]), Met::Repeated);
    assert_eq!(table.meet(4, 1, key(0, 0), &[100, 200]), Met::Complete);
    assert_eq!(table.sum(key(0, 0)), [111, i32::MAX], "sums saturate");
    let record = table.0.record(key(0, 0)).expect("the result is kept");
    assert_eq!((record.sources(), record.degraded, record.start), (3, false, Instant(1)));
    assert_eq!(table.meet(5, 1, key(0, 0), &[100, 200]), Met::Repeated);
    assert_eq!(table.0.usage(JOB), (0, 1, 1));
}

#[test]
fn a_block_record_is_only_where_a_job_record_is() {
    let mut table = Trace::new(&spec(2), 1);
    let elsewhere = Key { job: 4, ..key(0, 0) };
    assert_eq!(table.meet(1, 0, elsewhere, &[1]), Met::Refused(Reason::NoJob));
    assert_eq!(table.meet(1, 2, key(0, 0), &[1]), Met::Refused(Reason::NotASource));
    assert_eq!(table.0.used(), 0);
    table.meet(1, 0, key(0, 0), &[1]);
    table.0.remove_job(JOB);
    assert_eq!((table.0.used(), table.0.counts().given_up), (0, 1));
    assert_eq!(table.meet(2, 0, key(0, 0), &[1]), Met::Refused(Reason::NoJob));
}

#[test]
fn pieces_that_do_not_fit_are_refused_by_name() {
    let mut table = Trace::new(&spec(2), 1);
    let refused = |reason| Met::Refused(reason);
    assert_eq!(table.meet(1, 0, key(0, 0), &[0; 5]), refused(Reason::TooManyGradients));
    table.meet(1, 0, key(0, 0), &[1, 2]);
    assert_eq!(table.meet(1, 1, key(0, 0), &[1]), refused(Reason::WrongSize));
    assert_eq!(table.meet(1, 1, key(0, 32), &[1]), refused(Reason::TooFarAhead));
    assert_eq!(table.meet(1, 1, key(64, 0), &[1]), refused(Reason::TooFarAhead));
    table.meet(1, 0, key(0, 9), &[1]);
    assert_eq!(table.meet(1, 1, key(0, 10), &[1]), refused(Reason::Mismatch), "behind the last");
    for block in 1..7 {
        assert_eq!(table.meet(1, 0, key(0, block), &[1]), Met::Opened);
    }
    assert_eq!(table.meet(1, 0, key(0, 7), &[1]), refused(Reason::NoRecord), "eight are open");
}

#[test]
fn a_block_without_a_new_piece_ages_out_between_one_interval_and_two() {
    for threads in [1, 4, 16] {
        for offset in 0..20 {
            let mut table = Trace::new(&spec(3), threads);
            let began = 1000 * MS + offset * MS / 2;
            for block in 0..8 {
                table.meet(began, 0, key(0, block), &[1]);
                table.meet(began + MS / 10, 1, key(0, block), &[1]);
            }
            let mut aged = Vec::new();
            while let Some(at) = table.0.next_scan() {
                let since = at.0 - began - MS / 10;
                for key in table.0.scan(at) {
                    assert!((10 * MS..=20 * MS).contains(&since), "{threads}, {since}");
                    aged.push(key);
                }
            }
            assert_eq!(aged.len(), 8, "and the timers rest");
            table.0.finish(key(0, 3));
            let record = table.0.record(key(0, 3)).expect("the result is kept");
            assert!(record.degraded && record.aged && record.sources() == 2);
            assert_eq!(table.meet(began + 99 * MS, 2, key(0, 3), &[1]), Met::Late);
            assert_eq!(table.meet(began + 99 * MS, 1, key(0, 3), &[1]), Met::Repeated);
            let straggler = SourceCounts { pieces: 0, late: 1, events: 8 };
            assert_eq!(table.0.source(JOB, 2), straggler);
        }
    }
}

#[test]
fn pieces_keep_a_block_young_and_repetitions_do_not() {
    let mut table = Trace::new(&spec(4), 1);
    table.meet(0, 0, key(0, 0), &[1]);
    assert!(table.0.scan(Instant(10 * MS)).is_empty());
    table.meet(19 * MS, 1, key(0, 0), &[1]);
    assert!(table.0.scan(Instant(20 * MS)).is_empty());
    table.meet(29 * MS, 1, key(0, 0), &[1]);
    assert_eq!(table.0.scan(Instant(30 * MS)), [key(0, 0)]);
}

#[test]
fn a_job_without_a_time_out_waits() {
    let mut table = Trace::new(&JobSpec { visits: 0, ..spec(2) }, 4);
    table.meet(0, 0, key(0, 0), &[1]);
    assert_eq!(table.0.next_scan(), None);
    assert!(table.0.scan(Instant(1 << 50)).is_empty());
}

#[test]
fn a_result_is_kept_until_all_sources_hold_it() {
    let mut table = Trace::new(&spec(2), 1);
    for block in 0..4 {
        table.meet(0, 0, key(0, block), &[1]);
        table.meet(0, 1, key(0, block), &[1]);
    }
    table.0.note_holds(JOB, 0, (0, 4));
    table.0.note_holds(JOB, 1, (0, 3));
    let known: Vec<Known> = (0..5).map(|block| table.0.known(key(0, block))).collect();
    let kept = Known::Record(State::Final);
    assert_eq!(known, [Known::Gone, Known::Gone, Known::Gone, kept, Known::New]);
    assert_eq!(table.meet(1, 0, key(0, 1), &[1]), Met::Late, "it opens no new block");
    // A source that is excused holds nobody up, and finds that the results are gone.
    table.0.note_holds(JOB, 0, (0, 4));
    assert!(table.0.excuse(JOB, 1, true).is_empty());
    assert_eq!(table.0.known(key(0, 3)), Known::Gone);
    table.0.excuse(JOB, 1, false);
    assert_eq!(table.meet(1, 0, key(0, 4), &[1]), Met::Opened, "it is waited for again");
}

#[test]
fn a_result_from_above_overtakes_the_pieces_here() {
    let mut table = Trace::new(&spec(2), 1);
    table.meet(0, 0, key(0, 0), &[1]);
    let gradients = &bytes(&[7]);
    let above = Piece {
        key: key(0, 0),
        source: 255,
        sources: 3,
        degraded: true,
        aged: true,
        is_final: false,
        call: 0,
        gradients,
    };
    assert!(table.0.fulfil(Instant(1), &above));
    assert!(!table.0.fulfil(Instant(1), &above), "once");
    assert_eq!((table.sum(key(0, 0)), table.0.counts().overtaken), (&[7][..], 1));
    assert_eq!(table.meet(2, 1, key(0, 0), &[1]), Met::Late);
    // A result may come before any piece of its block.
    assert!(table.0.fulfil(Instant(1), &Piece { key: key(0, 1), ..above }));
    assert_eq!(table.meet(2, 1, key(0, 1), &[1]), Met::Late);
    assert!(table.0.counts().add_up());
}

#[test]
fn generations_go_on_across_the_largest_number() {
    let mut table = Trace::new(&JobSpec { first: u16::MAX - 1, ..spec(2) }, 1);
    for step in 0u16..200 {
        let generation = (u16::MAX - 1).wrapping_add(step);
        for source in 0..2 {
            for block in 0..10 {
                let key = key(generation, block);
                let met = table.meet(0, source, key, &[1]);
                let expected = if source == 0 { Met::Opened } else { Met::Complete };
                // Ten blocks are two more than may be open.
                if source == 0 && block == 8 {
                    assert_eq!(met, Met::Refused(Reason::NoRecord));
                    for block in 0..8 {
                        table.meet(0, 1, Key { block, ..key }, &[1]);
                    }
                    table.meet(0, 0, key, &[1]);
                } else if source == 0 {
                    assert_eq!(met, expected, "{generation} {block}");
                }
            }
        }
        assert_eq!(table.0.finished(JOB), Some((generation.wrapping_add(1), 0)));
        let held = (generation.wrapping_add(1), 0);
        (0..2).for_each(|source| table.0.note_holds(JOB, source, held));
        assert_eq!(table.0.used(), 0);
        assert_eq!(table.meet(0, 0, key(generation, 0), &[1]), Met::Late);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Meet { source: u8, generation: u16, block: u32, lanes: usize, is_odd: bool, value: i32 },
    Fulfil { generation: u16, block: u32 },
    Wait { ms: u64 },
    Holds { source: u8, back: u32 },
    Excuse { source: u8, is_excused: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let generation = 0u16..3;
    prop_oneof![
        12 => (0u8..4, generation.clone(), 0u32..6, 0usize..20, 0u8..40, any::<i32>()).prop_map(
            |(source, generation, block, lanes, odd, value)| Step::Meet {
                source,
                generation,
                block,
                lanes: if lanes < 17 { 2 } else { lanes - 14 },
                is_odd: odd == 0,
                value,
            }
        ),
        1 => (generation, 0u32..6).prop_map(|(generation, block)| Step::Fulfil { generation, block }),
        2 => (0u64..25).prop_map(|ms| Step::Wait { ms }),
        3 => (0u8..3, 0u32..2).prop_map(|(source, back)| Step::Holds { source, back }),
        1 => (0u8..3, any::<bool>())
            .prop_map(|(source, is_excused)| Step::Excuse { source, is_excused }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_table_is_its_reference_model(steps in prop::collection::vec(step(), 0..150), is_lower: bool) {
        let spec = JobSpec { block_cnt_max: 4, ..spec(3) };
        let mut now = Instant(5 * MS);
        let mut table = Records::new(4, INTERVAL, 1);
        table.add_job(JOB, &spec);
        let mut reference = Reference::new(JOB, &spec, INTERVAL, now);
        for step in steps {
            match step {
                Step::Meet { source, generation, block, lanes, is_odd, value } => {
                    let gradients = &bytes(&alloc::vec![value; lanes]);
                    let is_final = (block == 4) ^ is_odd;
                    let key = key(generation, block);
                    let sources = source + 1;
                    let (degraded, aged) = (source == 2, source == 2 && is_odd);
                    let call = u8::from(value % 16 == 5);
                    let piece =
                        Piece { key, source, sources, degraded, aged, is_final, call, gradients };
                    let met = table.meet(now, &piece);
                    prop_assert_eq!(met, reference.meet(&piece), "{:?}", piece);
                    if met == Met::Complete && !is_lower {
                        table.finish(key);
                        reference.finish(key);
                    }
                }
                Step::Fulfil { generation, block } => {
                    let key = key(generation, block);
                    if table.record(key).is_some() {
                        let gradients = &bytes(&[5, 6]);
                        let is_final = block == 4;
                        let (degraded, aged, source, sources, call) = (true, false, 255, 9, 0);
                        let result =
                            Piece { key, source, sources, degraded, aged, is_final, call, gradients };
                        prop_assert_eq!(table.fulfil(now, &result), reference.fulfil(&result));
                    }
                }
                Step::Wait { ms } => {
                    now = Instant(now.0 + ms * MS);
                    let aged = table.scan(now);
                    prop_assert_eq!(&aged, &reference.scan(now));
                    for key in aged.into_iter().filter(|_| !is_lower) {
                        table.finish(key);
                        reference.finish(key);
                    }
                }
                Step::Holds { source, back } => {
                    let (generation, block) = reference.holdable();
                    let place = (generation, block.saturating_sub(back));
                    table.note_holds(JOB, source, place);
                    reference.note_holds(source, place);
                }
                Step::Excuse { source, is_excused } => {
                    let complete = table.excuse(JOB, source, is_excused);
                    prop_assert_eq!(&complete, &reference.excuse(source, is_excused));
                    for key in complete.into_iter().filter(|_| !is_lower) {
                        table.finish(key);
                        reference.finish(key);
                    }
                }
            }
            prop_assert!(table.counts().add_up());
            prop_assert_eq!(table.lacking(JOB), reference.lacking());
            for generation in 0..3 {
                for block in 0..6 {
                    let place = (generation, block);
                    let key = key(generation, block);
                    prop_assert_eq!(table.known(key), reference.known(place), "{:?}", place);
                    let sum = table.record(key).map(|record| {
                        (record.sources(), record.degraded, record.aged, record.sum().to_vec())
                    });
                    prop_assert_eq!(sum, reference.sum(place));
                }
                let (first, mask) = table.finished(JOB).expect("there is a job");
                let ahead = generation.wrapping_sub(first);
                let is_finished = ahead >= 1 << 15 || ahead < 64 && mask >> ahead & 1 == 1;
                prop_assert_eq!(is_finished, reference.finished(generation));
            }
        }
    }

    #[test]
    fn no_claim_of_a_source_breaks_the_table(
        steps in prop::collection::vec((0u8..4, any::<u16>(), 0u32..8, 0u8..6), 0..200), first: u16,
    ) {
        let mut table = Trace::new(&JobSpec { first, ..spec(3) }, 3);
        for (at, (source, far, block, what)) in steps.into_iter().enumerate() {
            let near = first.wrapping_add(far % 4);
            match what {
                0 => table.0.note_holds(JOB, source, (far, block)),
                1 => table.0.note_holds(JOB, source, (near, u32::MAX - block)),
                2 => drop(table.0.excuse(JOB, source % 3, far % 2 == 0)),
                3 => drop(table.meet(at as u64, source, key(far, block), &[1])),
                _ => drop(table.meet(at as u64, source, key(near, block), &[1])),
            }
            let (open, used, _) = table.0.usage(JOB);
            prop_assert!(open <= 8 && used <= 32 && used as usize == table.0.used());
        }
    }
}
