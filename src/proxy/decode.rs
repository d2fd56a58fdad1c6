//! Content codings of a reply that is to be edited. Bounded by what comes out, not by what went in: a small body may
//! unpack to gigabytes.

use std::io::Read;

use bytes::Bytes;

/// Largest decoded body, in bytes.
const DECODED_MAX: u64 = 32 << 20;
/// Largest window of zstd, as a power of two: the 8 MB of RFC 9659.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The body without its content coding; `None` when the coding is unknown, the body damaged, or the result too large.
pub(super) fn body(raw: &Bytes, encoding: Option<&str>) -> Option<Bytes> {
    match encoding.map(str::trim) {
        None | Some("" | "identity") => Some(raw.clone()),
        Some("gzip" | "x-gzip") => bounded(|| Some(flate2::read::MultiGzDecoder::new(&raw[..]))),
        Some("deflate") => bounded(|| Some(flate2::read::ZlibDecoder::new(&raw[..]))),
        Some("br") => bounded(|| Some(brotli::Decompressor::new(&raw[..], 4096))),
        Some("zstd") => bounded(|| {
            let mut decoder = zstd::Decoder::new(&raw[..]).ok()?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).ok()?;
            Some(decoder)
        }),
        Some(_) => None,
    }
}

/// Decodes twice, first to count: what is too large takes no memory, and what is not takes no more than it needs.
fn bounded<R: Read>(decoder: impl Fn() -> Option<R>) -> Option<Bytes> {
    let length = std::io::copy(&mut decoder()?.take(DECODED_MAX + 1), &mut std::io::sink()).ok()?;
    if length > DECODED_MAX {
        return None;
    }
    let mut decoded = Vec::with_capacity(usize::try_from(length).ok()?);
    decoder()?.read_to_end(&mut decoded).ok()?;
    Some(decoded.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory").into()
    }

    #[test]
    fn codings() {
        let text = b"some text".repeat(10);
        let zstd = Bytes::from(zstd::encode_all(&text[..], 1).expect("in memory"));
        for (raw, encoding) in [(gzip(&text), Some("gzip")), (zstd, Some("zstd")), (Bytes::from(text.clone()), None)] {
            assert_eq!(body(&raw, encoding).as_deref(), Some(&text[..]), "{encoding:?}");
        }
        assert_eq!(body(&Bytes::from_static(b"xx"), Some("gzip")), None);
        assert_eq!(body(&Bytes::from_static(b"xx"), Some("rot13")), None);
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        // A file of many members is one body.
        let bomb = Bytes::from(gzip(&vec![0; 1 << 20]).repeat((DECODED_MAX >> 20) as usize + 1));
        assert!(bomb.len() < 1 << 20, "a small body");
        assert_eq!(body(&bomb, Some("gzip")), None);
    }
}
