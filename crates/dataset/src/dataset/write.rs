//! Writes a dataset: samples as they come, each file put in place whole, so that a reader sees the old or the new one.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    ALPHA, BENIGN_FILE, Claims, DECOYS_FILE, DatasetError, DecoyCounts, FILE, Grounds, MANIFEST_FILE, Sample,
    SampleKind, SampleLine, Split, sample::FORMAT,
};
use crate::{
    recording::{Masked, MaskedFile, RunFile, make_private_dir},
    trajectory::TAXONOMY,
};

/// Writes the files of a dataset directory. What is pushed lies in temporary files until [`Writer::finish`]; a writer
/// that is dropped before leaves what was there.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    main: PartFile,
    benign: Option<PartFile>,
    decoys: Option<PartFile>,
    manifest: DatasetManifest,
    /// What lies there, and is replaced.
    before: Option<DatasetManifest>,
    grounds: Grounds,
    further: Option<usize>,
}

/// What a dataset holds: `dataset.json`, beside its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatasetManifest {
    /// Format of samples and manifest; 1.
    pub format: u32,
    /// The taxonomy of its failure modes.
    pub taxonomy: String,
    /// Samples by kind.
    pub kinds: BTreeMap<SampleKind, u64>,
    /// Samples by part; those of no part are left out.
    pub splits: BTreeMap<Split, u64>,
    /// How sure its labels are, all together; absent in sets whose labels nobody executed anything for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// What came of the decoys; absent where none was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoys: Option<DecoyCounts>,
    /// Why it says nothing of claims, where the set that lay there before did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<String>,
    /// Chains (a task of a system each) of the campaign that were not made to their end, where it was made of shards all the
    /// same; 0, and not written, where all were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_chains: usize,
    /// Runs that are no rows, for an agent repeats the order that was planted in it; 0, and not written, where none is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeating_orders: usize,
    /// The files by name.
    pub files: BTreeMap<String, FileFacts>,
}

/// What a file of a dataset holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileFacts {
    /// Samples.
    pub samples: u64,
    /// Bytes.
    pub bytes: u64,
    /// blake3 of the bytes.
    pub blake3: String,
}

impl Writer {
    /// Begins a dataset in a directory, which is made if need be.
    ///
    /// # Errors
    /// The directory cannot be made or written to.
    pub fn create(dir: &Path) -> Result<Self, DatasetError> {
        make_private_dir(dir).map_err(|source| failed("create", dir, source))?;
        let manifest = DatasetManifest {
            format: FORMAT,
            taxonomy: TAXONOMY.to_owned(),
            kinds: BTreeMap::new(),
            splits: BTreeMap::new(),
            claims: None,
            decoys: None,
            cleared: None,
            missing_chains: 0,
            repeating_orders: 0,
            files: BTreeMap::new(),
        };
        let before = RunFile::bytes(&dir.join(MANIFEST_FILE)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let (main, grounds) = (PartFile::create(dir, FILE)?, Grounds::default());
        Ok(Self { dir: dir.to_owned(), main, benign: None, decoys: None, manifest, before, grounds, further: None })
    }

    /// Adds a sample; benign ones and decoys go into files of their own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push(&mut self, sample: &Sample) -> Result<(), DatasetError> {
        let line = SampleLine::from_sample(sample);
        self.push_line(&line.map_err(|error| failed("write", &self.dir.join(FILE), error.into()))?)
    }

