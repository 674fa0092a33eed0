//! Shared subscriptions: one place in the feed for a whole group, whichever shards its members are on. Owns what the group has
//! yet to be dealt, and takes back what a member lost before it settled it. Members are dealt to by their shards, as they can
//! take more; while all of them are away the group stands still and is owed what comes.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Node;
use super::Mail;
use super::dealt::{Dealings, Dealt};
use crate::message::{LogId, Message};
use crate::node::{Found, Stride, Way};
use crate::subject::Pattern;

/// What one look at the feed brings.
const STRIDE: Stride = Stride { entries_max: 1_024, bytes_max: 65_536 };
/// Messages put aside for a shard that has not fetched them, before the others wait for it.
const ASIDE_MAX: usize = 256;

#[derive(Debug)]
struct Group {
    name: (Box<str>, Box<str>),
    pattern: Pattern,
    /// Everything up to this arrival has been dealt or is pending.
    arrival: u64,
    pending: VecDeque<Place>,
    /// Members by shard.
    members: HashMap<u8, Seats>,
    /// Members that are away.
    away: u32,
    is_owed: bool,
    dealings: Dealings,
}

/// A message by where it stands, and the look that found it; none where it had been dealt before.
type Place = (LogId, u64, Option<u64>);

/// A shard's members, and what has been put aside for them.
#[derive(Debug, Default)]
struct Seats {
    count: u32,
    queue: VecDeque<Place>,
    /// None of them can take more now.
    is_full: bool,
    /// It has been told of its queue, and has not looked yet.
    is_woken: bool,
    /// What it is ahead of its share, in messages of all members (smooth weighted round robin).
    credit: i64,
}

impl Group {
    /// A shard looks, and can take something or not: then what was put aside for it is for anybody.
    fn note_able(&mut self, shard: u8, is_able: bool) {
        let Some(seats) = self.members.get_mut(&shard) else { return };
        (seats.is_full, seats.is_woken) = (!is_able, false);
        if !is_able {
            seats.queue.drain(..).rev().for_each(|place| self.pending.push_front(place));
        }
    }

    /// A shard's next message: what was put aside for it, or its turn's of what is pending.
    fn take_for(&mut self, shard: u8) -> Option<Place> {
        loop {
            if let Some(place) = self.members.get_mut(&shard)?.queue.pop_front() {
                return Some(place);
            }
            if self.is_ahead() {
                return None;
            }
            let place = self.pending.pop_front()?;
            let turn = self.turn().unwrap_or(shard);
            self.members.get_mut(&turn)?.queue.push_back(place);
        }
    }

    /// Much has been put aside that has not been fetched.
    fn is_ahead(&self) -> bool {
        self.members.values().any(|seats| seats.queue.len() >= ASIDE_MAX)
    }

