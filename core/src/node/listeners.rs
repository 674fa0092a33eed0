//! How many listen, on which shards: streams, by which a shard is told of messages, and the subscribers whom those serve. Sixteen
//! bytes where they are all on one shard, which is nearly always.

#[derive(Debug, Default)]
pub(super) enum Listeners {
    #[default]
    None,
    One(Share),
    Many(Box<Spread>),
}

/// What one shard has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    shard: u8,
    streams: u32,
    subscribers: u32,
}

#[derive(Debug)]
pub(super) struct Spread {
    mask: u64,
    shares: Vec<Share>,
}

impl Share {
    fn first(shard: u8) -> Self {
        Self { shard, streams: 1, subscribers: 0 }
    }
}

impl Listeners {
    /// One more on `shard` (below 64). True when the shard had none.
    pub(super) fn add(&mut self, shard: u8) -> bool {
        if let Some(share) = self.share_mut(shard) {
            share.streams = share.streams.saturating_add(1);
            return false;
        }
        match self {
            Self::None => *self = Self::One(Share::first(shard)),
            Self::One(own) => {
                let mask = bit(own.shard) | bit(shard);
                *self = Self::Many(Box::new(Spread { mask, shares: vec![*own, Share::first(shard)] }));
            }
            Self::Many(spread) => {
                spread.shares.push(Share::first(shard));
                spread.mask |= bit(shard);
            }
        }
        true
    }

    /// One less on `shard`. True when it was the shard's last.
    pub(super) fn remove(&mut self, shard: u8) -> bool {
        let Some(share) = self.share_mut(shard) else { return false };
        share.streams -= 1;
        let is_last = share.streams == 0;
        if is_last {
            self.clear(bit(shard));
        }
        is_last
    }

    /// A stream of `shard` has `now` subscribers, where it had `before`.
    pub(super) fn recount(&mut self, shard: u8, before: u32, now: u32) {
        if let Some(share) = self.share_mut(shard) {
            share.subscribers = share.subscribers.saturating_sub(before).saturating_add(now);
        }
    }

    /// None any more on any of these shards.
    pub(super) fn clear(&mut self, mask: u64) {
        match self {
            Self::None => {}
            Self::One(own) if bit(own.shard) & mask == 0 => {}
            Self::One(_) => *self = Self::None,
            Self::Many(spread) => {
                spread.shares.retain(|share| bit(share.shard) & mask == 0);
                spread.mask &= !mask;
                match spread.shares[..] {
                    [] => *self = Self::None,
                    [only] => *self = Self::One(only),
                    _ => {}
                }
            }
        }
    }

    /// The shards that have any.
    pub(super) fn mask(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::One(own) => bit(own.shard),
            Self::Many(spread) => spread.mask,
        }
    }

    pub(super) fn subscribers(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::One(own) => own.subscribers,
            Self::Many(spread) => spread.shares.iter().fold(0, |sum, share| sum.saturating_add(share.subscribers)),
        }
    }

    pub(super) fn has(&self, shard: u8) -> bool {
        self.mask() & bit(shard) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    fn share_mut(&mut self, shard: u8) -> Option<&mut Share> {
        match self {
            Self::None => None,
            Self::One(own) => (own.shard == shard).then_some(own),
            Self::Many(spread) => spread.shares.iter_mut().find(|share| share.shard == shard),
        }
    }
}

/// A shard's bit; none for a number that is no shard's.
pub(super) fn bit(shard: u8) -> u64 {
    1_u64.checked_shl(u32::from(shard)).unwrap_or(0)
}
