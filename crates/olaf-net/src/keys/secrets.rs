//! The cryptography of seals, by aws-lc: HKDF-SHA-256 derives, HMAC-SHA-256 signs handshakes and
//! cookies, AES-128-GMAC signs datagrams.

use super::file::Key;
use crate::clock;
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::{digest, hmac, rand};
use olaf_engine::Instant;
use olaf_engine::seal::{Direction, KeyInfo, Secrets, Session, Signer};
use olaf_wire::Hash;
use olaf_wire::offsets::LANE;
use olaf_wire::sealed::{KeyName, TAG_BYTES, Tag};
use olaf_wire::signature::SignatureTag;
use olaf_wire::update::write_lanes;
use std::time::Duration;

const NONCE_BYTES: usize = 12;
/// Lanes that are put in wire order together.
const HASHED_AT_ONCE: usize = 1024;

/// The keys of a process.
pub(crate) struct KeySet {
    infos: Vec<KeyInfo>,
    keys: Vec<OfKey>,
    /// Only this process has it: cookies of an earlier one are not good.
    cookie: hmac::Key,
}

struct OfKey {
    hop: [u8; 32],
    model: Option<hmac::Key>,
    handshake: hmac::Key,
}

impl KeySet {
    #[cfg(test)]
    pub(crate) fn new(keys: &[Key]) -> Self {
        Self::with_cookie(keys, &Cookie::draw())
    }

    /// The keys, and the old ones behind them, with the secret of the cookies that this process gives out.
    pub(super) fn with_cookie(keys: &[Key], cookie: &Cookie) -> Self {
        let of = |key: &Key| {
            let hop = key.hop();
            let handshake: [u8; 32] = derived(b"", &hop, b"handshake");
            let model = key.model().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, &secret));
            OfKey { hop, model, handshake: hmac::Key::new(hmac::HMAC_SHA256, &handshake) }
        };
        let present = keys
            .iter()
            .map(|key| (KeyInfo { name: name_of(&key.hop()), job: key.job, until: None }, of(key)));
        let old = keys.iter().filter_map(Key::before).map(|(name, key, until)| {
            (KeyInfo { name, job: key.job, until: Some(until) }, of(&key))
        });
        let (infos, keys) = present.chain(old).unzip();
        Self { infos, keys, cookie: hmac::Key::new(hmac::HMAC_SHA256, &cookie.0) }
    }
}

/// What the cookies of this process are made with, also after a look at its key files.
pub(super) struct Cookie([u8; 32]);

impl Cookie {
    pub(super) fn draw() -> Self {
        let mut drawn = [0; 32];
        fill(&mut drawn);
        Self(drawn)
    }
}

impl Secrets for KeySet {
    fn keys(&self) -> &[KeyInfo] {
        &self.infos
    }

    fn random(&mut self) -> Tag {
        let mut drawn = Tag::default();
        fill(&mut drawn);
        drawn
    }

    fn sign(&self, key: usize, bytes: &[u8]) -> Tag {
        truncated(&self.keys[key].handshake, bytes)
    }

    fn verify(&self, key: usize, bytes: &[u8], tag: &Tag) -> bool {
        let own = truncated(&self.keys[key].handshake, bytes);
        aws_lc_rs::constant_time::verify_slices_are_equal(&own, tag).is_ok()
    }

    fn cookie(&self, bytes: &[u8]) -> Tag {
        truncated(&self.cookie, bytes)
    }

    fn signer(&self) -> Box<dyn Signer> {
        let keys = self.infos.iter().zip(&self.keys);
        let of = |(info, key): (&KeyInfo, &OfKey)| Some((*info, key.model.clone()?));
        Box::new(Models(keys.filter_map(of).collect()))
    }

