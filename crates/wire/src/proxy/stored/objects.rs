//! Whose the files, batches and stores are that users of one server have the upstream make. Users may share the upstream's key, and
//! whoever has that and an id may read what it names. So what is made through the server belongs to who made it, and is answered to
//! others as if there were none. What was made elsewhere is nobody's here.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use hyper::{Method, Request, StatusCode, header};
use serde_json::Value;
use twox_hash::XxHash3_128;

use super::stored_path::{StoredPath, decoded, stored_path};
use crate::{
    identity::AttributedCall,
    proxy::{
        headers,
        lock::locked,
        upstream::{BackendAnswering, Listener, ReceivedBody, SentBody, Upstream},
        user_name::UserName,
    },
    recording::{AppendedLines, Masked, MaskedFile, RunFile, make_private_dir},
    surface::door::UnpackedBody,
    trajectory::Attribution,
};

/// The file, in the log directory of the server: a line an object, its owner and the hash of its id.
const FILE: &str = "objects.txt";
/// Objects of one user that are known; the oldest are forgotten, and nobody's.
const OBJECTS_MAX: usize = 10_000;
/// Lines beyond twice those that count, after which the file is written anew.
const SURPLUS: usize = 1000;
/// Longest reply that is looked into for an id, in bytes.
const REPLY_MAX: usize = 256 << 10;
/// Lengths of words between quotes that can name an object.
const NAME_LENGTHS: std::ops::RangeInclusive<usize> = 12..=512;
/// What stands in a path before the id of an object.
pub(super) const SHELVES: [&str; 13] = [
    "files",
    "batches",
    "uploads",
    "vector_stores",
    "containers",
    "assistants",
    "jobs",
    "evals",
    "videos",
    "cachedContents",
    "fileSearchStores",
    "skills",
    "prompts",
];
/// What the ids of objects begin with that a model's reply makes by the way: code's containers and files, and sound.
const MADE_BY_REPLIES: [&str; 3] = ["cntr_", "cfile_", "audio_"];

/// The owners of all objects that were made through a server, also of users who are gone.
#[derive(Debug)]
pub(in crate::proxy) struct ObjectOwners {
    file: PathBuf,
    list: Mutex<OwnerList>,
}

#[derive(Debug, Default)]
struct OwnerList {
    owners: HashMap<u128, Arc<str>>,
    order: HashMap<Arc<str>, VecDeque<u128>>,
    /// Lines of the file.
    lines: usize,
}

impl OwnerList {
    /// Takes in an object that is nobody's; whether it was.
    fn add(&mut self, owner: &str, object: u128) -> bool {
        if self.owners.contains_key(&object) {
            return false;
        }
        let owner = self.order.get_key_value(owner).map_or_else(|| Arc::from(owner), |(known, _)| Arc::clone(known));
        let order = self.order.entry(Arc::clone(&owner)).or_default();
        order.push_back(object);
        self.owners.insert(object, owner);
        if order.len() > OBJECTS_MAX
            && let Some(oldest) = order.pop_front()
        {
            self.owners.remove(&oldest);
        }
        true
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (owner, objects) in &self.order {
            for object in objects {
                line(&mut text, owner, *object);
            }
        }
        text
    }
}

fn line(text: &mut String, owner: &str, object: u128) {
    let _ = writeln!(text, "{owner} {object:032x}");
}

fn hash(name: &str) -> u128 {
    XxHash3_128::oneshot(name.as_bytes())
}

impl ObjectOwners {
    /// What an earlier server has written down.
    pub(in crate::proxy) fn open(log_dir: &Path) -> Self {
        let file = log_dir.join(FILE);
        let text = RunFile::text(&file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::error!(%error, file = %file.display(), "cannot read whose objects of the upstream are");
            }
            String::new()
        });
        let mut list = OwnerList::default();
        for (owner, object) in text.lines().filter_map(|line| line.split_once(' ')) {
            list.lines += 1;
            if let Ok(object) = u128::from_str_radix(object, 16) {
                list.add(owner, object);
            }
        }
        Self { file, list: Mutex::new(list) }
    }

    fn claim(&self, owner: &str, names: &[String]) {
        let list = &mut *locked(&self.list);
        let mut text = String::new();
        for object in names.iter().map(|name| hash(name)) {
            if list.add(owner, object) {
                list.lines += 1;
                line(&mut text, owner, object);
            }
        }
        if text.is_empty() {
            return;
        }
        let anew = list.lines > 2 * list.owners.len() + SURPLUS;
        let written = if anew { self.write_anew(list) } else { self.append(&text) };
        if let Err(error) = written {
            tracing::error!(%error, file = %self.file.display(), "cannot write down whose an object of the upstream is");
        }
    }

    fn append(&self, text: &str) -> io::Result<()> {
        make_private_dir(self.file.parent().unwrap_or(Path::new(".")))?;
        AppendedLines::open(&self.file)?.add(&Masked::new(text))
    }

    fn write_anew(&self, list: &mut OwnerList) -> io::Result<()> {
        MaskedFile::replace(&self.file, &Masked::new(list.text()))?;
        list.lines = list.owners.len();
        Ok(())
    }
}

