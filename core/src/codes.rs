//! Placeholder until the generated table lands.
/// The number of an error or a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u16);