    fn session(&self, key: usize, initiator: &Tag, responder: &Tag) -> Box<dyn Session> {
        let both = [*initiator, *responder].concat();
        let key = |direction: &[u8]| {
            let bytes: [u8; 16] = derived(&both, &self.keys[key].hop, direction);
            let key = UnboundKey::new(&AES_128_GCM, &bytes).expect("a key of 16 bytes");
            LessSafeKey::new(key)
        };
        Box::new(Gmac { up: key(b"up"), down: key(b"down") })
    }
}

/// A signature that was made just before an old key's end may still be on its way.
const SIGNED_LATE: Duration = Duration::from_secs(30);

/// The keys that models are signed with, of those keys that are a job's. SHA-256 hashes the models.
struct Models(Vec<(KeyInfo, hmac::Key)>);

impl Models {
    fn of(&self, job: u32) -> impl Iterator<Item = (&KeyInfo, &hmac::Key)> {
        let known = self.0.iter().map(|(info, key)| (info, key));
        known.filter(move |(info, _)| info.allows(Some(job)))
    }

    /// The key that signs now. Where the job has an old key this is the old one: every worker has it.
    fn key(&self, now: Instant, job: u32) -> Option<&hmac::Key> {
        let (first, present) = self.of(job).find(|(info, _)| info.until.is_none())?;
        let is_before =
            |info: &KeyInfo| info.job == first.job && info.until.is_some() && !info.is_over(now);
        let before = self.of(job).find(|(info, _)| is_before(info)).map(|(_, key)| key);
        Some(before.unwrap_or(present))
    }
}

impl Signer for Models {
    fn signs(&self, job: u32) -> bool {
        self.of(job).next().is_some()
    }

    fn draw(&mut self) -> u64 {
        let mut drawn = [0; 8];
        fill(&mut drawn);
        u64::from_ne_bytes(drawn).max(1)
    }

    fn hash_lanes(&self, lanes: &[f32]) -> Hash {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut bytes = [0; HASHED_AT_ONCE * LANE];
        for lanes in lanes.chunks(HASHED_AT_ONCE) {
            let bytes = &mut bytes[..lanes.len() * LANE];
            write_lanes(lanes, bytes);
            context.update(bytes);
        }
        hash_of(&context.finish())
    }

    fn hash_hashes(&self, hashes: &[Hash]) -> Hash {
        hash_of(&digest::digest(&digest::SHA256, hashes.as_flattened()))
    }

    fn tag(&self, job: u32, bytes: &[u8]) -> SignatureTag {
        truncated(self.key(clock::now(), job).expect("a caller asks signs() first"), bytes)
    }

    fn verify(&self, job: u32, bytes: &[u8], tag: &SignatureTag) -> bool {
        let now = clock::now();
        let is_good = |info: &KeyInfo| info.until.is_none_or(|until| now < until + SIGNED_LATE);
        let mut good = self.of(job).filter(|(info, _)| is_good(info));
        good.any(|(_, key)| {
            let own = truncated(key, bytes);
            aws_lc_rs::constant_time::verify_slices_are_equal(&own, tag).is_ok()
        })
    }
}

