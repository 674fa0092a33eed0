//! From rows to record batches, as the bytes of a stream.
#[cfg(test)]
mod against_arrow;
mod column;
mod frame;
pub(crate) mod rows;
pub(crate) mod table;
