//! Which aggregator a fragment meets in (ATP §3.5), and the number of a switch.

/// `HASH(<Job ID, Sequence Number>) % numAggregators`; 0 where there are no aggregators. Each server
/// of a job counts its own part of the tensors, so the server belongs to the identity.
#[must_use]
pub const fn aggregator_index(job: u16, server: u8, sequence: u16, aggregators: u32) -> u16 {
    let identity = (job as u32) << 16 | sequence as u32;
    reduced(mixed(identity ^ (server as u32).wrapping_mul(0x9e37_79b9)), aggregators)
}

/// `HASH(<aggregatorIndex>) % numAggregators`: the index that takes the place of one with collisions
/// (ATP §3.6).
///
/// differs: the job is in the hash, too. Two jobs that collide would otherwise collide again at the
/// next index.
#[must_use]
pub const fn rehash(index: u16, job: u16, aggregators: u32) -> u16 {
    reduced(mixed((job as u32) << 16 ^ index as u32 ^ 0x5bd1_e995), aggregators)
}

/// The number of a switch with a name: the same wherever it is computed, and never 0.
#[must_use]
pub fn switch_id(name: &str) -> u32 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    mixed(hash).max(1)
}

const fn reduced(hash: u32, aggregators: u32) -> u16 {
    // At most 65,535: the number of aggregators has 16 bits and one.
    if aggregators == 0 { 0 } else { (hash % aggregators) as u16 }
}

const fn mixed(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}
