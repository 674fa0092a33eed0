//! Shared subscriptions: one place in the feed for a whole group, whichever shards its members are on. Owns what the group has
//! yet to be dealt, and takes back what a member lost before it settled it. Members are dealt to by their shards, as they can
//! take more; while all of them are away the group stands still and is owed what comes.
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::super::Node;
use super::Mail;
use super::dealt::{Dealings, Dealt};
use super::group_notes::DealtBefore;
use crate::holder::{group_key, group_of};
use crate::message::{LogId, Message};
use crate::node::{Found, MISSING_MAX, ScanBudget, ScanRange};
use crate::subject::Pattern;

/// What one look at the feed brings.
const SCAN_BUDGET: ScanBudget = ScanBudget { entries_max: 1_024, bytes_max: 65_536, missing_max: MISSING_MAX };
/// Messages put aside for a shard that has not fetched them, before the others wait for it.
const ASIDE_MAX: usize = 256;
/// Before a group's name in the name of its note.
pub(in crate::node) const GROUP: &str = "group ";

#[derive(Debug)]
pub(super) struct Group {
    /// What it is kept under: a key of `group_key`, and its selector.
    pub(super) name: (Box<str>, Box<str>),
    /// In whose share of the node's bound it is.
    pub(super) tenant: Arc<str>,
    pub(super) pattern: Pattern,
    /// Everything up to this arrival has been dealt or is pending.
    pub(super) arrival: u64,
    pub(super) pending: VecDeque<Due>,
    /// Arrivals up to that one that no member has settled: pending, put aside or under way.
    pub(super) unsettled: BTreeSet<u64>,
    /// QoS 2 messages of an earlier run that a session resends itself.
    pub(super) taken: BTreeSet<u64>,
    /// The logs keep for it what came after this arrival; at most where it stands.
    pub(super) held: u64,
    /// Something of the feed up to here is known to be missing.
    lost: u64,
    /// Members by shard.
    members: HashMap<u8, Seats>,
    /// Members that are away.
    away: u32,
    pub(super) dealings: Dealings,
    /// What it had dealt in an earlier run, until it has come past that.
    pub(super) dealt_before: Option<DealtBefore>,
    /// Its note says what is settled beyond where it stands.
    pub(super) notes_settled: bool,
}

/// A message that is to be dealt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    log: LogId,
    sequence: u64,
    pub(super) arrival: u64,
    /// The look that found it; none where it had been dealt before.
    look: Option<u64>,
}

/// A message for a member.
#[derive(Clone, Debug)]
pub struct Portion {
    pub message: Arc<Message>,
    pub look: Option<u64>,
}

/// A shard's members, and what has been put aside for them.
#[derive(Debug, Default)]
struct Seats {
    count: u32,
    queue: VecDeque<Due>,
    /// None of them can take more now.
    is_full: bool,
    /// It has been told of its queue, and has not looked yet.
    is_woken: bool,
    /// What it is ahead of its share, in messages of all members (smooth weighted round robin).
    credit: i64,
}

impl Group {
    /// Everything up to here is settled.
    pub(super) fn stands(&self) -> u64 {
        self.unsettled.first().map_or(self.arrival, |first| first - 1)
    }

    /// A shard looks, and can take something or not: then what was put aside for it is for anybody.
    fn note_able(&mut self, shard: u8, is_able: bool) {
        let Some(seats) = self.members.get_mut(&shard) else { return };
        (seats.is_full, seats.is_woken) = (!is_able, false);
        if !is_able {
            seats.queue.drain(..).rev().for_each(|place| self.pending.push_front(place));
        }
    }

    /// A shard's next message: what was put aside for it, or its turn's of what is pending.
    fn take_for(&mut self, shard: u8) -> Option<Due> {
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
    pub(super) by_number: HashMap<u32, Group>,
    pub(super) numbers: HashMap<(Box<str>, Box<str>), u32>,
    last: u32,
}

impl Groups {
    /// What a group selects, and the arrival after which the logs hold it.
    pub(super) fn part(&self, number: u32) -> Option<(Pattern, u64)> {
        self.by_number.get(&number).map(|group| (group.pattern.clone(), group.held))
    }

    pub(super) fn tenant(&self, number: u32) -> Option<Arc<str>> {
        self.by_number.get(&number).map(|group| Arc::clone(&group.tenant))
    }
}

impl Node {
    /// Nothing up to an arrival is held for a group any more.
    pub(super) fn raise_group(&mut self, number: u32, floor: u64) {
        if let Some(group) = self.groups.by_number.get_mut(&number).filter(|group| group.held < floor) {
            self.owed.add(group.pattern.text(), floor);
            self.owed.remove(group.pattern.text(), group.held);
            group.held = floor;
        }
    }

    /// One more member of `shard`, of a tenant's group; returns the group's number.
    pub fn join_group(&mut self, shard: u8, name: &str, pattern: &Pattern, tenant: &Arc<str>) -> u32 {
        let number = self.group(&group_key(name, tenant), pattern);
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.members.entry(shard).or_default().count += 1;
        }
        number
    }

