//! The engines that sum, and a member that asks and joins a thousand times as often as it has to. Both
//! workers are in; he has summed blocks with the other one, and asks for the same results again and again.

use crate::addresses::{
    ATTACKER, VICTIM, Wire, a_reduce, a_trio, an_iswitch, both_join_iswitch, both_join_reduce,
    both_say_hello, of_iswitch, of_reduce, of_trio, send_floats,
};
use olaf_engine::{Engine, PeerId};
use olaf_wire::iswitch as is;
use olaf_wire::reduce as re;
use olaf_wire::trio as tr;
use olaf_wire::{JobId, Session};

/// Blocks that are asked for with each question.
const BLOCKS: u32 = 32;
/// Questions, in a second.
const QUESTIONS: u64 = 5_000;
/// The results that he may have for himself: a burst, two for each block, and some in a second.
const MOST: usize = 256 + 4 * BLOCKS as usize + 2 * BLOCKS as usize + 64 + 2 * BLOCKS as usize;

/// Results that the attacker hears while it says something again and again.
fn drawn<E: Engine>(wire: &mut Wire<E>, mut says: impl FnMut(&mut Wire<E>)) -> usize {
    let before = wire.heard[0].len();
    (0..QUESTIONS).for_each(|_| says(wire));
    wire.heard[0][before..].iter().filter(|bytes| bytes.len() >= 600).count()
}

#[test]
fn reduce_answers_a_flood_of_questions_in_part() {
    let mut wire = a_reduce(true);
    let generation = both_join_reduce(&mut wire, true).expect("both are in");
    for number in 0..BLOCKS {
        for peer in [ATTACKER, VICTIM] {
            let piece = of_reduce::piece(peer, generation, number);
            wire.says(peer, |buf| piece.emit(&[], &[0; 4 * of_reduce::LANES], buf));
        }
    }
    let address = of_reduce::address(ATTACKER, generation);
    let blocks = re::Blocks { first: 0, mask: (1 << BLOCKS) - 1 };
    let ask = re::Ask { address, operation: 0, blocks, holds: 0, sent_at_us: 1, awaits: None };
    let drawn = drawn(&mut wire, |wire| wire.says(ATTACKER, |buf| ask.emit(buf)));
    assert!((256..=MOST).contains(&drawn), "{drawn} results");
    let refused = &wire.engine.statistics(wire.now).refused;
    assert!(refused["too_often"] > QUESTIONS * 9 / 10, "{refused:?}");
    // The other one is answered as before.
    let ask = re::Ask { address: of_reduce::address(VICTIM, generation), ..ask };
    let before = wire.heard[1].len();
    wire.says(VICTIM, |buf| ask.emit(buf));
    assert_eq!(wire.heard[1].len() - before, BLOCKS as usize);
}

#[test]
fn iswitch_answers_a_flood_of_questions_in_part() {
    for verb in 0..3 {
        let mut wire = an_iswitch(true);
        let generation = both_join_iswitch(&mut wire, true).expect("both are in");
        for index in 0..BLOCKS.into() {
            send_floats(&mut wire, ATTACKER, generation, index);
            send_floats(&mut wire, VICTIM, generation, index);
        }
        let asked = is::Packets { generation, sent_at_us: 1, index: 0, mask: (1 << BLOCKS) - 1 };
        let mut index = 0;
        let drawn = drawn(&mut wire, |wire| match verb {
            0 => wire.says(ATTACKER, |buf| is::Control::Help(asked).emit(buf)),
            1 => wire.says(ATTACKER, |buf| is::Control::FBcast(asked).emit(buf)),
            _ => {
                // A packet of one float comes again: its result is as long as the sum.
                index = (index + 1) % u64::from(BLOCKS);
                let seg = is::Seg { generation, last: false, missing: 0, index };
                wire.class = is::DATA_CLASS;
                wire.says(ATTACKER, |buf| is::emit_seg(seg, buf) + 4);
            }
        });
        assert!((256..=MOST).contains(&drawn), "{verb}: {drawn} results");
        let refused = &wire.engine.statistics(wire.now).refused;
        assert!(refused["too_often"] > QUESTIONS * 8 / 10, "{refused:?}");
    }
}

