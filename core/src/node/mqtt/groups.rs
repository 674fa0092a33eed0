//! Shared subscriptions: one place in the feed for a whole group, whichever shards its members are on. Owns what the group has
//! yet to be dealt, and takes back what a member lost before it settled it. Members are dealt to by their shards, as they can
//! take more; while all of them are away the group stands still and is owed what comes.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Node;
use super::Mail;
use crate::message::{LogId, Message};
use crate::node::Stride;
use crate::subject::Pattern;

/// What one look at the feed brings.
const STRIDE: Stride = Stride { entries_max: 1_024, bytes_max: 65_536 };

#[derive(Debug)]
struct Group {
    name: (Box<str>, Box<str>),
    pattern: Pattern,
    /// Everything up to this arrival has been dealt or is pending.
    arrival: u64,
    pending: VecDeque<(LogId, u64)>,
    /// Members by shard.
    members: HashMap<u8, u32>,
    /// Members that are away.
    away: u32,
    is_owed: bool,
}

#[derive(Debug, Default)]
pub(in crate::node) struct Groups {
    by_number: HashMap<u32, Group>,
    numbers: HashMap<(Box<str>, Box<str>), u32>,
    last: u32,
}

impl Node {
    /// One more member of `shard`; returns the group's number.
    pub fn join_group(&mut self, shard: u8, name: &str, pattern: &Pattern) -> u32 {
        let number = self.group(name, pattern);
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            *group.members.entry(shard).or_default() += 1;
            if std::mem::take(&mut group.is_owed) {
                self.owed.remove(group.pattern.text(), group.arrival);
            }
        }
        number
    }

    fn group(&mut self, name: &str, pattern: &Pattern) -> u32 {
        let key = (Box::from(name), Box::from(pattern.text()));
        if let Some(number) = self.groups.numbers.get(&key) {
            return *number;
        }
        self.groups.last += 1;
        let number = self.groups.last;
        let group = Group {
            name: key.clone(),
            pattern: pattern.clone(),
            arrival: self.index.head(),
            pending: VecDeque::new(),
            members: HashMap::new(),
            away: 0,
            is_owed: false,
        };
        self.groups.by_number.insert(number, group);
        self.groups.numbers.insert(key, number);
        number
    }

    /// One member of `shard` less.
    pub fn leave_group(&mut self, shard: u8, number: u32) {
        if let Some(group) = self.groups.by_number.get_mut(&number)
            && let Some(count) = group.members.get_mut(&shard)
        {
            *count -= 1;
            if *count == 0 {
                group.members.remove(&shard);
            }
        }
        self.settle_group(number);
    }

    /// A session with such a subscription is away from now on, or no more.
    pub(super) fn count_away(&mut self, name: &str, selector: &str, is_away: bool) {
        let Ok(pattern) = Pattern::parse_levels(selector) else { return };
        let number = self.group(name, &pattern);
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.away = if is_away { group.away + 1 } else { group.away.saturating_sub(1) };
        }
        self.settle_group(number);
    }

    fn settle_group(&mut self, number: u32) {
        let Some(group) = self.groups.by_number.get_mut(&number).filter(|group| group.members.is_empty()) else {
            return;
        };
        if group.away == 0 {
            if group.is_owed {
                self.owed.remove(group.pattern.text(), group.arrival);
            }
            self.groups.numbers.remove(&group.name);
            self.groups.by_number.remove(&number);
        } else if !group.is_owed {
            group.is_owed = true;
            self.owed.add(group.pattern.text(), group.arrival);
        }
    }

    /// The next messages of a group, at most `count`; they are the caller's to deliver or to give back.
    pub fn deal(&mut self, number: u32, count: usize) -> Vec<Arc<Message>> {
        let mut dealt = Vec::new();
        loop {
            let Some(group) = self.groups.by_number.get_mut(&number) else { return dealt };
            let (mut gone, wanted) = (0, count - dealt.len());
            let next: Vec<(LogId, u64)> = group.pending.drain(..wanted.min(group.pending.len())).collect();
            for (log, sequence) in next {
                match self.message(log, sequence) {
                    Some(message) => dealt.push(Arc::clone(message)),
                    None => gone += 1,
                }
            }
            if dealt.len() == count || gone == 0 && !self.look_ahead(number) {
                return dealt;
            }
        }
    }

    /// Brings the feed's next messages of a group; false at its end.
    fn look_ahead(&mut self, number: u32) -> bool {
        let head = self.index.head();
        let Some(group) = self.groups.by_number.get(&number).filter(|group| group.arrival < head) else {
            return false;
        };
        let (mut messages, mut holes) = (Vec::new(), Vec::new());
        let walk = self.walk(&group.pattern, group.arrival, head, &mut messages, &mut holes, STRIDE);
        let Some(group) = self.groups.by_number.get_mut(&number) else { return false };
        group.arrival = if walk.is_lost { head } else { walk.reached };
        group.pending.extend(messages.iter().map(|message| (message.log, message.sequence)));
        true
    }

    /// Messages that a member did not settle are dealt again, before anything later.
    pub fn give_back(&mut self, number: u32, messages: &[(LogId, u64)]) {
        let Some(group) = self.groups.by_number.get_mut(&number) else { return };
        for &place in messages.iter().rev() {
            group.pending.push_front(place);
        }
        let shards: Vec<u8> = group.members.keys().copied().collect();
        for shard in shards {
            self.wakes |= self.clients.tell_shard(shard, Mail::Deal(number));
        }
    }
}
