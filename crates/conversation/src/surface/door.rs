//! The door in front of all readers: content codings come off, and the bytes tell a stream from JSON.
//!
//! The bytes that pass are never touched here; what is read is a copy. Unpacking is bounded by what comes out, not by what went
//! in: a small body may unpack to gigabytes.

use std::{
    borrow::Cow,
    io::{Read, Write},
};

use bytes::Bytes;

pub use super::body_form::{is_stream, json, whole_and_rest};
use super::{Conversation, Outline, Reading, Reply, Surface, SurfaceError, account, fields::unreadable};

/// Largest unpacked body, in bytes.
const UNPACKED_MAX: u64 = 64 << 20;
/// Largest unpacked body as a multiple of the packed one, once it is above [`ALWAYS_UNPACKED`].
const EXPANSION_MAX: u64 = 100;
/// An unpacked body of this size or less is taken however small the packed one is, in bytes.
const ALWAYS_UNPACKED: u64 = 1 << 20;
/// Most codings that one body is unpacked from.
const CODINGS_MAX: usize = 4;
/// Bytes at the start of a body that show whether it is text.
const SHOWN: usize = 64;
/// Largest window of zstd, as a power of two: the 8 MB of RFC 9659.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// A content coding (RFC 9110, section 8.4.1; zstd is RFC 8878).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// gzip.
    Gzip,
    /// zlib; some senders leave out its frame.
    Deflate,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

impl Coding {
    /// The coding of that name, as `content-encoding` states it.
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "br" => Some(Self::Brotli),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    fn unpacked(self, packed: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Gzip => {
                bounded(packed, || Some(flate2::read::MultiGzDecoder::new(packed))).or_else(|| padded(packed))
            }
            Self::Deflate => bounded(packed, || Some(flate2::read::ZlibDecoder::new(packed)))
                .or_else(|| bounded(packed, || Some(flate2::read::DeflateDecoder::new(packed)))),
            Self::Brotli => bounded(packed, || Some(brotli::Decompressor::new(packed, 4096))),
            Self::Zstd => bounded(packed, || {
                let mut decoder = zstd::Decoder::new(packed).ok()?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).ok()?;
                Some(decoder)
            }),
        }
    }

    fn packed(self, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()
            }
            Self::Brotli => {
                let mut packed = Vec::new();
                let parameters = brotli::enc::BrotliEncoderParams { quality: 4, ..Default::default() };
                brotli::BrotliCompress(&mut &plain[..], &mut packed, &parameters)?;
                Ok(packed)
            }
            Self::Zstd => zstd::encode_all(plain, 3),
        }
    }
}

/// The codings that a `content-encoding` names, in the order in which they were put on; `None` where one is unknown, or there are
/// more than four.
fn codings(encoding: Option<&str>) -> Option<Vec<Coding>> {
    let names = encoding.unwrap_or_default().split(',').map(str::trim);
    let named = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
    named.map(Coding::named).collect::<Option<Vec<_>>>().filter(|codings| codings.len() <= CODINGS_MAX)
}

/// A body with its content codings taken off, and put on again where an edit has changed it.
#[derive(Debug, Clone, Default)]
pub struct UnpackedBody {
    /// What it says: the body itself where nothing was packed, or where it could not be unpacked.
    pub plain: Bytes,
    /// What was taken off, in the order in which it had been put on.
    codings: Vec<Coding>,
    /// Why it could not be unpacked.
    pub refused: Option<SurfaceError>,
}

impl UnpackedBody {
    /// A body that nobody reads: as it came.
    pub fn unread(body: &Bytes) -> Self {
        Self { plain: body.clone(), ..Self::default() }
    }

    /// A body, and the `content-encoding` that its headers name. Where an intermediary has taken a coding off and left the header,
    /// or the other way round, the bytes decide.
    pub fn unpack(body: &Bytes, encoding: Option<&str>) -> Self {
        if is_text(body) {
            return Self::unread(body);
        }
        let stated = codings(encoding).unwrap_or_default();
        let off = |body: Bytes, coding: &Coding| coding.unpacked(&body).map(Bytes::from);
        let by_header = stated.iter().rev().try_fold(body.clone(), off).filter(|plain| is_text(plain));
        if let Some(plain) = by_header {
            return Self { plain, codings: stated, refused: None };
        }
        if let Some((plain, codings)) = sniffed(body) {
            return Self { plain: plain.into(), codings, refused: None };
        }
        let detail = match encoding {
            Some(encoding) => format!(
                "its content-encoding `{encoding}` is unknown, it is damaged, or it unpacks to more than 64 MiB or 100 times its size"
            ),
            None => "it is no text, and names no content-encoding".to_owned(),
        };
        Self {
            plain: body.clone(),
            codings: Vec::new(),
            refused: Some(unreadable("a body that can be unpacked", detail)),
        }
    }

