//! The one way to open what lies in a run, a part, a campaign or beside them: somebody else may have put it there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::libc;

use super::disk;

/// Longest document that is read whole, in bytes. Those that we write have less than a tenth of it.
const LONGEST: u64 = 128 << 20;

/// An open plain file: no link, pipe or device, which could lead elsewhere, never end, or wait for ever.
#[derive(Debug)]
pub struct RunFile(File);

impl RunFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// It is not there, is no plain file, or the system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::opened(OpenOptions::new().read(true), path)
    }

    /// Opens a file to append to it, and makes it for the owner only where it is not there.
    ///
    /// # Errors
    /// As [`RunFile::open`].
    pub fn append(path: &Path) -> io::Result<Self> {
        Self::opened(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path)
    }

    fn opened(options: &mut OpenOptions, path: &Path) -> io::Result<Self> {
        let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).and_then(disk::regular_file);
        opened.map(Self).map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => io::Error::other("it is a symbolic link: what it points to may be anybody's"),
            _ => error,
        })
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// As [`RunFile::open`], and where it is longer than 128 MiB: then nothing of it is read.
    pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
        let Self(file) = Self::open(path)?;
        let too_long = || io::Error::other(format!("it is longer than {LONGEST} bytes"));
        if file.metadata()?.len() > LONGEST {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST { Err(too_long()) } else { Ok(bytes) }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// As [`RunFile::bytes`], and where it is no UTF-8.
    pub fn text(path: &Path) -> io::Result<String> {
        let bytes = Self::bytes(path)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The file, for what else is done with it.
    pub fn into_file(self) -> File {
        self.0
    }
}

impl Read for RunFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Puts a plain file into another place: as one name more, or as a copy where that cannot be.
///
/// # Errors
/// There is something in that place; what is to be put there is no plain file; the system refuses.
pub fn link_plain(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = RunFile::open(from)?;
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Err(error),
        Err(_) => {
            let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
            io::copy(&mut file, &mut copy).map(drop)
        }
    }
}

/// Puts what lies below a directory into another: plain files and directories, and nothing else.
///
/// # Errors
/// As [`link_plain`]; the directory, or one below it, is a link.
pub fn link_plain_tree(from: &Path, to: &Path) -> io::Result<()> {
    let wrong = |path: &Path, what: &str| io::Error::other(format!("`{}` is {what}", path.display()));
    if fs::symlink_metadata(from)?.is_symlink() {
        return Err(wrong(from, "a symbolic link: what it points to may be anybody's"));
    }
    disk::make_private_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, place) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            link_plain_tree(&entry.path(), &place)?;
        } else if kind.is_file() {
            link_plain(&entry.path(), &place)?;
        } else {
            return Err(wrong(&entry.path(), "no plain file, and a recording holds none: remove it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_pipes_and_devices_are_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("plain"), "text").expect("written");
        symlink(at("plain"), at("link")).expect("linked");
        symlink("/dev/zero", at("device")).expect("linked");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert_eq!(RunFile::text(&at("plain")).expect("read"), "text");
        fs::File::create(at("long")).and_then(|file| file.set_len(LONGEST + 1)).expect("made");
        assert!(RunFile::bytes(&at("long")).expect_err("refused").to_string().starts_with("it is longer than"));
        for name in ["link", "device", "pipe"] {
            for failed in [
                RunFile::bytes(&at(name)).err(),
                RunFile::append(&at(name)).err(),
                link_plain(&at(name), &at("copy")).err(),
            ] {
                assert!(failed.is_some_and(|error| error.kind() != io::ErrorKind::NotFound), "{name}");
            }
        }
        assert!(!at("copy").exists());
        assert!(link_plain_tree(dir.path(), &tempfile::tempdir().expect("a directory").path().join("tree")).is_err());
    }
}
