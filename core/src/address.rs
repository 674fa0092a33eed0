//! Networks of addresses, as operators list them: `10.0.0.0/8`, `2001:db8::/32`, or a single address. Pure; an IPv4 address and
//! its IPv6-mapped form are one.
pub mod proxy;

use std::net::IpAddr;

use crate::codes::Code;
use crate::command::Refusal;

/// The addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    mask: u128,
}

/// A list of them; an empty one holds nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Network {
    /// Reads ADDRESS or ADDRESS/BITS; bits of the host part must be zero, so that a slip is told and not guessed at.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let wrong =
            || Refusal::new(Code::FieldInvalid, format!("{text:?} is no address and no network such as 10.0.0.0/8"));
        let (address, length) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => widest,
            Some(digits) if digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse::<u32>().ok().filter(|length| *length <= widest).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        let free = widest - length;
        let mask = if free == 128 { 0 } else { u128::MAX << free };
        let bits = number(address);
        if bits & mask == bits { Ok(Self { bits, mask }) } else { Err(wrong()) }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        number(address) & self.mask == self.bits
    }
}

impl Networks {
    pub fn parse(texts: &[String]) -> Result<Self, Refusal> {
        texts.iter().map(|text| Network::parse(text)).collect::<Result<_, _>>().map(Self)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An IPv4 address as its IPv6-mapped form.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => u128::from(ip.to_ipv6_mapped()),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

#[cfg(test)]
mod tests {
    use super::{Network, Networks};
    use std::net::IpAddr;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_holds_what_shares_its_bits() {
        let table = [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("::/0", "1.2.3.4", ""),
            ("2001:db8::/32", "2001:db8:1::", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("10.1.0.0/16", "::ffff:10.1.2.3", "::ffff:10.2.2.3"),
        ];
        for (network, inside, outside) in table {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(ip(inside)), "{network:?} {inside}");
            assert!(outside.is_empty() || !network.contains(ip(outside)), "{network:?} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "a", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "10.0.0.0/8/8", "1.2.3"]
        {
            assert!(Network::parse(text).is_err(), "{text}");
        }
        assert!(Networks::parse(&["10.0.0.0/8".into(), "x".into()]).is_err());
        assert!(!Networks::default().contains(ip("127.0.0.1")));
    }
}
