//! Top-level members of JSON that is known to be valid: scanning and merging, byte for byte.

/// The union of two JSON objects' members, the newer value winning; none when `new` alone says it all (it has every member
/// of `old`, or one of the two is no object).
pub fn merge(_old: &[u8], _new: &[u8]) -> Option<Vec<u8>> {
    None
}
