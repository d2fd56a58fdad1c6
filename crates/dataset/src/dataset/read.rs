//! Reads a dataset: one sample at a time, whatever its size, each with its place.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;

use super::{
    BENIGN_FILE, DECOYS_FILE, DatasetError, DatasetManifest, FILE, Harvest, MANIFEST_FILE, Sample, SampleKind, Truth,
    sample::FORMAT,
};

use crate::{recording::RunFile, trajectory::RunId};

/// Lines that are no samples, after which the rest is not read.
pub(super) const UNREAD_MAX: usize = 1000;
/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 1 << 30;

/// The directory of recordings beside a dataset.
pub(super) const LOGS: &str = "logs";

/// A dataset on disk: `dataset.jsonl` of a directory with `benign.jsonl` where there is one, or one JSONL file; or the runs of a
/// [corpus](super::Corpus) as rows.
#[derive(Debug, Clone)]
pub struct Dataset {
    files: Vec<PathBuf>,
    harvest: Option<Arc<Harvest>>,
}

/// A sample and where it stands.
#[derive(Debug, Clone)]
pub struct PlacedSample {
    /// The sample.
    pub sample: Sample,
    /// The file, by its number in [`Dataset::files`].
    pub file: usize,
    /// The line, 1-based.
    pub line: u64,
    /// Where the line begins, in bytes.
    pub offset: u64,
}

/// Where each sample of a dataset stands, so that twins are found without holding them.
#[derive(Debug, Clone, Default)]
pub struct Index {
    entries: HashMap<String, Entry>,
}

/// A sample's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The file, by its number in [`Dataset::files`].
    pub file: usize,
    /// The line, 1-based.
    pub line: u64,
    /// Where the line begins, in bytes.
    pub offset: u64,
    /// What the sample is.
    pub kind: SampleKind,
}

impl Dataset {
    /// Finds the files of a dataset; nothing is read yet.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`] when there is none.
    pub fn open(path: &Path) -> Result<Self, DatasetError> {
        let none = || DatasetError::NotADataset { path: path.to_owned() };
        if path.is_file() {
            return Ok(Self { files: vec![path.to_owned()], harvest: None });
        }
        let main = path.join(FILE);
        if !main.is_file() {
            return Err(none());
        }
        let benign = path.join(BENIGN_FILE);
        let files = std::iter::once(main).chain(Some(benign).filter(|benign| benign.is_file())).collect();
        Ok(Self { files, harvest: None })
    }

    /// The decoys beside the files of a directory: no data, so that who wants them asks for them. `None` where there are none.
    pub fn decoys(dir: &Path) -> Option<Self> {
        let file = dir.join(DECOYS_FILE);
        file.is_file().then(|| Self { files: vec![file], harvest: None })
    }

    /// The rows of a corpus.
    pub(super) fn harvested(harvest: Harvest) -> Result<Self, DatasetError> {
        let files = Self::open(harvest.rows.path())?.files;
        Ok(Self { files, harvest: Some(Arc::new(harvest)) })
    }

    /// The corpus whose runs its rows are, if it is one.
    pub fn harvest(&self) -> Option<&Harvest> {
        self.harvest.as_deref()
    }

    /// Where the recording of a sample lies, if it is there: in the corpus, or in `logs/` beside the files.
    pub fn recording_dir(&self, placed: &PlacedSample) -> Option<PathBuf> {
        let id = &placed.sample.id;
        if let Some(harvest) = &self.harvest {
            return harvest.recordings.get(id).cloned();
        }
        // An id that is no run's may be any text, a path out of the directory too.
        let run = RunId::parse(id).ok()?;
        let dir = self.files.get(placed.file)?.parent()?.join(LOGS).join(run.as_str());
        dir.is_dir().then_some(dir)
    }

    /// The files, in the order in which they are read.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What the manifest beside the files says of them; `None` where there is none, or it is of other files.
    pub fn manifest(&self) -> Option<DatasetManifest> {
        let first = self.files.first()?;
        let text = RunFile::bytes(&first.parent()?.join(MANIFEST_FILE)).ok()?;
        let manifest: DatasetManifest = serde_json::from_slice(&text).ok()?;
        manifest.files.contains_key(first.file_name()?.to_str()?).then_some(manifest)
    }

    /// Every sample in order. A line that is none is an error, and the next line follows it. The 1,001st such line is the last:
    /// what holds so many is no dataset.
    pub fn samples(&self) -> impl Iterator<Item = Result<PlacedSample, DatasetError>> {
        let lines = self.files.iter().enumerate().flat_map(|(number, path)| {
            let (reader, failed) = match SampleLines::open(path, number) {
                Ok(lines) => (Some(lines), None),
                Err(error) => (None, Some(Err(error))),
            };
            failed.into_iter().chain(reader.into_iter().flatten())
        });
        let mut unread = 0;
        lines.map_while(move |placed| {
            let is_read = unread <= UNREAD_MAX;
            unread += usize::from(placed.is_err());
            is_read.then_some(placed)
        })
    }

    /// Every sample in order, its agents [numbered](Sample::with_numbered_agents): for formats and scores.
    pub fn numbered_samples(&self) -> impl Iterator<Item = Result<PlacedSample, DatasetError>> {
        let numbered = |placed: PlacedSample| PlacedSample { sample: placed.sample.with_numbered_agents(), ..placed };
        self.samples().map(move |placed| placed.map(numbered))
    }