    fn group(&mut self, key: &str, pattern: &Pattern) -> u32 {
        let key = (Box::from(key), Box::from(pattern.text()));
        if let Some(number) = self.groups.numbers.get(&key) {
            return *number;
        }
        // A group restored without a note begins with what is published from then on.
        let arrival = if self.restoring.is_some() { u64::MAX } else { self.index.head() };
        let number = self.begin_group(key, pattern, arrival);
        if let (Some(journal), Some(group)) = (&mut self.journal, self.groups.by_number.get(&number)) {
            journal.note(group.note(), Some(group.note_text(self.epoch)));
        }
        number
    }

    pub(super) fn begin_group(&mut self, name: (Box<str>, Box<str>), pattern: &Pattern, arrival: u64) -> u32 {
        self.groups.last += 1;
        let number = self.groups.last;
        let (shown, tenant) = group_of(&name.0);
        self.holders.add_group(number, (shown, &name.1));
        let group = Group {
            name: name.clone(),
            tenant,
            pattern: pattern.clone(),
            arrival,
            pending: VecDeque::new(),
            unsettled: BTreeSet::new(),
            taken: BTreeSet::new(),
            held: arrival,
            lost: 0,
            members: HashMap::new(),
            away: 0,
            dealings: Dealings::new(arrival),
            dealt_before: None,
            notes_settled: false,
        };
        self.owed.add(pattern.text(), arrival);
        self.groups.by_number.insert(number, group);
        self.groups.numbers.insert(name, number);
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

    /// A session of a tenant with such a subscription is away from now on, or no more.
    pub(super) fn count_away(&mut self, (name, selector): (&str, &str), tenant: &str, is_away: bool) {
        let Ok(pattern) = Pattern::parse(selector) else { return };
        let number = self.group(&group_key(name, tenant), &pattern);
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.away = if is_away { group.away + 1 } else { group.away.saturating_sub(1) };
        }
        self.settle_group(number);
    }

    /// A group without members, here or away, is no more.
    pub(super) fn settle_group(&mut self, number: u32) {
        let is_over = |group: &Group| group.members.is_empty() && group.away == 0;
        if let Some(group) = self.groups.by_number.get(&number).filter(|group| is_over(group)) {
            self.owed.remove(group.pattern.text(), group.held);
            self.groups.numbers.remove(&group.name);
            if let Some(journal) = &mut self.journal {
                journal.note(group.note(), None);
            }
            self.groups.by_number.remove(&number);
        }
    }

    /// A member has settled a message that it was dealt, or is not to have it.
    pub fn settle_dealt(&mut self, number: u32, arrival: u64) {
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.unsettled.remove(&arrival);
        }
    }

    /// The next messages of a group for a shard whose members can take `count`; they are the caller's to deliver or to give
    /// back. Each shard gets its share, by its members; one that can take none leaves its share to the others.
    pub fn deal(&mut self, number: u32, shard: u8, count: usize) -> Vec<Portion> {
        let mut dealt = Vec::new();
        if let Some(group) = self.groups.by_number.get_mut(&number) {
            group.note_able(shard, count > 0);
        }
        while dealt.len() < count {
            let Some(group) = self.groups.by_number.get_mut(&number) else { break };
            let Some(due) = group.take_for(shard) else {
                if group.is_ahead() || !self.look_ahead(number) {
                    break;
                }
                continue;
            };
            let message = self.message(due.log, due.sequence).map(Arc::clone);
            if let Some(group) = self.groups.by_number.get_mut(&number) {
                group.dealings.deal(due.look, message.as_ref().map(|message| message.content().len()));
                if message.is_none() {
                    group.unsettled.remove(&due.arrival);
                }
            }
            dealt.extend(message.map(|message| Portion { message, look: due.look }));
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
        let way = ScanRange { after: group.arrival, until: head, budget: SCAN_BUDGET };
        let (scan, lost) = self.scan_pattern_past(&group.pattern, way, group.lost, &mut found);
        let Some(group) = self.groups.by_number.get_mut(&number) else { return false };
        group.arrival = scan.reached;
        let missing = found.missing.iter().map(|(_, _, range)| range.missed);
        let gone: Vec<_> = missing.chain(lost.map(|_| None)).collect();
        group.lost = lost.unwrap_or(group.lost);
        let is_done = |arrival| group.dealt_before.as_ref().is_some_and(|dealt| dealt.has(arrival));
        found.messages.retain(|message| !group.taken.remove(&message.arrival) && !is_done(message.arrival));
        group.dealt_before.take_if(|dealt| dealt.is_over(scan.reached));
        let look = group.dealings.look(group.arrival, found.messages.len(), &gone);
        for message in &found.messages {
            let (log, sequence, arrival) = (message.log, message.sequence, message.arrival);
            group.unsettled.insert(arrival);
            group.pending.push_back(Due { log, sequence, arrival, look: Some(look) });
        }
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
    pub fn give_back(&mut self, number: u32, messages: &[(LogId, u64, u64)]) {
        let Some(group) = self.groups.by_number.get_mut(&number) else { return };
        for &(log, sequence, arrival) in messages.iter().rev() {
            group.unsettled.insert(arrival);
            group.pending.push_front(Due { log, sequence, arrival, look: None });
        }
        for &shard in group.members.keys() {
            self.wakes |= self.clients.tell_shard(shard, Mail::Deal(number));
        }
    }
}
