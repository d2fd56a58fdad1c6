//! Files that verbs write where the user names them. One place holds the rule: nothing that is there is lost unasked. It is
//! applied before any work, so that a name that is taken costs nothing.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use super::{Exit, Failure, escape};
use crate::recording::Masked;

/// As many bytes of a file that is there tell whether it is an earlier report.
const BEGINNING: usize = 4096;

/// What may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaces {
    /// Anything, where `--overwrite` is given; else nothing.
    OnRequest(bool),
    /// An earlier report of this kind, unasked: test runners write theirs anew in each run, and CI counts on it. Nothing else.
    Earlier(ReportKind),
}

/// A report that is written anew in each run, and how a file of it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportKind {
    /// What CI servers read.
    Junit,
    /// The page of `aegis view` as one file.
    Page,
    /// A manual page of this program.
    Manual,
}

impl ReportKind {
    fn words(self) -> &'static str {
        match self {
            ReportKind::Junit => "JUnit file",
            ReportKind::Page => "page of aegis",
            ReportKind::Manual => "manual page of aegis",
        }
    }

    /// Whether a text begins as such a file does. An empty one is anything's beginning.
    fn begins(self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text).to_lowercase();
        let marks: &[&str] = match self {
            ReportKind::Junit => &["<testsuite"],
            ReportKind::Page => &["<!doctype html>", "aegis"],
            ReportKind::Manual => &[".th aegis"],
        };
        text.is_empty() || marks.iter().all(|mark| text.contains(mark))
    }
}

/// A file that the user named, and that may be written.
#[derive(Debug)]
pub(super) struct OutputFile<'a> {
    path: &'a Path,
    replaces: Replaces,
}