    /// The same of a sample that is a line already.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push_line(&mut self, sample: &SampleLine) -> Result<(), DatasetError> {
        let part = match (sample.kind, &mut self.benign) {
            (SampleKind::Benign, Some(benign)) => benign,
            (SampleKind::Benign, none) => none.insert(PartFile::create(&self.dir, BENIGN_FILE)?),
            (SampleKind::Decoy, _) => match &mut self.decoys {
                Some(decoys) => decoys,
                none => none.insert(PartFile::create(&self.dir, DECOYS_FILE)?),
            },
            (SampleKind::Clean | SampleKind::Failure, _) => &mut self.main,
        };
        part.push(&sample.text)?;
        self.grounds.count(sample.kind, sample.ground);
        *self.manifest.kinds.entry(sample.kind).or_default() += 1;
        if let Some(split) = sample.split {
            *self.manifest.splits.entry(split).or_default() += 1;
        }
        Ok(())
    }

    /// States how sure the labels are, all together.
    pub fn state(&mut self, claims: Claims) {
        self.manifest.claims = Some(claims);
    }

    /// States how sure the labels are that were pushed, of so many claims begun. Returns what is stated.
    pub fn state_begun(&mut self, alpha: f64, begun: usize) -> &Claims {
        self.manifest.claims.insert(self.grounds.claims(alpha, begun))
    }

    /// States what came of the decoys.
    pub fn state_decoys(&mut self, decoys: Option<DecoyCounts>) {
        self.manifest.decoys = decoys;
    }

    /// Says that so many chains of the campaign are missing.
    pub fn miss(&mut self, chains: usize) {
        self.manifest.missing_chains = chains;
    }

    /// Says that so many runs are no rows, for an agent repeats the order that was planted in it.
    pub fn leave_out(&mut self, repeating_orders: usize) {
        self.manifest.repeating_orders = repeating_orders;
    }

    /// Says that so many claims were begun for rows that are pushed beside those of the set that lay there. Then what that
    /// set stated is stated anew, for all rows, and a set that is new states them; without this it is cleared, and the
    /// manifest says so.
    pub fn begun_further(&mut self, claims: usize) {
        self.further = Some(self.further.unwrap_or_default() + claims);
    }

    /// What is stated of claims where nobody stated anything: a number that counts less than was begun would guarantee
    /// what nobody knows.
    fn carry_claims(&mut self) {
        if self.manifest.claims.is_some() {
            return;
        }
        let before = self.before.take().map(|before| (before.claims, before.cleared));
        match (before, self.further) {
            (None, Some(begun)) => self.manifest.claims = Some(self.grounds.claims(ALPHA, begun)),
            (Some((Some(claims), _)), Some(further)) => {
                self.manifest.claims = Some(self.grounds.claims(claims.alpha, claims.begun + further));
            }
            (Some((Some(claims), _)), None) => {
                let was = claims.in_words();
                let why = "rows were written by what did not say how many claims it began; before, the set stated";
                self.manifest.cleared = Some(format!("{why}: {was}"));
            }
            (Some((None, cleared)), _) => self.manifest.cleared = cleared,
            (None, None) => {}
        }
    }

    /// Puts the files in place and says what is in them.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<DatasetManifest, DatasetError> {
        self.carry_claims();
        for (name, part) in [(BENIGN_FILE, self.benign.take()), (DECOYS_FILE, self.decoys.take())] {
            let path = self.dir.join(name);
            match part {
                Some(part) => part.finish(name, &mut self.manifest)?,
                None if path.exists() => fs::remove_file(&path).map_err(|source| failed("remove", &path, source))?,
                None => {}
            }
        }
        self.main.finish(FILE, &mut self.manifest)?;
        let path = self.dir.join(MANIFEST_FILE);
        Masked::json_pretty(&self.manifest)
            .and_then(|text| MaskedFile::replace(&path, &text))
            .map_err(|source| failed("write", &path, source))?;
        Ok(self.manifest)
    }
}

/// A file that is being written.
#[derive(Debug)]
struct PartFile {
    temporary: PathBuf,
    path: PathBuf,
    file: Option<MaskedFile>,
    hash: blake3::Hasher,
    samples: u64,
    bytes: u64,
}

impl PartFile {
    fn create(dir: &Path, name: &str) -> Result<Self, DatasetError> {
        let temporary = temporary(dir, name);
        let file = MaskedFile::create(&temporary).map_err(|source| failed("create", &temporary, source))?;
        let path = dir.join(name);
        Ok(Self { temporary, path, file: Some(file), hash: blake3::Hasher::new(), samples: 0, bytes: 0 })
    }

    /// Adds a line. Secrets are masked: a recording may be older than what masks them now.
    fn push(&mut self, line: &[u8]) -> Result<(), DatasetError> {
        let mut line = Masked::new(line);
        line.push(&Masked::fixed(b"\n"));
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write(&line));
        written.map_err(|source| failed("write", &self.temporary, source))?;
        self.hash.update(line.as_bytes());
        self.bytes += line.len() as u64;
        self.samples += 1;
        Ok(())
    }

    fn finish(mut self, name: &str, manifest: &mut DatasetManifest) -> Result<(), DatasetError> {
        let flushed = self.file.take().map_or(Ok(()), |file| file.finish().map(drop));
        flushed.map_err(|source| failed("write", &self.temporary, source))?;
        fs::rename(&self.temporary, &self.path).map_err(|source| failed("write", &self.path, source))?;
        let blake3 = self.hash.finalize().to_hex().to_string();
        manifest.files.insert(name.to_owned(), FileFacts { samples: self.samples, bytes: self.bytes, blake3 });
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // What was never finished is nobody's; the file in place stays as it was.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn temporary(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{name}.tmp"))
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> DatasetError {
    DatasetError::Io { doing, path: path.to_owned(), source }
}
