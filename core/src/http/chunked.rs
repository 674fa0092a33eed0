//! The chunked coding (RFC 9112, 7.1), decoded as it comes. Owns its grammar: sizes in hexadecimal, extensions and trailers
//! that are checked and then ignored. Invariant: memory follows the bytes that came, never a size that was announced.

use super::answer::{Refused, malformed, refuse};
use super::head::is_token;
use crate::codes::Code;
use crate::limits::Limits;

/// Longest line of a size and its extensions.
const SIZE_LINE_BYTES_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data(usize),
    DataEnd,
    Trailer,
    Done,
}

/// One body under way.
#[derive(Debug, Default)]
pub struct Chunked {
    state: State,
    /// A line that is not whole yet.
    line: Vec<u8>,
    trailer_bytes: usize,
    trailers: usize,
}

impl Chunked {
    /// Takes what it can from the front of `input`, appending content to `body`. True: the body is whole, and the rest of the
    /// input is the next request's.
    ///
    /// # Errors
    /// Why the request is refused.
    pub fn read(&mut self, input: &mut &[u8], body: &mut Vec<u8>, limits: &Limits) -> Result<bool, Refused> {
        while self.state != State::Done {
            match self.state {
                State::Data(left) => {
                    let Some((data, rest)) = input.split_at_checked(left.min(input.len())) else { return Ok(false) };
                    body.extend_from_slice(data);
                    *input = rest;
                    self.state = if data.len() == left { State::DataEnd } else { State::Data(left - data.len()) };
                    if data.len() < left {
                        return Ok(false);
                    }
                }
                _ => {
                    if !self.read_line(input, limits)? {
                        return Ok(false);
                    }
                    self.end_line(body.len(), limits)?;
                }
            }
        }
        Ok(true)
    }

    /// Bytes held of a line that is not whole.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }

    /// Gathers a line without its CR LF; true when it is whole.
    fn read_line(&mut self, input: &mut &[u8], limits: &Limits) -> Result<bool, Refused> {
        let bytes_max = match self.state {
            State::DataEnd => 2,
            State::Trailer => limits.header_bytes_max,
            _ => SIZE_LINE_BYTES_MAX,
        };
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            if self.line.last() == Some(&b'\r') {
                if byte != b'\n' {
                    return Err(malformed("a line within the body holds a bare CR"));
                }
                self.line.pop();
                return Ok(true);
            }
            let is_text = byte >= 0x20 && byte != 0x7f || matches!(byte, b'\t' | b'\r');
            if !is_text || self.line.len() >= bytes_max || self.state == State::DataEnd && byte != b'\r' {
                return Err(malformed("the chunks of the body are not framed as they must be"));
            }
            self.line.push(byte);
        }
        Ok(false)
    }

    fn end_line(&mut self, body_bytes: usize, limits: &Limits) -> Result<(), Refused> {
        let line = std::mem::take(&mut self.line);
        self.state = match self.state {
            State::DataEnd => State::Size,
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => {
                self.trailer_bytes += line.len() + 2;
                self.trailers += 1;
                if self.trailer_bytes > limits.header_bytes_max || self.trailers > limits.headers_max {
                    return Err(refuse(Code::HeaderTooBig, "too many trailer fields"));
                }
                check_trailer(&line)?;
                State::Trailer
            }
            _ => match read_size(&line)? {
                0 => State::Trailer,
                size if size > limits.message_bytes_max - body_bytes.min(limits.message_bytes_max) => {
                    return Err(refuse(Code::BodyTooBig, ""));
                }
                size => State::Data(size),
            },
        };
        Ok(())
    }
}