impl<'a> OutputFile<'a> {
    /// Looks at what is there.
    ///
    /// # Errors
    /// The path is a directory, or holds what must not be replaced.
    pub(super) fn named(path: &'a Path, replaces: Replaces) -> Result<Self, Failure> {
        let shown = escape(&path.display().to_string());
        if path.is_dir() {
            let error = format!("`{shown}` is a directory: a file is written there");
            return Err(Failure::new(Exit::Usage, error).hint(format!("name a file in it: {shown}/NAME")));
        }
        if !path.is_file() {
            return Ok(Self { path, replaces });
        }
        match replaces {
            Replaces::OnRequest(true) => {}
            Replaces::OnRequest(false) => {
                let error = format!("`{shown}` exists, and what is there would be lost");
                return Err(Failure::new(Exit::Usage, error).hint("name another file, or add `--overwrite`"));
            }
            Replaces::Earlier(kind) => {
                let mut beginning = Vec::new();
                let read = fs::File::open(path).and_then(|file| {
                    io::Read::read_to_end(&mut io::Read::take(file, BEGINNING as u64), &mut beginning)
                });
                read.map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{shown}`: {error}")))?;
                if !kind.begins(&beginning) {
                    let error = format!("`{shown}` exists and is no earlier {}: it would be lost", kind.words());
                    return Err(Failure::new(Exit::Usage, error).hint("name another file"));
                }
            }
        }
        Ok(Self { path, replaces })
    }

    /// Puts the file in place whole, directories above it included; true where it replaced one. What is no regular file (a
    /// pipe, `/dev/stdout`) is written to as it is.
    ///
    /// # Errors
    /// It cannot be written, or something came to be there since.
    pub(super) fn write(&self, bytes: &Masked) -> Result<bool, Failure> {
        let there = self.path.symlink_metadata().is_ok();
        let done =
            if there && !self.path.is_file() { fs::write(self.path, bytes.as_bytes()) } else { self.put(bytes, there) };
        match done {
            Ok(()) => Ok(there && self.path.is_file()),
            Err(error) => {
                let error = format!("cannot write `{}`: {error}", escape(&self.path.display().to_string()));
                Err(Failure::new(Exit::Usage, error).hint("name a place that can be written to"))
            }
        }
    }

    /// The same, and says on standard error where a file was replaced.
    ///
    /// # Errors
    /// As [`OutputFile::write`].
    pub(super) fn write_aloud(&self, bytes: &Masked) -> Result<(), Failure> {
        if self.write(bytes)? {
            talkln!("replaced  {}", escape(&self.path.display().to_string()));
        }
        Ok(())
    }

    fn put(&self, bytes: &Masked, there: bool) -> io::Result<()> {
        // What a link points to is replaced, not the link.
        let path = if there { self.path.canonicalize()? } else { self.path.to_owned() };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        // As readable as any file that the user's programs make.
        let mut whole = tempfile::Builder::new();
        let mut file = whole.prefix(".aegis-").permissions(Permissions::from_mode(0o666)).tempfile_in(parent)?;
        file.write_all(bytes.as_bytes())?;
        let placed = if self.replaces == Replaces::OnRequest(false) {
            file.persist_noclobber(&path)
        } else {
            file.persist(&path)
        };
        placed.map(drop).map_err(|error| error.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_there_is_lost_unasked() {
        let dir = tempfile::tempdir().expect("a directory");
        let suite: &[u8] = b"<?xml version=\"1.0\"?>\n<testsuites></testsuites>";
        for (there, replaces, refused) in [
            (None, Replaces::OnRequest(false), None),
            (Some(&b"mine"[..]), Replaces::OnRequest(false), Some("exists, and what is there would be lost")),
            (Some(b""), Replaces::OnRequest(false), Some("exists")),
            (Some(b"mine"), Replaces::OnRequest(true), None),
            (Some(b"mine"), Replaces::Earlier(ReportKind::Junit), Some("is no earlier JUnit file")),
            (Some(suite), Replaces::Earlier(ReportKind::Junit), None),
            (Some(b""), Replaces::Earlier(ReportKind::Junit), None),
            (Some(suite), Replaces::Earlier(ReportKind::Page), Some("is no earlier page of aegis")),
            (Some(b"<!DOCTYPE html><title>Aegis"), Replaces::Earlier(ReportKind::Page), None),
            (Some(b"<!doctype html><title>another"), Replaces::Earlier(ReportKind::Page), Some("is no earlier page")),
        ] {
            let path = dir.path().join("deep/er/out");
            let _ = fs::remove_file(&path);
            if let Some(there) = there {
                fs::write(&path, there).expect("written");
            }
            let named = OutputFile::named(&path, replaces);
            match (named, refused) {
                (Ok(file), None) => {
                    assert_eq!(
                        file.write(&Masked::fixed(b"new")).expect("written"),
                        there.is_some(),
                        "{replaces:?} {there:?}"
                    );
                    assert_eq!(fs::read(&path).expect("there"), b"new");
                    let mode = fs::metadata(&path).expect("there").permissions().mode();
                    assert_ne!(mode & 0o044, 0, "others may read it as far as the umask lets them: {mode:o}");
                }
                (Err(failure), Some(words)) => {
                    let said = failure.to_string();
                    assert!(said.contains(words) && said.contains("hint: "), "{said}");
                    assert_eq!(Some(fs::read(&path).expect("there")), there.map(<[u8]>::to_vec));
                }
                (found, expected) => panic!("{replaces:?} {there:?}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn what_came_to_be_there_since_is_not_lost_either() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("out");
        let file = OutputFile::named(&path, Replaces::OnRequest(false)).expect("free");
        fs::write(&path, "mine").expect("written");
        assert!(file.write(&Masked::fixed(b"new")).is_err());
        assert_eq!(fs::read(&path).expect("there"), b"mine");
    }

    #[test]
    fn directories_are_refused_links_kept_and_devices_written_to() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(OutputFile::named(dir.path(), Replaces::OnRequest(true)).is_err());
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "mine").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        assert!(OutputFile::named(&link, Replaces::OnRequest(false)).is_err());
        OutputFile::named(&link, Replaces::OnRequest(true))
            .expect("asked")
            .write(&Masked::fixed(b"new"))
            .expect("written");
        assert!(link.is_symlink() && fs::read(&target).expect("there") == b"new");
        let null = OutputFile::named(Path::new("/dev/null"), Replaces::OnRequest(false)).expect("a device");
        assert!(!null.write(&Masked::fixed(b"new")).expect("written"));
    }
}
