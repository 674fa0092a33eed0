//! How many listen, on which shards: sixteen bytes where they are all on one, which is nearly always.

#[derive(Debug, Default)]
pub(super) enum Listeners {
    #[default]
    None,
    One {
        shard: u8,
        count: u32,
    },
    Many(Box<Spread>),
}

#[derive(Debug)]
pub(super) struct Spread {
    mask: u64,
    counts: Vec<(u8, u32)>,
}

impl Listeners {
    /// One more on `shard` (below 64). True when the shard had none.
    pub(super) fn add(&mut self, shard: u8) -> bool {
        match self {
            Self::None => {
                *self = Self::One { shard, count: 1 };
                true
            }
            Self::One { shard: own, count } if *own == shard => {
                *count = count.saturating_add(1);
                false
            }
            Self::One { shard: own, count } => {
                let counts = vec![(*own, *count), (shard, 1)];
                *self = Self::Many(Box::new(Spread { mask: bit(*own) | bit(shard), counts }));
                true
            }
            Self::Many(spread) => {
                if let Some((_, count)) = spread.counts.iter_mut().find(|(own, _)| *own == shard) {
                    *count = count.saturating_add(1);
                    return false;
                }
                spread.counts.push((shard, 1));
                spread.mask |= bit(shard);
                true
            }
        }
    }

    /// One less on `shard`. True when it was the shard's last.
    pub(super) fn remove(&mut self, shard: u8) -> bool {
        match self {
            Self::One { shard: own, count } if *own == shard => {
                *count -= 1;
                let is_last = *count == 0;
                if is_last {
                    *self = Self::None;
                }
                is_last
            }
            Self::Many(spread) => {
                let Some(at) = spread.counts.iter().position(|(own, _)| *own == shard) else { return false };
                let Some((_, count)) = spread.counts.get_mut(at) else { return false };
                *count -= 1;
                if *count > 0 {
                    return false;
                }
                spread.counts.swap_remove(at);
                spread.mask &= !bit(shard);
                if let [(shard, count)] = spread.counts[..] {
                    *self = Self::One { shard, count };
                }
                true
            }
            _ => false,
        }
    }

    /// None any more on any of these shards.
    pub(super) fn clear(&mut self, mask: u64) {
        match self {
            Self::None => {}
            Self::One { shard, .. } if bit(*shard) & mask == 0 => {}
            Self::One { .. } => *self = Self::None,
            Self::Many(spread) => {
                spread.counts.retain(|(shard, _)| bit(*shard) & mask == 0);
                spread.mask &= !mask;
                match spread.counts[..] {
                    [] => *self = Self::None,
                    [(shard, count)] => *self = Self::One { shard, count },
                    _ => {}
                }
            }
        }
    }

    /// The shards that have any.
    pub(super) fn mask(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::One { shard, .. } => bit(*shard),
            Self::Many(spread) => spread.mask,
        }
    }

    pub(super) fn total(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::One { count, .. } => *count,
            Self::Many(spread) => spread.counts.iter().fold(0, |sum: u32, (_, count)| sum.saturating_add(*count)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// A shard's bit; none for a number that is no shard's.
pub(super) fn bit(shard: u8) -> u64 {
    1_u64.checked_shl(u32::from(shard)).unwrap_or(0)
}
