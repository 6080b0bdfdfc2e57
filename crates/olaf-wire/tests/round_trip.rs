//! What is written is read back the same, and no bytes make a reader panic.
#![allow(clippy::unwrap_used, missing_docs)]

use olaf_wire::offsets::{MAGIC, MAX_DATAGRAM, MAX_SEGMENT_LANES, VERSION};
use olaf_wire::update::read_lanes;
use olaf_wire::{
    Address, Ages, AggregateKind, Answer, AskSignature, ClusterId, Ends, Fetch, JobId, JobRule,
    Join, JoinPath, Kind, LayoutPart, Leave, Notice, Packet, QueueStatus, Refusal, RuleKind,
    ServerGate, Session, Signature, Step, Update, Welcome, WelcomeCode, WorkerId,
};
use proptest::prelude::*;

fn addresses() -> impl Strategy<Value = Address> {
    any::<(u32, u32, u32, u32)>().prop_map(|(job, cluster, worker, session)| Address {
        job: JobId(job),
        cluster: ClusterId(cluster),
        worker: WorkerId(worker),
        session: Session(session),
    })
}

/// Any bits, not-a-number among them: lanes are carried, not looked at.
fn lanes(from: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(any::<u32>().prop_map(f32::from_bits), from..40)
}

fn updates() -> impl Strategy<Value = Update> {
    let numbers = (any::<u32>(), any::<u32>(), 0..u32::MAX, any::<u64>(), any::<u64>());
    let more = (any::<u32>(), any::<u32>(), 1u32.., 1e-300f64..1e300, any::<f64>(), any::<u8>());
    (addresses(), numbers, more).prop_map(|(address, a, b)| Update {
        address,
        sequence: a.0,
        hop_sequence: a.1,
        segment: a.2,
        segments: a.2 + 1,
        generated_oldest_ns: a.3.min(a.4),
        generated_newest_ns: a.3.max(a.4),
        version_oldest: b.0.min(b.1),
        version_newest: b.0.max(b.1),
        contributors: b.2,
        weight: b.3,
        reward: b.4,
        hops: b.5,
        flow_sequence: b.0 ^ a.1,
    })
}

fn answers() -> impl Strategy<Value = Answer> {
    let numbers = (any::<u32>(), 0..u32::MAX, any::<u32>(), 64u32.., any::<u32>(), any::<u32>());
    let more = (any::<u64>(), any::<u64>(), any::<u16>(), any::<u16>(), any::<u16>(), any::<u8>());
    let ages = (any::<u32>(), any::<u32>(), any::<u32>());
    (addresses(), numbers, more, ages).prop_map(|(address, a, b, c)| Answer {
        address,
        acknowledges: a.0,
        segment: a.1,
        segments: a.1 + 1,
        model_version: a.2,
        parameters: a.3,
        epoch: a.4,
        delivered_version: a.5,
        delivered_newest_ns: b.0,
        server_time_ns: b.1,
        queue: QueueStatus {
            active_clusters: b.2,
            slots: b.3,
            used: b.4,
            switches: b.5,
            round_us: c.0,
        },
        ages: Ages { own_us: c.1, mean_us: c.2 },
        // No update both arrived and ended on the way.
        ends: Ends { newest: a.5, delivered: b.0, ended: b.1 & !b.0 },
    })
}

/// To what a message is filled up: more than any header, or nothing.
fn padding() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 200u32..=MAX_DATAGRAM as u32]
}

fn joins() -> impl Strategy<Value = Join> {
    let numbers = (any::<u32>(), 1u32.., 1u32..=MAX_SEGMENT_LANES as u32, any::<u32>());
    let rest = (any::<u64>(), any::<i64>(), any::<u8>(), any::<bool>());
    let path = (any::<bool>(), any::<u32>(), padding(), any::<u32>());
    (addresses(), numbers, rest, path).prop_map(
        |(address, a, (sent, offset, hops, wants_notices), p)| {
            let path = JoinPath { asks: p.0, round_trip_us: p.1, padded_to: p.2 };
            Join {
                address: Address {
                    worker: WorkerId(address.worker.0.min(u32::MAX - 1)),
                    ..address
                },
                have_version: a.0,
                parameters: a.1,
                segment_lanes: a.2,
                clock_error_us: a.3,
                sent_at_ns: sent,
                clock_offset_ns: offset,
                hops,
                wants_notices,
                path,
                nonce: p.3,
            }
        },
    )
}