/// The objects of one user, beside those of others.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct UserObjects {
    owners: Arc<ObjectOwners>,
    user: Arc<str>,
}

impl UserObjects {
    pub(in crate::proxy) fn new(owners: Arc<ObjectOwners>, user: &UserName) -> Self {
        Self { owners, user: user.as_str().into() }
    }

    /// Whether this names an object, and that of another user.
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        locked(&self.owners.list).owners.get(&hash(name)).is_some_and(|owner| *owner != self.user)
    }

    pub(super) fn is_own(&self, name: &str) -> bool {
        locked(&self.owners.list).owners.get(&hash(name)).is_some_and(|owner| *owner == self.user)
    }

    /// The first object of another user that a body of JSON names: by its id, its name or its address, whole between quotes.
    pub(super) fn foreign_in(&self, body: &[u8]) -> Option<String> {
        if locked(&self.owners.list).owners.is_empty() {
            return None;
        }
        words(body).find(|word| {
            // An address ends in the name: `https://host/v1beta/files/abc`.
            let named = word.rmatch_indices('/').nth(1).and_then(|(at, _)| word.get(at + 1..));
            self.is_foreign(word) || named.is_some_and(|named| self.is_foreign(named))
        })
    }

    /// Takes in what the reply to a model call has made by the way, whole or as a stream: its ids stand between quotes.
    pub(super) fn claim_made_by(&self, reply: &[u8]) {
        if !MADE_BY_REPLIES.iter().any(|prefix| memchr::memmem::find(reply, prefix.as_bytes()).is_some()) {
            return;
        }
        let names = words(reply).filter(|word| MADE_BY_REPLIES.iter().any(|prefix| word.starts_with(prefix)));
        self.owners.claim(&self.user, &names.collect::<Vec<_>>());
    }

    /// What is to be learned from the reply to a request: of an object that it makes, its name; of one of this user's, the names of
    /// what came of it.
    fn claim_of(&self, method: &Method, path: &str) -> Option<NamesOf> {
        let path = decoded(path);
        match stored_path(&SHELVES, method, &path)? {
            StoredPath::New => Some(NamesOf::Made),
            StoredPath::List => None,
            StoredPath::Id { name, id } => (self.is_own(&id) || self.is_own(&name)).then_some(NamesOf::Results),
        }
    }
}

/// The words of a JSON text that can name an object, whole between quotes, their escapes read.
fn words(text: &[u8]) -> impl Iterator<Item = String> {
    let mut from = 0;
    memchr::memchr_iter(b'"', text).filter_map(move |quote| {
        let word = text.get(from..quote).unwrap_or_default();
        from = quote + 1;
        if !NAME_LENGTHS.contains(&word.len()) || memchr::memchr3(b' ', b'\n', b'\t', word).is_some() {
            return None;
        }
        let word = std::str::from_utf8(word).ok()?;
        if word.contains('\\') { serde_json::from_str(&format!("\"{word}\"")).ok() } else { Some(word.to_owned()) }
    })
}

/// Which names in a reply are of something that is the user's.
#[derive(Debug, Clone, Copy)]
enum NamesOf {
    /// What the request has made, and files that came of it.
    Made,
    /// Files that came of an object.
    Results,
}

impl NamesOf {
    fn read(self, body: &[u8]) -> Vec<String> {
        let Ok(reply) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
        let mut names = Vec::new();
        let text_at = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        for made in reply.get("file").into_iter().chain(matches!(self, Self::Made).then_some(&reply)) {
            names.extend(text_at(made, "id"));
            // Gemini's: `files/abc`.
            names.extend(text_at(made, "name").filter(|name| name.contains('/')));
        }
        names.extend(["output_file_id", "error_file_id"].iter().filter_map(|key| text_at(&reply, key)));
        names
    }
}

/// The upstream of one user's requests: hears the names of what it makes.
#[derive(Debug)]
pub(in crate::proxy) struct UserUpstream {
    /// The server's.
    pub(in crate::proxy) upstream: Arc<dyn Upstream>,
    /// Whose.
    pub(in crate::proxy) objects: UserObjects,
}

