//! Key files that are replaced while their roles run: one thread of the process looks at them once a
//! second, beside the threads that move data.

use super::given::Sources;
use crate::error::StartError;
use olaf_engine::seal::Secrets;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks at the files.
const EVERY: Duration = Duration::from_secs(1);

/// The files of a role hold other keys now, or cannot be read. The role returns false when it is gone.
type Tell = Box<dyn FnMut(Renewed) -> bool + Send>;

/// What became of files that were replaced.
pub(crate) enum Renewed {
    /// They hold these keys.
    Keys(Box<dyn Secrets>),
    /// They hold no keys that the role could take, which goes on with those that it has.
    Unreadable(StartError),
    /// Nothing happened: the role is asked whether it is still there.
    Nothing,
}

struct Role {
    sources: Arc<Sources>,
    seen: Vec<Option<Stamp>>,
    /// The files as they are could not be read, and the role has heard so.
    is_unreadable: bool,
    tell: Tell,
}

/// What differs where a file was replaced or written over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    changed: Option<std::time::SystemTime>,
    bytes: u64,
    #[cfg(unix)]
    inode: (u64, u64),
}

/// Roles that began since the thread looked last. The thread of a process that forked is not in the
/// child: the number of the process says whose thread it is.
struct Begun {
    roles: Vec<Role>,
    runs_in: Option<u32>,
}

static BEGUN: Mutex<Begun> = Mutex::new(Begun { roles: Vec::new(), runs_in: None });

/// From here on `tell` hears of it when a key file among `sources` is replaced.
pub(crate) fn renew(
    sources: &Arc<Sources>,
    tell: impl FnMut(Renewed) -> bool + Send + 'static,
) -> Result<(), StartError> {
    if sources.files().next().is_none() {
        return Ok(());
    }
    let role = Role {
        sources: sources.clone(),
        seen: sources.seen.clone(),
        is_unreadable: false,
        tell: Box::new(tell),
    };
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    if begun.runs_in != Some(own) {
        // Roles that wait here from before a fork are of the parent.
        begun.roles.clear();
        std::thread::Builder::new()
            .name("olaf-keys".into())
            .spawn(look)
            .map_err(|error| StartError::System("cannot start a thread".into(), error))?;
        begun.runs_in = Some(own);
    }
    begun.roles.push(role);
    Ok(())
}

/// Looks at the files until no role is left.
fn look() {
    let mut roles: Vec<Role> = Vec::new();
    loop {
        std::thread::sleep(EVERY);
        // No lock is held while files are read: a file system may take its time.
        let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
        roles.append(&mut begun.roles);
        if roles.is_empty() {
            begun.runs_in = None;
            return;
        }
        drop(begun);
        roles.retain_mut(Role::look);
    }
}

impl Role {
    /// Tells the role of files that were replaced. Returns false when the role is gone.
    fn look(&mut self) -> bool {
        let now = stamps(self.sources.files());
        let is_new = now != self.seen;
        if !is_new && !self.is_unreadable {
            return (self.tell)(Renewed::Nothing);
        }
        self.seen = now;
        let read = self.sources.read();
        let was_told = std::mem::replace(&mut self.is_unreadable, read.is_err());
        (self.tell)(match read {
            Ok(Some(keys)) => Renewed::Keys(keys),
            Err(error) if is_new || !was_told => Renewed::Unreadable(error),
            Ok(None) | Err(_) => Renewed::Nothing,
        })
    }
}

/// What tells the files from those that take their places.
pub(super) fn stamps<'a>(files: impl Iterator<Item = &'a str>) -> Vec<Option<Stamp>> {
    files.map(|path| Some(Stamp::of(&fs::metadata(path).ok()?))).collect()
}

impl Stamp {
    fn of(about: &fs::Metadata) -> Self {
        Self {
            changed: about.modified().ok(),
            bytes: about.len(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (about.dev(), about.ino())
            },
        }
    }
}
