//! How connections end: sends that fail, and the drain.
mod drain;
mod failed_sends;
