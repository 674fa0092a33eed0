//! Pieces of JSON written without formatting machinery or allocation beyond the output buffer.

use super::scan::plain_bytes;

/// Two digits at a time.
const PAIRS: &[u8; 200] =
    b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// Appends `number` in decimal.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while number >= 100 {
        let pair = (number % 100) as usize * 2;
        number /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if number >= 10 {
        let pair = number as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `number` in hexadecimal.
pub(crate) fn put_hex(out: &mut Vec<u8>, number: u64) {
    let nibbles = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..nibbles).rev() {
        let nibble = (number >> (4 * place) & 15) as u8;
        out.push(if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble });
    }
}

/// Appends `text` as a JSON string with its quotes.
#[inline]
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    put_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` as it stands between the quotes of a JSON string.
#[inline]
pub(crate) fn put_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_bytes(rest, 0);
        let (before, after) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((&byte, tail)) = after.split_first() else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble };
                out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
        rest = tail;
    }
}
