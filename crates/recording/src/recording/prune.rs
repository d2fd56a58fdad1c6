//! Which runs of a log directory may go, and why the others stay.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};

use super::{RecordingError, disk, keep::KEPT_FILE, label::has_label, read, repair};
use crate::trajectory::RunId;

/// Where annotators' words lie, beside the runs.
const ANNOTATIONS: &str = "annotations";
/// What the name of a user's directory in the log directory of a server begins with. No run's name holds it.
pub const USER_MARK: &str = "@";
/// Longest word between quotes that can be a run's name, in bytes.
const NAME_MAX: usize = 64;

/// How much of a log directory is kept. Runs that are needed stay, whatever it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepLimit {
    /// Longest time since the end of a run.
    pub age: Option<SignedDuration>,
    /// Most bytes of all runs together; those that ended first go first.
    pub bytes: Option<u64>,
}

/// Why a run stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StayReason {
    /// It has not ended.
    Open,
    /// Its files cannot be read: nobody knows what it is.
    Unreadable,
    /// Somebody wants it kept.
    KeepMark,
    /// It has a label.
    Label,
    /// Something became known of it later.
    Amendment,
    /// Executions were made for it: a trace, a proof, a retry.
    Executions,
    /// This run was answered from its recording.
    AnsweredRun(RunId),
    /// This file names it: a data set, an annotation, a report.
    NamedIn(PathBuf),
    /// The limit has room for it.
    Limit,
}

impl StayReason {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Open => "it has not ended".to_owned(),
            Self::Unreadable => "it cannot be read".to_owned(),
            Self::KeepMark => "`runs keep` keeps it".to_owned(),
            Self::Label => "it has a label".to_owned(),
            Self::Amendment => "facts were added to it".to_owned(),
            Self::Executions => "executions were made for it".to_owned(),
            Self::AnsweredRun(run) => format!("run {run} was answered from it"),
            Self::NamedIn(file) => format!("{} names it", file.display()),
            Self::Limit => "within --keep".to_owned(),
        }
    }
}

/// What is to become of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFate {
    /// It stays.
    Stays(StayReason),
    /// It ended too long ago.
    TooOld,
    /// There is too much beside it that ended later.
    TooMuch,
}

/// A run of a log directory.
#[derive(Debug, Clone)]
pub struct SurveyedRun {
    /// Its id.
    pub run: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// Bytes of its files.
    pub bytes: u64,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// What is to become of it.
    pub fate: RunFate,
}

/// Looks at the runs of a log directory, those that ended first first; then in the same way at those of each user, to which the
/// limit applies anew. Nothing is changed. `naming`: files, or directories of files, that may name runs, beside those of the
/// directory itself and of the one that holds it.
///
/// # Errors
/// [`RecordingError::Io`]: something cannot be read, so that nobody knows what is needed.
pub fn survey(
    log_dir: &Path,
    limit: KeepLimit,
    naming: &[PathBuf],
    now: Timestamp,
) -> Result<Vec<SurveyedRun>, RecordingError> {
    let mut runs = survey_own(log_dir, limit, naming, now)?;
    // What stands beside the log directory may name a user's runs, too.
    let above = std::path::absolute(log_dir).ok().and_then(|dir| dir.parent().map(Path::to_owned));
    let naming: Vec<PathBuf> =
        [log_dir.join(ANNOTATIONS)].into_iter().chain(above).chain(naming.iter().cloned()).collect();
    let is_user = |dir: &PathBuf| {
        dir.is_dir() && dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(USER_MARK))
    };
    let mut users = entries(log_dir)?;
    users.retain(is_user);
    users.sort();
    for user in users {
        runs.extend(survey_own(&user, limit, &naming, now)?);
    }
    Ok(runs)
}

/// The runs that lie in a directory itself.
fn survey_own(
    log_dir: &Path,
    limit: KeepLimit,
    naming: &[PathBuf],
    now: Timestamp,
) -> Result<Vec<SurveyedRun>, RecordingError> {
    let mut runs = Vec::new();
    let mut answered = BTreeMap::new();
    for dir in entries(log_dir)? {
        let named = dir.file_name().and_then(|name| RunId::parse(name.to_str()?).ok());
        let Some(run) = named.filter(|_| dir.join("run.json").is_file()) else { continue };
        let (ended, reason) = match read::read_manifest(&dir) {
            Ok(manifest) => {
                if let Some(of) = manifest.repeat_of {
                    answered.insert(of, run.clone());
                }
                let ended = manifest.ended.and_then(|ended| ended.parse().ok());
                (ended, needed(&dir).unwrap_or(StayReason::Limit))
            }
            Err(_) => (None, StayReason::Unreadable),
        };
        let fate = RunFate::Stays(reason);
        runs.push(SurveyedRun { run, bytes: size(&dir)?, dir, ended, fate });
    }
    for surveyed in runs.iter_mut().filter(|surveyed| surveyed.fate == RunFate::Stays(StayReason::Limit)) {
        if let Some(by) = answered.get(&surveyed.run) {
            surveyed.fate = RunFate::Stays(StayReason::AnsweredRun(by.clone()));
        }
    }
    keep_named(&mut runs, log_dir, naming)?;
    runs.sort_by(|one, other| (one.ended, &one.run).cmp(&(other.ended, &other.run)));
    apply(&mut runs, limit, now);
    Ok(runs)
}

