//! From rows to record batches.
pub(crate) mod rows;
pub(crate) mod table;
