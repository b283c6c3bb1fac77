//! Offsets in a file: the memory of one member in broadcasting. Layout and format are Java's, and each client reads the
//! other's file. Source: `LocalFileOffsetStore` (02-consumer 12.3).
//!
//! Unlike Java's the file is never rewritten in place: a new one is written and synced beside it, and takes its name
//! while the old one becomes `offsets.json.bak`. At each moment one of the two is whole, also after a power loss. What is
//! damaged all the same is kept aside and never ends a start (field reports 57 to 59). While a consumer runs its own
//! knowledge counts, whatever becomes of the file.

use super::{Due, Stored, confirm, due};
use crate::consumer::held::HeldQueue;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::protocol::body::LocalOffsets;
use crate::sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Offsets = BTreeMap<MessageQueue, i64>;

pub(crate) struct LocalFile {
    path: PathBuf,
    state: Mutex<State>,
    damage: Option<String>,
}

struct State {
    /// Locked as long as it is open; the operating system gives the lock back when the process ends, however it ends.
    lock: Option<File>,
    /// The file is the next user's: nothing is written any more.
    is_closed: bool,
    offsets: Offsets,
    /// What the file does not hold yet.
    is_unwritten: bool,
    failure: Option<String>,
}

impl LocalFile {
    /// `DIR/CLIENT_ID/GROUP/offsets.json`, read if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when another process uses the file, and [`ErrorKind::Config`] when the client id cannot
    /// name a folder. A file that cannot be read or written is none.
    pub(crate) fn open(dir: &Path, client_id: &str, group: &str) -> Result<Self> {
        if client_id.contains(['/', '\\', '\0']) {
            let text = format!("instance_name: client id '{client_id}' cannot be the name of a folder with offsets");
            return Err(Error::new(ErrorKind::Config, text));
        }
        let path = dir.join(client_id).join(group).join("offsets.json");
        let mut failure = None;
        let lock = match lock(&with_ending(&path, "lock")) {
            Ok(lock) => Some(lock),
            Err(LockError::Taken) => {
                let text = format!(
                    "another process uses the offset file {}; give each consumer of group '{group}' on this machine \
                     an instance_name of its own",
                    path.display()
                );
                return Err(Error::new(ErrorKind::State, text));
            }
            Err(LockError::Failed(error)) => {
                failure = Some(format!("it cannot be locked: {error}"));
                None
            }
        };
        let mut damage = None;
        let offsets = load(&path, &mut damage);
        let state = State { lock, is_closed: false, offsets, is_unwritten: false, failure };
        Ok(Self { path, state: Mutex::new(Rank::Offsets, state), damage })
    }

    /// Where the Java client has it.
    pub(crate) fn default_dir() -> PathBuf {
        std::env::home_dir().unwrap_or_default().join(".rocketmq_offsets")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What was wrong with the file when it was read.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Leaves the file to the next user.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.lock = None;
    }

    /// Why it cannot be written now.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    pub(super) fn read(&self, queue: &MessageQueue) -> Option<i64> {
        self.state.lock().offsets.get(queue).copied()
    }

    pub(super) fn store(&self, queues: &[Arc<HeldQueue>]) -> Stored {
        let mut result = Stored::default();
        let mut news = Vec::new();
        for held in queues {
            match due(held) {
                Due::Nothing => {}
                Due::Stored => result.stored.push(held.clone()),
                Due::Send(offset) => news.push((held, offset)),
            }
        }
        let is_written = {
            let mut state = self.state.lock();
            for (held, offset) in &news {
                let known = state.offsets.insert(held.queue.clone(), *offset);
                state.is_unwritten |= known != Some(*offset);
            }
            self.write(&mut state)
        };
        for (held, offset) in news {
            if is_written {
                confirm(held, offset);
                result.stored.push(held.clone());
            } else {
                result.failed.push(held.clone());
            }
        }
        result
    }

    /// Brings the file up to date; `false` when that failed.
    fn write(&self, state: &mut State) -> bool {
        if state.is_unwritten && !state.is_closed {
            match replace(&self.path, &LocalOffsets { offset_table: state.offsets.clone() }.encode()) {
                Ok(()) => {
                    state.is_unwritten = false;
                    state.failure = None;
                }
                Err(error) => state.failure = Some(error.to_string()),
            }
        }
        !state.is_unwritten
    }
}

enum LockError {
    Taken,
    Failed(io::Error),
}

fn lock(path: &Path) -> std::result::Result<File, LockError> {
    let open = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::options().create(true).truncate(false).write(true).open(path)
    };
    let file = open().map_err(LockError::Failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LockError::Taken),
        Err(TryLockError::Error(error)) => Err(LockError::Failed(error)),
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(ending);
    name.into()
}

/// The offsets of the file, else those of its predecessor, else none.
fn load(path: &Path, damage: &mut Option<String>) -> Offsets {
    for path in [path, &with_ending(path, "bak")] {
        match read(path) {
            Ok(Some(offsets)) => return offsets,
            Ok(None) => {}
            Err(error) => {
                let mut text = format!("{}: {error}", path.display());
                // For whoever wants to know what happened to it, and so that it does not replace a sound predecessor.
                let aside = with_ending(path, "damaged");
                match fs::rename(path, &aside) {
                    Ok(()) => text.push_str(&format!("; it is kept as {}", aside.display())),
                    Err(error) => text.push_str(&format!("; it cannot be put aside: {error}")),
                }
                let told = damage.get_or_insert_default();
                told.push_str(if told.is_empty() { "" } else { "; " });
                told.push_str(&text);
            }
        }
    }
    Offsets::new()
}

/// `None`: there is no such file.
fn read(path: &Path) -> std::result::Result<Option<Offsets>, String> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let LocalOffsets { mut offset_table } = LocalOffsets::decode(&text).map_err(|error| error.to_string())?;
    // Not an offset: Java writes such a value when it never learned one.
    offset_table.retain(|_, offset| *offset >= 0);
    Ok(Some(offset_table))
}

/// Puts a new content in place of the old one, which becomes the predecessor, so that a whole one is there at each moment.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let fresh = with_ending(path, "tmp");
    let mut file = File::create(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    match fs::rename(path, with_ending(path, "bak")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(&fresh, path)?;
    // Names are the folder's to keep. Where a folder cannot be opened, there is nothing to sync either.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
#[path = "local_file_tests.rs"]
mod tests;