/// `1A;name=value;other="quoted"`.
fn read_size(line: &[u8]) -> Result<usize, Refused> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extensions) = line.split_at_checked(digits).unwrap_or((line, &[]));
    if digits == 0 || !are_extensions(extensions) {
        return Err(malformed("a chunk's size is no hexadecimal number"));
    }
    let size = std::str::from_utf8(size).unwrap_or("");
    // More than a machine can count is more than is taken.
    Ok(usize::from_str_radix(size, 16).unwrap_or(usize::MAX))
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`
fn are_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(after) = skip_blanks(rest).strip_prefix(b";") else { return false };
        let Some(after) = skip_token(skip_blanks(after)) else { return false };
        rest = after;
        if let Some(value) = skip_blanks(after).strip_prefix(b"=") {
            let value = skip_blanks(value);
            let after = if value.first() == Some(&b'"') { skip_quoted(value) } else { skip_token(value) };
            let Some(after) = after else { return false };
            rest = after;
        }
    }
    true
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let count = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    bytes.get(count..).unwrap_or(&[])
}

fn skip_token(bytes: &[u8]) -> Option<&[u8]> {
    let count = bytes.iter().take_while(|byte| is_token(byte)).count();
    bytes.get(count..).filter(|_| count > 0)
}

fn skip_quoted(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return bytes.get(at + 1..),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn check_trailer(line: &[u8]) -> Result<(), Refused> {
    let name = line.iter().take_while(|byte| is_token(byte)).count();
    if name == 0 || line.get(name) != Some(&b':') {
        return Err(malformed("a trailer field has no name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), Code> {
        let limits = Limits { message_bytes_max: 1024, ..Limits::default() };
        let (mut chunked, mut body, mut used) = (Chunked::default(), Vec::new(), 0);
        for piece in bytes.chunks(step) {
            let mut input = piece;
            let is_done = chunked.read(&mut input, &mut body, &limits).map_err(|refused| refused.code)?;
            used += piece.len() - input.len();
            if is_done {
                return Ok((body, used));
            }
        }
        Ok((body, usize::MAX))
    }

    #[test]
    fn bodies_decode_whole_and_byte_by_byte() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
            (b"2\r\nhe\r\n003\r\nllo\r\n0\r\n\r\n", b"hello"),
            (b"A;a=b ; c=\"d;\\\"\" ;e\r\n0123456789\r\n0;x\r\n\r\n", b"0123456789"),
            (b"a\r\n\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n0\r\n\r\n\r"),
            (b"0\r\n\r\n", b""),
            (b"1\r\nx\r\n0\r\nTrailer: a\r\nHost: evil\r\n\r\n", b"x"),
        ];
        for (bytes, body) in cases {
            let followed = [bytes, b"GET"].concat();
            for step in [1, 2, 3, usize::MAX] {
                let expected = if bytes.starts_with(b"a\r\n") { None } else { Some(Ok((body.to_vec(), bytes.len()))) };
                let found = decode(&followed, step);
                assert!(expected.is_none_or(|expected| expected == found), "{bytes:?} {step} {found:?}");
            }
        }
    }

    #[test]
    fn what_is_not_framed_so_is_refused() {
        let long = [b"5;".to_vec(), vec![b'a'; 5000]].concat();
        let malformed: [&[u8]; 22] = [
            b"\r\nhello\r\n",
            b"0x5\r\nhello\r\n",
            b"5 \r\nhello\r\n",
            b" 5\r\nhello\r\n",
            b"+5\r\nhello\r\n",
            b"-5\r\nhello\r\n",
            b"5\nhello\r\n",
            b"5\r\nhello\n0\r\n",
            b"5\r\nhelloX\r\n",
            b"5\r\nhell\r\n0\r\n\r\n",
            b"1_0\r\nhello\r\n",
            b"5;\r\nhello\r\n",
            b"5;=\r\nhello\r\n",
            b"5;a=\r\nhello\r\n",
            b"5;a=\"b\r\nhello\r\n",
            b"5;a\rb\r\n",
            b"5;a\nb\r\n",
            b"5\rXhello",
            b"0\r\nbad trailer\r\n\r\n",
            b"0\r\n: a\r\n\r\n",
            b"g\r\n",
            &long,
        ];
        for bytes in malformed {
            for step in [1, usize::MAX] {
                assert_eq!(decode(bytes, step), Err(Code::RequestMalformed), "{:?}", String::from_utf8_lossy(bytes));
            }
        }
        for big in [&b"401\r\n"[..], b"FFFFFFFFFFFFFFFF0\r\n", b"3ff\r\n"] {
            let found = decode(&[big, &[b'x'; 1023], b"\r\n2\r\n"].concat(), usize::MAX);
            assert_eq!(found, Err(Code::BodyTooBig));
        }
    }
}
