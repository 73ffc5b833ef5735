//! Rendezvous hashing: which replica owns a node. The same in all replicas and versions.
//!
//! Every pair of node and replica has a weight; the replica with the greatest weight owns the node. A replica that
//! leaves moves only its own nodes, and one that joins takes an equal share from each.

/// Weight of a pair.
pub(crate) fn weight(node: &str, replica: &str) -> u64 {
    // FNV-1a over both names with the finalizer of splitmix64, because the last bytes of names hardly reach the high
    // bits.
    let separated = node.bytes().chain(std::iter::once(0)).chain(replica.bytes());
    let hash = separated.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether `a` ranks before `b` for this node. Equal weights are ordered by name.
pub(crate) fn before(node: &str, a: &str, b: &str) -> bool {
    (weight(node, a), a) > (weight(node, b), b)
}

/// Owner of a node among these replicas.
pub(crate) fn owner<'a>(node: &str, replicas: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    replicas.into_iter().max_by_key(|replica| (weight(node, replica), *replica))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_are_stable() {
        // Replicas of two versions share nodes during a rollout, so these weights are part of the protocol.
        assert_eq!(weight("node-a", "plimsoll-0"), 0x116C_D5D4_812C_3EC9);
        assert_eq!(weight("node-b", "plimsoll-0"), 0xF2F2_0DE7_A229_776A);
        assert_ne!(weight("a", "bc"), weight("ab", "c"));
    }

    #[test]
    fn shards_are_about_equal() {
        let replicas = ["plimsoll-7d9f-abcde", "plimsoll-7d9f-fghij", "plimsoll-7d9f-klmno"];
        let mut counts = BTreeMap::new();
        for node in 0..3000 {
            *counts.entry(owner(&format!("ip-10-0-{node}"), replicas).unwrap()).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| (900..=1100).contains(count)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn only_nodes_of_a_leaving_replica_move(
            replicas in proptest::collection::btree_set("[a-d]{1,3}", 2..6),
            node in "[a-z0-9-]{1,12}",
            leaver in any::<prop::sample::Index>(),
        ) {
            let all: Vec<&str> = replicas.iter().map(String::as_str).collect();
            let gone = *leaver.get(&all);
            let before_it = owner(&node, all.iter().copied()).unwrap();
            let after = owner(&node, all.iter().copied().filter(|one| *one != gone)).unwrap();
            prop_assert!(before_it == gone || after == before_it);
            prop_assert!(all.iter().all(|other| *other == before_it || before(&node, before_it, other)));
        }
    }
}
