//! Request framing: what hyper accepts and a proxy must not.
//!
//! hyper reads past eight shapes that other servers read differently (both length and chunking, repeated length or
//! coding or host, no host, bare line feeds, absolute targets, CONNECT). [`Framing`] sees the raw bytes before hyper
//! does and refuses them, so that one accepted request is one request upstream. It does no IO.

/// Largest request head, in bytes.
pub(in crate::proxy) const HEAD_MAX: usize = 128 << 10;
/// Longest target, in bytes: hyper refuses longer ones without saying who it is.
const TARGET_MAX: usize = 65_534;
/// Longest line of a chunk header or trailer, in bytes.
const CHUNK_LINE_MAX: usize = 4 << 10;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// RFC 9112, 6.1: a way to smuggle a second request.
    #[error("both content-length and transfer-encoding")]
    LengthAndCoding,
    /// A repeated or odd length.
    #[error("content-length more than once, or not a number")]
    Length,
    /// A coding other than `chunked`.
    #[error("transfer-encoding more than once, or not `chunked`")]
    Coding,
    /// Some servers take it for a line end, others not.
    #[error("a line ends without carriage return")]
    BareLineFeed,
    /// None, or several.
    #[error("expected exactly one host header")]
    Host,
    /// Such a request is meant for a forward proxy.
    #[error("an absolute target; this is no forward proxy")]
    AbsoluteTarget,
    /// Such a request is meant for a forward proxy.
    #[error("CONNECT; this is no forward proxy")]
    Connect,
    /// No HTTP/1.1.
    #[error("a malformed request line or header")]
    Malformed,
    /// Larger than is read.
    #[error("the request head is larger than 128 kB")]
    HeadTooLarge,
    /// Longer than is read.
    #[error("the request target is longer than 64 kB")]
    TargetTooLong,
    /// No chunk size where one is due.
    #[error("a malformed chunk")]
    Chunk,
}

/// Follows the requests of one connection.
#[derive(Debug, Default)]
pub struct Framing {
    state: FramingState,
    /// The part of a head or chunk line that earlier reads brought.
    pending: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FramingState {
    #[default]
    Head,
    Body(u64),
    ChunkSize,
    /// Data and the line end behind it.
    ChunkData(u64),
    Trailer,
}

impl Framing {
    /// Looks at bytes as they come.
    ///
    /// # Errors
    /// [`FramingError`] when a request in them is not safe to forward.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), FramingError> {
        while !bytes.is_empty() {
            bytes = match self.state {
                FramingState::Head => self.head(bytes)?,
                FramingState::Body(left) => {
                    let (rest, left) = skip(bytes, left);
                    self.state = if left == 0 { FramingState::Head } else { FramingState::Body(left) };
                    rest
                }
                FramingState::ChunkData(left) => {
                    let (rest, left) = skip(bytes, left);
                    self.state = if left == 0 { FramingState::ChunkSize } else { FramingState::ChunkData(left) };
                    rest
                }
                FramingState::ChunkSize | FramingState::Trailer => self.chunk_line(bytes)?,
            };
        }
        Ok(())
    }

    /// Whether all requests so far were whole.
    pub(super) fn is_between(&self) -> bool {
        self.state == FramingState::Head && self.pending.is_empty()
    }

