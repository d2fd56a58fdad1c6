//! What was read of runs, in memory and, of many, in a file of the user's cache: `aegis/lists/` in `$XDG_CACHE_HOME`, or in
//! `~/.cache`. It stands apart from the runs, so that no clone of a recording brings one along. A file that cannot be read, or
//! that another build wrote, counts as none; one that cannot be written is not missed.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cells, row::RunRow};
use crate::{
    recording::{Masked, MaskedFile, RunFile, VERSION, each_in_threads, make_private_dir},
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
        texts_of(row).into_iter().flatten().for_each(|text| self.share_text(text));
        self.share_text(&mut row.evidence);
        match self.names.get(&row.agents) {
            Some(known) => row.agents = Arc::clone(known),
            None => drop(self.names.insert(Arc::clone(&row.agents))),
        }
    }

    fn share_text(&mut self, text: &mut Arc<str>) {
        match self.texts.get(text) {
            Some(known) => *text = Arc::clone(known),
            None => drop(self.texts.insert(Arc::clone(text))),
        }
    }
}

/// The texts of a row that other rows say, too, but for what was seen.
fn texts_of(row: &mut RunRow) -> [&mut Option<Arc<str>>; 5] {
    [&mut row.program, &mut row.task, &mut row.planted, &mut row.imported, &mut row.plan]
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct CacheHead {
    /// Of the program that wrote it: another one may read runs otherwise.
    build: String,
    /// What rows say by number.
    texts: Vec<Arc<str>>,
    names: Vec<Arc<[String]>>,
}

/// Another line: a row without the texts that stand in the first one, and which of those they are.
#[derive(Debug, Serialize, Deserialize)]
struct CacheLine<R> {
    stamp: RunStamp,
    texts: [Option<usize>; 5],
    evidence: Option<usize>,
    agents: Option<usize>,
    row: R,
}

impl CacheLine<RunRow> {
    /// The row as it was.
    fn restored(self, head: &CacheHead) -> Option<(RunStamp, RunRow)> {
        let Self { stamp, texts, evidence, agents, mut row } = self;
        let text = |number: usize| head.texts.get(number).cloned();
        for (place, number) in texts_of(&mut row).into_iter().zip(texts) {
            if let Some(number) = number {
                *place = Some(text(number)?);
            }
        }
        if let Some(number) = evidence {
            row.evidence = text(number)?;
        }
        if let Some(number) = agents {
            row.agents = Arc::clone(head.names.get(number)?);
        }
        Some((stamp, row))
    }
}

/// The numbers of what stands in the first line.
struct WordNumbers<'a> {
    texts: HashMap<&'a str, usize>,
    names: HashMap<&'a [String], usize>,
}

impl<'a> WordNumbers<'a> {
    fn new(head: &'a CacheHead) -> Self {
        let texts = head.texts.iter().enumerate().map(|(number, text)| (text.as_ref(), number)).collect();
        Self { texts, names: head.names.iter().enumerate().map(|(number, names)| (names.as_ref(), number)).collect() }
    }

    /// A row without what has a number. Half the members of most rows are `null`, and cost as much to read as what says something.
    fn line(&self, stamp: RunStamp, row: &RunRow) -> serde_json::Result<CacheLine<Value>> {
        let mut row = RunRow { key: String::new(), ..row.clone() };
        let texts = texts_of(&mut row).map(|place| {
            let number = self.texts.get(place.as_deref()?).copied();
            place.take_if(|_| number.is_some());
            number
        });
        let evidence = self.texts.get(row.evidence.as_ref()).copied();
        let agents = self.names.get(row.agents.as_ref()).copied();
        let mut row = serde_json::to_value(row)?;
        if let Some(members) = row.as_object_mut() {
            let is_known = |name: &str| match name {
                "key" => true,
                "evidence" => evidence.is_some(),
                "agents" => agents.is_some(),
                _ => false,
            };
            members.retain(|name, value| !value.is_null() && !is_known(name));
        }
        Ok(CacheLine { stamp, texts, evidence, agents, row })
    }
}

impl ListingCache {
    /// What is kept of these directories.
    pub fn open(dirs: &[PathBuf]) -> Self {
        let file = file_of(dirs);
        Self { file: file.clone(), ..file.and_then(|file| read(&file).ok()).unwrap_or_default() }
    }

    /// What is kept in a file.
    #[cfg(test)]
    pub(crate) fn at(file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..read(file).unwrap_or_default() }
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

    pub(super) fn insert(&mut self, stamp: RunStamp, row: Arc<RunRow>) {
        self.rows.insert(place(&row.dir), (stamp, row));
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let folder = file.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
        make_private_dir(folder)?;
        forget(folder);
        let mut text = Vec::new();
        let head = CacheHead {
            build: VERSION.to_owned(),
            texts: self.words.texts.iter().cloned().collect(),
            names: self.words.names.iter().cloned().collect(),
        };
        line(&mut text, &head)?;
        let numbers = WordNumbers::new(&head);
        // In the order of a list: so they lie in memory when they are read back, and are gone through fast.
        let mut rows: Vec<&(RunStamp, Arc<RunRow>)> = self.rows.values().collect();
        rows.sort_unstable_by(|(_, a), (_, b)| b.started.cmp(&a.started));
        for (stamp, row) in rows {
            line(&mut text, &numbers.line(*stamp, row)?)?;
        }
        MaskedFile::replace(file, &Masked::new(text).packed(1)?)
    }
}

fn place(dir: &Path) -> u64 {
    hashed(dir.as_os_str().as_encoded_bytes())
}

fn line(out: &mut impl Write, data: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, data)?;
    out.write_all(b"\n")
}

fn read(file: &Path) -> io::Result<ListingCache> {
    let mut text = BufReader::new(zstd::Decoder::new(RunFile::open(file)?)?);
    let mut block = String::new();
    text.read_line(&mut block)?;
    let head: CacheHead = serde_json::from_str(&block)?;
    let mut cache = ListingCache::default();
    if head.build != VERSION {
        return Ok(cache);
    }
    loop {
        block.clear();
        for _ in 0..LINES_AT_ONCE {
            text.read_line(&mut block)?;
        }
        if block.is_empty() {
            cache.words =
                SharedWords { texts: head.texts.into_iter().collect(), names: head.names.into_iter().collect() };
            return Ok(cache);
        }
        let lines: Vec<&str> = block.lines().collect();
        for line in each_in_threads(&lines, |text| serde_json::from_str::<CacheLine<RunRow>>(text)) {
            let (stamp, row) = line?.restored(&head).ok_or(io::ErrorKind::InvalidData)?;
            cache.insert(stamp, Arc::new(row));
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
