//! The file of a key: one line of JSON that only its owner may read.

use super::secrets::{fill, hop_secret, model_secret, name_of};
use olaf_engine::Instant;
use olaf_wire::sealed::KeyName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Version of the file. A file without an old key is of version 1, which earlier builds read, too.
const VERSION: u32 = 1;
/// Version of a file with an old key.
const ROTATED: u32 = 2;
/// A file longer than this is none of ours.
const MOST_BYTES: u64 = 4096;
const SECRET_BYTES: usize = 32;
/// In the place of a key file this names the key that everybody knows: it keeps nobody out, and finds content that changed.
const PUBLIC: &str = "public";
/// The secret of that key, which is none.
const PUBLIC_SECRET: &[u8; SECRET_BYTES] = b"olaf: this key is in the sources";

/// A key that was read or made.
#[derive(Clone)]
pub struct Key {
    /// The one job that it is for; none: any job.
    pub job: Option<u32>,
    secret: [u8; SECRET_BYTES],
    kind: Kind,
    old: Option<Old>,
}

/// The key before the last rotation.
#[derive(Clone)]
pub struct Old {
    /// Its public name.
    pub name: KeyName,
    /// Until when it is good: seconds of Unix time.
    pub until_s: u64,
    /// None where it was ended: the name alone is kept, so that who still has it can be told.
    secret: Option<[u8; SECRET_BYTES]>,
}

/// What the secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Of workers and servers. All else is derived from it.
    Job,
    /// Of a switch: what signs datagrams, hop by hop.
    Switch,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    olaf_key: u32,
    kind: Kind,
    job: Option<u32>,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old: Option<WrittenOld>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenOld {
    name: String,
    until: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// Why there is no key.
#[derive(Debug)]
pub enum KeyError {
    /// The file cannot be read or written.
    System(String, io::Error),
    /// A new key would be written over it.
    Exists(String),
    /// Others than its owner may read it.
    Open(String, u32),
    /// It is no key.
    NoKey(String, String),
    /// What was asked for cannot be done with this key.
    Refused(String, String),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(path, error) => write!(f, "{path}: {error}"),
            Self::Exists(path) => {
                write!(f, "{path} exists, and a key is never overwritten; choose another name")
            }
            Self::Open(path, mode) => write!(
                f,
                "{path}: others may read it (mode {mode:03o}); make it private: chmod 600 {path}"
            ),
            Self::NoKey(path, why) => {
                write!(f, "{path}: {why}; make a key with: olaf keys new NAME.key")
            }
            Self::Refused(path, why) => write!(f, "{path}: {why}"),
        }
    }
}

impl std::error::Error for KeyError {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("job", &self.job).field("kind", &self.kind).finish()
    }
}

impl Key {
    /// A new key, for one job or for any.
    #[must_use]
    pub fn generate(job: Option<u32>) -> Self {
        let mut secret = [0; SECRET_BYTES];
        fill(&mut secret);
        Self { job, secret, kind: Kind::Job, old: None }
    }

    /// The key that everybody knows, for any job.
    #[must_use]
    pub(super) const fn public() -> Self {
        Self { job: None, secret: *PUBLIC_SECRET, kind: Kind::Job, old: None }
    }

    /// Returns true if everybody knows the key: who has it has proved nothing.
    #[must_use]
    pub(super) fn is_public(&self) -> bool {
        self.hop() == Self::public().hop()
    }

    /// A new key in the place of this one, which is good until then (seconds of Unix time).
    ///
    /// # Errors
    /// Where this is a switch's key, the public one, or where the key before it is still good.
    pub fn rotated(&self, until_s: u64, now_s: u64) -> Result<Self, String> {
        if self.is_public() {
            return Err(
                "this is the key that everybody knows, and the same for ever: make one of \
                        your own with: olaf keys new NAME.key"
                    .into(),
            );
        }
        if self.kind == Kind::Switch {
            return Err(
                "this is a switch's key: rotate the job's key, and write the switch's anew with: \
                        olaf keys switch JOB.key SWITCH.key"
                    .into(),
            );
        }
        if self.old.as_ref().is_some_and(|old| old.is_good(now_s)) {
            return Err(
                "the key before this one is still good, and a file has one old key: end it \
                        first with: olaf keys rotate FILE --finish"
                    .into(),
            );
        }
        let secret = (until_s > now_s).then_some(self.secret);
        let old = Old { name: name_of(&self.hop()), until_s, secret };
        Ok(Self { old: Some(old), ..Self::generate(self.job) })
    }

