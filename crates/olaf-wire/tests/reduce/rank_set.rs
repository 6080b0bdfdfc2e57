use olaf_wire::Refusal;
use olaf_wire::reduce::{MAX_RANKS, RankSet};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Few ranks below 64, few below 200, or many anywhere.
fn ranks() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(0u32..64, 0..20),
        prop::collection::vec(0u32..200, 0..20),
        prop::collection::vec(0..MAX_RANKS, 0..200),
    ]
}

fn listed(set: &RankSet) -> Vec<u32> {
    set.iter().collect()
}

proptest! {
    #[test]
    fn a_set_has_the_ranks_that_were_inserted(ranks in ranks(), other in 0..MAX_RANKS) {
        let (mut set, mut reference) = (RankSet::new(), BTreeSet::new());
        for rank in ranks {
            prop_assert_eq!(set.insert(rank), reference.insert(rank));
            prop_assert!(set.contains(rank));
        }
        prop_assert_eq!(set.len() as usize, reference.len());
        prop_assert_eq!(set.is_empty(), reference.is_empty());
        prop_assert_eq!(set.contains(other), reference.contains(&other));
        prop_assert_eq!(listed(&set), Vec::from_iter(reference));
    }

    #[test]
    fn a_union_has_the_ranks_of_both(one in ranks(), other in ranks()) {
        let reference: BTreeSet<u32> = one.iter().chain(&other).copied().collect();
        let common = one.iter().any(|rank| other.contains(rank));
        let (mut one, other) = (RankSet::from_iter(one), RankSet::from_iter(other));
        prop_assert_eq!((one.intersects(&other), other.intersects(&one)), (common, common));
        one.union(&other);
        prop_assert_eq!(listed(&one), Vec::from_iter(reference));
    }

    #[test]
    fn words_are_the_set_again(ranks in ranks(), zeros in 0usize..3) {
        let set = RankSet::from_iter(ranks.iter().copied());
        let words = set.words().to_vec();
        prop_assert_eq!(words.len(), ranks.iter().max().map_or(0, |last| *last as usize / 64 + 1));
        let padded = words.iter().copied().chain(vec![0; zeros.min(128 - words.len())]);
        prop_assert_eq!(RankSet::from_words(padded), Ok(set));
    }

    #[test]
    fn a_set_that_was_cleared_is_as_a_new_one(ranks in ranks(), more in ranks()) {
        let mut set = RankSet::from_iter(ranks);
        set.clear();
        prop_assert!(set.is_empty() && set.words().is_empty());
        prop_assert_eq!(&set, &RankSet::default());
        set.extend(more.iter().copied());
        prop_assert_eq!(set, RankSet::from_iter(more));
    }
}

#[test]
fn all_ranks_below_a_number() {
    for ranks in [0, 1, 63, 64, 65, 127, 128, 129, MAX_RANKS] {
        let set = RankSet::below(ranks);
        assert_eq!((set.len(), set.clone()), (ranks, (0..ranks).collect()), "{ranks}");
    }
    assert_eq!(format!("{:?}", RankSet::below(3)), "{0, 1, 2}");
}

#[test]
fn more_words_than_ranks_fill_are_refused() {
    assert_eq!(RankSet::from_words([0; 129]), Err(Refusal::BadField("words")));
    let full = RankSet::from_words([u64::MAX; 128]);
    assert_eq!(full, Ok(RankSet::below(MAX_RANKS)));
}

#[test]
#[should_panic(expected = "below MAX_RANKS")]
fn a_rank_that_no_packet_has_is_a_mistake_of_the_caller() {
    RankSet::new().insert(MAX_RANKS);
}
