//! What was read of runs, in memory and, of many, in a file of the user's cache: `aegis/lists/` in `$XDG_CACHE_HOME`, or in
//! `~/.cache`. It stands apart from the runs, so that no clone of a recording brings one along. A file that cannot be read, or
//! that another build wrote, counts as none; one that cannot be written is not missed.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{Cells, row::RunRow};
use crate::{
    recording::{RunFile, VERSION, each_in_threads, make_private_dir},
    viewer::stamp::{RunStamp, Stamp, hashed},
};

/// Lists whose reading takes less than that of so many runs are not kept.
const WORTH_KEEPING: usize = 1000;
/// Lists that nobody has asked for so long are removed.
const FORGOTTEN: Duration = Duration::from_hours(30 * 24);

/// So many lines of a file are in memory.
const LINES_AT_ONCE: usize = 4096;

/// What was read of runs and campaigns, with how their directories looked then.
#[derive(Debug, Default)]
pub struct ListingCache {
    rows: StampedRows,
    pub(super) reports: HashMap<PathBuf, (Stamp, Option<Cells>)>,
    pub(super) words: SharedWords,
    /// Where it is kept.
    pub(super) file: Option<PathBuf>,
    /// How many runs were read anew when it was looked last.
    pub(super) read_anew: usize,
}

/// Rows by the hash of their directory: its path is in the row. Of two with one hash, one is read anew each time.
type StampedRows = HashMap<u64, (RunStamp, Arc<RunRow>)>;

/// Texts that many rows say, each once.
#[derive(Debug, Default)]
pub(super) struct SharedWords {
    texts: HashSet<Arc<str>>,
    names: HashSet<Arc<[String]>>,
}

impl SharedWords {
    /// Puts shared texts in the place of equal ones.
    pub(super) fn share(&mut self, row: &mut RunRow) {
        let texts = [&mut row.program, &mut row.task, &mut row.planted, &mut row.imported, &mut row.plan];
        for text in texts.into_iter().flatten().chain([&mut row.evidence]) {
            match self.texts.get(text) {
                Some(known) => *text = Arc::clone(known),
                None => drop(self.texts.insert(Arc::clone(text))),
            }
        }
        match self.names.get(&row.agents) {
            Some(known) => row.agents = Arc::clone(known),
            None => drop(self.names.insert(Arc::clone(&row.agents))),
        }
    }
}

/// The first line of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CacheHead {
    /// Of the program that wrote it: another one may read runs otherwise.
    build: String,
}

/// Another line.
#[derive(Debug, Serialize, Deserialize)]
struct CacheLine<R> {
    stamp: RunStamp,
    row: R,
}

impl ListingCache {
    /// What is kept of these directories.
    pub fn open(dirs: &[PathBuf]) -> Self {
        let file = file_of(dirs);
        let rows = file.as_deref().and_then(|file| read(file).ok()).unwrap_or_default();
        Self { rows, file, ..Self::default() }
    }

    /// What is kept in a file.
    #[cfg(test)]
    pub(crate) fn at(file: &Path) -> Self {
        Self { rows: read(file).unwrap_or_default(), file: Some(file.to_owned()), ..Self::default() }
    }

    /// Keeps what was read, however little.
    #[cfg(test)]
    pub(crate) fn write_all(&self) {
        self.write(self.file.as_deref().expect("a file")).expect("written");
    }

    /// How many runs were read anew when it was looked last.
    #[cfg(test)]
    pub(crate) fn read_anew(&self) -> usize {
        self.read_anew
    }

    /// Keeps what was read, where that was worth it.
    pub fn save(&self) {
        if self.read_anew < WORTH_KEEPING {
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = self.write(file)
        {
            tracing::debug!(%error, "the list of runs is not kept");
        }
    }

    /// How a run looked.
    pub(super) fn stamp_of(&self, dir: &Path) -> Option<RunStamp> {
        self.rows.get(&place(dir)).map(|(stamp, _)| *stamp)
    }

    /// The row of a run, if it looks as it did.
    pub(super) fn take(&mut self, dir: &Path, stamp: RunStamp) -> Option<Arc<RunRow>> {
        let (known, row) = self.rows.remove(&place(dir))?;
        (known == stamp && row.dir.as_os_str() == dir.as_os_str()).then_some(row)
    }

    pub(super) fn put(&mut self, stamp: RunStamp, row: Arc<RunRow>) {
        self.rows.insert(place(&row.dir), (stamp, row));
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let folder = file.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
        make_private_dir(folder)?;
        forget(folder);
        let mut out = tempfile::NamedTempFile::new_in(folder)?;
        let mut packed = zstd::Encoder::new(BufWriter::new(out.as_file_mut()), 1)?;
        line(&mut packed, &CacheHead { build: VERSION.to_owned() })?;
        for (stamp, row) in self.rows.values() {
            line(&mut packed, &CacheLine { stamp: *stamp, row: row.as_ref() })?;
        }
        packed.finish()?.flush()?;
        out.persist(file).map_err(|refused| refused.error)?;
        Ok(())
    }
}

fn place(dir: &Path) -> u64 {
    hashed(dir.as_os_str().as_encoded_bytes())
}

fn line(out: &mut impl Write, data: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, data)?;
    out.write_all(b"\n")
}

fn read(file: &Path) -> io::Result<StampedRows> {
    let mut lines = BufReader::new(zstd::Decoder::new(RunFile::open(file)?)?).lines();
    let head = lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
    if serde_json::from_str::<CacheHead>(&head)? != (CacheHead { build: VERSION.to_owned() }) {
        return Ok(HashMap::new());
    }
    let (mut rows, mut words) = (HashMap::new(), SharedWords::default());
    loop {
        let block = lines.by_ref().take(LINES_AT_ONCE).collect::<io::Result<Vec<String>>>()?;
        if block.is_empty() {
            return Ok(rows);
        }
        for line in each_in_threads(&block, |text| serde_json::from_str::<CacheLine<RunRow>>(text)) {
            let CacheLine { stamp, mut row } = line?;
            words.share(&mut row);
            rows.insert(place(&row.dir), (stamp, Arc::new(row)));
        }
    }
}

/// The file for some directories, named after them.
fn file_of(dirs: &[PathBuf]) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    let mut name = Vec::new();
    for dir in dirs {
        name.extend(dir.as_os_str().as_encoded_bytes());
        name.push(0);
        name.extend(fs::canonicalize(dir).ok()?.as_os_str().as_encoded_bytes());
        name.push(0);
    }
    Some(home.join("aegis").join("lists").join(format!("{:016x}.jsonl.zst", hashed(&name))))
}

/// Removes lists that nobody has asked for in a long time.
fn forget(folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|facts| facts.modified()).ok();
        if written.and_then(|written| now.duration_since(written).ok()).is_some_and(|age| age > FORGOTTEN) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
