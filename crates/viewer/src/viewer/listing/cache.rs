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
    recording::{RunFile, VERSION, make_private_dir},
    viewer::stamp::{Stamp, hashed},
};

/// Lists whose reading takes less than that of so many runs are not kept.
const WORTH_KEEPING: usize = 1000;
/// Lists that nobody has asked for so long are removed.
const FORGOTTEN: Duration = Duration::from_hours(30 * 24);

/// What was read of runs and campaigns, with how their directories looked then.
#[derive(Debug, Default)]
pub struct ListingCache {
    rows: HashMap<PathBuf, (Stamp, Arc<RunRow>)>,
    pub(super) reports: HashMap<PathBuf, (Stamp, Option<Cells>)>,
    pub(super) words: SharedWords,
    /// Where it is kept.
    pub(super) file: Option<PathBuf>,
    /// How many runs were read anew when it was looked last.
    pub(super) read_anew: usize,
}

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
    stamp: Stamp,
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

    /// The row of a run, if it looks as it did.
    pub(super) fn take(&mut self, dir: &Path, stamp: Stamp) -> Option<Arc<RunRow>> {
        self.rows.remove(dir).filter(|(known, _)| *known == stamp).map(|(_, row)| row)
    }

    pub(super) fn put(&mut self, stamp: Stamp, row: Arc<RunRow>) {
        self.rows.insert(row.dir.clone(), (stamp, row));
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

fn line(out: &mut impl Write, data: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, data)?;
    out.write_all(b"\n")
}

fn read(file: &Path) -> io::Result<HashMap<PathBuf, (Stamp, Arc<RunRow>)>> {
    let mut lines = BufReader::new(zstd::Decoder::new(RunFile::open(file)?)?);
    let mut text = String::new();
    lines.read_line(&mut text)?;
    if serde_json::from_str::<CacheHead>(&text)? != (CacheHead { build: VERSION.to_owned() }) {
        return Ok(HashMap::new());
    }
    let (mut rows, mut words) = (HashMap::new(), SharedWords::default());
    loop {
        text.clear();
        if lines.read_line(&mut text)? == 0 {
            return Ok(rows);
        }
        let CacheLine { stamp, mut row } = serde_json::from_str::<CacheLine<RunRow>>(&text)?;
        words.share(&mut row);
        rows.insert(row.dir.clone(), (stamp, Arc::new(row)));
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
