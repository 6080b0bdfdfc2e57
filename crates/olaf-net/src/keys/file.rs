//! The file of a key: one line of JSON that only its owner may read.

use super::secrets::{fill, hop_secret, model_secret};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Version of the file.
const VERSION: u32 = 1;
/// A file longer than this is none of ours.
const MOST_BYTES: u64 = 4096;
const SECRET_BYTES: usize = 32;

/// A key that was read or made.
#[derive(Clone)]
pub struct Key {
    /// The one job that it is for; none: any job.
    pub job: Option<u32>,
    secret: [u8; SECRET_BYTES],
    kind: Kind,
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
        Self { job, secret, kind: Kind::Job }
    }

    /// What a switch needs of this key.
    #[must_use]
    pub fn for_switch(&self) -> Self {
        Self { secret: self.hop(), kind: Kind::Switch, ..self.clone() }
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

    /// What datagrams are signed with.
    pub(super) fn hop(&self) -> [u8; SECRET_BYTES] {
        match self.kind {
            Kind::Job => hop_secret(&self.secret),
            Kind::Switch => self.secret,
        }
    }

    /// What models are signed with. A switch's key has nothing of it.
    pub(super) fn model(&self) -> Option<[u8; SECRET_BYTES]> {
        (self.kind == Kind::Job).then(|| model_secret(&self.secret))
    }

    /// Reads a file that only its owner may read.
    ///
    /// # Errors
    /// Says what is wrong with the file, and what to do.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
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
        if written.olaf_key != VERSION {
            let have = written.olaf_key;
            return Err(format!("a key file of version {have}; this is version {VERSION}"));
        }
        let secret = unhex(&written.secret)
            .ok_or_else(|| format!("its secret is not {SECRET_BYTES} bytes in hexadecimal"))?;
        Ok(Self { job: written.job, secret, kind: written.kind })
    }

    /// Writes a new file that only its owner may read.
    ///
    /// # Errors
    /// Where the file exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
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
        let written = Written {
            olaf_key: VERSION,
            kind: self.kind,
            job: self.job,
            secret: hex(&self.secret),
        };
        serde_json::to_string(&written).expect("a key is plain data") + "\n"
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

fn unhex(text: &str) -> Option<[u8; SECRET_BYTES]> {
    let mut bytes = [0; SECRET_BYTES];
    if text.len() != 2 * SECRET_BYTES || !text.is_ascii() {
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
    fn what_is_no_key_is_refused_without_showing_it() {
        for text in ["", "{}", "secret", r#"{"olaf_key":1,"kind":"job","job":1,"secret":"abcd"}"#] {
            let why = Key::parse(text).unwrap_err();
            assert!(!why.contains("abcd"), "{why}");
        }
        let newer =
            format!(r#"{{"olaf_key":2,"kind":"job","job":1,"secret":"{}"}}"#, "00".repeat(32));
        assert!(Key::parse(&newer).unwrap_err().contains("version 2"));
        assert!(!format!("{:?}", Key::generate(None)).contains("secret"));
    }
}
