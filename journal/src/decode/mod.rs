//! From a disk's bytes to rows: frames, batches, and what is good of them. Nothing here trusts what it reads.
pub(crate) mod batch;
pub(crate) mod facts;
pub(crate) mod footer;
pub(crate) mod frames;
pub(crate) mod kept;
pub(crate) mod scan;
#[cfg(test)]
mod vectors;