    /// The key without its old one, of which the name alone is kept.
    ///
    /// # Errors
    /// Where there is none, or where this is a switch's key.
    pub fn finished(&self, now_s: u64) -> Result<Self, String> {
        if self.kind == Kind::Switch {
            return Err(
                "this is a switch's key: end the job's old key, and write the switch's anew \
                        with: olaf keys switch JOB.key SWITCH.key"
                    .into(),
            );
        }
        let Some(old) = &self.old else {
            return Err("it has no old key: nothing is to be ended".into());
        };
        let old = Old { until_s: old.until_s.min(now_s), secret: None, ..*old };
        Ok(Self { old: Some(old), ..self.clone() })
    }

    /// The key before the last rotation.
    #[must_use]
    pub const fn old(&self) -> Option<&Old> {
        self.old.as_ref()
    }

    /// The old key: its name, the key, and when it ends. A key that was ended has a secret that nobody knows.
    pub(super) fn before(&self) -> Option<(KeyName, Self, Instant)> {
        let old = self.old.as_ref()?;
        let secret = old.secret.unwrap_or_else(|| {
            let mut nobodys = [0; SECRET_BYTES];
            fill(&mut nobodys);
            nobodys
        });
        let until = Instant(old.until_s.max(1).saturating_mul(1_000_000_000));
        Some((old.name, Self { secret, old: None, ..*self }, until))
    }

    /// What a switch needs of this key.
    #[must_use]
    pub fn for_switch(&self) -> Self {
        let old = self
            .old
            .as_ref()
            .map(|old| Old { secret: old.secret.map(|secret| self.hop_of(&secret)), ..*old });
        Self { secret: self.hop(), kind: Kind::Switch, old, ..*self }
    }

    /// Returns true if the other key was made of this one, or of the one before it.
    fn is_before(&self, switch: &Self) -> bool {
        let own = name_of(&self.hop());
        let names = [Some(own), self.old.as_ref().map(|old| old.name)];
        switch.kind == Kind::Switch && names.contains(&Some(name_of(&switch.hop())))
    }

