//! A toy cryptography for models.

use olaf_engine::seal::Signer;
use olaf_wire::Hash;
use olaf_wire::signature::SignatureTag;

/// Hashes and tags that depend on every byte, and tags on the secret. They keep nobody out who knows the
/// code.
pub struct Toy {
    secret: Option<u64>,
    drawn: u64,
}

impl Toy {
    /// One that has the secret of every job. `life` makes what it draws.
    #[must_use]
    pub fn with_secret(secret: u64, life: u32) -> Box<Self> {
        Box::new(Self { secret: Some(secret), drawn: u64::from(life) << 32 })
    }

    /// One with a switch's key alone.
    #[must_use]
    pub fn of_a_switch() -> Box<Self> {
        Box::new(Self { secret: None, drawn: 0 })
    }
}

fn mixed<const N: usize>(secret: u64, bytes: impl Iterator<Item = u8>) -> [u8; N] {
    let mut sums = [secret ^ 0xcbf2_9ce4_8422_2325, secret.rotate_left(32) ^ 0x9e37_79b9];
    for byte in bytes {
        for (at, sum) in (0..).zip(&mut sums) {
            *sum = (*sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3 + 2 * at);
        }
    }
    std::array::from_fn(|at| (sums[at / 8 % 2] >> (at % 8 * 8)) as u8)
}

impl Signer for Toy {
    fn signs(&self, _: u32) -> bool {
        self.secret.is_some()
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        u64::from_be_bytes(mixed(self.drawn, std::iter::empty())).max(1)
    }

    fn hash_lanes(&self, lanes: &[f32]) -> Hash {
        mixed(0, lanes.iter().flat_map(|lane| lane.to_le_bytes()))
    }

    fn hash_hashes(&self, hashes: &[Hash]) -> Hash {
        mixed(1, hashes.iter().flatten().copied())
    }

    fn tag(&self, job: u32, bytes: &[u8]) -> SignatureTag {
        let secret = self.secret.expect("a caller asks signs() first") ^ u64::from(job) << 32;
        mixed(secret, bytes.iter().copied())
    }

    fn verify(&self, job: u32, bytes: &[u8], tag: &SignatureTag) -> bool {
        self.secret.is_some() && self.tag(job, bytes) == *tag
    }
}