    /// Takes the head, or as much of it as there is.
    fn head<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8], FramingError> {
        if self.pending == b"\r" && bytes.first() == Some(&b'\n') {
            // An empty line before a request, cut in two.
            self.pending.clear();
            bytes = bytes.get(1..).unwrap_or_default();
        }
        if self.pending.is_empty() {
            // Empty lines before a request are to be ignored (RFC 9112, 2.2).
            while let [b'\r', b'\n', rest @ ..] = bytes {
                bytes = rest;
            }
            if let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") {
                let (head, rest) = bytes.split_at_checked(end + 4).unwrap_or((bytes, &[]));
                self.state = check_head(head)?;
                return Ok(rest);
            }
        }
        let before = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let found =
            memchr::memmem::find(self.pending.get(from..).unwrap_or_default(), b"\r\n\r\n").map(|at| from + at + 4);
        let Some(end) = found else {
            return self.incomplete();
        };
        let head = std::mem::take(&mut self.pending);
        self.state = check_head(head.get(..end).unwrap_or_default())?;
        Ok(bytes.get(end - before..).unwrap_or_default())
    }

    /// A head without its end so far: bare line feeds would keep it from ever ending, so they are looked for here.
    fn incomplete(&self) -> Result<&'static [u8], FramingError> {
        if self.pending.len() > HEAD_MAX {
            return Err(FramingError::HeadTooLarge);
        }
        if has_bare_line_feed(&self.pending) { Err(FramingError::BareLineFeed) } else { Ok(&[]) }
    }

    /// Takes one line of chunk framing, or as much of it as there is.
    fn chunk_line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FramingError> {
        let Some(length) = memchr::memchr(b'\n', bytes) else {
            self.pending.extend_from_slice(bytes);
            return if self.pending.len() > CHUNK_LINE_MAX { Err(FramingError::Chunk) } else { Ok(&[]) };
        };
        let (line, rest) = bytes.split_at_checked(length + 1).unwrap_or((bytes, &[]));
        self.pending.extend_from_slice(line);
        let line = std::mem::take(&mut self.pending);
        let line = line.strip_suffix(b"\r\n").ok_or(FramingError::Chunk)?;
        self.state = match (self.state, line) {
            (FramingState::Trailer, []) => FramingState::Head,
            (FramingState::Trailer, _) => FramingState::Trailer,
            _ => match chunk_size(line).ok_or(FramingError::Chunk)? {
                0 => FramingState::Trailer,
                size => FramingState::ChunkData(size.checked_add(2).ok_or(FramingError::Chunk)?),
            },
        };
        Ok(rest)
    }
}

fn skip(bytes: &[u8], left: u64) -> (&[u8], u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    (bytes.get(taken..).unwrap_or_default(), left - taken as u64)
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at.checked_sub(1).and_then(|before| head.get(before)) != Some(&b'\r'))
}

/// Checks a complete head and says what follows it.
fn check_head(head: &[u8]) -> Result<FramingState, FramingError> {
    if head.len() > HEAD_MAX {
        return Err(FramingError::HeadTooLarge);
    }
    let (request_line, mut rest) = line_of(head)?;
    let older = check_request_line(request_line)?;
    let (mut hosts, mut length, mut chunked) = (0, None, false);
    loop {
        let (line, behind) = line_of(rest)?;
        if line.is_empty() {
            break;
        }
        rest = behind;
        let colon = line.iter().position(|byte| !is_token(*byte)).ok_or(FramingError::Malformed)?;
        let (name, value) = line.split_at_checked(colon).ok_or(FramingError::Malformed)?;
        let value = value.strip_prefix(b":").ok_or(FramingError::Malformed)?.trim_ascii();
        if name.is_empty() || has_control(value) {
            return Err(FramingError::Malformed);
        }
        if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let text =
                std::str::from_utf8(value).ok().filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()));
            let number = text.and_then(|text| text.parse::<u64>().ok()).ok_or(FramingError::Length)?;
            if length.replace(number).is_some() {
                return Err(FramingError::Length);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding")
            && (std::mem::replace(&mut chunked, true) || !value.eq_ignore_ascii_case(b"chunked"))
        {
            return Err(FramingError::Coding);
        }
    }
    match (hosts, length, chunked) {
        (_, Some(_), true) => Err(FramingError::LengthAndCoding),
        // HTTP/1.0 knows no chunks, and need not name a host.
        (_, _, true) if older => Err(FramingError::Coding),
        (0, None | Some(0), false) if older => Ok(FramingState::Head),
        (0, Some(length), false) if older => Ok(FramingState::Body(length)),
        (1, None | Some(0), false) => Ok(FramingState::Head),
        (1, Some(length), false) => Ok(FramingState::Body(length)),
        (1, None, true) => Ok(FramingState::ChunkSize),
        _ => Err(FramingError::Host),
    }
}

/// The first line, without its end, and what follows it.
fn line_of(head: &[u8]) -> Result<(&[u8], &[u8]), FramingError> {
    let end = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let (line, rest) = head.split_at_checked(end).unwrap_or((head, &[]));
    Ok((line.strip_suffix(b"\r\n").ok_or(FramingError::BareLineFeed)?, rest))
}

