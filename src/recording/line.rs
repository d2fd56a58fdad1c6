//! The envelope of a log line: `{"v":1,"seq":n,"crc":"<8 hex>","rec":{…}}` and a line feed.
//!
//! The checksum (CRC-32, as in gzip) covers the bytes of `rec`. JSON escapes every line feed, so no content can
//! forge a line.

/// The version of the log that is written, and the newest that is read.
pub(super) const FORMAT: u64 = 1;
/// How a line begins, up to its number.
const OPENING: &[u8] = b"{\"v\":1,\"seq\":";
/// What ends a line.
pub(super) const TAIL: &[u8] = b"}\n";

/// A checked line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its number, 0-based, without gaps.
    pub(super) seq: u64,
    /// The bytes of the record.
    pub(super) record: &'a [u8],
}

/// Why a line is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineError {
    /// A newer version wrote it.
    #[error("format {0}")]
    Future(u64),
    /// It is damaged.
    #[error("{0}")]
    Damaged(&'static str),
}

/// Room for the longest head of a line, in bytes.
pub(super) const HEAD: usize = 64;

/// Writes what stands before the record to the end of `room`; gives where it begins.
pub(super) fn head(seq: u64, crc: u32, room: &mut [u8; HEAD]) -> usize {
    // By hand: the formatting machinery costs more than the checksum.
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: usize| DIGITS.get(nibble % 16).copied().unwrap_or_default();
    let mut digits = [0; 20];
    let checksum: [u8; 8] = std::array::from_fn(|place| digit((crc >> (28 - 4 * place)) as usize));
    let parts: [&[u8]; 5] = [OPENING, decimal(seq, &mut digits), b",\"crc\":\"", &checksum, b"\",\"rec\":"];
    let mut start = HEAD;
    for part in parts.into_iter().rev() {
        let end = start;
        start = end.saturating_sub(part.len());
        if let Some(place) = room.get_mut(start..end) {
            place.copy_from_slice(part);
        }
    }
    start
}

/// The digits of a number.
pub(super) fn decimal(number: u64, room: &mut [u8; 20]) -> &[u8] {
    let (mut rest, mut first) = (number, room.len());
    for (at, place) in room.iter_mut().enumerate().rev() {
        (*place, rest, first) = (b'0' + u8::try_from(rest % 10).unwrap_or_default(), rest / 10, at);
        if rest == 0 {
            break;
        }
    }
    room.get(first..).unwrap_or_default()
}

/// Checks a line (without its line feed).
pub(super) fn parse(line: &[u8]) -> Result<Line<'_>, LineError> {
    let rest = line.strip_prefix(b"{\"v\":").ok_or(LineError::Damaged("it does not start as a log line"))?;
    let (version, rest) = number(rest).ok_or(LineError::Damaged("it has no version"))?;
    if version != FORMAT && rest.starts_with(b",") && line.ends_with(b"}") {
        return Err(LineError::Future(version));
    }
    let rest = rest.strip_prefix(b",\"seq\":").ok_or(LineError::Damaged("it has no sequence number"))?;
    let (seq, rest) = number(rest).ok_or(LineError::Damaged("it has no sequence number"))?;
    let rest = rest.strip_prefix(b",\"crc\":\"").ok_or(LineError::Damaged("it has no checksum"))?;
    let (crc, rest) = rest.split_at_checked(8).ok_or(LineError::Damaged("it has no checksum"))?;
    let record = rest
        .strip_prefix(b"\",\"rec\":")
        .and_then(|rest| rest.strip_suffix(b"}"))
        .ok_or(LineError::Damaged("it is cut off or has no record"))?;
    if crc != format!("{:08x}", crc32fast::hash(record)).as_bytes() {
        return Err(LineError::Damaged("its checksum does not fit its record"));
    }
    Ok(Line { seq, record })
}

/// A decimal number without leading zeros, and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at_checked(length)?;
    if digits.len() > 1 && digits.first() == Some(&b'0') {
        return None;
    }
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(seq: u64, crc: u32) -> Vec<u8> {
        let mut room = [b' '; HEAD];
        let start = head(seq, crc, &mut room);
        room[start..].to_vec()
    }

    fn line_of(seq: u64, record: &[u8]) -> Vec<u8> {
        [&head_of(seq, crc32fast::hash(record)), record, b"}".as_slice()].concat()
    }

    #[test]
    fn a_line_reads_back() {
        let line = line_of(17, br#"{"kind":"note"}"#);
        assert_eq!(parse(&line), Ok(Line { seq: 17, record: br#"{"kind":"note"}"# }));
    }

    #[test]
    fn every_flipped_bit_shows_or_moves_the_number() {
        let line = line_of(17, br#"{"kind":"note","text":"abc"}"#);
        for position in 0..line.len() {
            for bit in 0..8 {
                let mut flipped = line.clone();
                flipped[position] ^= 1 << bit;
                match parse(&flipped) {
                    Err(_) => {}
                    Ok(read) => assert_ne!(read.seq, 17, "byte {position} bit {bit} went unseen"),
                }
            }
        }
    }

    #[test]
    fn heads_of_all_numbers() {
        for (seq, crc) in [(0, 0), (9, 0xf), (10, 0x0123_4567), (u64::MAX, u32::MAX)] {
            let expected = format!("{{\"v\":{FORMAT},\"seq\":{seq},\"crc\":\"{crc:08x}\",\"rec\":");
            assert_eq!(String::from_utf8(head_of(seq, crc)).expect("ASCII"), expected);
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let line = String::from_utf8(line_of(0, b"{}")).expect("ASCII").replace("\"v\":1", "\"v\":2");
        assert_eq!(parse(line.as_bytes()), Err(LineError::Future(2)));
    }
}
