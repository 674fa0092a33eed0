//! What a subject has become, on every protocol.
mod fields;
