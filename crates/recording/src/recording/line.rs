//! The envelope of a log line: `{"v":1,"seq":n,"crc":"<8 hex>","rec":{…}}` and a line feed.
//!
//! The checksum (CRC-32, as in gzip) covers the bytes of `rec`. JSON escapes every line feed, so no content can
//! forge a line.

use flate2::Crc;

use super::content_hash;

/// The version of the log that is written, and the newest that is read.
pub(super) const FORMAT: u64 = 1;
/// How a line begins, up to its number.
const OPENING: &[u8] = b"{\"v\":1,\"seq\":";
/// What ends a line.
const TAIL: &[u8] = b"}\n";

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

/// What stands between the number and the record; its zeros are room for the checksum.
const MIDDLE: &[u8] = b",\"crc\":\"00000000\",\"rec\":";
/// How far before the record the checksum begins.
const CHECKSUM: usize = b"00000000\",\"rec\":".len();

/// Appends a whole line to the log: `record` appends what stands in it.
pub(super) fn append(seq: u64, log: &mut Vec<u8>, record: impl FnOnce(&mut Vec<u8>)) {
    log.extend_from_slice(OPENING);
    decimal(seq, log);
    log.extend_from_slice(MIDDLE);
    let start = log.len();
    record(log);
    let checksum = content_hash::digits(checksum_of(log.get(start..).unwrap_or_default()));
    if let Some(room) = log.get_mut(start - CHECKSUM..).and_then(<[u8]>::first_chunk_mut) {
        *room = checksum;
    }
    log.extend_from_slice(TAIL);
}

fn checksum_of(record: &[u8]) -> u32 {
    let mut checksum = Crc::new();
    checksum.update(record);
    checksum.sum()
}

/// Appends the digits of a number.
pub(super) fn decimal(number: u64, out: &mut Vec<u8>) {
    const EIGHT: u64 = 100_000_000;
    if number < EIGHT {
        let digits = eight_digits(number);
        // Of zero, its last digit stays.
        let zeros = (digits.trailing_zeros() / 8).min(7);
        let length = out.len() + 8 - zeros as usize;
        out.extend_from_slice(&((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
        out.truncate(length);
    } else {
        decimal(number / EIGHT, out);
        out.extend_from_slice(&(eight_digits(number % EIGHT) | ZEROS).to_le_bytes());
    }
}

/// The digit 0 in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight digits of a number below 10^8, the first in the lowest byte: halved in three steps, all parts together. By
/// hand, since formatting costs more than the checksum, and digits written one by one stall what copies them.
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // In each half, x / 100 is x * 10486 / 2^20 for x below 10^4; in each quarter, x / 10 is x * 103 / 2^10 below 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
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
    if crc != format!("{:08x}", checksum_of(record)).as_bytes() {
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

    fn line_of(seq: u64, record: &[u8]) -> Vec<u8> {
        let mut line = b"before".to_vec();
        append(seq, &mut line, |line| line.extend_from_slice(record));
        assert_eq!(line.pop(), Some(b'\n'));
        line.split_off("before".len())
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
    fn a_line_is_as_it_is_described() {
        for (seq, record) in [(0, "{}"), (9, r#"{"kind":"note"}"#), (10, "{\"é\":1}"), (u64::MAX, "{\"a\":[]}")] {
            let crc = checksum_of(record.as_bytes());
            let expected = format!("{{\"v\":{FORMAT},\"seq\":{seq},\"crc\":\"{crc:08x}\",\"rec\":{record}}}");
            assert_eq!(String::from_utf8(line_of(seq, record.as_bytes())).expect("UTF-8"), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn digits_are_those_of_the_number(number: u64, fewer in 0..64_u32) {
            for number in [number >> fewer, 10_u64.pow(fewer % 20), 10_u64.pow(fewer % 20) - 1] {
                let mut digits = b"before".to_vec();
                decimal(number, &mut digits);
                proptest::prop_assert_eq!(String::from_utf8_lossy(&digits), format!("before{number}"));
            }
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let line = String::from_utf8(line_of(0, b"{}")).expect("ASCII").replace("\"v\":1", "\"v\":2");
        assert_eq!(parse(line.as_bytes()), Err(LineError::Future(2)));
    }
}