fn codes() -> impl Strategy<Value = WelcomeCode> {
    use WelcomeCode as Code;
    prop::sample::select(vec![
        Code::Welcome,
        Code::WorkerIdInUse,
        Code::WrongModelSize,
        Code::WrongSegmentLanes,
        Code::UnknownJob,
        Code::ModelTooLarge,
        Code::Full,
        Code::ServerSilent,
        Code::JoinAgain,
        Code::Loop,
        Code::NotAdmitted,
        Code::AdmissionPending,
        Code::Path,
        Code::JobFull,
        Code::TooManyClusters,
    ])
}

fn rules() -> impl Strategy<Value = JobRule> {
    let kinds = prop::sample::select(vec![RuleKind::Delta, RuleKind::PaperLiteral]);
    let aggregates = prop::sample::select(vec![
        AggregateKind::Each,
        AggregateKind::Periodic,
        AggregateKind::Round,
    ]);
    let steps = prop::sample::select(vec![Step::Mean, Step::Sum, Step::Overlap]);
    let gates = prop::sample::select(vec![ServerGate::None, ServerGate::Best, ServerGate::Recent]);
    let numbers = (1e-300f64..1e300, 0.0f64..1e300);
    (kinds, aggregates, steps, gates, numbers).prop_map(
        |(kind, aggregate, step, gate, (factor, staleness_power))| JobRule {
            kind,
            aggregate,
            step,
            gate,
            factor,
            staleness_power,
        },
    )
}

fn welcomes() -> impl Strategy<Value = Welcome> {
    let numbers = (any::<bool>(), any::<[u32; 9]>(), any::<[u64; 4]>(), padding());
    let rule = prop::option::of(rules());
    (addresses(), codes(), numbers, rule).prop_map(
        |(address, code, (ready, a, b, padded_to), rule)| Welcome {
            address,
            code,
            ready,
            version: a[0],
            parameters: a[1],
            segment_lanes: a[2],
            epoch: a[3],
            first_missing: a[4],
            echoed_sent_at_ns: b[0],
            received_at_ns: b[1],
            sent_at_ns: b[2],
            switch_epoch: a[5],
            silent_ms: a[6],
            rule,
            layout_missing: a[7],
            missing: b[3],
            padded_to,
            nonce: a[8],
        },
    )
}

fn signatures() -> impl Strategy<Value = Signature> {
    let numbers = (any::<u32>(), any::<u32>(), 1u32.., 1..=MAX_SEGMENT_LANES as u32, 1u32..);
    let rest = (any::<u64>(), any::<[u8; 32]>(), any::<[u8; 16]>(), any::<bool>());
    (addresses(), numbers, rest).prop_map(|(address, a, (question, hash, tag, has_model))| {
        let model = Signature {
            address,
            version: a.0.max(a.1),
            parameters: a.2,
            segment_lanes: a.3,
            epoch: a.4,
            oldest: a.0.min(a.1),
            question,
            hash,
            tag,
        };
        let (question, hash) = (question.max(1), [0; 32]);
        let none = Signature { version: 0, parameters: 0, segment_lanes: 0, oldest: 0, ..model };
        if has_model { model } else { Signature { question, hash, ..none } }
    })
}

/// Whatever the buffer held before must not show.
fn buffer() -> Vec<u8> {
    vec![0xa5; MAX_DATAGRAM]
}

fn bits(lanes: &[f32]) -> Vec<u32> {
    lanes.iter().map(|lane| lane.to_bits()).collect()
}

fn lanes_of(packet: &Packet<'_>) -> Vec<u32> {
    let mut lanes = vec![0.0; packet.lanes().len() / 4];
    read_lanes(packet.lanes(), &mut lanes);
    bits(&lanes)
}

