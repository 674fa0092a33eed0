//! Where something stands: a position in a subject, a resume token in the node's feed, the time of a turn.
//! Owns their text forms; what may be read after them is for the log and the feed to say.
use std::fmt;

/// What time a turn sees: monotonic for durations, wall for what clients are shown. Both in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub mono_ms: u64,
    pub wall_ms: u64,
}

/// A moment of the monotonic clock in four bytes, for what every connection keeps: tenths of a second (13 years of them),
/// rounded up, so that nothing is taken for older than it is and no deadline comes early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u32);

const TICK_MS: u64 = 100;

impl Moment {
    pub(crate) fn at(mono_ms: u64) -> Self {
        Self(mono_ms.div_ceil(TICK_MS) as u32)
    }

    /// How long ago it was, or up to a tenth of a second less; 0 for one that is yet to come.
    pub(crate) fn age_ms(self, mono_ms: u64) -> u64 {
        mono_ms.saturating_sub(u64::from(self.0) * TICK_MS)
    }
}

/// A message's place in its subject: the run that numbered it and its number there. `E.0` is an empty subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    pub epoch: u64,
    pub sequence: u64,
}

impl Position {
    /// Parses `EPOCH.SEQUENCE`, two decimal numbers without sign, blanks or leading zeros.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, sequence) = text.split_once('.')?;
        Some(Self { epoch: parse_decimal(epoch)?, sequence: parse_decimal(sequence)? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.sequence)
    }
}

/// Where a pattern subscription stands: everything of it up to `arrival` of this `run` has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeToken {
    pub run: u64,
    pub arrival: u64,
    pub time_ms: u64,
}

impl ResumeToken {
    /// Parses `RUN.ARRIVAL.TIME`: hexadecimal run, decimal arrival and time.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let run = parts.next()?;
        if run.is_empty() || run.len() > 16 || !run.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let resume_token = Self {
            run: u64::from_str_radix(run, 16).ok()?,
            arrival: parse_decimal(parts.next()?)?,
            time_ms: parse_decimal(parts.next()?)?,
        };
        if parts.next().is_some() { None } else { Some(resume_token) }
    }
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}.{}", self.run, self.arrival, self.time_ms)
    }
}

fn parse_decimal(text: &str) -> Option<u64> {
    let is_plain =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_older_than_it_is(began in 0..u64::from(u32::MAX) * TICK_MS, age in 0..100_000_000_u64) {
            let measured = Moment::at(began).age_ms(began + age);
            prop_assert!(measured <= age && age < measured + TICK_MS);
            prop_assert_eq!(Moment::at(began + 1).age_ms(began), 0);
        }
    }

    #[test]
    fn position_text_is_two_plain_decimal_numbers() {
        assert_eq!(Position::parse("7.42"), Some(Position { epoch: 7, sequence: 42 }));
        for bad in ["", "7", "7.", ".42", "7.42.1", "+7.42", "7.-1", "07.1", "7. 1", "18446744073709551616.1"] {
            assert_eq!(Position::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn resume_token_text_round_trips() {
        let resume_token = ResumeToken { run: 0xa1f3, arrival: 8812, time_ms: 1_795_250_000_123 };
        assert_eq!(resume_token.to_string(), "a1f3.8812.1795250000123");
        assert_eq!(ResumeToken::parse(&resume_token.to_string()), Some(resume_token));
        for bad in ["", "a1f3", "a1f3.1", "x.1.2", "a1f3.1.2.3", ".1.2", "a1f3..2", "+1.1.1"] {
            assert_eq!(ResumeToken::parse(bad), None, "{bad}");
        }
    }
}
