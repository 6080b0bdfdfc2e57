//! The cryptography that a seal needs, as a driver provides it.

use crate::time::Instant;
use alloc::boxed::Box;
use olaf_wire::Hash;
use olaf_wire::sealed::{KeyName, Tag};
use olaf_wire::signature::SignatureTag;

/// The keys of a party, and what can be done with them. Nothing of a key leaves it.
pub trait Secrets: Send {
    /// The keys, in an order that never changes. Of the keys for the same job, the first is the present
    /// one; the others are older, and each says until when it is good.
    fn keys(&self) -> &[KeyInfo];

    /// Bytes that nobody can guess, new ones at each call.
    fn random(&mut self) -> Tag;

    /// The tag of `bytes` under the key with that place in [`Secrets::keys`].
    fn sign(&self, key: usize, bytes: &[u8]) -> Tag;

    /// Returns true if `tag` is the tag of `bytes` under that key; takes the same time for every
    /// tag.
    fn verify(&self, key: usize, bytes: &[u8], tag: &Tag) -> bool;

    /// The tag of `bytes` under a secret that only this process has.
    fn cookie(&self, bytes: &[u8]) -> Tag;

    /// What signs models with these keys, and checks them.
    fn signer(&self) -> Box<dyn Signer>;

    /// The keys of a session, from a key and the random bytes of both parties.
    fn session(&self, key: usize, initiator: &Tag, responder: &Tag) -> Box<dyn Session>;
}

/// What a server signs the versions of its models with, and a worker checks them with. Its keys are
/// derived from the jobs' secrets, which a switch does not have: with a switch's key alone it neither
/// signs nor checks.
pub trait Signer: Send {
    /// Returns true if it has the secret of that job.
    fn signs(&self, job: u32) -> bool;

    /// A number that nobody can guess, a new one at each call; never 0.
    fn draw(&mut self) -> u64;

    /// The hash of a segment: of its lanes as they travel.
    fn hash_lanes(&self, lanes: &[f32]) -> Hash;

    /// The hash of a model: of its segments' hashes, one after the other.
    fn hash_hashes(&self, hashes: &[Hash]) -> Hash;

    /// The tag of `bytes` for that job.
    ///
    /// # Panics
    /// Where it has no secret of that job.
    fn tag(&self, job: u32, bytes: &[u8]) -> SignatureTag;

    /// Returns true if `tag` is that tag; takes the same time for every tag. False without a
    /// secret.
    fn verify(&self, job: u32, bytes: &[u8], tag: &SignatureTag) -> bool;
}

/// The keys of a session: one for each direction.
pub trait Session: Send {
    /// The tag of the datagram `signed`, which is number `counter` in its direction. A caller never
    /// uses a number twice.
    fn sign(&self, direction: Direction, counter: u64, signed: &[u8]) -> Tag;

    /// Returns true if `tag` is that tag; takes the same time for every tag.
    fn verify(&self, direction: Direction, counter: u64, signed: &[u8], tag: &Tag) -> bool;
}

/// A direction of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the party that began the handshake.
    Up,
    /// To the party that began the handshake.
    Down,
}

/// What is public about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its name on the wire.
    pub name: KeyName,
    /// The one job that it is for; none: any job.
    pub job: Option<u32>,
    /// When it ends; none: it is the present key.
    pub until: Option<Instant>,
}

impl KeyInfo {
    /// Returns true if the key is good for messages of that job; messages without a job are of any.
    #[must_use]
    pub fn allows(&self, job: Option<u32>) -> bool {
        match (self.job, job) {
            (Some(own), Some(job)) => own == job,
            _ => true,
        }
    }

    /// Returns true if the key was replaced, and the time of the old one is over.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
