//! The last messages of a subject from before memory: counted by the segments' indexes, newest first, so that few rows are read.
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use godwit_core::journal::Last;

use super::{Reader, Source};
use crate::Stream;
use crate::decode::kept::Messages;

/// Some of a subject's rows in one segment.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    rows: u64,
    /// Where the first of them is.
    first: Option<u64>,
}

impl Reader {
    /// From which offset on to read the last messages of a subject; where there are not as many, the first there is. None: there is none.
    pub fn find_last(&self, subject: &str, last: Last) -> io::Result<Option<u64>> {
        let (mut left, mut first) = (last.count, None);
        for source in self.sources(Stream::Messages).iter().rev() {
            if left == 0 || source.arrivals.is_some_and(|(_, newest)| newest <= last.after) {
                break;
            }
            if source.arrivals.is_some_and(|(oldest, _)| oldest > last.until) {
                continue;
            }
            let counted = self.count_in(source, subject, &Last { count: left, ..last })?;
            left = left.saturating_sub(counted.rows);
            first = counted.first.or(first);
        }
        Ok(first)
    }

    fn count_in(&self, source: &Source, subject: &str, last: &Last) -> io::Result<Counted> {
        let mut from = 0;
        if let Some(entries) = self.entries_of(source, subject) {
            let rows = entries.iter().map(|entry| entry.rows).sum();
            let Some(first) = entries.iter().map(|entry| entry.first_offset).min() else {
                return Ok(Counted::default());
            };
            let is_within = source.arrivals.is_some_and(|(oldest, newest)| oldest > last.after && newest <= last.until);
            if is_within && rows <= last.count {
                return Ok(Counted { rows, first: Some(first) });
            }
            from = first;
        }
        let mut found = VecDeque::new();
        let _ = self.read_source(source, from, u64::MAX, &mut |batch| {
            let Some(messages) = Messages::new(&batch) else { return ControlFlow::Continue(()) };
            for row in 0..batch.num_rows() {
                let arrival = messages.arrival(row);
                if arrival > last.until {
                    return ControlFlow::Break(());
                }
                if arrival > last.after && messages.subject(row) == subject {
                    found.push_back(messages.offset(row));
                    if found.len() as u64 > last.count {
                        found.pop_front();
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(Counted { rows: found.len() as u64, first: found.front().copied() })
    }
}