    /// "job" or "switch": who it is for.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Job => "job",
            Kind::Switch => "switch",
        }
    }

    /// Returns true if it is a job's: with it models can be signed.
    #[must_use]
    pub(crate) const fn is_of_a_job(&self) -> bool {
        matches!(self.kind, Kind::Job)
    }

    /// Its public name, in hexadecimal digits: the same for a job's key and its switch's.
    #[must_use]
    pub fn name(&self) -> String {
        hex(&super::secrets::name_of(&self.hop()))
    }

    /// Returns true if one of the other key's names, the present or the old one, is one of this key's.
    pub(super) fn shares_a_name(&self, other: &Self) -> bool {
        let names = |of: &Self| [Some(of.name()), of.old.as_ref().map(Old::name)];
        names(self).into_iter().flatten().any(|name| names(other).contains(&Some(name)))
    }

    /// What datagrams are signed with.
    pub(super) fn hop(&self) -> [u8; SECRET_BYTES] {
        self.hop_of(&self.secret)
    }

    fn hop_of(&self, secret: &[u8; SECRET_BYTES]) -> [u8; SECRET_BYTES] {
        match self.kind {
            Kind::Job => hop_secret(secret),
            Kind::Switch => *secret,
        }
    }

    /// What models are signed with. A switch's key has nothing of it.
    pub(super) fn model(&self) -> Option<[u8; SECRET_BYTES]> {
        (self.kind == Kind::Job).then(|| model_secret(&self.secret))
    }

    /// Reads a file that only its owner may read. The name `public` means the key that everybody knows.
    ///
    /// # Errors
    /// Says what is wrong with the file, and what to do.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        if path.as_os_str() == PUBLIC {
            return Ok(Self::public());
        }
        let shown = path.display().to_string();
        let system = |error| KeyError::System(shown.clone(), error);
        let file = fs::File::open(path).map_err(system)?;
        let about = file.metadata().map_err(system)?;
        if let Some(mode) = open_to_others(&about) {
            return Err(KeyError::Open(shown, mode));
        }
        let mut text = String::new();
        let limited = &mut io::Read::take(file, MOST_BYTES);
        io::Read::read_to_string(limited, &mut text).map_err(system)?;
        Self::parse(&text).map_err(|why| KeyError::NoKey(shown, why))
    }

    /// Reads the text of a file, which another program read.
    ///
    /// # Errors
    /// Where it is no key. The error never shows the secret.
    pub fn of_text(text: &str) -> Result<Self, KeyError> {
        let whence = "the key that was handed over".to_owned();
        Self::parse(text).map_err(|why| KeyError::NoKey(whence, why))
    }

    /// Reads the text of a file. The error never shows the secret.
    fn parse(text: &str) -> Result<Self, String> {
        let written: Written =
            serde_json::from_str(text.trim()).map_err(|_| "this is no key file".to_owned())?;
        if !(VERSION..=ROTATED).contains(&written.olaf_key) {
            let have = written.olaf_key;
            return Err(format!("a key file of version {have}; this is version {ROTATED}"));
        }
        let no_secret = || format!("its secret is not {SECRET_BYTES} bytes in hexadecimal");
        let secret = unhex(&written.secret).ok_or_else(no_secret)?;
        let old = written.old.map(|old| {
            let secret =
                old.secret.map(|secret| unhex(&secret).ok_or_else(no_secret)).transpose()?;
            let name =
                unhex(&old.name).ok_or("its old key has no name of 8 bytes in hexadecimal")?;
            Ok::<_, String>(Old { name, until_s: old.until, secret })
        });
        Ok(Self { job: written.job, secret, kind: written.kind, old: old.transpose()? })
    }

    /// Writes a new file that only its owner may read.
    ///
    /// # Errors
    /// Where the file exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        self.write_new(path)
    }

    /// Writes it in the place of the file, in one step: who reads the file finds the key before, or this.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn replace(&self, path: &Path) -> Result<(), KeyError> {
        // The file itself, not a link to it.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let system = |error| KeyError::System(path.display().to_string(), error);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let beside = path.with_file_name(name);
        self.write_new(&beside)?;
        let moved = fs::rename(&beside, path).map_err(system);
        if moved.is_err() {
            let _ = fs::remove_file(&beside);
        }
        moved
    }

    /// Writes what a switch needs of this key: to a new file, or in the place of what the switch needed of
    /// it before the last rotation.
    ///
    /// # Errors
    /// Where the file is another one, or cannot be written.
    pub fn write_for_switch(&self, path: &Path) -> Result<(), KeyError> {
        let switch = self.for_switch();
        match Self::read(path) {
            Ok(found) if self.is_before(&found) => switch.replace(path),
            _ => switch.write_new(path),
        }
    }

    fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let system = |error| KeyError::System(path.display().to_string(), error);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists(path.display().to_string()),
            _ => system(error),
        })?;
        file.write_all(self.text().as_bytes()).map_err(system)?;
        file.sync_all().map_err(system)
    }

    /// The text of its file: the secret is in it.
    #[must_use]
    pub fn text(&self) -> String {
        let old = self.old.as_ref().map(|old| WrittenOld {
            name: hex(&old.name),
            until: old.until_s,
            secret: old.secret.map(|secret| hex(&secret)),
        });
        let written = Written {
            olaf_key: if old.is_some() { ROTATED } else { VERSION },
            kind: self.kind,
            job: self.job,
            secret: hex(&self.secret),
            old,
        };
        serde_json::to_string(&written).expect("a key is plain data") + "\n"
    }
}

impl Old {
    /// Its public name, in hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> String {
        hex(&self.name)
    }

    /// Returns true if the key is good at that time, in seconds of Unix time.
    #[must_use]
    pub const fn is_good(&self, now_s: u64) -> bool {
        self.secret.is_some() && self.until_s > now_s
    }
}

/// The mode, if others than the owner may do anything with the file.
#[cfg(unix)]
pub(crate) fn open_to_others(about: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mode = about.permissions().mode() & 0o777;
    is_open(mode, about.uid(), rustix::process::geteuid().as_raw()).then_some(mode)
}

/// A group may read a file of root: systemd and Kubernetes hand credentials to a service in that
/// way, and the service cannot change it.
#[cfg(unix)]
const fn is_open(mode: u32, owner: u32, reader: u32) -> bool {
    let is_handed_over = owner == 0 && reader != 0;
    let private = if is_handed_over { 0o740 } else { 0o700 };
    mode & !private != 0
}

