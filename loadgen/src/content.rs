//! What the generator publishes: content of a fixed size that carries when it was meant to be sent and its number in its
//! subject. Latency counts from the intended time, so a publisher that is held up hides nothing; the number proves exactness.
//! It is a JSON object of fixed layout, so that every wire can carry it and reading it back is two fixed places.

const HEAD: &[u8] = br#"{"stamp":"0000000000000000","number":"00000000","fill":""#;
const TAIL: &[u8] = br#""}"#;
const STAMP: usize = 10;
const NUMBER: usize = 38;

/// Smallest content that holds both.
pub(crate) const BYTES_MIN: usize = HEAD.len() + TAIL.len();

/// Where the two hexadecimal texts lie, for a dialect that patches a prepared frame.
pub(crate) const STAMP_RANGE: std::ops::Range<usize> = STAMP..STAMP + 16;
pub(crate) const NUMBER_RANGE: std::ops::Range<usize> = NUMBER..NUMBER + 8;

/// Content of exactly `bytes` (at least `BYTES_MIN`), its stamp and number still zero.
pub(crate) fn blank(bytes: usize) -> Vec<u8> {
    let mut content = HEAD.to_vec();
    content.resize(bytes.max(BYTES_MIN) - TAIL.len(), b'x');
    content.extend_from_slice(TAIL);
    content
}

/// Writes `value` as `out.len()` hexadecimal digits.
pub(crate) fn write_hex(value: u64, out: &mut [u8]) {
    for (place, digit) in out.iter_mut().rev().enumerate() {
        let nibble = (value >> (4 * place)) as u8 & 15;
        *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    }
}

/// The stamp (ns) and the number of content, if it is ours.
pub(crate) fn read(content: &[u8]) -> Option<(u64, u32)> {
    if !content.starts_with(br#"{"stamp":""#) {
        return None;
    }
    Some((read_hex(content.get(STAMP_RANGE)?)?, read_hex(content.get(NUMBER_RANGE)?)? as u32))
}

fn read_hex(text: &[u8]) -> Option<u64> {
    let mut value = 0;
    for &digit in text {
        let nibble = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u64::from(nibble);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_is_json() {
        let mut content = blank(144);
        write_hex(0x0123_4567_89ab_cdef, &mut content[STAMP_RANGE]);
        write_hex(0xfeed_beef, &mut content[NUMBER_RANGE]);
        assert_eq!(content.len(), 144);
        assert_eq!(read(&content), Some((0x0123_4567_89ab_cdef, 0xfeed_beef)));
        let json: serde_json::Value = serde_json::from_slice(&content).unwrap();
        assert_eq!(json["number"], "feedbeef");
    }

    #[test]
    fn foreign_content_is_not_read() {
        for foreign in [&b""[..], b"{}", br#"{"stamp":"12"#, br#"{"stamp":"zzzzzzzzzzzzzzzz","number":"00000000"}"#] {
            assert_eq!(read(foreign), None);
        }
    }
}
