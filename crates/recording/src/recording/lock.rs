//! Who may write a run: whoever holds the lock on its log. The log is open as long as the run is, so the lock needs no
//! descriptor of its own; the system releases it when the process ends, however it ends.

use std::{
    fs::{self, File, TryLockError},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::{
    RecordingError,
    disk::{self, Disk, failed},
    recover::check_absent,
};

/// What versions before this one held beside the log.
const FORMER: &str = "lock";

/// Makes a run's directory, unless it is there, and opens its log for appending, locked. Says too whether both are new.
///
/// # Errors
/// [`RecordingError::Sealed`]; [`RecordingError::Locked`] when somebody else writes the run; [`RecordingError::SealLost`]
/// and [`RecordingError::Corrupt`] when there is no log and should be one.
pub(super) fn open(disk: &Disk, run_dir: &Path, run: &str) -> Result<(File, bool), RecordingError> {
    let path = run_dir.join("log.jsonl");
    if disk.make_dir(run_dir)?
        && let Some(file) = disk.create_log(&path)?
        // Somebody else may have been quicker.
        && file.try_lock().is_ok()
    {
        return Ok((file, true));
    }
    let is_sealed = || run_dir.join("seal.json").exists();
    let sealed = || RecordingError::Sealed { run: run.to_owned() };
    let make = || {
        if is_sealed() {
            return Err(sealed());
        }
        check_absent(run_dir)?;
        disk.create_log(&path).map(drop)
    };
    // Whoever has just sealed it may still hold the lock.
    let file = open_there(disk, run_dir, run, make).map_err(|error| if is_sealed() { sealed() } else { error })?;
    let missing = || failed("open", &path, std::io::ErrorKind::NotFound.into());
    if is_sealed() { Err(sealed()) } else { Ok((file.ok_or_else(missing)?, false)) }
}

/// Opens the log of a run that is there, locked; `None` where it has none.
///
/// # Errors
/// [`RecordingError::Locked`] when somebody else writes the run.
pub(super) fn open_left(disk: &Disk, run_dir: &Path, run: &str) -> Result<Option<File>, RecordingError> {
    open_there(disk, run_dir, run, || Ok(()))
}

fn open_there(
    disk: &Disk,
    run_dir: &Path,
    run: &str,
    make: impl Fn() -> Result<(), RecordingError>,
) -> Result<Option<File>, RecordingError> {
    if is_held_as_before(run_dir)? {
        return Err(RecordingError::Locked { run: run.to_owned(), pid: former_holder(run_dir) });
    }
    let path = run_dir.join("log.jsonl");
    loop {
        let found = match disk.open_log(&path)? {
            None => make().and_then(|()| disk.open_log(&path))?,
            found => found,
        };
        let Some(file) = found else { return Ok(None) };
        match file.try_lock() {
            Ok(()) if is_at(&file, &path) => return Ok(Some(file)),
            // Its writer put another file in its place, or sealed the run, before this one had the lock.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RecordingError::Locked { run: run.to_owned(), pid: holder(&path) });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock", &path, source)),
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let key = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let at = path.symlink_metadata().map(key);
    file.metadata().map(key).is_ok_and(|key| at.is_ok_and(|at| at == key))
}

/// Who holds the lock, where the system tells.
fn holder(path: &Path) -> Option<u32> {
    let path = path.canonicalize().ok()?;
    let number = path.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holds = |line: &str| -> Option<u32> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, place, ..] = words.as_slice() else { return None };
        (place.rsplit(':').next() == Some(&number)).then(|| pid.parse().ok())?
    };
    // Devices are named otherwise there where file systems lie over each other, and files are numbered for each device.
    let has_open = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path))
    };
    locks.lines().filter_map(holds).find(has_open)
}

fn is_held_as_before(run_dir: &Path) -> Result<bool, RecordingError> {
    let path = run_dir.join(FORMER);
    let Some(file) = disk::open_read(&path)? else { return Ok(false) };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path, source)),
    }
}

fn former_holder(run_dir: &Path) -> Option<u32> {
    let mut said = String::new();
    let file = disk::open_read(&run_dir.join(FORMER)).ok().flatten()?;
    file.take(20).read_to_string(&mut said).ok()?;
    said.trim().parse().ok()
}