fn hash_of(digest: &digest::Digest) -> Hash {
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The keys of a session. The nonce is the datagram's number, which a direction uses once.
struct Gmac {
    up: LessSafeKey,
    down: LessSafeKey,
}

impl Gmac {
    const fn key(&self, direction: Direction) -> &LessSafeKey {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

impl Session for Gmac {
    fn sign(&self, direction: Direction, counter: u64, signed: &[u8]) -> Tag {
        let key = self.key(direction);
        let sealed = key.seal_in_place_separate_tag(nonce(counter), Aad::from(signed), &mut []);
        let tag = sealed.expect("a datagram is far shorter than GCM allows");
        tag.as_ref().try_into().expect("a tag of AES-GCM has 16 bytes")
    }

    fn verify(&self, direction: Direction, counter: u64, signed: &[u8], tag: &Tag) -> bool {
        let mut nothing_and_tag = *tag;
        let key = self.key(direction);
        key.open_in_place(nonce(counter), Aad::from(signed), &mut nothing_and_tag).is_ok()
    }
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_BYTES];
    bytes[NONCE_BYTES - 8..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Fills with random bytes of the system.
pub(super) fn fill(bytes: &mut [u8]) {
    rand::fill(bytes).expect("the system has random bytes");
}

/// What signs datagrams, derived from a job's secret.
pub(super) fn hop_secret(secret: &[u8; 32]) -> [u8; 32] {
    derived(b"", secret, b"hop")
}

/// What models are signed with, derived from a job's secret beside the hop key.
pub(super) fn model_secret(secret: &[u8; 32]) -> [u8; 32] {
    derived(b"", secret, b"model")
}

/// The public name of a key, derived from what signs its datagrams.
pub(super) fn name_of(hop: &[u8; 32]) -> KeyName {
    derived(b"", hop, b"name")
}

fn truncated(key: &hmac::Key, bytes: &[u8]) -> Tag {
    let whole = hmac::sign(key, bytes);
    whole.as_ref()[..TAG_BYTES].try_into().expect("HMAC-SHA-256 has 32 bytes")
}

/// HKDF (RFC 5869) with the domain of this project in its info.
fn derived<const N: usize>(salt: &[u8], secret: &[u8; 32], what: &[u8]) -> [u8; N] {
    struct Length(usize);

    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }

    let extracted: Prk = Salt::new(HKDF_SHA256, salt).extract(secret);
    let info = [b"olaf seal 1", what];
    let mut bytes = [0; N];
    let expanded = extracted.expand(&info, Length(N)).and_then(|okm| okm.fill(&mut bytes));
    expanded.expect("a few bytes of HKDF");
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pair() -> (KeySet, KeySet) {
        let key = Key::generate(Some(3));
        (KeySet::new(std::slice::from_ref(&key)), KeySet::new(&[key.for_switch()]))
    }

    #[test]
    fn both_ends_of_a_hop_agree_and_nobody_else() {
        let (worker, switch) = pair();
        assert_eq!(worker.keys(), switch.keys());
        let tag = worker.sign(0, b"open");
        assert!(switch.verify(0, b"open", &tag));
        assert!(!switch.verify(0, b"opem", &tag));
        let (a, b) = ([1; 16], [2; 16]);
        let (up, down) = (worker.session(0, &a, &b), switch.session(0, &a, &b));
        let tag = up.sign(Direction::Up, 5, b"datagram");
        assert!(down.verify(Direction::Up, 5, b"datagram", &tag));
        assert!(!down.verify(Direction::Down, 5, b"datagram", &tag), "directions have own keys");
        assert!(!down.verify(Direction::Up, 6, b"datagram", &tag), "a number is signed, too");
        let other = switch.session(0, &a, &[3; 16]);
        assert!(!other.verify(Direction::Up, 5, b"datagram", &tag), "each session has own keys");
        let (stranger, _) = pair();
        let forged = stranger.session(0, &a, &b).sign(Direction::Up, 5, b"datagram");
        assert!(!down.verify(Direction::Up, 5, b"datagram", &forged));
    }

    #[test]
    fn a_switch_cannot_sign_a_model_and_job_and_bytes_are_under_the_tag() {
        let (worker, switch) = pair();
        let server = worker.signer();
        assert!(server.signs(3) && !server.signs(4) && !switch.signer().signs(3));
        let tag = server.tag(3, b"version 7");
        assert!(worker.signer().verify(3, b"version 7", &tag));
        assert!(!server.verify(3, b"version 8", &tag));
        assert!(!server.verify(4, b"version 7", &tag), "it has no key of job 4");
        assert!(!switch.signer().verify(3, b"version 7", &tag));
        // Nothing that a switch's key signs is a signature under a model.
        assert!(!server.verify(3, b"version 7", &switch.sign(0, b"version 7")));
        let (stranger, _) = pair();
        assert!(!server.verify(3, b"version 7", &stranger.signer().tag(3, b"version 7")));
        let mut drawing = worker.signer();
        assert_ne!(drawing.draw(), drawing.draw());
    }

    #[test]
    fn a_model_is_hashed_as_it_travels() {
        let (worker, _) = pair();
        let signer = worker.signer();
        let lanes: Vec<f32> = (0..3000).map(|lane| lane as f32 * 0.5).collect();
        let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let whole = |bytes: &[u8]| hash_of(&digest::digest(&digest::SHA256, bytes));
        assert_eq!(signer.hash_lanes(&lanes), whole(&bytes));
        // FIPS 180-4 of nothing.
        let empty = signer.hash_lanes(&[]).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(empty, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let both = [whole(b"a"), whole(b"b")];
        assert_eq!(signer.hash_hashes(&both), whole(&both.concat()));
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Key files and peers of every build agree: Python's hmac computed these by RFC 5869.
    #[test]
    fn keys_are_derived_by_rfc_5869() {
        let secret = std::array::from_fn(|at| at as u8);
        let hop = hop_secret(&secret);
        assert_eq!(hex(&hop), "9c1ea3f599531c2548666ce5230b2282ebe472fbb0c73770b22920303c4a3d12");
        let model = model_secret(&secret);
        assert_eq!(hex(&model), "bcf8c959745abfb7e7c99f8199e18f74186e2b089838f015982483b35a98d1e7");
        assert_eq!(hex(&name_of(&hop)), "fdd250d3d8b3fe08");
        let both = [[1; 16], [2; 16]].concat();
        assert_eq!(hex(&derived::<16>(&both, &hop, b"up")), "13174bf5bbc215b96bb0feb962f77d2d");
    }

    #[test]
    fn models_are_signed_with_the_old_key_until_it_ends_and_workers_take_both() {
        let key = Key::generate(Some(3));
        let now_s = clock::now().0 / 1_000_000_000;
        let rotated = key.rotated(now_s + 1_000, now_s).unwrap();
        let signer = |key: &Key| KeySet::new(std::slice::from_ref(key)).signer();
        let (before, both) = (signer(&key), signer(&rotated));
        let present = signer(&rotated.finished(now_s).unwrap());
        let tag = both.tag(3, b"version 7");
        assert!(before.verify(3, b"version 7", &tag), "workers with the old file");
        assert!(both.verify(3, b"version 7", &tag) && !present.verify(3, b"version 7", &tag));
        let tag = present.tag(3, b"version 7");
        assert!(both.verify(3, b"version 7", &tag) && !before.verify(3, b"version 7", &tag));
        // Some seconds after the old key's end, and after that.
        for (ago, is_taken) in [(5, true), (40, false)] {
            let late = signer(&key.rotated(now_s - ago, now_s - 1_000).unwrap());
            let tag = before.tag(3, b"version 8");
            assert_eq!(late.verify(3, b"version 8", &tag), is_taken, "{ago} s ago");
            assert!(!before.verify(3, b"version 8", &late.tag(3, b"version 8")));
        }
    }

    #[test]
    fn cookies_of_another_process_are_not_good() {
        let (one, other) = pair();
        assert_ne!(one.cookie(b"address"), other.cookie(b"address"));
    }

    #[test]
    fn the_tag_is_that_of_aes_gcm_without_plain_text() {
        // NIST's GCM test vector of an all-zero key and nonce, with nothing to encrypt and nothing
        // to sign: 58e2fccefa7e3061367f1d57a4e7455a.
        let key = || LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[0; 16]).unwrap());
        let session = Gmac { up: key(), down: key() };
        let tag = session.sign(Direction::Up, 0, b"");
        assert_eq!(hex(&tag), "58e2fccefa7e3061367f1d57a4e7455a");
    }
}