    /// Whose turn it is, among the shards that can take something.
    fn turn(&mut self) -> Option<u8> {
        let able = || self.members.iter().filter(|(_, seats)| !seats.is_full);
        let all: i64 = able().map(|(_, seats)| i64::from(seats.count)).sum();
        let next = able().max_by_key(|(shard, seats)| (seats.credit + i64::from(seats.count), *shard));
        let next = next.map(|(shard, _)| *shard)?;
        for (shard, seats) in self.members.iter_mut().filter(|(_, seats)| !seats.is_full) {
            seats.credit += i64::from(seats.count) - if *shard == next { all } else { 0 };
        }
        Some(next)
    }
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
            group.members.entry(shard).or_default().count += 1;
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
            dealings: Dealings::new(self.index.head()),
        };
        self.groups.by_number.insert(number, group);
        self.groups.numbers.insert(key, number);
        number
    }

    /// One member of `shard` less.
    pub fn leave_group(&mut self, shard: u8, number: u32) {
        if let Some(group) = self.groups.by_number.get_mut(&number)
            && let Some(seats) = group.members.get_mut(&shard)
        {
            seats.count -= 1;
            if seats.count == 0
                && let Some(left) = group.members.remove(&shard)
            {
                left.queue.into_iter().rev().for_each(|place| group.pending.push_front(place));
                for &other in group.members.keys() {
                    self.wakes |= self.clients.tell_shard(other, Mail::Deal(number));
                }
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

    /// The node has begun anew: its groups are dealt what comes from here on.
    pub(in crate::node) fn begin_groups(&mut self, head: u64) {
        for group in self.groups.by_number.values_mut() {
            if group.is_owed {
                self.owed.remove(group.pattern.text(), group.arrival);
                self.owed.add(group.pattern.text(), head);
            }
            (group.arrival, group.dealings) = (head, Dealings::new(head));
        }
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

    /// The next messages of a group for a shard whose members can take `count`; they are the caller's to deliver or to give
    /// back. Each shard gets its share, by its members; one that can take none leaves its share to the others.
    pub fn deal(&mut self, number: u32, shard: u8, count: usize) -> Vec<(Arc<Message>, Option<u64>)> {
        let mut dealt = Vec::new();
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.note_able(shard, count > 0);
        }
        while dealt.len() < count {
            let Some(group) = self.groups.by_number.get_mut(&number) else { break };
            let Some((log, sequence, look)) = group.take_for(shard) else {
                if group.is_ahead() || !self.look_ahead(number) {
                    break;
                }
                continue;
            };
            let message = self.message(log, sequence).map(Arc::clone);
            if let Some(group) = self.groups.by_number.get_mut(&number) {
                group.dealings.deal(look, message.as_ref().map(|message| message.content().len()));
            }
            dealt.extend(message.map(|message| (message, look)));
        }
        self.wake_dealers(number, shard);
        dealt
    }

    /// Wakes the other shards for which something has been put aside, or was left.
    fn wake_dealers(&mut self, number: u32, shard: u8) {
        let Some(group) = self.groups.by_number.get_mut(&number) else { return };
        let is_left = !group.pending.is_empty();
        for (&other, seats) in &mut group.members {
            let has_some = !seats.queue.is_empty() || is_left && !seats.is_full;
            if other != shard && has_some && !std::mem::replace(&mut seats.is_woken, true) {
                self.wakes |= self.clients.tell_shard(other, Mail::Deal(number));
            }
        }
    }

    /// Brings the feed's next messages of a group; false at its end.
    fn look_ahead(&mut self, number: u32) -> bool {
        let head = self.index.head();
        let Some(group) = self.groups.by_number.get(&number).filter(|group| group.arrival < head) else {
            return false;
        };
        let mut found = Found::default();
        let way = Way { after: group.arrival, until: head, stride: STRIDE };
        let walk = self.walk(&group.pattern, way, &mut found);
        let Some(group) = self.groups.by_number.get_mut(&number) else { return false };
        group.arrival = if walk.is_lost { head } else { walk.reached };
        let holes = found.holes.iter().map(|(_, _, hole)| hole.missed);
        let gone: Vec<_> = holes.chain(walk.is_lost.then_some(None)).collect();
        let look = group.dealings.look(group.arrival, found.messages.len(), &gone);
        group.pending.extend(found.messages.iter().map(|message| (message.log, message.sequence, Some(look))));
        true
    }

    /// The member that it was dealt to is not to have a message of that look.
    pub fn pass_dealt(&mut self, number: u32, look: Option<u64>) {
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.dealings.pass(look);
        }
    }

    /// What a group has been dealt since the last call; none where that is nothing.
    pub fn take_dealt(&mut self, number: u32) -> Option<Dealt> {
        self.groups.by_number.get_mut(&number)?.dealings.take()
    }

    /// Messages that a member did not settle are dealt again, before anything later.
    pub fn give_back(&mut self, number: u32, messages: &[(LogId, u64)]) {
        let Some(group) = self.groups.by_number.get_mut(&number) else { return };
        for &(log, sequence) in messages.iter().rev() {
            group.pending.push_front((log, sequence, None));
        }
        for &shard in group.members.keys() {
            self.wakes |= self.clients.tell_shard(shard, Mail::Deal(number));
        }
    }
}