/// Removes a run that was found to be one that may go: first its name, so that nobody finds a part of it.
///
/// # Errors
/// [`RecordingError::Locked`], [`RecordingError::Io`].
pub fn prune(surveyed: &SurveyedRun) -> Result<(), RecordingError> {
    let leaving = surveyed.dir.with_file_name(format!(".pruned-{}", surveyed.run));
    let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(|source| disk::failed("rename", from, source));
    let refused = || Err(RecordingError::Locked { run: surveyed.run.as_str().to_owned(), pid: None });
    // What has come since it was looked at.
    if needed(&surveyed.dir).is_some() {
        return refused();
    }
    rename(&surveyed.dir, &leaving)?;
    // Nothing can come any more: who adds to a run finds it by its name.
    if needed(&leaving).is_some() {
        rename(&leaving, &surveyed.dir)?;
        return refused();
    }
    repair::remove_tree(&leaving)
}

/// Who needs a run that says so in its own directory.
fn needed(dir: &Path) -> Option<StayReason> {
    let has = |names: &[&str]| names.iter().any(|name| dir.join(name).exists());
    match () {
        () if has(&[KEPT_FILE]) => Some(StayReason::KeepMark),
        () if !has(&["seal.json"]) => Some(StayReason::Open),
        () if has_label(dir) => Some(StayReason::Label),
        () if has(&["facts.jsonl"]) => Some(StayReason::Amendment),
        () if has(&["trace.json", "missed-catch.json", "trials", "proof", "retry.json", "retry"]) => {
            Some(StayReason::Executions)
        }
        () => None,
    }
}

/// Keeps the runs that a file names: in quotes, as every file of JSON does.
fn keep_named(runs: &mut [SurveyedRun], log_dir: &Path, naming: &[PathBuf]) -> Result<(), RecordingError> {
    let asked: HashSet<&str> =
        runs.iter().filter(|run| run.fate == RunFate::Stays(StayReason::Limit)).map(|run| run.run.as_str()).collect();
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    let beside = std::path::absolute(log_dir).ok().and_then(|dir| dir.parent().map(Path::to_owned));
    let places = [log_dir.to_owned(), log_dir.join(ANNOTATIONS)].into_iter().chain(beside);
    for place in places.chain(naming.iter().cloned()) {
        for file in json_files(&place)? {
            for run in names_in(&file, &asked)? {
                named.entry(run).or_insert_with(|| file.clone());
            }
        }
    }
    for surveyed in runs.iter_mut() {
        if let Some(file) = named.remove(surveyed.run.as_str()) {
            surveyed.fate = RunFate::Stays(StayReason::NamedIn(file));
        }
    }
    Ok(())
}

/// Who has changed what of a run: it names runs, and needs none.
const AUDIT: &str = "audit.jsonl";

/// The files of JSON of a directory, not below it; a file itself.
fn json_files(place: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    if !place.is_dir() {
        return Ok(Vec::new());
    }
    let is_json =
        |path: &PathBuf| path.extension().is_some_and(|ext| ext == "json" || ext == "jsonl") && path.is_file();
    let needs_runs = |path: &PathBuf| is_json(path) && path.file_name().is_none_or(|name| name != AUDIT);
    Ok(entries(place)?.into_iter().filter(needs_runs).collect())
}

/// Which of these names stand in a file between quotes. A long text is never held whole.
fn names_in(path: &Path, asked: &HashSet<&str>) -> Result<HashSet<String>, RecordingError> {
    let mut found = HashSet::new();
    let Some(file) = disk::open_read(path)? else { return Ok(found) };
    let mut file = BufReader::new(file);
    let mut word = Vec::new();
    loop {
        let piece = file.fill_buf().map_err(|source| disk::failed("read", path, source))?;
        if piece.is_empty() {
            return Ok(found);
        }
        let quote = memchr::memchr(b'"', piece);
        let length = quote.unwrap_or(piece.len());
        let room = (NAME_MAX + 1).saturating_sub(word.len());
        word.extend_from_slice(piece.get(..length.min(room)).unwrap_or_default());
        file.consume(length + usize::from(quote.is_some()));
        if quote.is_some() {
            if let Some(name) = std::str::from_utf8(&word).ok().filter(|word| asked.contains(word)) {
                found.insert(name.to_owned());
            }
            word.clear();
        }
    }
}

/// Says which runs go, of those that nobody needs: too old, then too much.
fn apply(runs: &mut [SurveyedRun], limit: KeepLimit, now: Timestamp) {
    let mut total: u64 = runs.iter().map(|run| run.bytes).sum();
    for surveyed in runs.iter_mut().filter(|run| run.fate == RunFate::Stays(StayReason::Limit)) {
        let age = surveyed.ended.map(|ended| now.duration_since(ended));
        let is_old = limit.age.zip(age).is_some_and(|(most, age)| age > most);
        if is_old {
            surveyed.fate = RunFate::TooOld;
        } else if limit.bytes.is_some_and(|most| total > most) {
            surveyed.fate = RunFate::TooMuch;
        } else {
            continue;
        }
        total = total.saturating_sub(surveyed.bytes);
    }
}

fn size(dir: &Path) -> Result<u64, RecordingError> {
    let mut bytes = 0;
    for path in entries(dir)? {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // A run that is under way moves its files.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(disk::failed("read", &path, source)),
        };
        bytes += if metadata.is_dir() { size(&path)? } else { metadata.len() };
    }
    Ok(bytes)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let unread = |source| disk::failed("read", dir, source);
    fs::read_dir(dir).map_err(unread)?.map(|entry| Ok(entry.map_err(unread)?.path())).collect()
}
