//! Where an export's pieces go: a temporary file or directory beside the target, put in place at the end.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::export::{ExportError, ExportManifest, Piece, Shape};

/// A written file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileHash {
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub blake3: String,
}

/// `NAME.suffix` beside a file or directory. A manifest never lies inside: the public scorers count every `.json`
/// file of a directory.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    path.with_file_name(format!("{}.{suffix}", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// `.NAME.tmp` beside a file or directory.
fn hidden(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.tmp", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// Where pieces go: a temporary file or directory beside the target, put in place at the end.
pub(super) struct Sink {
    shape: Shape,
    out: PathBuf,
    temporary: PathBuf,
    file: Option<Hashed>,
    first: bool,
    files: BTreeMap<String, FileHash>,
    finished: bool,
}

struct Hashed {
    file: BufWriter<File>,
    hash: blake3::Hasher,
    bytes: u64,
}

impl Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn done(mut self) -> io::Result<FileHash> {
        self.file.flush()?;
        Ok(FileHash { bytes: self.bytes, blake3: self.hash.finalize().to_hex().to_string() })
    }
}

impl Sink {
    pub(super) fn create(shape: Shape, out: &Path) -> Result<Self, ExportError> {
        let temporary = hidden(out);
        let failed = |source| ExportError::Write { path: temporary.clone(), source };
        if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = None;
        if shape == Shape::Files {
            let empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
            if out.exists() && !beside(out, "manifest.json").is_file() && !empty() {
                return Err(ExportError::Occupied { path: out.to_owned() });
            }
            if temporary.exists() {
                fs::remove_dir_all(&temporary).map_err(failed)?;
            }
            fs::create_dir_all(&temporary).map_err(failed)?;
        } else {
            let opened = BufWriter::with_capacity(1 << 16, File::create(&temporary).map_err(failed)?);
            let mut hashed = Hashed { file: opened, hash: blake3::Hasher::new(), bytes: 0 };
            if let Shape::Document { open, .. } = shape {
                hashed.write(open.as_bytes()).map_err(failed)?;
            }
            file = Some(hashed);
        }
        Ok(Self { shape, out: out.to_owned(), temporary, file, first: true, files: BTreeMap::new(), finished: false })
    }

    pub(super) fn push(&mut self, piece: &Piece) -> Result<(), ExportError> {
        let failed = |source| ExportError::Write { path: self.temporary.clone(), source };
        let Some(file) = &mut self.file else {
            let plain = Path::new(&piece.file).file_name().is_some_and(|name| name == piece.file.as_str());
            if !plain || piece.file.starts_with('.') {
                return Err(ExportError::StrayFile { file: piece.file.clone() });
            }
            let bytes = piece.text.len() as u64;
            let hash = FileHash { bytes, blake3: blake3::hash(&piece.text).to_hex().to_string() };
            if self.files.insert(piece.file.clone(), hash).is_some() {
                return Err(ExportError::SameFile { file: piece.file.clone() });
            }
            return fs::write(self.temporary.join(&piece.file), &piece.text).map_err(failed);
        };
        let between: &[u8] = match self.shape {
            Shape::Document { .. } if !self.first => b",\n",
            _ => b"",
        };
        let after: &[u8] = if self.shape == Shape::Lines { b"\n" } else { b"" };
        self.first = false;
        [between, &piece.text, after].into_iter().try_for_each(|bytes| file.write(bytes)).map_err(failed)
    }

    /// Puts everything in place; the manifest last, so that it never speaks of what is not there.
    pub(super) fn finish(mut self, mut manifest: ExportManifest) -> Result<ExportManifest, ExportError> {
        let failed = |source| ExportError::Write { path: self.out.clone(), source };
        let name = self.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(mut file) = self.file.take() {
            if let Shape::Document { close, .. } = self.shape {
                file.write(close.as_bytes()).map_err(failed)?;
            }
            self.files.insert(name.clone(), file.done().map_err(failed)?);
        }
        manifest.files = std::mem::take(&mut self.files);
        let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        if self.shape == Shape::Files && self.out.exists() {
            fs::remove_dir_all(&self.out).map_err(failed)?;
        }
        fs::rename(&self.temporary, &self.out).map_err(failed)?;
        let path = beside(&self.out, "manifest.json");
        let temporary = hidden(&path);
        fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &path)).map_err(failed)?;
        self.finished = true;
        Ok(manifest)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.finished {
            // What was never finished is nobody's.
            let _ = if self.shape == Shape::Files {
                fs::remove_dir_all(&self.temporary)
            } else {
                fs::remove_file(&self.temporary)
            };
        }
    }
}