    /// An edited text, packed as the body was.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] where it cannot be packed.
    pub fn packed(&self, edited: &Bytes) -> Result<Bytes, SurfaceError> {
        self.codings.iter().try_fold(edited.clone(), |body, coding| {
            let packed = coding.packed(&body).map(Bytes::from);
            packed.map_err(|error| SurfaceError::NoPlace(format!("it cannot be packed again: {error}")))
        })
    }
}

/// Unpacks twice, first to count: what is too large takes no memory, and what is not takes no more than it needs.
fn bounded<R: Read>(packed: &[u8], decoder: impl Fn() -> Option<R>) -> Option<Vec<u8>> {
    let limit = UNPACKED_MAX.min((packed.len() as u64).saturating_mul(EXPANSION_MAX).max(ALWAYS_UNPACKED));
    let length = std::io::copy(&mut decoder()?.take(limit + 1), &mut std::io::sink()).ok()?;
    if length > limit {
        return None;
    }
    let mut unpacked = Vec::with_capacity(usize::try_from(length).ok()?);
    decoder()?.read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

/// The one member of a gzip body that is filled up with zeros (RFC 1952 has it so for tapes, and `gzip -d` reads past them).
fn padded(packed: &[u8]) -> Option<Vec<u8>> {
    let unpacked = bounded(packed, || Some(flate2::bufread::GzDecoder::new(packed)))?;
    let mut decoder = flate2::bufread::GzDecoder::new(packed);
    std::io::copy(&mut decoder, &mut std::io::sink()).ok()?;
    decoder.into_inner().iter().all(|byte| *byte == 0).then_some(unpacked)
}

/// Whether a body begins as text, as JSON and events do. No control byte stands in either but blanks, and packed bytes are full of
/// them.
fn is_text(body: &[u8]) -> bool {
    let shown = body.get(..SHOWN).unwrap_or(body);
    let blank = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r');
    let cut = |error: std::str::Utf8Error| shown.len() == SHOWN && error.error_len().is_none();
    shown.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || blank(byte))
        && std::str::from_utf8(shown).map_or_else(cut, |_| true)
}

/// A recorded body without its content codings: a record keeps the bytes as they came, and says nothing of their coding. What
/// cannot be unpacked is given back as it is.
pub fn without_codings(body: &[u8]) -> Cow<'_, [u8]> {
    let packed = !is_text(body);
    packed.then(|| sniffed(body)).flatten().map_or(Cow::Borrowed(body), |(plain, _)| Cow::Owned(plain))
}

/// A packed body unpacked by what its bytes look like, and the codings, in the order in which they had been put on.
fn sniffed(body: &[u8]) -> Option<(Vec<u8>, Vec<Coding>)> {
    let (mut plain, mut codings) = (Cow::Borrowed(body), Vec::new());
    while codings.len() < CODINGS_MAX {
        let tried: &[Coding] = match &*plain {
            [0x1f, 0x8b, ..] => &[Coding::Gzip],
            [0x28, 0xb5, 0x2f, 0xfd, ..] => &[Coding::Zstd],
            _ => &[Coding::Deflate, Coding::Brotli],
        };
        let off = |coding: &Coding| {
            let unpacked = coding.unpacked(&plain).filter(|unpacked| !unpacked.is_empty())?;
            Some((*coding, unpacked))
        };
        let (coding, unpacked) = tried.iter().find_map(off)?;
        codings.insert(0, coding);
        if is_text(&unpacked) {
            return Some((unpacked, codings));
        }
        plain = Cow::Owned(unpacked);
    }
    None
}