#[test]
fn trio_answers_a_flood_of_questions_in_part() {
    for asks in [true, false] {
        let mut wire = a_trio(true);
        let began = both_say_hello(&mut wire, true).expect("both are in");
        for number in 0..BLOCKS {
            for peer in [ATTACKER, VICTIM] {
                let block = of_trio::block(peer, began.first, number);
                wire.says(peer, |buf| block.emit(&[0; 300], buf));
            }
        }
        let ask = tr::Ask {
            job: 1,
            term: began.term,
            source: 0,
            session: Session(ATTACKER.0),
            generation: began.first,
            block: 0,
            mask: (1 << BLOCKS) - 1,
            held_generation: began.first,
            held_block: 0,
            sent_at_us: 1,
        };
        let mut number = 0;
        let drawn = drawn(&mut wire, |wire| {
            if asks {
                return wire.says(ATTACKER, |buf| ask.emit(buf));
            }
            // A piece of one gradient comes again: its result is as long as the sum.
            number = (number + 1) % BLOCKS;
            let block = of_trio::block(ATTACKER, began.first, number);
            wire.says(ATTACKER, |buf| block.emit(&[0; 1], buf));
        });
        assert!((256..=MOST).contains(&drawn), "{drawn} results");
        let refused = &wire.engine.statistics(wire.now).refused;
        assert!(refused["too_often"] > QUESTIONS * 8 / 10, "{refused:?}");
    }
}

#[test]
fn joins_in_a_flood_are_refused() {
    let mut reduce = a_reduce(false);
    let mut iswitch = an_iswitch(false);
    iswitch.class = is::CONTROL_CLASS;
    let mut trio = a_trio(false);
    for _ in 0..QUESTIONS {
        reduce.says(ATTACKER, |buf| of_reduce::join(ATTACKER, 0).emit(buf));
        iswitch.says(ATTACKER, |buf| of_iswitch::join(ATTACKER, 0).emit(buf));
        trio.says(ATTACKER, |buf| of_trio::hello(ATTACKER, 0).emit(buf));
    }
    let refused = [
        reduce.engine.statistics(reduce.now).refused["too_often"],
        iswitch.engine.statistics(iswitch.now).refused["too_often"],
        trio.engine.statistics(trio.now).refused["too_often"],
    ];
    // 80 at once, and 20 in a second.
    assert!(refused.iter().all(|count| (4_890..=4_905).contains(count)), "{refused:?}");
}

/// Events that an engine tells, and those that it leaves out, of 10,000 strangers that are turned away at once.
fn told<E: Engine>(
    mut wire: Wire<E>,
    says: impl Fn(&mut Wire<E>, PeerId),
    forgotten: impl Fn(&Wire<E>) -> u64,
) -> (usize, u64) {
    let mut told = 0;
    let start = wire.now;
    for stranger in 0..10_000 {
        wire.now = start;
        says(&mut wire, PeerId(10 + stranger));
        told += core::iter::from_fn(|| wire.engine.poll_event()).count();
    }
    (told, forgotten(&wire))
}

#[test]
fn lines_about_strangers_are_throttled() {
    // The job has two workers, and he says three.
    let reduce = {
        let mut wire = a_reduce(false);
        both_join_reduce(&mut wire, true).expect("both are in");
        while wire.engine.poll_event().is_some() {}
        let join = re::Join { workers: 3, ..of_reduce::join(ATTACKER, 0) };
        told(
            wire,
            |wire, stranger| wire.says(stranger, |buf| join.emit(buf)),
            |wire| wire.engine.statistics(wire.now).events_forgotten,
        )
    };
    let iswitch = {
        let mut wire = an_iswitch(false);
        both_join_iswitch(&mut wire, true).expect("both are in");
        while wire.engine.poll_event().is_some() {}
        wire.class = is::CONTROL_CLASS;
        let is::Control::Join(join) = of_iswitch::join(ATTACKER, 0) else { unreachable!() };
        let join = is::Control::Join(is::Join { workers: 3, job: JobId(1), ..join });
        told(
            wire,
            |wire, stranger| wire.says(stranger, |buf| join.emit(buf)),
            |wire| wire.engine.statistics(wire.now).events_forgotten,
        )
    };
    let trio = {
        let mut wire = a_trio(false);
        both_say_hello(&mut wire, true).expect("both are in");
        while wire.engine.poll_event().is_some() {}
        let hello = tr::Hello { workers: 3, ..of_trio::hello(ATTACKER, 0) };
        told(
            wire,
            |wire, stranger| wire.says(stranger, |buf| hello.emit(buf)),
            |wire| wire.engine.statistics(wire.now).events_forgotten,
        )
    };
    for (told, forgotten) in [reduce, iswitch, trio] {
        assert!((4_090..=4_096).contains(&told), "{told} lines");
        assert_eq!(told as u64 + forgotten, 10_000);
    }
}
