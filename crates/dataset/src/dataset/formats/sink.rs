//! Where an export's pieces go: a temporary file or directory beside the target, put in place at the end.

use std::{
    collections::{
        BTreeMap,
        btree_map::Entry::{Occupied, Vacant},
    },
    fs,
    path::{Path, PathBuf},
};

use super::{
    format::{Content, DiskLayout, ExportOptions, Format, WrittenPiece},
    manifest::ExportManifest,
    refused::ExportError,
    rows::{FileHash, Hashed, RowError, Rows},
    schema::Type,
};
use crate::{
    dataset::{Sample, Split},
    recording::{Masked, MaskedFile, Redactor},
};

/// `NAME.suffix` beside a file or directory. A manifest never lies inside: the public scorers count every `.json`
/// file of a directory.
pub(super) fn companion_path(path: &Path, suffix: &str) -> PathBuf {
    path.with_file_name(format!("{}.{suffix}", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// `.NAME.suffix` beside a file or directory.
fn hidden(path: &Path, suffix: &str) -> PathBuf {
    path.with_file_name(format!(".{}.{suffix}", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// The end of a manifest's name.
pub(super) const MANIFEST: &str = "manifest.json";
/// Where samples go that are in no part.
const NO_PART: &str = "unsplit";
/// Every part that a file may be of.
const PARTS: [&str; 4] = ["train", "validation", "test", NO_PART];

/// The part that a sample's rows go to.
pub(super) fn part_of(sample: &Sample) -> &'static str {
    sample.split.map_or(NO_PART, Split::name)
}

/// `NAME-train.jsonl` for the part `train` of `NAME.jsonl`.
fn of_part(path: &Path, part: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{part}{end}"))
}

/// Where the manifest of exported rows may lie: that of the file, or of the export that it is one part of.
pub(super) fn manifests(rows: &Path) -> Vec<PathBuf> {
    let stem = rows.file_stem().unwrap_or_default().to_string_lossy();
    let whole = PARTS.iter().find_map(|part| stem.strip_suffix(&format!("-{part}")));
    let end = rows.extension().unwrap_or_default().to_string_lossy();
    let whole = whole.map(|whole| rows.with_file_name(format!("{whole}.{end}")));
    std::iter::once(rows.to_owned()).chain(whole).map(|rows| companion_path(&rows, MANIFEST)).collect()
}

/// Whether each part of the dataset gets a file of its own.
pub(super) fn is_parted(format: &dyn Format, options: &ExportOptions) -> bool {
    format.trains() && format.shape() == DiskLayout::Lines && options.split.is_none() && !options.one_file
}

/// The files or the directory that an export would write.
pub(super) fn targets(format: &dyn Format, out: &Path, options: &ExportOptions) -> Vec<PathBuf> {
    if is_parted(format, options) {
        PARTS.iter().map(|part| of_part(out, part)).collect()
    } else {
        vec![out.to_owned()]
    }
}

/// Where pieces go: a temporary file or directory beside the target, put in place at the end.
pub(super) struct Sink<'a> {
    shape: DiskLayout,
    options: &'a ExportOptions,
    /// The columns of a file of rows, where it is a table.
    columns: Option<Type>,
    out: PathBuf,
    temporary: PathBuf,
    goes: OpenSink,
    files: BTreeMap<String, FileHash>,
    /// The parts that have a file.
    parts: Vec<String>,
    finished: bool,
}

/// What is open.
enum OpenSink {
    Rows(Option<Rows>),
    /// A file of rows a part, each begun when its first row comes.
    Parts(BTreeMap<String, Rows>),
    Document {
        file: Option<Hashed>,
        first: bool,
    },
    Files,
    /// Files of rows, by the name of their format and part.
    Folder(BTreeMap<(&'static str, String), SinkTable>),
}

struct SinkTable {
    path: String,
    rows: Rows,
    count: u64,
}

/// A file of rows of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) config: &'static str,
    pub(super) split: String,
    pub(super) path: String,
    pub(super) rows: u64,
}

impl<'a> Sink<'a> {
    /// Begins; `samples` is how many will come, for formats that say so before them.
    pub(super) fn create(
        format: &dyn Format,
        out: &Path,
        options: &'a ExportOptions,
        samples: u64,
    ) -> Result<Self, ExportError> {
        let (shape, temporary) = (format.shape(), hidden(out, "tmp"));
        let failed = |source| ExportError::Write { path: temporary.clone(), source };
        if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let table = shape == DiskLayout::Table || out.extension().is_some_and(|extension| extension == "parquet");
        let columns = table.then(|| format.columns(options));
        let exported = companion_path(out, MANIFEST).is_file();
        if let Some(path) = targets(format, out, options).into_iter().find(|path| path.is_file() && !exported) {
            return Err(ExportError::Occupied { path });
        }
        let goes = match shape {
            DiskLayout::Lines if is_parted(format, options) => OpenSink::Parts(BTreeMap::new()),
            DiskLayout::Lines | DiskLayout::Table => {
                let rows = Rows::create(&temporary, columns.as_ref());
                OpenSink::Rows(Some(rows.map_err(|why| refused(&temporary, why))?))
            }
            DiskLayout::Document { open, .. } => {
                let mut file = Hashed::create(&temporary).map_err(failed)?;
                file.text(&Masked::new(open.replace("{samples}", &samples.to_string()))).map_err(failed)?;
                OpenSink::Document { file: Some(file), first: true }
            }
            DiskLayout::Files | DiskLayout::Folder => {
                let empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
                if out.exists() && !exported && !empty() {
                    return Err(ExportError::Occupied { path: out.to_owned() });
                }
                if temporary.exists() {
                    fs::remove_dir_all(&temporary).map_err(failed)?;
                }
                fs::create_dir_all(&temporary).map_err(failed)?;
                if shape == DiskLayout::Files { OpenSink::Files } else { OpenSink::Folder(BTreeMap::new()) }
            }
        };
        let out = out.to_owned();
        Ok(Self {
            shape,
            options,
            columns,
            out,
            temporary,
            goes,
            files: BTreeMap::new(),
            parts: Vec::new(),
            finished: false,
        })
    }

    pub(super) fn push(&mut self, piece: WrittenPiece) -> Result<(), ExportError> {
        let failed = |source| ExportError::Write { path: self.temporary.clone(), source };
        let redactor = Redactor::of_process();
        let row = match piece.content {
            Content::Row(row) => redactor.masked_json(row),
            Content::Bytes(bytes) if matches!(self.goes, OpenSink::Files) => {
                return self.file(&piece.file, &redactor.masked_bytes(bytes));
            }
            Content::Bytes(_) => return Ok(()),
        };
        match (&mut self.goes, row) {
            (OpenSink::Rows(Some(rows)), row) => rows.push(&row).map_err(|why| refused(&self.out, why)),
            (OpenSink::Parts(parts), row) => {
                let rows = match parts.entry(piece.file.into_owned()) {
                    Occupied(rows) => rows.into_mut(),
                    Vacant(none) => {
                        let place = hidden(&of_part(&self.out, none.key()), "tmp");
                        let rows = Rows::create(&place, self.columns.as_ref());
                        none.insert(rows.map_err(|why| refused(&place, why))?)
                    }
                };
                rows.push(&row).map_err(|why| refused(&self.out, why))
            }
            (OpenSink::Document { file: Some(file), first }, row) => {
                let mut text = Masked::fixed(if std::mem::replace(first, false) { b"" } else { b",\n" });
                text.push(&row.text());
                file.text(&text).map_err(failed)
            }
            (OpenSink::Folder(tables), row) => {
                let Some(of) = piece.of else { return Ok(()) };
                let key = (of.name(), piece.file.into_owned());
                let table = match tables.entry(key) {
                    Occupied(table) => table.into_mut(),
                    Vacant(none) => {
                        let (config, split) = none.key();
                        let path = format!(
                            "data/{config}/{split}-00000-of-00001.{}",
                            if self.options.lines { "jsonl" } else { "parquet" }
                        );
                        let place = self.temporary.join(&path);
                        fs::create_dir_all(self.temporary.join("data").join(config)).map_err(failed)?;
                        let columns = of.columns(self.options);
                        let rows = Rows::create(&place, (!self.options.lines).then_some(&columns));
                        none.insert(SinkTable { path, rows: rows.map_err(|why| refused(&place, why))?, count: 0 })
                    }
                };
                table.count += 1;
                table.rows.push(&row).map_err(|why| refused(&self.out.join(&table.path), why))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file into the directory.
    pub(super) fn file(&mut self, name: &str, bytes: &Masked) -> Result<(), ExportError> {
        let plain = Path::new(name).file_name().is_some_and(|file| file == name);
        if !plain || name.starts_with('.') {
            return Err(ExportError::StrayFile { file: name.to_owned() });
        }
        let plain = bytes.as_bytes();
        let hash = FileHash { bytes: plain.len() as u64, blake3: blake3::hash(plain).to_hex().to_string() };
        if self.files.insert(name.to_owned(), hash).is_some() {
            return Err(ExportError::SameFile { file: name.to_owned() });
        }
        let path = self.temporary.join(name);
        MaskedFile::write_shared(&path, bytes).map_err(|source| ExportError::Write { path, source })
    }

    /// Ends the files of rows of a folder, and says what they hold.
    pub(super) fn tables(&mut self) -> Result<Vec<Written>, ExportError> {
        let OpenSink::Folder(tables) = &mut self.goes else { return Ok(Vec::new()) };
        let mut written = Vec::new();
        for ((config, split), table) in std::mem::take(tables) {
            let hash = table.rows.done().map_err(|why| refused(&self.out.join(&table.path), why))?;
            self.files.insert(table.path.clone(), hash);
            written.push(Written { config, split, path: table.path, rows: table.count });
        }
        Ok(written)
    }

    /// The hashes of the files that are done.
    pub(super) fn hashes(&self) -> &BTreeMap<String, FileHash> {
        &self.files
    }

    /// Puts everything in place; the manifest last, so that it never speaks of what is not there.
    pub(super) fn finish(mut self, mut manifest: ExportManifest) -> Result<ExportManifest, ExportError> {
        let failed = |source| ExportError::Write { path: self.out.clone(), source };
        let name = self.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let whole = match &mut self.goes {
            OpenSink::Rows(rows) => {
                rows.take().map(|rows| rows.done().map_err(|why| refused(&self.out, why))).transpose()?
            }
            OpenSink::Document { file, .. } => {
                let close = if let DiskLayout::Document { close, .. } = self.shape { close } else { "" };
                let close = Masked::fixed(close.as_bytes());
                let ended = file.take().map(|mut file| file.text(&close).and_then(|()| file.done()));
                ended.transpose().map_err(failed)?
            }
            OpenSink::Parts(parts) => {
                for (part, rows) in std::mem::take(parts) {
                    let path = of_part(&self.out, &part);
                    let hash = rows.done().map_err(|why| refused(&path, why))?;
                    self.files.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), hash);
                    self.parts.push(part);
                }
                None
            }
            OpenSink::Files | OpenSink::Folder(_) => None,
        };
        self.files.extend(whole.map(|hash| (name, hash)));
        manifest.files = std::mem::take(&mut self.files);
        let text = Masked::json_pretty(&manifest).map_err(failed)?;
        let path = companion_path(&self.out, MANIFEST);
        // One of an earlier export must not speak of the new files, however this ends.
        let earlier = match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            removed => removed.is_ok(),
        };
        if matches!(self.goes, OpenSink::Parts(_)) { self.replace_parts(earlier) } else { self.replace() }
            .map_err(failed)?;
        let temporary = hidden(&path, "tmp");
        MaskedFile::write_shared(&temporary, &text).and_then(|()| fs::rename(&temporary, &path)).map_err(failed)?;
        self.finished = true;
        Ok(manifest)
    }

    /// Puts the parts in place; those of an earlier export that have no rows any more go.
    fn replace_parts(&self, earlier: bool) -> std::io::Result<()> {
        for part in PARTS {
            let path = of_part(&self.out, part);
            if self.parts.iter().any(|written| written == part) {
                fs::rename(hidden(&path, "tmp"), &path)?;
            } else if earlier && path.is_file() {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Puts the new in the place of the old. A directory cannot be renamed over another: the old one steps aside, and
    /// goes when the new one is there.
    fn replace(&self) -> std::io::Result<()> {
        if !self.out.is_dir() {
            return fs::rename(&self.temporary, &self.out);
        }
        let aside = hidden(&self.out, "old");
        if aside.exists() {
            fs::remove_dir_all(&aside)?;
        }
        fs::rename(&self.out, &aside)?;
        if let Err(error) = fs::rename(&self.temporary, &self.out) {
            fs::rename(&aside, &self.out)?;
            return Err(error);
        }
        fs::remove_dir_all(&aside)
    }
}

fn refused(path: &Path, why: RowError) -> ExportError {
    match why {
        RowError::Io(source) => ExportError::Write { path: path.to_owned(), source },
        why => ExportError::Row { from: PathBuf::new(), line: 0, path: path.to_owned(), source: Box::new(why) },
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // What was never finished is nobody's.
            if matches!(self.shape, DiskLayout::Files | DiskLayout::Folder) {
                let _ = fs::remove_dir_all(&self.temporary);
            }
            let parts = PARTS.iter().map(|part| hidden(&of_part(&self.out, part), "tmp"));
            let parts = parts.filter(|_| matches!(self.goes, OpenSink::Parts(_)));
            for file in parts.chain(Some(self.temporary.clone())) {
                let _ = fs::remove_file(file);
            }
        }
    }
}