impl Upstream for UserUpstream {
    fn name(&self) -> &str {
        self.upstream.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        let Some(names_of) = self.objects.claim_of(request.method(), request.uri().path()) else {
            return self.upstream.send(request);
        };
        Box::pin(async move {
            let received = self.upstream.send(request).await?;
            let is_made = received.status().is_success() && received.status() != StatusCode::NO_CONTENT;
            let is_json =
                headers::text(received.headers(), &header::CONTENT_TYPE).is_some_and(|kind| kind.contains("json"));
            if !is_made || !is_json {
                return Ok(received);
            }
            let encoding = headers::text(received.headers(), &header::CONTENT_ENCODING).map(str::to_owned);
            let objects = self.objects.clone();
            let claiming = ClaimingListener { objects, names_of, encoding, body: Some(Vec::new()) };
            Ok(received.map(|body| ReceivedBody::Observed(Box::new(body), Box::new(claiming))))
        })
    }

    fn opens_sockets(&self) -> bool {
        self.upstream.opens_sockets()
    }

    fn open_socket(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        self.upstream.open_socket(request)
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.upstream.recall(surface, asked, told)
    }
}

/// Hears a reply that names what is the user's.
#[derive(Debug)]
struct ClaimingListener {
    objects: UserObjects,
    names_of: NamesOf,
    encoding: Option<String>,
    /// Of one that is too long, nothing.
    body: Option<Vec<u8>>,
}

impl Listener for ClaimingListener {
    fn frame(&mut self, frame: &Bytes) {
        if let Some(body) = &mut self.body {
            body.extend_from_slice(frame);
            if body.len() > REPLY_MAX {
                self.body = None;
            }
        }
    }

    fn end(&mut self) {
        let Some(body) = self.body.take() else { return };
        let plain = UnpackedBody::unpack(&Bytes::from(body), self.encoding.as_deref()).plain;
        self.objects.owners.claim(&self.objects.user, &self.names_of.read(&plain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(owners: &Arc<ObjectOwners>, name: &str) -> UserObjects {
        UserObjects::new(Arc::clone(owners), &UserName::parse(name).expect("a name"))
    }

    #[test]
    fn who_made_an_object_has_it_also_after_a_restart() {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = dir.path().join("logs");
        let owners = Arc::new(ObjectOwners::open(&logs));
        let claim = |owner: &str, name: &str| owners.claim(owner, &[name.to_owned()]);
        claim("alice", "file-0123456789");
        claim("bob", "file-0123456789");
        claim("alice", "files/notes-of-alice");
        for owners in [Arc::clone(&owners), Arc::new(ObjectOwners::open(&logs))] {
            let bob = user(&owners, "bob");
            assert!(user(&owners, "alice").is_own("file-0123456789") && bob.is_foreign("file-0123456789"));
            assert!(!bob.is_foreign("file-of-nobody"));
            for body in [
                "{\"input_file_id\": \"file-0123456789\"}",
                "{\"file_id\":\"file-012345678\\u0039\"}",
                "{\"fileUri\":\"https://host/v1beta/files/notes-of-alice\"}",
            ] {
                assert!(bob.foreign_in(body.as_bytes()).is_some(), "{body}");
                assert!(user(&owners, "alice").foreign_in(body.as_bytes()).is_none(), "{body}");
            }
            assert!(bob.foreign_in(b"{\"text\": \"see file-0123456789\"}").is_none());
        }
    }

    #[test]
    fn memory_and_file_are_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let owners = ObjectOwners::open(dir.path());
        let names: Vec<String> = (0..OBJECTS_MAX + 10).map(|number| format!("file-{number}")).collect();
        owners.claim("alice", &names);
        assert_eq!(locked(&owners.list).owners.len(), OBJECTS_MAX);
        for round in 0..12 {
            let names: Vec<String> = (0..1000).map(|number| format!("file-{round}-{number}")).collect();
            owners.claim("alice", &names);
        }
        let lines = std::fs::read_to_string(dir.path().join(FILE)).expect("a file").lines().count();
        assert!(lines <= 2 * OBJECTS_MAX + 2 * SURPLUS, "{lines}");
        assert_eq!(locked(&ObjectOwners::open(dir.path()).list).owners.len(), OBJECTS_MAX);
    }

    #[test]
    fn names_are_those_of_what_was_made() {
        for (names_of, reply, expected) in [
            (NamesOf::Made, "{\"id\":\"file-1\",\"input_file_id\":\"file-0\"}", &["file-1"][..]),
            (NamesOf::Made, "{\"id\":\"batch-1\",\"output_file_id\":\"b\"}", &["batch-1", "b"]),
            (NamesOf::Made, "{\"file\":{\"name\":\"files/a\",\"displayName\":\"b\"}}", &["files/a"]),
            (NamesOf::Results, "{\"id\":\"batch-1\",\"input_file_id\":\"a\",\"output_file_id\":\"b\"}", &["b"]),
            (NamesOf::Results, "{\"id\":\"upload-1\",\"file\":{\"id\":\"file-1\"}}", &["file-1"]),
            (NamesOf::Made, "[]", &[]),
        ] {
            assert_eq!(names_of.read(reply.as_bytes()), expected, "{reply}");
        }
    }
}
