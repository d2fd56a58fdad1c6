//! Every file operation of the recording, in one place: modes, no symbolic links, whole-file replacement.
//! Tests make the n-th operation fail here.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use nix::libc;

use super::RecordingError;

/// What a packed log may unpack to: so many times its own size, and so many bytes in any case.
const UNPACKED_TIMES: u64 = 1000;
const UNPACKED_LEAST: u64 = 64 << 20;

/// The file operations; a plain pass-through outside tests.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// Whether files are forced to the device, so that they survive a power cut.
    pub(super) synced: bool,
    #[cfg(test)]
    pub(super) failing: Option<std::sync::Arc<super::tests::faults::FailNth>>,
}

impl Disk {
    /// Plain file operations.
    pub(super) fn new(synced: bool) -> Self {
        Self {
            synced,
            #[cfg(test)]
            failing: None,
        }
    }

    /// One operation.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests count operations here"))]
    pub(super) fn call<T>(
        &self,
        doing: &'static str,
        path: &Path,
        operation: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, RecordingError> {
        #[cfg(test)]
        let operation = || match &self.failing {
            Some(failing) => failing.count().and_then(|()| operation()),
            None => operation(),
        };
        operation().map_err(|source| failed(doing, path, source))
    }

    /// Makes a directory and its parents, for the owner only; one that exists is kept from others too. Says whether it is
    /// new.
    pub(super) fn make_dir(&self, path: &Path) -> Result<bool, RecordingError> {
        let make = |recursive| DirBuilder::new().recursive(recursive).mode(0o700).create(path);
        let is_new = self.call("create", path, || match make(false) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(true).map(|()| false),
            made => made.map(|()| true),
        })?;
        if self.synced {
            // The name of a run stands in the log directory, whose own may be as new.
            path.ancestors().take(2).try_for_each(|named| self.sync_dir_of(named))?;
        }
        if is_new {
            return Ok(true);
        }
        refuse_link(path)?;
        // The owner's bits lie above the six of everybody else.
        let mode = std::fs::metadata(path).map_err(|source| failed("open", path, source))?.permissions().mode() & 0o777;
        if mode.trailing_zeros() < 6 {
            self.call("change the mode of", path, || std::fs::set_permissions(path, Permissions::from_mode(0o700)))?;
        }
        Ok(false)
    }

    /// Opens a file for appending, making it if need be.
    pub(super) fn open_append(&self, path: &Path) -> Result<File, RecordingError> {
        self.call("open", path, || {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            regular_file(OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?)
        })
    }

    /// Opens a log for reading and appending; `None` when it is not there.
    pub(super) fn open_log(&self, path: &Path) -> Result<Option<File>, RecordingError> {
        self.call("open", path, || {
            let mut options = OpenOptions::new();
            options.read(true).append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            match options.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                opened => regular_file(opened?).map(Some),
            }
        })
    }

    /// Makes a log; `None` when one is there.
    pub(super) fn create_log(&self, path: &Path) -> Result<Option<File>, RecordingError> {
        self.call("create", path, || {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            match options.open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
                made => made.map(Some),
            }
        })
    }

    /// Writes the bytes at the end of the file, by one system call where the system takes them at once. A file that
    /// somebody has deleted would take them too, and keep nothing.
    pub(super) fn append(&self, mut file: &File, path: &Path, bytes: &[u8]) -> Result<(), RecordingError> {
        self.call("write", path, || {
            file.write_all(bytes)?;
            is_there(file, path)
        })
    }

    /// Forces a file's data to the device.
    pub(super) fn sync(&self, file: &File, path: &Path) -> Result<(), RecordingError> {
        self.call("sync", path, || file.sync_data())
    }

    /// Cuts a file to a length.
    pub(super) fn truncate(&self, file: &File, path: &Path, length: u64) -> Result<(), RecordingError> {
        self.call("truncate", path, || file.set_len(length))
    }

    /// Puts a whole file in place: a reader sees the old content or the new, never a part.
    pub(super) fn replace(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), RecordingError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        let make = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&temporary)
        };
        let mut file = self.call("create", &temporary, || match make() {
            // What a crash left.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&temporary).and_then(|()| make())
            }
            made => made,
        })?;
        self.call("write", &temporary, || write(&mut file))?;
        if self.synced {
            self.call("sync", &temporary, || file.sync_all())?;
        }
        self.call("rename", &temporary, || std::fs::rename(&temporary, path))?;
        if self.synced { self.sync_dir_of(path) } else { Ok(()) }
    }

    /// Forces the names in a file's directory to the device.
    pub(super) fn sync_dir_of(&self, path: &Path) -> Result<(), RecordingError> {
        let Some(dir) = path.parent() else { return Ok(()) };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        self.call("sync", dir, || File::open(dir)?.sync_all())
    }

    /// Removes a file; one that is not there is no error.
    pub(super) fn remove(&self, path: &Path) -> Result<(), RecordingError> {
        self.call("remove", path, || match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }
}

