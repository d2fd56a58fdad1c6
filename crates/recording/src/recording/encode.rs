//! Bodies as records: what an earlier body has is referred to, what is new is stored once.
//!
//! All of it runs outside the run's lock. A reference is a hash, so it does not matter what is written in between.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use super::{
    content_hash::ContentHash,
    frames::{self, Frame},
    recent::{RecentBodies, RememberedBody, Shared, best},
    record::{BodyRecord, Segment},
    redact::{self, Redactor},
    segment::{self, MiddlePiece, PieceText},
    spread,
    strings::Style,
};

/// What two bodies have in common is worth a reference from here, in bytes.
const WORTH: usize = 64;
/// A run of new bytes that is no text goes to a file of its own from here, in bytes.
const BLOB: usize = 64 << 10;

/// Makes records of bodies.
#[derive(Debug)]
pub(super) struct Encoder {
    /// Masks secrets.
    pub(super) redactor: Redactor,
    /// What bodies can grow from.
    recent: RecentBodies,
    longest: usize,
}

/// A body that is ready to be written.
#[derive(Debug)]
pub(super) struct Prepared {
    stored: Bytes,
    raw_hash: ContentHash,
    hash: ContentHash,
    is_known: bool,
    parent: Option<ContentHash>,
    range: Range<usize>,
    pieces: Vec<MiddlePiece>,
    frames: Vec<Frame>,
    cut_from: Option<usize>,
    remembered: Arc<RememberedBody>,
    extends: Option<ContentHash>,
}

impl Encoder {
    /// One for a new run; bodies are cut at `longest` bytes.
    pub(super) fn new(redactor: Redactor, longest: usize) -> Self {
        Self { redactor, recent: RecentBodies::default(), longest }
    }

    /// Prepares a body; `hash` is its hash, if it is known; `beside` is one that is being written with it and may be its parent.
    /// Only one that `grows` is compared with what was asked before: replies begin like no request.
    pub(super) fn prepare(
        &self,
        body: &Bytes,
        grows: bool,
        hash: Option<ContentHash>,
        beside: Option<&Prepared>,
    ) -> Prepared {
        let raw = body.slice(..body.len().min(self.longest));
        let hash = hash.filter(|_| raw.len() == body.len());
        let raw_hash = hash.unwrap_or_else(|| ContentHash::compute(&raw));
        let (known, ring) = self.recent.look(raw_hash);
        let known = known.or_else(|| beside.filter(|other| other.raw_hash == raw_hash).map(|other| other.hash));
        let cut_from = (raw.len() < body.len()).then_some(body.len());
        if let Some(hash) = known {
            return Prepared { is_known: true, cut_from, ..Prepared::by_hash(raw, raw_hash, hash) };
        }
        let shared = best(&raw, beside.map(|other| &other.remembered), if grows { &ring } else { &[] });
        let mut shared = shared.filter(|shared| shared.prefix + shared.suffix >= WORTH && shared.parent.hash.is_some());
        let mut masked = self.masked(&raw, shared.as_mut());
        if !grows {
            masked.extend(spread::in_reply(&raw, &self.redactor));
            masked = redact::merged(masked);
        }
        let (stored, hash) = stored(&raw, raw_hash, &masked);
        let middle = match &shared {
            Some(shared) => shared.prefix..raw.len() - shared.suffix,
            None => 0..raw.len(),
        };
        let middle = segment::cut(&stored, middle, shared.as_ref());
        let (parent, extends) = shared.map_or((None, None), |shared| {
            let whole = shared.prefix + shared.suffix >= shared.parent.raw.len();
            (shared.parent.hash, shared.parent.hash.filter(|_| whole))
        });
        Prepared {
            stored,
            raw_hash,
            hash,
            is_known: false,
            parent,
            range: middle.range,
            pieces: middle.pieces,
            frames: Vec::new(),
            cut_from,
            remembered: Arc::new(RememberedBody { raw, hash: Some(hash), masked, marks: middle.marks }),
            extends,
        }
    }

    /// Prepares the beginning of a body that was so long.
    pub(super) fn prepare_beginning(&self, kept: &Bytes, length: u64) -> Prepared {
        let prepared = self.prepare(kept, true, None, None);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Prepared { cut_from: prepared.cut_from.max((length > kept.len()).then_some(length)), ..prepared }
    }

    /// Prepares an event stream: pieces with their arrival in µs.
    pub(super) fn prepare_stream(&self, body: &Bytes, pieces: &[(Bytes, u64)]) -> Prepared {
        let raw = body.slice(..body.len().min(self.longest));
        let raw_hash = ContentHash::compute(&raw);
        let mut frames = frames::split(&raw, pieces);
        let mut masked = self.redactor.find(&raw, 0..raw.len());
        masked.extend(spread::in_stream(&raw, &frames, &self.redactor));
        let masked = redact::merged(masked);
        let (stored, hash) = stored(&raw, raw_hash, &masked);
        if !masked.is_empty() {
            frames = frames::split(&stored, pieces);
        }
        let cut_from = (raw.len() < body.len()).then_some(body.len());
        let remembered = Arc::new(RememberedBody { raw: raw.clone(), hash: Some(hash), masked, marks: Vec::new() });
        Prepared { stored, frames, cut_from, remembered, ..Prepared::by_hash(raw, raw_hash, hash) }
    }

    /// Takes note of a body that was written. Only what requests may grow from is worth keeping whole.
    pub(super) fn written(&self, prepared: &Prepared, keep: bool) {
        if prepared.is_known || prepared.stored.is_empty() {
            return;
        }
        if prepared.cut_from.is_none() {
            self.recent.know(prepared.raw_hash, prepared.hash);
        }
        if keep {
            self.recent.remember(Arc::clone(&prepared.remembered), prepared.extends);
        }
    }

