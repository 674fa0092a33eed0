//! The PROXY protocol, versions 1 and 2: what a proxy in front says about where a connection really comes from. Pure; whether the
//! word is taken is asked before. What is not exactly a header is none, and the connection is given up.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest line of version 1, with its end.
const LINE_BYTES_MAX: usize = 107;
/// The longest header of version 2 that is taken: two addresses and some room for what is not looked at.
const HEADER_BYTES_MAX: usize = 4_096;
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Not whole yet.
    Partial,
    /// So many bytes; no address where the proxy speaks for itself, or of a kind that is not known here.
    Whole {
        bytes: usize,
        address: Option<SocketAddr>,
    },
    Broken,
}

/// Reads the header at the front of a connection's first bytes.
pub fn read(bytes: &[u8]) -> Header {
    if bytes.starts_with(SIGNATURE) {
        return read_binary(bytes);
    }
    if SIGNATURE.starts_with(bytes) {
        return Header::Partial;
    }
    read_line(bytes).unwrap_or(Header::Broken)
}

fn read_line(bytes: &[u8]) -> Option<Header> {
    let start = b"PROXY ";
    if !bytes.starts_with(start) && !start.starts_with(bytes) {
        return None;
    }
    let window = bytes.get(..LINE_BYTES_MAX.min(bytes.len()))?;
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return (bytes.len() < LINE_BYTES_MAX).then_some(Header::Partial);
    };
    let line = std::str::from_utf8(window.get(start.len()..end)?).ok()?;
    let whole = |address| Header::Whole { bytes: end + 2, address };
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Some(whole(None));
    }
    let mut words = line.split(' ');
    let family = words.next()?;
    let (source, destination) = (words.next()?, words.next()?);
    let ports = [words.next()?, words.next()?].map(port);
    let fits = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, _) = (fits(source)?, fits(destination)?);
    match (ports, words.next()) {
        ([Some(port), Some(_)], None) => Some(whole(Some(SocketAddr::new(source, port)))),
        _ => None,
    }
}

fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn read_binary(bytes: &[u8]) -> Header {
    let Some(&[version, family, high, low]) = bytes.get(12..16).and_then(|four| four.first_chunk()) else {
        return Header::Partial;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let whole = 16 + length;
    if whole > HEADER_BYTES_MAX || !matches!(version, 0x20 | 0x21) {
        return Header::Broken;
    }
    let Some(body) = bytes.get(16..whole) else { return Header::Partial };
    if version == 0x20 {
        return Header::Whole { bytes: whole, address: None };
    }
    let port = |at: usize| body.get(at..at + 2).and_then(|two| two.first_chunk()).map(|two| u16::from_be_bytes(*two));
    let address = match family {
        0x11 => body.first_chunk::<4>().zip(port(8)).map(|(ip, port)| (IpAddr::from(*ip), port)),
        0x21 => body.first_chunk::<16>().zip(port(32)).map(|(ip, port)| (IpAddr::from(*ip), port)),
        // Of a kind that is no client of ours: a datagram, a socket file.
        _ => return Header::Whole { bytes: whole, address: None },
    };
    let is_long_enough = length >= if family == 0x11 { 12 } else { 36 };
    match address {
        Some((ip, port)) if is_long_enough => {
            Header::Whole { bytes: whole, address: Some(SocketAddr::new(ip.to_canonical(), port)) }
        }
        _ => Header::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, SIGNATURE, read};

    fn binary(version: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([version, family]);
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn whole(header: &[u8], address: Option<&str>) {
        let expected = Header::Whole { bytes: header.len(), address: address.map(|text| text.parse().unwrap()) };
        let mut followed = header.to_vec();
        followed.extend(b"GET / HTTP/1.1\r\n");
        assert_eq!(read(&followed), expected);
        for cut in 0..header.len() {
            assert_eq!(read(&header[..cut]), Header::Partial, "{cut} of {header:?}");
        }
    }

    #[test]
    fn a_header_is_read_whole_and_awaited_while_it_is_not() {
        whole(b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 8800\r\n", Some("192.0.2.7:4711"));
        whole(b"PROXY TCP6 2001:db8::7 ::1 4711 8800\r\n", Some("[2001:db8::7]:4711"));
        whole(b"PROXY UNKNOWN\r\n", None);
        whole(b"PROXY UNKNOWN ffff:f...f:ffff what ever\r\n", None);
        whole(&binary(0x21, 0x11, &[192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x22, 0x60]), Some("192.0.2.7:4711"));
        whole(
            &binary(0x21, 0x11, &[192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x22, 0x60, 3, 0, 1, 9]),
            Some("192.0.2.7:4711"),
        );
        let mut six = [0; 36];
        (six[15], six[32], six[33]) = (1, 0x12, 0x67);
        whole(&binary(0x21, 0x21, &six), Some("[::1]:4711"));
        whole(&binary(0x20, 0, &[]), None);
        whole(&binary(0x21, 0x31, &[0; 216]), None);
    }

    #[test]
    fn what_is_not_exactly_a_header_is_broken() {
        let long = format!("PROXY TCP4 192.0.2.7 {} 1 2\r\n", "1".repeat(100));
        for line in [
            "GET / HTTP/1.1\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 4711 8800 9\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 65536 8800\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 +1 8800\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 01 8800\r\n",
            "PROXY TCP4 ::1 10.0.0.1 1 8800\r\n",
            "PROXY TCP6 192.0.2.7 ::1 1 8800\r\n",
            "PROXY  TCP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "proxy TCP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY \r\n",
            &long,
        ] {
            assert_eq!(read(line.as_bytes()), Header::Broken, "{line}");
        }
        for bytes in [
            binary(0x31, 0x11, &[0; 12]),
            binary(0x22, 0x11, &[0; 12]),
            binary(0x21, 0x11, &[0; 11]),
            binary(0x21, 0x21, &[0; 35]),
            binary(0x21, 0x11, &[0; 5000]),
        ] {
            assert_eq!(read(&bytes), Header::Broken);
        }
    }
}