#[cfg(not(unix))]
pub(crate) fn open_to_others(_: &fs::Metadata) -> Option<u32> {
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file_which_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.key");
        let key = Key::generate(Some(7));
        key.write(&path).unwrap();
        let read = Key::read(&path).unwrap();
        assert_eq!((read.job, read.secret, read.kind()), (Some(7), key.secret, "job"));
        assert!(key.write(&path).is_err(), "a key is never overwritten");
    }

    #[test]
    fn the_public_key_needs_no_file_and_is_never_rotated() {
        let key = Key::read(PUBLIC.as_ref()).unwrap();
        assert!(key.is_public() && key.for_switch().is_public());
        assert!(Key::of_text(&key.for_switch().text()).unwrap().is_public());
        assert!(!Key::generate(None).is_public());
        let why = key.rotated(2, 1).unwrap_err();
        assert!(why.contains("everybody knows"), "{why}");
        assert!(key.finished(1).is_err());
        // A file of this name has a path.
        assert!(Key::read("./public".as_ref()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.key");
        Key::generate(None).write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Key::read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 644") && error.contains("chmod 600"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_group_may_read_what_root_hands_to_a_service_alone() {
        for (mode, owner, reader, is_refused) in [
            (0o600, 1000, 1000, false),
            (0o640, 1000, 1000, true),
            (0o440, 0, 1000, false),
            (0o440, 0, 0, true),
            (0o444, 0, 1000, true),
            (0o460, 0, 1000, true),
        ] {
            assert_eq!(is_open(mode, owner, reader), is_refused, "{mode:o} {owner} {reader}");
        }
    }

    #[test]
    fn a_switch_key_has_the_same_name_and_another_secret() {
        let key = Key::generate(Some(1));
        let switch = key.for_switch();
        assert_eq!((key.name(), key.hop()), (switch.name(), switch.hop()));
        assert_ne!(key.secret, switch.secret);
        assert_eq!((switch.kind(), switch.job), ("switch", Some(1)));
    }

    #[test]
    fn a_rotation_keeps_the_old_key_until_its_time_and_its_name_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("job.key"), folder.path().join("switch.key"));
        let key = Key::generate(Some(7));
        key.write(&path).unwrap();
        key.write_for_switch(&out).unwrap();
        let rotated = key.rotated(2_000, 1_000).unwrap();
        rotated.replace(&path).unwrap();
        let read = Key::read(&path).unwrap();
        assert_eq!((read.name(), read.job), (rotated.name(), Some(7)));
        assert_ne!(read.name(), key.name());
        let (name, before, until) = read.before().unwrap();
        assert_eq!((hex(&name), until.0), (key.name(), 2_000_000_000_000));
        assert_eq!(before.hop(), key.hop());
        assert!(read.rotated(3_000, 1_999).is_err(), "one old key at a time");
        assert!(read.rotated(3_000, 2_000).is_ok());
        // The switch's file follows, and no other file is written over.
        read.write_for_switch(&out).unwrap();
        let switch = Key::read(&out).unwrap();
        assert_eq!((switch.kind(), switch.name()), ("switch", read.name()));
        assert_eq!(switch.before().unwrap().1.hop(), key.hop());
        assert!(read.write_for_switch(&path).is_err(), "this is the job's");
        assert!(Key::generate(Some(7)).write_for_switch(&out).is_err(), "of another key");
        assert!(switch.rotated(3_000, 2_500).is_err() && switch.finished(3_000).is_err());
        let ended = read.finished(1_500).unwrap();
        assert!(!ended.text().contains(&hex(&key.secret)), "the secret is gone");
        ended.write_for_switch(&out).unwrap();
        for of in [&ended, &Key::read(&out).unwrap()] {
            assert_eq!(of.old().unwrap().name(), key.name());
            assert!(!of.old().unwrap().is_good(1_499));
            assert_ne!(of.before().unwrap().1.hop(), key.hop());
        }
        assert!(key.finished(1).is_err());
        // A leaked key ends at once.
        assert!(!key.rotated(1_000, 1_000).unwrap().text().contains(&hex(&key.secret)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing lies about");
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        for text in ["", "{}", "secret", r#"{"olaf_key":1,"kind":"job","job":1,"secret":"abcd"}"#] {
            let why = Key::parse(text).unwrap_err();
            assert!(!why.contains("abcd"), "{why}");
        }
        let newer =
            format!(r#"{{"olaf_key":3,"kind":"job","job":1,"secret":"{}"}}"#, "00".repeat(32));
        assert!(Key::parse(&newer).unwrap_err().contains("version 3"));
        assert!(!format!("{:?}", Key::generate(None)).contains("secret"));
    }
}
