//! Whatever comes in, in whatever order: an end does not panic, every piece and result has one fate,
//! and every operation ends in the end.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Begin {
        lanes: usize,
        reduction: usize,
        root: u32,
    },
    Result {
        block: u32,
        operation: u32,
        first: u32,
        of: u64,
        lanes: usize,
        flags: u8,
    },
    Want {
        first: u32,
        mask: u64,
    },
    Closed {
        operation: u32,
        reason: usize,
        culprit: u32,
        generation: u32,
    },
    Welcome {
        code: usize,
        generation: u32,
        operation: u32,
        rank: u32,
        slots: u32,
        bytes: u32,
    },
    /// A result that answers what the end awaits.
    Honest {
        skip: u32,
    },
    Noise(Vec<u8>),
    /// Microseconds.
    Wait(u32),
    GiveUp(u64),
    Leave,
    Join,
}

fn step() -> impl Strategy<Value = Step> {
    let near = || prop_oneof![9 => 0u32..24, 1 => any::<u32>()];
    prop_oneof![
        4 => (0usize..12, 0usize..7, 0u32..3)
            .prop_map(|(lanes, reduction, root)| Step::Begin { lanes, reduction, root }),
        4 => (near(), 0u32..6, near(), 0u64..12, 0usize..4, any::<u8>()).prop_map(
            |(block, operation, first, of, lanes, flags)| Step::Result {
                block, operation, first, of, lanes, flags
            }
        ),
        2 => (near(), any::<u64>()).prop_map(|(first, mask)| Step::Want { first, mask }),
        1 => (0u32..8, 0usize..7, 0u32..4, 0u32..3).prop_map(
            |(operation, reason, culprit, generation)| Step::Closed {
                operation, reason, culprit, generation
            }
        ),
        2 => (0usize..5, 0u32..3, 0u32..8, 0u32..3, near(), 0u32..40).prop_map(
            |(code, generation, operation, rank, slots, bytes)| Step::Welcome {
                code, generation, operation, rank, slots, bytes
            }
        ),
        12 => (0u32..6).prop_map(|skip| Step::Honest { skip }),
        1 => prop::collection::vec(any::<u8>(), 0..120).prop_map(Step::Noise),
        4 => prop_oneof![0u32..3000, 0u32..900_000].prop_map(Step::Wait),
        1 => (0u64..12).prop_map(Step::GiveUp),
        1 => prop_oneof![4 => Just(Step::Join), 1 => Just(Step::Leave)],
    ]
}

/// The operations of an end and where they lie, as an honest switch would know them.
fn honest(trace: &Trace, skip: u32) -> Option<(BlockResult, Vec<u8>)> {
    let generation = trace.end.generation.as_ref()?;
    let block = generation.blocks.holds().checked_add(skip)?;
    let at = generation.index_of(block)?;
    let header = BlockResult {
        address: Address { rank: ALL, session: Session(0), ..generation.address },
        block: generation.open[at].block(block),
        ..result(block, 0, 0, 1)
    };
    let lanes = vec![0; generation.open[at].piece_bytes(block)];
    Some((header, lanes))
}

fn take(trace: &mut Trace, step: Step) {
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = match step {
        Step::Begin { lanes, reduction, root } => {
            let reduction = [
                Reduction::Sum,
                Reduction::Mean,
                Reduction::Min,
                Reduction::Max,
                Reduction::Broadcast { root },
                Reduction::ExactSum,
                Reduction::ExactMean,
            ][reduction];
            let _ = trace.end.begin(trace.now, reduce(reduction, &vec![1.0; lanes]));
            return;
        }
        Step::Result { block, operation, first, of, lanes, flags } => {
            let of = of.max(lanes as u64);
            let first = first.min(block);
            let mut header = result(block, operation, first, of);
            header.marks.resent = flags & 1 != 0;
            header.marks.not_finite = flags & 2 != 0;
            header.marks.congested = flags & 4 != 0;
            header.contributors = 2 - u32::from(flags & 8 != 0);
            let words: &[u64] = if header.is_partial() { &[1] } else { &[] };
            header.emit(words, &bytes(&vec![1.0; lanes]), &mut buf)
        }
        Step::Want { first, mask } => {
            let address = Address { job: JOB, generation: GENERATION, rank: 0, session: ME };
            let blocks = Blocks { first, mask };
            Want { address, operation: 0, blocks, holds: 0, sent_at_us: 0 }.emit(&mut buf)
        }
        Step::Closed { operation, reason, culprit, generation } => {
            let generation = GENERATION + generation;
            let address = Address { job: JOB, generation, rank: ALL, session: Session(0) };
            Closed { address, operation, culprit, reason: Reason::EACH[reason], clash: None }
                .emit(&mut buf)
        }
        Step::Welcome { code, generation, operation, rank, slots, bytes } => {
            let address =
                Address { job: JOB, generation: GENERATION + generation, rank, session: ME };
            Welcome {
                address,
                code: WelcomeCode::EACH[code],
                slots,
                block_bytes: bytes,
                ..trace.welcome_message(GENERATION, operation)
            }
            .emit(&mut buf)
        }
        Step::Honest { skip } => {
            let Some((header, lanes)) = honest(trace, skip) else { return };
            header.emit(&[], &lanes, &mut buf)
        }
        Step::Noise(noise) => {
            buf[..noise.len()].copy_from_slice(&noise);
            noise.len()
        }
        Step::Wait(us) => {
            trace.now = Instant(trace.now.0 + u64::from(us) * 1000);
            trace.end.handle_timeout(trace.now);
            return;
        }
        Step::GiveUp(id) => return trace.end.give_up(trace.now, OperationId(id)),
        Step::Leave => return trace.end.leave(trace.now),
        Step::Join => return trace.end.join(trace.now),
    };
    trace.end.handle_packet(trace.now, Source::end(SWITCH), &buf[..len]);
}

proptest! {
    #[test]
    fn an_end_bears_everything(
        elastic_job in any::<bool>(),
        window in prop::option::of(1u32..9),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut config = if elastic_job { elastic() } else { config() };
        config.options.window_blocks = window;
        let mut trace = Trace::joined(config);
        for step in steps {
            take(&mut trace, step);
            trace.sent();
            trace.accounts();
            while trace.end.poll_done().is_some() {}
            trace.events();
        }
        // The switch says nothing more: everything that is open ends.
        for _ in 0..60 {
            trace.now = Instant(trace.now.0 + 200_000_000);
            trace.end.handle_timeout(trace.now);
            trace.sent();
        }
        prop_assert_eq!(trace.end.open_operations(), 0);
        trace.accounts();
    }
}