/// Reads what identity needs of a request, packed or not.
///
/// # Errors
/// [`SurfaceError::Unreadable`] when the body is not a request of this surface.
pub fn outline<'a>(surface: &dyn Surface, body: &'a [u8]) -> Result<Outline<'a>, SurfaceError> {
    match without_codings(body) {
        Cow::Borrowed(plain) => surface.outline(json(plain)),
        Cow::Owned(plain) => surface.read_request(json(&plain)).map(|conversation| Outline::from(&conversation)),
    }
}

/// Reads a request, packed or not.
///
/// # Errors
/// [`SurfaceError::Unreadable`] when the body is not a request of this surface.
pub fn request(surface: &dyn Surface, body: &[u8]) -> Result<Conversation, SurfaceError> {
    surface.read_request(json(&without_codings(body)))
}

/// As [`outline`], with what the path of the request asks. `target`: path and query.
///
/// # Errors
/// As [`outline`].
pub fn outline_at<'a>(surface: &dyn Surface, target: &str, body: &'a [u8]) -> Result<Outline<'a>, SurfaceError> {
    outline(surface, body).map(|outline| surface.path_parameters(target).complete_outline(outline))
}

/// As [`request`], with what the path of the request asks. `target`: path and query.
///
/// # Errors
/// As [`request`].
pub fn request_at(surface: &dyn Surface, target: &str, body: &[u8]) -> Result<Conversation, SurfaceError> {
    request(surface, body).map(|asked| surface.path_parameters(target).complete(asked))
}

/// Reads a reply, packed or not, whatever its content type says: the bytes tell a stream from JSON. `streamed`: which of both it
/// was typed as, for bytes that do not tell.
///
/// # Errors
/// [`SurfaceError::Unreadable`] when the body is not a reply of this surface.
pub fn reply(surface: &dyn Surface, body: &[u8], streamed: bool) -> Result<Reply, SurfaceError> {
    let plain = without_codings(body);
    if is_stream(&plain, streamed) {
        surface.read_stream(&plain)
    } else {
        surface.read_reply(whole_and_rest(json(&plain)).0)
    }
}

/// As [`reply`], with the account of what no reader places.
///
/// # Errors
/// As [`reply`].
pub fn reading(surface: &dyn Surface, body: &[u8], streamed: bool) -> Result<Reading<Reply>, SurfaceError> {
    let plain = without_codings(body);
    let view = reply(surface, &plain, streamed)?;
    let unplaced = account::of_reply(surface, &plain, streamed, &view);
    Ok(Reading { view, unplaced })
}

/// As [`request`], with the account of what no reader places.
///
/// # Errors
/// As [`request`].
pub fn request_reading(surface: &dyn Surface, body: &[u8]) -> Result<Reading<Conversation>, SurfaceError> {
    let plain = without_codings(body);
    let view = surface.read_request(json(&plain))?;
    let unplaced = account::of_request(surface, json(&plain)).into_iter().map(|unplaced| unplaced.piece).collect();
    Ok(Reading { view, unplaced })
}

/// Writes an edited view into a reply that was read by [`reply`] and is not packed.
///
/// # Errors
/// [`SurfaceError::NoPlace`] when the edit cannot be expressed.
pub fn write_reply(
    surface: &dyn Surface,
    body: &Bytes,
    streamed: bool,
    before: &Reply,
    after: &Reply,
) -> Result<Bytes, SurfaceError> {
    if is_stream(body, streamed) {
        return surface.write_stream(body, before, after);
    }
    around(body, |whole| surface.write_reply(whole, before, after))
}

/// Writes an edited view into a request that was read by [`request`] and is not packed.
///
/// # Errors
/// [`SurfaceError::NoPlace`] when the edit cannot be expressed.
pub fn write_request(
    surface: &dyn Surface,
    body: &Bytes,
    before: &Conversation,
    after: &Conversation,
) -> Result<Bytes, SurfaceError> {
    around(body, |whole| surface.write_request(whole, before, after))
}

/// Writes into the JSON of a body; what stands before and behind it stays.
fn around(body: &Bytes, write: impl Fn(&[u8]) -> Result<Bytes, SurfaceError>) -> Result<Bytes, SurfaceError> {
    let (whole, rest) = whole_and_rest(json(body));
    let written = write(whole)?;
    if whole.len() == body.len() {
        return Ok(written);
    }
    let front = body.get(..body.len() - whole.len() - rest.len()).unwrap_or_default();
    Ok(Bytes::from([front, &written[..], rest].concat()))
}

#[cfg(test)]
mod tests;
