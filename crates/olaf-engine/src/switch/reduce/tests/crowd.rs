//! Joins of workers whose datagrams are too short for a job of their number: a partial result names every
//! worker beside its lanes.

use super::*;

/// A header, one line of lanes, and a word of 64 workers.
const ONE_WORD: u32 = 64 + 64 + 8;

fn joins(trace: &mut Trace, number: u32, workers: u32, datagram_bytes: u32) -> Verdict {
    let rank = if workers > 0 { number } else { ALL };
    let join = Join {
        address: Address { job: JOB, generation: 0, rank, session: Session(number + 1) },
        workers,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 0,
        datagram_bytes,
        sent_at_us: 0,
        nonce: 0,
        operation: 0,
        program: 0,
    };
    let mut buf = [0; 64];
    let len = join.emit(&mut buf);
    trace.recv(number, &buf[..len])
}

#[test]
fn a_worker_whose_datagrams_name_too_few_workers_is_turned_away() {
    for (workers, datagram_bytes, is_let_in) in
        [(64, ONE_WORD, true), (65, ONE_WORD, false), (65, ONE_WORD + 8, true), (65, 0, false)]
    {
        let mut trace = Trace::new(Config::default());
        for number in 0..workers {
            let verdict = joins(&mut trace, number, workers, datagram_bytes);
            if is_let_in {
                assert_eq!(verdict, Verdict::Absorb);
            } else {
                assert_eq!(dropped(verdict), "refused");
            }
        }
        let generations = trace.switch.statistics(trace.now).generations;
        assert_eq!(generations, u64::from(is_let_in), "{workers} workers, {datagram_bytes} bytes");
    }
}

#[test]
fn a_crowd_that_comes_and_goes_is_let_in_up_to_its_shortest_datagrams() {
    let mut trace = Trace::new(Config::default());
    let mut refused = 0;
    // Each newcomer ends the generation, and all who wait begin the next one together.
    for round in 0..4 {
        for number in 0..100 {
            let verdict = joins(&mut trace, number, 0, ONE_WORD);
            refused += u32::from(verdict != Verdict::Absorb);
        }
        trace.wait(Duration::from_millis(300 * round));
    }
    assert!(refused > 0, "not all of them fit");
    let members = trace.switch.jobs[&JOB].current.as_ref().map(|one| one.members.len());
    assert!(members.is_some_and(|members| members <= 64), "{members:?}");
}
