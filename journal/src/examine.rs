//! One segment of messages by itself, wherever its bytes come from: for tools, and for whoever wants to see that bent bytes do no harm.
use std::io;
use std::ops::ControlFlow;

use godwit_core::journal::KeptMessage;

use crate::Stream;
use crate::decode::kept::Messages;
use crate::decode::scan::{Wanted, scan};
use crate::disk::ReadAt;

/// What a segment's bytes hold.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// Rows that fit their checksum, in order.
    pub messages: Vec<KeptMessage>,
    pub damaged: u64,
    pub torn_bytes: u64,
}

#[derive(Debug)]
struct Bytes<'a>(&'a [u8]);

impl ReadAt for Bytes<'_> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize> {
        let there = usize::try_from(place).ok().and_then(|place| self.0.get(place..)).unwrap_or(&[]);
        let count = there.len().min(into.len());
        for (to, from) in into.iter_mut().zip(there) {
            *to = *from;
        }
        Ok(count)
    }
}

/// Reads a segment of messages whose first row has the offset `first`.
pub fn examine(bytes: &[u8], first: u64) -> io::Result<Examined> {
    let mut examined = Examined::default();
    let wanted =
        Wanted { stream: Stream::Messages, limit: u64::MAX, first, next: u64::MAX, from: 0, is_verified: true };
    let found = scan(&Bytes(bytes), wanted, &mut |batch, _| {
        if let Some(mut messages) = Messages::new(&batch) {
            examined.messages.extend((0..batch.num_rows()).map(|row| messages.message(row)));
        }
        ControlFlow::Continue(())
    })?;
    (examined.damaged, examined.torn_bytes) = (found.damaged, found.torn_bytes);
    Ok(examined)
}
