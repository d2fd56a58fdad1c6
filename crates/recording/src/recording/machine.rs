//! Which recordings were made here: whoever clones a recording does not run what it says, nor send keys where it says.
//!
//! The first recording of a user makes a key beside their configuration. What `run.json` says of a program and its upstream
//! carries a hash under that key, which nobody else can make.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{Manifest, RunFile, disk};

/// Bytes of the key.
const KEY: usize = 32;
/// The file that holds it.
const KEY_FILE: &str = "machine.key";

/// The key by which this user's recordings on this machine are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MachineKey([u8; KEY]);

impl std::fmt::Debug for MachineKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MachineKey")
    }
}

impl MachineKey {
    /// The user's, made where there is none: `aegis/machine.key` in `$XDG_CONFIG_HOME`, or in `~/.config`. `None` where it
    /// can be neither read nor made: then no recording counts as made here.
    pub fn of_user() -> Option<Self> {
        static OF_USER: OnceLock<Option<MachineKey>> = OnceLock::new();
        *OF_USER.get_or_init(|| Self::at(&configuration()?.join("aegis")).ok())
    }

    /// The key in a directory, made where there is none.
    fn at(dir: &Path) -> io::Result<Self> {
        let path = dir.join(KEY_FILE);
        match Self::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
        let mut key = [0; KEY];
        fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        disk::make_private_dir(dir)?;
        // Whole or not at all: of two that make one at once, the first holds.
        let mut made = tempfile::NamedTempFile::new_in(dir)?;
        made.write_all(&key)?;
        match made.persist_noclobber(&path) {
            Ok(_) => Ok(Self(key)),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => Self::read(&path),
            Err(refused) => Err(refused.error),
        }
    }

    fn read(path: &Path) -> io::Result<Self> {
        let bytes = RunFile::bytes(path)?;
        bytes.try_into().map(Self).map_err(|_| io::Error::other("it is no key"))
    }

    /// The mark of a run that is recorded here.
    pub(super) fn mark(&self, manifest: &Manifest) -> String {
        let said = serde_json::json!([manifest.run, manifest.upstream, manifest.launched]);
        blake3::keyed_hash(&self.0, said.to_string().as_bytes()).to_hex().to_string()
    }
}

impl Manifest {
    /// The same with the mark of a run that is recorded here.
    pub(super) fn marked(self, key: Option<MachineKey>) -> Self {
        Self { mark: key.map(|key| key.mark(&self)), ..self }
    }

    /// Whether the run was recorded here: by this user, on this machine, with the command and the upstream that it names.
    pub fn is_made_here(&self) -> bool {
        let key = MachineKey::of_user();
        key.zip(self.mark.as_deref()).is_some_and(|(key, mark)| key.mark(self) == mark)
    }
}

fn configuration() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Launched, sample};

    #[test]
    fn a_mark_is_of_one_key_and_of_what_the_run_says() {
        let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let key = MachineKey::at(dir.path()).expect("made");
        assert_eq!(MachineKey::at(dir.path()).expect("read"), key);
        let manifest = sample::manifest("r");
        let mark = key.mark(&manifest);
        let command = vec!["sh".to_owned(), "-c".to_owned(), "id".to_owned()];
        let launched = Manifest { launched: Some(Launched { command, ..Launched::default() }), ..manifest.clone() };
        let elsewhere = Manifest { upstream: "https://elsewhere.test".to_owned(), ..manifest.clone() };
        for forged in
            [key.mark(&launched), key.mark(&elsewhere), MachineKey::at(other.path()).expect("made").mark(&manifest)]
        {
            assert_ne!(forged, mark);
        }
    }
}
