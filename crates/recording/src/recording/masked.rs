//! What may leave this process: bytes that a redactor has looked through. Files, pages and terminals take nothing else.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use serde_json::Value;

use super::{Redactor, RunFile, disk::create_private};

/// How many bytes a file collects before it writes them.
const COLLECTED: usize = 1 << 16;

/// Bytes without the secrets that this process knows, and without what looks like one. Only a [`Redactor`] makes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked(Vec<u8>);

/// JSON whose texts are without secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedJson(Value);

impl Redactor {
    /// Bytes without their secrets, each replaced by as many asterisks.
    pub fn masked_bytes(&self, bytes: impl Into<Vec<u8>>) -> Masked {
        let mut bytes = bytes.into();
        self.mask(&mut bytes);
        Masked(bytes)
    }

    /// JSON with each of its texts without secrets; names of members are left as they are.
    pub fn masked_json(&self, value: Value) -> MaskedJson {
        MaskedJson(self.json(value))
    }
}

impl Masked {
    /// What the redactor of this process leaves of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Redactor::of_process().masked_bytes(bytes)
    }

    /// A value as JSON in one line, and the end of the line.
    ///
    /// # Errors
    /// The value has no form in JSON.
    pub fn json_line(value: &impl serde::Serialize) -> io::Result<Self> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        Ok(Self::new(line))
    }

    /// A value as JSON that people read, and the end of the last line.
    ///
    /// # Errors
    /// As [`Masked::json_line`].
    pub fn json_pretty(value: &impl serde::Serialize) -> io::Result<Self> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        Ok(Self::new(text))
    }

    /// Words of this program's own.
    pub fn fixed(bytes: &'static [u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Code of this program's own, and hashes of it, which a redactor could take for keys. Nothing that came from outside.
    pub fn own_code(code: String) -> Self {
        Self(code.into_bytes())
    }

    /// The same in another form that holds no more: packed, or in another alphabet.
    #[must_use]
    pub fn encoded(&self, encode: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        Self(encode(&self.0))
    }

    /// The same, packed by zstd.
    ///
    /// # Errors
    /// The packer refuses.
    pub fn packed(&self, level: i32) -> io::Result<Self> {
        zstd::encode_all(self.0.as_slice(), level).map(Self)
    }

    /// Adds what comes after it.
    pub fn push(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, for those who send them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text; what is no UTF-8 is replaced.
    pub fn into_text(self) -> String {
        String::from_utf8(self.0).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl MaskedJson {
    /// The value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The value as JSON in one line.
    pub fn text(&self) -> Masked {
        Masked(self.0.to_string().into_bytes())
    }
}

/// A file that takes nothing but [`Masked`].
#[derive(Debug)]
pub struct MaskedFile(BufWriter<File>);

impl MaskedFile {
    /// Makes a file for its owner only, or empties it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        create_private(path).map(Self::from_file)
    }

    /// Makes a file for its owner only where there is none.
    ///
    /// # Errors
    /// There is one; the system refuses.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(Self::from_file)
    }

    /// Makes a file that is as readable as any that its user makes, or empties it: for what is made to be given away.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create_shared(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self::from_file)
    }

    /// Writes a file whole that is as readable as any that its user makes.
    ///
    /// # Errors
    /// As [`MaskedFile::create_shared`].
    pub fn write_shared(path: &Path, bytes: &Masked) -> io::Result<()> {
        let mut file = Self::create_shared(path)?;
        file.write(bytes)?;
        file.finish().map(drop)
    }

    /// A file without a name in a directory, to be read back by this process.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create_unnamed(dir: &Path) -> io::Result<Self> {
        tempfile::tempfile_in(dir).map(Self::from_file)
    }

    fn from_file(file: File) -> Self {
        Self(BufWriter::with_capacity(COLLECTED, file))
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&mut self, bytes: &Masked) -> io::Result<()> {
        self.0.write_all(&bytes.0)
    }

    /// Writes what was collected.
    ///
    /// # Errors
    /// As [`MaskedFile::write`].
    pub fn finish(self) -> io::Result<File> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)
    }

    /// Puts a file in place whole: a reader sees the earlier one or this one.
    ///
    /// # Errors
    /// The system refuses; the earlier file is as it was.
    pub fn replace(path: &Path, bytes: &Masked) -> io::Result<()> {
        let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default();
        // Each writer has its own: two programs may put the same file in place at once.
        let temporary = tempfile::Builder::new().prefix(name).suffix(".tmp").tempfile_in(beside)?;
        let (file, place) = temporary.into_parts();
        let mut file = Self::from_file(file);
        file.write(bytes)?;
        file.finish()?;
        place.persist(path).map_err(|error| error.error)
    }
}

/// A file of lines, for its owner only, that grows: each line is added by one write, so that lines of several threads do not
/// mix. A line that was torn before is ended. Clones add to the same file.
#[derive(Debug, Clone)]
pub struct AppendedLines(Arc<File>);

impl AppendedLines {
    /// Opens the file, and makes it where it is not there.
    ///
    /// # Errors
    /// It is no plain file; the system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = RunFile::append(path)?.into_file();
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(Self(Arc::new(file)))
    }

    /// The same, and empties it.
    ///
    /// # Errors
    /// As [`AppendedLines::open`].
    pub fn open_anew(path: &Path) -> io::Result<Self> {
        let lines = Self::open(path)?;
        lines.0.set_len(0)?;
        Ok(lines)
    }

    /// Adds lines; the last one has its end.
    ///
    /// # Errors
    /// The system refuses.
    pub fn add(&self, lines: &Masked) -> io::Result<()> {
        (&*self.0).write_all(&lines.0)
    }

    /// Waits until it is on the disk.
    ///
    /// # Errors
    /// The system refuses.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Waits until no other process adds lines; they may go on when this is dropped.
    ///
    /// # Errors
    /// The system refuses.
    pub fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const KEY: &str = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";

    #[test]
    fn nothing_makes_them_but_a_redactor_and_they_hold_no_key() {
        let masked = Masked::new(format!("the key is {KEY}"));
        assert!(!masked.clone().into_text().contains(KEY), "{masked:?}");
        let json = Redactor::default().masked_json(serde_json::json!({"said": [KEY]}));
        assert!(!json.text().into_text().contains(KEY));
        let packed = masked.packed(1).expect("packed");
        assert_eq!(zstd::decode_all(packed.as_bytes()).expect("unpacked"), masked.as_bytes());
    }

    #[test]
    fn a_torn_line_is_ended_and_lines_are_added_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lines.jsonl");
        fs::write(&path, "{}\n{\"ti").expect("written");
        let lines = AppendedLines::open(&path).expect("opens");
        lines.add(&Masked::json_line(&KEY).expect("a line")).expect("added");
        let text = fs::read_to_string(&path).expect("readable");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.starts_with("{}\n{\"ti\n\"") && text.ends_with("\"\n") && !text.contains(KEY), "{text}");
        AppendedLines::open_anew(&path).expect("opens");
        assert_eq!(fs::read(&path).expect("readable"), b"");
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("page.html");
        for text in ["first", "second"] {
            MaskedFile::replace(&path, &Masked::new(text)).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("readable"), text);
        }
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
        MaskedFile::create_new(&path).expect_err("it is there");
    }
}