/// A bit for each byte that may stand in a header's name (RFC 9110, 5.6.2); all are ASCII.
const TOKENS: u128 = {
    let (mut tokens, mut byte) = (0, 0_u8);
    while byte < 128 {
        if matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
        {
            tokens |= 1 << byte;
        }
        byte += 1;
    }
    tokens
};

fn is_token(byte: u8) -> bool {
    byte < 128 && TOKENS >> byte & 1 == 1
}

/// Whether a header's value holds a control character other than a tab: without a branch a byte.
fn has_control(value: &[u8]) -> bool {
    let control = |byte: &u8| u8::from((*byte < 0x20 && *byte != b'\t') || *byte == 0x7f);
    value.iter().fold(0, |found, byte| found | control(byte)) > 0
}

/// Checks a request line and says whether it is one of HTTP/1.0.
fn check_request_line(line: &[u8]) -> Result<bool, FramingError> {
    let mut spaces = memchr::memchr_iter(b' ', line);
    let (Some(first), Some(second), None) = (spaces.next(), spaces.next(), spaces.next()) else {
        return Err(FramingError::Malformed);
    };
    let words = (line.get(..first), line.get(first + 1..second), line.get(second + 1..));
    let (Some(method), Some(target), Some(version)) = words else { return Err(FramingError::Malformed) };
    if method == b"CONNECT" {
        return Err(FramingError::Connect);
    }
    if !version.starts_with(b"HTTP/1.") || has_control(line) || memchr::memchr(b'\t', line).is_some() {
        return Err(FramingError::Malformed);
    }
    if target.len() > TARGET_MAX {
        return Err(FramingError::TargetTooLong);
    }
    let older = version == b"HTTP/1.0";
    match target {
        [b'/', ..] => Ok(older),
        b"*" if method == b"OPTIONS" => Ok(older),
        _ if target.contains(&b':') => Err(FramingError::AbsoluteTarget),
        _ => Err(FramingError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "POST /v1/x?y=%20 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nhost: h\r\n\r\n\
        POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nT: 1\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n";

    #[test]
    fn the_eight_shapes_and_more_are_refused() {
        for (request, violation) in [
            (
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingError::LengthAndCoding,
            ),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", FramingError::Length),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\n", FramingError::Length),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\n", FramingError::Length),
            (
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingError::Coding,
            ),
            ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", FramingError::Coding),
            ("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", FramingError::BareLineFeed),
            ("GET / HTTP/1.1\nHost: h\n\n", FramingError::BareLineFeed),
            ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", FramingError::Host),
            ("GET / HTTP/1.1\r\nX: y\r\n\r\n", FramingError::Host),
            ("GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", FramingError::AbsoluteTarget),
            ("CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n", FramingError::Connect),
            ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", FramingError::Malformed),
            ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", FramingError::Malformed),
            ("GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", FramingError::Malformed),
            ("GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", FramingError::Malformed),
            ("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", FramingError::Malformed),
            ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", FramingError::Chunk),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", FramingError::Coding),
            ("GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n", FramingError::Host),
            ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n", FramingError::Chunk),
        ] {
            assert_eq!(Framing::default().push(request.as_bytes()), Err(violation), "{request:?}");
        }
        let large = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "y".repeat(HEAD_MAX));
        assert_eq!(Framing::default().push(large.as_bytes()), Err(FramingError::HeadTooLarge));
        let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "y".repeat(TARGET_MAX));
        assert_eq!(Framing::default().push(long.as_bytes()), Err(FramingError::TargetTooLong));
        assert_eq!(Framing::default().push(b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"), Ok(()));
    }

    proptest! {
        #[test]
        fn good_requests_pass_however_they_are_cut(cuts in prop::collection::vec(0..GOOD.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, GOOD.len()]);
            cuts.sort_unstable();
            let mut framing = Framing::default();
            for cut in cuts.windows(2) {
                prop_assert_eq!(framing.push(&GOOD.as_bytes()[cut[0]..cut[1]]), Ok(()));
            }
            prop_assert_eq!(framing.state, FramingState::Head);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
            let mut framing = Framing::default();
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            let _ = framing.push(a).and_then(|()| framing.push(b));
        }
    }
}