    /// Where every sample stands. An id that stands twice is found at its first place.
    ///
    /// # Errors
    /// The first line that is no sample.
    pub fn index(&self) -> Result<Index, DatasetError> {
        let mut index = Index::default();
        for placed in self.samples() {
            let placed = placed?;
            index.add(&placed);
        }
        Ok(index)
    }

    /// The places of all samples, in order. Lines that are no samples have none.
    pub fn places(&self) -> Vec<Entry> {
        self.samples().filter_map(Result::ok).map(|placed| Entry::from_placed(&placed)).collect()
    }

    /// Reads one sample by its place.
    ///
    /// # Errors
    /// The file changed, or cannot be read.
    pub fn at(&self, entry: &Entry) -> Result<Sample, DatasetError> {
        let path = self.files.get(entry.file).ok_or_else(|| DatasetError::NotADataset { path: PathBuf::new() })?;
        let mut lines = SampleLines::open(path, entry.file)?;
        let sought = lines.file.seek(SeekFrom::Start(entry.offset));
        sought.map_err(|source| DatasetError::Io { doing: "read", path: path.clone(), source })?;
        lines.line = entry.line - 1;
        let cut = || lines_error(path, entry.line, 0, "the file changed while it was read");
        lines.next().unwrap_or_else(|| Err(cut())).map(|placed| placed.sample)
    }

    /// Reads the line of a sample by its place, with whatever else stands in it. A line that is no JSON is `null`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn written_at(&self, entry: &Entry) -> Result<serde_json::Value, DatasetError> {
        let path = self.files.get(entry.file).ok_or_else(|| DatasetError::NotADataset { path: PathBuf::new() })?;
        let mut lines = SampleLines::open(path, entry.file)?;
        let mut line = Vec::new();
        let sought = lines.file.seek(SeekFrom::Start(entry.offset));
        let read = sought.and_then(|_| lines.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line));
        read.map_err(|source| DatasetError::Io { doing: "read", path: path.clone(), source })?;
        Ok(serde_json::from_slice(&line).unwrap_or_default())
    }
}

impl Entry {
    fn from_placed(placed: &PlacedSample) -> Self {
        Self { file: placed.file, line: placed.line, offset: placed.offset, kind: placed.sample.kind }
    }
}

impl Index {
    /// Notes a sample's place.
    pub fn add(&mut self, placed: &PlacedSample) {
        self.entries.entry(placed.sample.id.clone()).or_insert_with(|| Entry::from_placed(placed));
    }

    /// How many samples are of a kind.
    pub fn of_kind(&self, kind: SampleKind) -> usize {
        self.entries.values().filter(|entry| entry.kind == kind).count()
    }

    /// The place of a sample.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }
}

/// The lines of a file, as samples.
struct SampleLines {
    file: BufReader<File>,
    path: PathBuf,
    number: usize,
    line: u64,
    offset: u64,
    buffer: Vec<u8>,
    over: bool,
}

impl SampleLines {
    fn open(path: &Path, number: usize) -> Result<Self, DatasetError> {
        let file =
            File::open(path).map_err(|source| DatasetError::Io { doing: "open", path: path.to_owned(), source })?;
        let file = BufReader::with_capacity(1 << 16, file);
        Ok(Self { file, path: path.to_owned(), number, line: 0, offset: 0, buffer: Vec::new(), over: false })
    }

    /// The next line that is not empty; its bytes are in the buffer.
    fn advance(&mut self) -> io::Result<Option<u64>> {
        loop {
            self.buffer.clear();
            let read = (&mut self.file).take(LONGEST_LINE).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            let begins = self.offset;
            self.line += 1;
            self.offset += read as u64;
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(begins));
            }
        }
    }
}

impl Iterator for SampleLines {
    type Item = Result<PlacedSample, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let offset = match self.advance() {
            Ok(offset) => offset?,
            Err(source) => {
                self.over = true;
                return Some(Err(DatasetError::Io { doing: "read", path: self.path.clone(), source }));
            }
        };
        let placed = |sample| PlacedSample { sample, file: self.number, line: self.line, offset };
        Some(parse(&self.buffer, &self.path, self.line).map(placed))
    }
}

/// What every format of a sample has.
#[derive(Deserialize)]
struct Versioned {
    format: u64,
}

fn parse(line: &[u8], path: &Path, number: u64) -> Result<Sample, DatasetError> {
    let future = |found| DatasetError::Future { path: path.to_owned(), line: number, found, known: FORMAT };
    match serde_json::from_slice::<Sample>(line) {
        Ok(sample) if sample.format > FORMAT => Err(future(sample.format.into())),
        Ok(mut sample) => {
            sample.label.iter_mut().for_each(Truth::read_former_states);
            Ok(sample)
        }
        Err(error) => Err(match serde_json::from_slice::<Versioned>(line) {
            Ok(versioned) if versioned.format > FORMAT.into() => future(versioned.format),
            Ok(_) => lines_error(path, number, error.column(), format!("not a sample: {error}")),
            Err(_) if error.is_eof() && !line.ends_with(b"\n") => {
                lines_error(path, number, error.column(), "the file is cut: its last line has no end")
            }
            Err(_) => {
                let json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
                let why = if json { "it has no `format`".to_owned() } else { error.to_string() };
                let why = format!("not a sample: {why}; foreign formats come in by `aegis import`");
                lines_error(path, number, error.column(), why)
            }
        }),
    }
}

fn lines_error(path: &Path, line: u64, column: usize, why: impl Into<String>) -> DatasetError {
    DatasetError::Line { path: path.to_owned(), line, column, why: why.into() }
}