/// Makes a directory and its parents for the owner only, as recordings are. One that exists is left as it is.
///
/// # Errors
/// The system refuses.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a file for the owner only, or empties it.
///
/// # Errors
/// The system refuses.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Refuses a file that was deleted: what is written to it is gone with it.
pub(super) fn is_there(file: &File, path: &Path) -> io::Result<()> {
    let written = file.metadata()?;
    // Some file systems count no links: there the path is asked.
    let is_named = || path.symlink_metadata().is_ok_and(|found| found.ino() == written.ino());
    if written.nlink() > 0 || is_named() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "it was deleted while the run was under way"))
}

/// The file, if it is one: opening anything else (a pipe, a device) could wait for ever, or write elsewhere.
pub(super) fn regular_file(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a plain file")) }
}

/// Opens a file for reading, following no link; `None` when it is not there.
pub(super) fn open_read(path: &Path) -> Result<Option<File>, RecordingError> {
    match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) if file.metadata().is_ok_and(|metadata| metadata.is_file()) => Ok(Some(file)),
        Ok(_) => Err(failed("read", path, io::Error::other("not a plain file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", path, error)),
    }
}

/// Unpacks a log into `bytes`, at most `limit` bytes of it; what came before an error is there. A log is packed to a twentieth, seldom
/// to a hundredth: what unpacks to a thousand times its own size, and much, was made to fill memory.
///
/// # Errors
/// It is damaged, or unpacks to too much.
pub(super) fn unpack(file: File, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let most = file.metadata()?.len().saturating_mul(UNPACKED_TIMES).saturating_add(UNPACKED_LEAST);
    zstd::Decoder::new(file)?.take(limit.min(most.saturating_add(1))).read_to_end(bytes)?;
    if bytes.len() as u64 > most {
        bytes.clear();
        return Err(io::Error::other(format!(
            "it unpacks to more than {most} bytes: no log of its size holds so much"
        )));
    }
    Ok(())
}

/// Reads a whole file of at most `limit` bytes; `None` when it is not there.
pub(super) fn read_whole(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RecordingError> {
    let Some(file) = open_read(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|source| failed("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(failed("read", path, io::Error::other(format!("longer than {limit} bytes"))));
    }
    Ok(Some(bytes))
}

/// Refuses a symbolic link in the place of a directory.
pub(super) fn refuse_link(path: &Path) -> Result<(), RecordingError> {
    let metadata = std::fs::symlink_metadata(path).map_err(|source| failed("open", path, source))?;
    if metadata.is_symlink() { Err(RecordingError::Link { path: path.to_owned() }) } else { Ok(()) }
}

/// The error of a failed operation; a refused link is named as such.
pub(super) fn failed(doing: &'static str, path: &Path, source: io::Error) -> RecordingError {
    if source.raw_os_error() == Some(libc::ELOOP) {
        return RecordingError::Link { path: path.to_owned() };
    }
    RecordingError::Io { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_to_fill_memory_is_refused_and_a_log_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log.jsonl.zst");
        let line = b"{\"seq\":1,\"frame\":\"the same words again and again\"}\n".repeat(20_000);
        for (plain, is_log) in [(line, true), (vec![b'0'; 160 << 20], false)] {
            std::fs::write(&path, zstd::encode_all(plain.as_slice(), 1).expect("packed")).expect("written");
            let mut bytes = Vec::new();
            let done = unpack(File::open(&path).expect("there"), u64::MAX, &mut bytes);
            assert_eq!(done.is_ok(), is_log, "{done:?}");
            assert_eq!(bytes == plain, is_log, "{} of {}", bytes.len(), plain.len());
        }
    }
}
