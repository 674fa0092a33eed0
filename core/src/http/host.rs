//! Where a request is addressed to: the four forms of a target (RFC 9112, 3.2) and the authority in `Host` (RFC 3986, 3.2).

use super::answer::{Refused, malformed};

/// Splits a target into path and query; the path of `*` is empty.
pub(super) fn split_target<'a>(target: &'a str, method: &str) -> Result<(&'a str, &'a str), Refused> {
    if !target.bytes().all(|b| !b"\"<>\\#".contains(&b)) || !has_whole_escapes(target) {
        return Err(malformed("the target holds what no target may"));
    }
    if method == "CONNECT" {
        let is_tunnel = is_authority(target) && target.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty());
        return if is_tunnel { Ok(("", "")) } else { Err(malformed("CONNECT names no host and port")) };
    }
    if target == "*" {
        return if method == "OPTIONS" { Ok(("", "")) } else { Err(malformed("* is a target of OPTIONS alone")) };
    }
    let origin = if target.starts_with('/') { Some(target) } else { cut_authority(target) };
    let Some(origin) = origin else { return Err(malformed("the target is no path")) };
    let (path, query) = origin.split_once('?').unwrap_or((origin, ""));
    Ok((if path.is_empty() { "/" } else { path }, query))
}

/// Path and query of an absolute target; a server must take one, and its authority counts, not `Host`.
fn cut_authority(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    is_authority(authority).then_some(rest)
}

/// `HOST` or `HOST:PORT`, without user information.
pub(super) fn is_authority(text: &str) -> bool {
    let is_bracketed = text.starts_with('[');
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, rest)) if is_address(address) || is_future_address(address) => {
                (address, rest.strip_prefix(':').or((rest.is_empty()).then_some("")))
            }
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("")),
        },
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(&b);
    let is_port =
        |port: &str| port.is_empty() || port.parse::<u16>().is_ok() && port.bytes().all(|b| b.is_ascii_digit());
    !host.is_empty()
        && host.bytes().all(|b| is_name(b) || is_bracketed && b == b':')
        && has_whole_escapes(host)
        && port.is_some_and(is_port)
}

/// `v` and a version, a full stop, and anything (RFC 3986, 3.2.2).
fn is_future_address(address: &str) -> bool {
    let Some((version, rest)) = address.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let is_hexadecimal = !version.is_empty() && version.bytes().all(|b| b.is_ascii_hexdigit());
    is_hexadecimal
        && !rest.is_empty()
        && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&b))
}

fn is_address(address: &str) -> bool {
    address.parse::<std::net::Ipv6Addr>().is_ok()
}

/// Every percent sign begins `%XX`.
fn has_whole_escapes(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        let pair = rest.get(at + 1..at + 3);
        if !pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)) {
            return false;
        }
        rest = rest.get(at + 3..).unwrap_or(&[]);
    }
    true
}