/// Reads the message, writes what was read, and says whether those are the bytes again.
fn survives(bytes: &[u8]) -> Result<bool, Refusal> {
    let packet = Packet::new_checked(bytes)?;
    let mut lanes = vec![0.0; packet.lanes().len() / 4];
    if packet.kind() != Kind::Layout {
        read_lanes(packet.lanes(), &mut lanes);
    }
    let mut buf = buffer();
    let len = match packet.kind() {
        Kind::Update => Update::parse(&packet)?.emit(&lanes, &mut buf),
        Kind::Acknowledgement | Kind::Model => Answer::parse(&packet)?.emit(&lanes, &mut buf),
        Kind::Join => Join::parse(&packet)?.emit(&mut buf),
        Kind::Welcome => Welcome::parse(&packet)?.emit(&mut buf),
        Kind::Leave => Leave::parse(&packet)?.emit(&mut buf),
        Kind::Notice => Notice::parse(&packet)?.emit(&mut buf),
        Kind::Layout => LayoutPart::parse(&packet)?.emit(&mut buf),
        Kind::Signature => Signature::parse(&packet)?.emit(&mut buf),
        Kind::AskSignature => AskSignature::parse(&packet)?.emit(&mut buf),
        Kind::Fetch => {
            let fetch = Fetch::parse(&packet)?;
            assert!(fetch.segments().count() <= 64);
            fetch.emit(&mut buf)
        }
    };
    // Fields that a later version may use are written as zero and ignored; all others survive.
    let again = Packet::new_checked(&buf[..len]).unwrap();
    assert_eq!((again.kind(), again.address()), (packet.kind(), packet.address()));
    Ok(&buf[..len] == bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn an_update_comes_back_as_it_was(update in updates(), lanes in lanes(1)) {
        let mut buf = buffer();
        let len = update.emit(&lanes, &mut buf);
        let packet = Packet::new_checked(&buf[..len]).unwrap();
        prop_assert_eq!(Update::parse(&packet), Ok(update));
        prop_assert_eq!(lanes_of(&packet), bits(&lanes));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn an_answer_comes_back_as_it_was(answer in answers(), lanes in lanes(0)) {
        let mut buf = buffer();
        let len = answer.emit(&lanes, &mut buf);
        let packet = Packet::new_checked(&buf[..len]).unwrap();
        prop_assert_eq!(packet.kind() == Kind::Model, !lanes.is_empty());
        prop_assert_eq!(Answer::parse(&packet), Ok(answer));
        prop_assert_eq!(lanes_of(&packet), bits(&lanes));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn an_answer_that_is_passed_on_has_another_receiver_and_status_and_nothing_else(
        answer in answers(), lanes in lanes(0), to in addresses(), number: u32, status in answers(),
    ) {
        let mut buf = buffer();
        let len = answer.emit(&lanes, &mut buf);
        let packet = Packet::new_checked(&buf[..len]).unwrap();
        let came = Answer::parse(&packet).unwrap();
        // The job is the one field of an address that a switch never changes.
        let to = Address { job: answer.address.job, ..to };
        let passed_on = Answer { address: to, acknowledges: number, queue: status.queue, ..came };
        let mut out = buffer();
        prop_assert_eq!(passed_on.emit_in_wire_order(packet.lanes(), &mut out), len);
        let again = Packet::new_checked(&out[..len]).unwrap();
        prop_assert_eq!(again.kind(), packet.kind());
        prop_assert_eq!(Answer::parse(&again), Ok(passed_on));
        prop_assert_eq!(lanes_of(&again), bits(&lanes));
        // With the fields as they came, the bytes are as they came.
        prop_assert_eq!(came.emit_in_wire_order(packet.lanes(), &mut out), len);
        prop_assert_eq!(&out[..len], &buf[..len]);
    }

    #[test]
    fn a_join_and_a_welcome_know_their_length(join in joins(), welcome in welcomes()) {
        let mut buf = buffer();
        prop_assert_eq!(join.datagram_len(), join.emit(&mut buf));
        prop_assert_eq!(welcome.datagram_len(), welcome.emit(&mut buf));
    }

    #[test]
    fn a_join_comes_back_as_it_was(join in joins()) {
        let mut buf = buffer();
        let len = join.emit(&mut buf);
        prop_assert_eq!(Join::parse(&Packet::new_checked(&buf[..len]).unwrap()), Ok(join));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn a_welcome_comes_back_as_it_was(welcome in welcomes()) {
        let mut buf = buffer();
        let len = welcome.emit(&mut buf);
        prop_assert_eq!(Welcome::parse(&Packet::new_checked(&buf[..len]).unwrap()), Ok(welcome));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn a_leave_and_a_fetch_come_back_as_they_were(address in addresses(), version: u32, first: u32, mask: u64, have_version: u32) {
        let (leave, fetch) = (Leave { address }, Fetch { address, version, first, mask, have_version });
        let mut buf = buffer();
        let len = leave.emit(&mut buf);
        prop_assert_eq!(Leave::parse(&Packet::new_checked(&buf[..len]).unwrap()), Ok(leave));
        let len = fetch.emit(&mut buf);
        prop_assert_eq!(Fetch::parse(&Packet::new_checked(&buf[..len]).unwrap()), Ok(fetch));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn a_signature_comes_back_as_it_was_and_its_tag_is_of_every_field(
        signature in signatures(), other in signatures(), ask: (u32, u64),
    ) {
        let mut buf = buffer();
        let len = signature.emit(&mut buf);
        let packet = Packet::new_checked(&buf[..len]).unwrap();
        prop_assert_eq!(Signature::parse(&packet), Ok(signature));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
        let Address { job, .. } = signature.address;
        // A switch may change whom a message is for; nothing else.
        let elsewhere = Address { job, ..other.address };
        prop_assert_eq!(Signature { address: elsewhere, tag: other.tag, ..signature }.signed(), signature.signed());
        for changed in [
            Signature { address: Address { job: JobId(!job.0), ..signature.address }, ..signature },
            Signature { version: !signature.version, ..signature },
            Signature { parameters: !signature.parameters, ..signature },
            Signature { segment_lanes: !signature.segment_lanes, ..signature },
            Signature { epoch: !signature.epoch, ..signature },
            Signature { oldest: !signature.oldest, ..signature },
            Signature { question: !signature.question, ..signature },
            Signature { hash: signature.hash.map(|byte| !byte), ..signature },
        ] {
            prop_assert_ne!(changed.signed(), signature.signed());
        }
        let ask = AskSignature { address: signature.address, version: ask.0, question: ask.1.max(1) };
        let len = ask.emit(&mut buf);
        prop_assert_eq!(AskSignature::parse(&Packet::new_checked(&buf[..len]).unwrap()), Ok(ask));
        prop_assert_eq!(survives(&buf[..len]), Ok(true));
    }

    #[test]
    fn a_layout_comes_back_part_by_part(address in addresses(), text in prop::collection::vec(any::<u8>(), 1..5000)) {
        let parts = olaf_wire::layout_parts(text.len());
        let mut again = Vec::new();
        for part in 0..parts {
            let mut buf = buffer();
            let len = LayoutPart::of(&text, address, part).unwrap().emit(&mut buf);
            prop_assert!(len <= 1024);
            let packet = Packet::new_checked(&buf[..len]).unwrap();
            again.extend_from_slice(LayoutPart::parse(&packet).unwrap().text);
            prop_assert_eq!(survives(&buf[..len]), Ok(true));
        }
        prop_assert_eq!(again, &text[..]);
        prop_assert_eq!(LayoutPart::of(&text, address, parts), None);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = survives(&bytes);
    }

    #[test]
    fn no_bytes_behind_a_good_start_make_a_reader_panic(kind in 0u8..12, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut datagram = [MAGIC.as_slice(), &[VERSION]].concat();
        datagram.extend([kind, 0, 0]);
        datagram.extend(bytes);
        let _ = survives(&datagram);
    }

    #[test]
    fn a_changed_byte_is_read_or_refused_but_never_panics(
        update in updates(), lanes in lanes(1), at: prop::sample::Index, with: u8,
    ) {
        let mut buf = buffer();
        let len = update.emit(&lanes, &mut buf);
        let at = at.index(len);
        buf[at] = with;
        let _ = survives(&buf[..len]);
    }

    #[test]
    fn a_datagram_cut_short_or_too_long_is_refused(
        update in updates(), lanes in lanes(1), cut: prop::sample::Index, more in 1usize..100,
    ) {
        let mut buf = buffer();
        let len = update.emit(&lanes, &mut buf);
        let cut = cut.index(len);
        let refusal = Packet::new_checked(&buf[..cut]).err().unwrap();
        let named = matches!(refusal, Refusal::Truncated { .. }) || cut < 4 && refusal == Refusal::NotOurs;
        prop_assert!(named, "{refusal}");
        let refusal = Packet::new_checked(&buf[..len + more]).err();
        prop_assert_eq!(refusal, Some(Refusal::Oversized { have: len + more, need: len }));
    }
}

#[test]
fn what_is_filled_up_is_as_long_as_it_says_and_no_longer() {
    let mut buf = buffer();
    let path = JoinPath { asks: true, round_trip_us: 7, padded_to: 1472 };
    let join = Join {
        address: Address::default(),
        have_version: 0,
        parameters: 1,
        segment_lanes: 1,
        clock_error_us: 0,
        sent_at_ns: 1,
        clock_offset_ns: 0,
        hops: 0,
        wants_notices: false,
        path,
        nonce: 0,
    };
    assert_eq!(join.emit(&mut buf), 1472);
    assert!(olaf_wire::packet::is_probe(&buf[..1472]));
    assert!(Packet::new_checked(&buf[..1472]).unwrap().lanes().is_empty());
    let refused = |len| Packet::new_checked(&buf[..len]).err();
    assert_eq!(refused(1471), Some(Refusal::Truncated { have: 1471, need: 1472 }));
    assert_eq!(refused(1473), Some(Refusal::Oversized { have: 1473, need: 1472 }));
    let len = join.without_padding().emit(&mut buf);
    let short = &buf[..len];
    let read = Join::parse(&Packet::new_checked(short).unwrap()).unwrap();
    assert_eq!(read, Join { path: JoinPath { padded_to: 0, ..path }, ..join });
    assert!(!olaf_wire::packet::is_probe(short));
    assert!(!olaf_wire::packet::is_probe(
        b"not ours, and longer than a join by far: a stranger's words to nobody, and more of them"
    ));
}

#[test]
fn ends_name_the_number_and_the_63_before_it() {
    let ends = Ends { newest: 5, delivered: 1 | 1 << 63, ended: 1 << 5 };
    assert!(ends.is_delivered(5) && ends.is_delivered(5u32.wrapping_sub(63)));
    assert!(
        !ends.is_delivered(6) && !ends.is_delivered(4) && !ends.is_delivered(5u32.wrapping_sub(64))
    );
    assert!(ends.has_ended(0) && !ends.has_ended(5));
    assert!(!Ends { newest: 0, delivered: u64::MAX, ended: 0 }.is_delivered(0), "0 says nothing");
}

#[test]
fn the_largest_datagram_is_read_and_one_lane_more_is_refused() {
    let mut buf = buffer();
    let update = Update { contributors: 1, weight: 1.0, segments: 1, ..zero() };
    let len = update.emit(&vec![1.0; MAX_SEGMENT_LANES], &mut buf);
    assert!(len <= MAX_DATAGRAM);
    assert!(Packet::new_checked(&buf[..len]).is_ok());
    let one_more = u32::try_from(MAX_SEGMENT_LANES + 1).unwrap().to_be_bytes();
    buf[olaf_wire::offsets::update::LANES..][..4].copy_from_slice(&one_more);
    assert_eq!(Packet::new_checked(&buf[..len]).err(), Some(Refusal::BadField("lanes")));
}

fn zero() -> Update {
    Update {
        address: Address::default(),
        sequence: 0,
        hop_sequence: 0,
        segment: 0,
        segments: 1,
        generated_oldest_ns: 0,
        generated_newest_ns: 0,
        version_oldest: 0,
        version_newest: 0,
        contributors: 1,
        weight: 1.0,
        reward: 0.0,
        hops: 0,
        flow_sequence: 0,
    }
}

#[test]
fn fields_that_contradict_each_other_are_refused_by_name() {
    let cases = [
        (Update { segment: 1, segments: 1, ..zero() }, "segment"),
        (Update { segments: 0, ..zero() }, "segment"),
        (Update { generated_oldest_ns: 2, generated_newest_ns: 1, ..zero() }, "generated"),
        (Update { version_oldest: 2, version_newest: 1, ..zero() }, "version"),
        (Update { contributors: 0, ..zero() }, "contributors"),
        (Update { weight: 0.0, ..zero() }, "weight"),
        (Update { weight: -1.0, ..zero() }, "weight"),
        (Update { weight: f64::NAN, ..zero() }, "weight"),
        (Update { weight: f64::INFINITY, ..zero() }, "weight"),
    ];
    for (update, field) in cases {
        let mut buf = buffer();
        let len = update.emit(&[1.0], &mut buf);
        let packet = Packet::new_checked(&buf[..len]).unwrap();
        assert_eq!(Update::parse(&packet), Err(Refusal::BadField(field)), "{update:?}");
    }
}

#[test]
fn a_rule_that_cannot_be_is_refused_by_the_name_of_its_field() {
    use olaf_wire::offsets::welcome as at;
    let rule = JobRule {
        kind: RuleKind::Delta,
        aggregate: AggregateKind::Each,
        step: Step::Mean,
        gate: ServerGate::None,
        factor: 1.0,
        staleness_power: 0.7,
    };
    let welcome = Welcome {
        address: Address::default(),
        code: WelcomeCode::Welcome,
        ready: true,
        version: 1,
        parameters: 1,
        segment_lanes: 1,
        epoch: 1,
        first_missing: u32::MAX,
        echoed_sent_at_ns: 0,
        received_at_ns: 0,
        sent_at_ns: 0,
        switch_epoch: 0,
        silent_ms: 0,
        rule: Some(rule),
        layout_missing: u32::MAX,
        missing: 0,
        padded_to: 0,
        nonce: 0,
    };
    let read = |at: usize, field: &[u8]| {
        let mut buf = buffer();
        let len = welcome.emit(&mut buf);
        buf[at..at + field.len()].copy_from_slice(field);
        Welcome::parse(&Packet::new_checked(&buf[..len]).unwrap())
    };
    assert_eq!(read(at::RULE, &[1]), Ok(welcome));
    for (at, code, field) in [
        (at::RULE, 3, "rule"),
        // A sender without a rule has none of its numbers either.
        (at::RULE, 0, "rule"),
        (at::AGGREGATE, 0, "aggregate"),
        (at::AGGREGATE, 4, "aggregate"),
        (at::STEP, 4, "step"),
        (at::GATE, 4, "gate"),
    ] {
        assert_eq!(read(at, &[code]), Err(Refusal::BadField(field)), "{field} {code}");
    }
    for (at, number, field) in [
        (at::FACTOR, f64::NAN, "factor"),
        (at::FACTOR, f64::INFINITY, "factor"),
        (at::FACTOR, 0.0, "factor"),
        (at::FACTOR, -1.0, "factor"),
        (at::STALENESS_POWER, f64::NAN, "staleness_power"),
        (at::STALENESS_POWER, -0.1, "staleness_power"),
    ] {
        assert_eq!(read(at, &number.to_be_bytes()), Err(Refusal::BadField(field)), "{number}");
    }
}

#[test]
fn a_signature_that_cannot_be_is_refused_by_the_name_of_its_field() {
    let good = Signature {
        address: Address::default(),
        version: 7,
        parameters: 10,
        segment_lanes: 4,
        epoch: 1,
        oldest: 7,
        question: 0,
        hash: [1; 32],
        tag: [2; 16],
    };
    let none = Signature {
        version: 0,
        parameters: 0,
        segment_lanes: 0,
        oldest: 0,
        question: 1,
        hash: [0; 32],
        ..good
    };
    let read = |signature: Signature| {
        let mut buf = buffer();
        let len = signature.emit(&mut buf);
        Signature::parse(&Packet::new_checked(&buf[..len]).unwrap())
    };
    for known in [good, none] {
        assert_eq!(read(known), Ok(known));
    }
    for (changed, field) in [
        (Signature { epoch: 0, ..good }, "epoch"),
        (Signature { segment_lanes: 0, ..good }, "segment_lanes"),
        (Signature { segment_lanes: MAX_SEGMENT_LANES as u32 + 1, ..good }, "segment_lanes"),
        (Signature { segment_lanes: 1, ..none }, "segment_lanes"),
        (Signature { oldest: 8, ..good }, "oldest"),
        (Signature { version: 1, ..none }, "parameters"),
        (Signature { hash: [1; 32], ..none }, "parameters"),
        (Signature { question: 0, ..none }, "parameters"),
    ] {
        assert_eq!(read(changed), Err(Refusal::BadField(field)), "{changed:?}");
    }
    let mut buf = buffer();
    let len = good.emit(&mut buf);
    buf[olaf_wire::offsets::signature::ZERO] = 1;
    let packet = Packet::new_checked(&buf[..len]).unwrap();
    assert_eq!(Signature::parse(&packet), Err(Refusal::BadField("zero")));
    assert_eq!(AskSignature::parse(&packet), Err(Refusal::BadField("kind")));
    let len = AskSignature { address: good.address, version: 0, question: 0 }.emit(&mut buf);
    let packet = Packet::new_checked(&buf[..len]).unwrap();
    assert_eq!(AskSignature::parse(&packet), Err(Refusal::BadField("question")));
    assert_eq!(Signature::parse(&packet), Err(Refusal::BadField("kind")));
    buf[olaf_wire::offsets::ask_signature::ZERO] = 1;
    let packet = Packet::new_checked(&buf[..len]).unwrap();
    assert_eq!(AskSignature::parse(&packet), Err(Refusal::BadField("zero")));
}

#[test]
fn a_part_of_a_layout_that_cannot_be_is_refused_by_the_name_of_its_field() {
    use olaf_wire::offsets::layout as at;
    let text = vec![b' '; olaf_wire::LAYOUT_PART + 10];
    let read = |part: u32, at: usize, value: u32, len: usize| {
        let mut buf = buffer();
        LayoutPart::of(&text, Address::default(), part).unwrap().emit(&mut buf);
        buf[at..at + 4].copy_from_slice(&value.to_be_bytes());
        let read = Packet::new_checked(&buf[..at::TEXT + len])?;
        LayoutPart::parse(&read).map(|read| read.text.len())
    };
    assert_eq!(read(1, at::PART, 1, 10), Ok(10));
    assert_eq!(read(1, at::PART, 2, 10), Err(Refusal::BadField("part")));
    assert_eq!(read(1, at::PART, 0, 10), Err(Refusal::BadField("len")));
    assert_eq!(read(1, at::TOTAL, 0, 10), Err(Refusal::BadField("total")));
    assert_eq!(read(1, at::TOTAL, 65_537, 10), Err(Refusal::BadField("total")));
    assert_eq!(read(1, at::LEN_OF_TEXT, 9, 9), Err(Refusal::BadField("len")));
    assert_eq!(read(1, at::LEN_OF_TEXT, 961, 961), Err(Refusal::BadField("len")));
    assert!(matches!(read(1, at::PART, 1, 9), Err(Refusal::Truncated { .. })));
    assert_eq!(LayoutPart::of(&vec![b' '; 65_537], Address::default(), 0), None);
}

#[test]
fn other_versions_kinds_and_flags_are_refused_by_name() {
    let mut buf = buffer();
    let len = zero().emit(&[1.0], &mut buf);
    for (at, value, refusal) in [
        (0, b'X', Refusal::NotOurs),
        (4, 1, Refusal::WrongVersion { have: 1, speaks: 3 }),
        (5, 0, Refusal::UnknownKind(0)),
        (5, 12, Refusal::UnknownKind(12)),
        (6, 1, Refusal::UnknownFlags(0x100)),
        (7, 1, Refusal::UnknownFlags(1)),
        (7, 2, Refusal::UnknownFlags(2)),
    ] {
        let mut bytes = buf[..len].to_vec();
        bytes[at] = value;
        assert_eq!(Packet::new_checked(&bytes).err(), Some(refusal));
    }
}