    /// What is to be masked in a body: as in its parent where it is shared, searched where it is new. A secret across
    /// a border moves the border.
    fn masked(&self, raw: &Bytes, shared: Option<&mut Shared>) -> Vec<Range<usize>> {
        let Some(shared) = shared else { return self.find(raw, 0..raw.len()) };
        let (old, new) = (shared.parent.raw.len(), raw.len());
        let found = self.find(raw, shared.prefix..new - shared.suffix);
        let at_end = |span: &Range<usize>| span.start + new >= old;
        let moved = shared.parent.masked.iter().filter(|span| at_end(span));
        let moved: Vec<_> = moved.map(|span| span.start + new - old..span.end + new - old).collect();
        let (mut start, mut end) = (shared.prefix, new - shared.suffix);
        loop {
            let crosses = |border: usize| move |span: &&Range<usize>| span.start < border && border < span.end;
            if let Some(span) = found.iter().chain(&shared.parent.masked).find(crosses(start)) {
                start = span.start;
            } else if let Some(span) = found.iter().chain(&moved).find(crosses(end)) {
                end = span.end.min(new);
            } else {
                break;
            }
        }
        shared.prefix = start;
        shared.suffix = new - end;
        let first = shared.parent.masked.iter().filter(|span| span.end <= start).cloned();
        let middle = found.into_iter().filter(|span| span.end > start && span.start < end);
        redact::merged(first.chain(middle).chain(moved.iter().filter(|span| span.start >= end).cloned()).collect())
    }

    fn find(&self, raw: &[u8], window: Range<usize>) -> Vec<Range<usize>> {
        let mut spans = self.redactor.find(raw, window);
        if frames::is_stream(raw) {
            spans.extend(spread::in_stream(raw, &frames::split(raw, &[]), &self.redactor));
            spans = redact::merged(spans);
        }
        spans
    }
}

impl Prepared {
    /// A body that is only named.
    fn by_hash(raw: Bytes, raw_hash: ContentHash, hash: ContentHash) -> Self {
        Self {
            stored: raw,
            raw_hash,
            hash,
            is_known: false,
            parent: None,
            range: 0..0,
            pieces: Vec::new(),
            frames: Vec::new(),
            cut_from: None,
            remembered: Arc::default(),
            extends: None,
        }
    }

    /// Its record.
    pub(super) fn record(&self) -> BodyRecord<'_> {
        let in_parent = self.parent.is_some();
        let suffix = self.stored.len() - self.range.end;
        BodyRecord {
            hash: self.hash,
            len: self.stored.len() as u64,
            parent: self.parent,
            shared: if in_parent { self.range.start as u64 } else { 0 },
            shared_end: if in_parent { suffix as u64 } else { 0 },
            segs: self.pieces.iter().map(|piece| self.segment(piece)).collect(),
            frames: self.frames.iter().map(|frame| frame.record(&self.stored)).collect(),
            redacted: self.spans(),
            cut_from: self.cut_from.map(|length| length as u64),
        }
    }

    /// The texts that it refers to, as minimal escapes.
    pub(super) fn texts(&self) -> impl Iterator<Item = (ContentHash, &[u8])> {
        let texts = self.pieces.iter().filter_map(|piece| Some((piece, piece.text.as_ref()?)));
        texts.map(|(piece, text)| (text.hash, text.minimal.as_deref().unwrap_or_else(|| self.bytes(&piece.range))))
    }

    /// The runs of bytes that go to files of their own.
    pub(super) fn blobs(&self) -> impl Iterator<Item = (ContentHash, &[u8])> {
        let runs = self.pieces.iter().filter(|piece| is_blob(piece)).map(|piece| self.bytes(&piece.range));
        runs.map(|bytes| (ContentHash::compute(bytes), bytes))
    }

    fn spans(&self) -> Vec<(u64, u64)> {
        self.remembered.masked.iter().map(|span| (span.start as u64, span.len() as u64)).collect()
    }

    fn segment(&self, piece: &MiddlePiece) -> Segment<'_> {
        match &piece.text {
            Some(PieceText { hash, style: Style::Minimal, .. }) => Segment::Minimal((*hash,)),
            Some(PieceText { hash, style, .. }) => Segment::Styled((*hash, style.number())),
            None if is_blob(piece) => Segment::Blob { blob: ContentHash::compute(self.bytes(&piece.range)) },
            None => Segment::literal(self.bytes(&piece.range)),
        }
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.stored.get(range.clone()).unwrap_or_default()
    }
}

fn is_blob(piece: &MiddlePiece) -> bool {
    piece.text.is_none() && piece.range.len() > BLOB
}

/// The bytes that may be written, and their hash.
fn stored(raw: &Bytes, raw_hash: ContentHash, masked: &[Range<usize>]) -> (Bytes, ContentHash) {
    if masked.is_empty() {
        return (raw.clone(), raw_hash);
    }
    let mut bytes = raw.to_vec();
    redact::mask(&mut bytes, masked);
    let hash = ContentHash::compute(&bytes);
    (bytes.into(), hash)
}

/// The pieces as one body; a single piece is not copied.
pub(super) fn joined<'a>(mut pieces: impl ExactSizeIterator<Item = &'a Bytes> + Clone) -> Bytes {
    if pieces.len() == 1
        && let Some(piece) = pieces.next()
    {
        return piece.clone();
    }
    let mut body = Vec::with_capacity(pieces.clone().map(Bytes::len).sum());
    pieces.for_each(|piece| body.extend_from_slice(piece));
    body.into()
}
