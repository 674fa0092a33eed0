//! A stream of Server-Sent Events that a POST asks for: subscriptions and watches, each with its own options and its own answer. Owns that
//! one command that is refused leaves the others as they are.
use super::event_ids::EventIds;
use crate::codec::Wire;
use crate::codes::Code;
use crate::command::{Id, Refusal};
use crate::http::{self, Asked, Head, ListenMany, Refused, Wish};
use crate::rights::{Action, Verdict};
use crate::shard::Shard;
use crate::shard::session::Step;
use crate::subject::Selector;

impl Shard {
    /// Begins what a POST listens to.
    pub(super) fn listen_many(&mut self, socket: u32, head: &Head<'_>, body: &[u8]) -> Result<Step, Refused> {
        let settings = std::sync::Arc::clone(&self.settings);
        let mut listen = http::read_commands(head, body, &settings.limits)?;
        let mut granted = Vec::with_capacity(listen.asked.len());
        for (place, Asked { what, .. }) in listen.asked.iter_mut().enumerate() {
            let judged = match what {
                Ok(wish) => self.may_have(socket, wish, place),
                Err(_) => continue,
            };
            match judged {
                Ok(None) => return Ok(Step::Again),
                Ok(Some(selector)) => granted.push(selector),
                Err(refusal) => *what = Err(refusal),
            }
        }
        self.forget_unanswered(socket);
        self.set_asked(socket, 0);
        self.begin_many(socket, &listen, &granted);
        Ok(Step::Done)
    }

    /// Whether a connection may have what it asks for at this place; none: the server is asked.
    fn may_have(&mut self, socket: u32, wish: &Wish<'_>, place: usize) -> Result<Option<Selector>, Refusal> {
        let (action, text) = match wish {
            Wish::Subscribe(subscribe) => (Action::Subscribe, &subscribe.selector),
            Wish::Watch(pattern) => (Action::Publish, pattern),
        };
        let selector = Selector::parse(text)?;
        match (self.judge(socket, action, &selector), action) {
            (Verdict::Allow, _) => Ok(Some(selector)),
            // Asked once: where the answer had to go for room meanwhile, it would be asked for without end.
            (Verdict::Ask, _) if place < self.asked(socket) || self.is_unanswered(socket, action, text) => {
                Err(Code::AuthorizerTimeout.into())
            }
            (Verdict::Ask, _) => {
                self.ask(socket, action, text)?;
                self.set_asked(socket, place + 1);
                Ok(None)
            }
            (Verdict::Deny, Action::Subscribe) => {
                Err(Refusal::new(Code::SubscribeForbidden, self.why_not(socket, action)))
            }
            (Verdict::Deny, Action::Publish) => Err(Code::WatchForbidden.into()),
        }
    }

    /// `granted` are the selectors of what was not refused, in the same order.
    fn begin_many(&mut self, socket: u32, listen: &ListenMany<'_>, granted: &[Selector]) {
        let is_subscribe = |one: &&Asked<'_>| matches!(one.what, Ok(Wish::Subscribe(_)));
        let wishes = listen.asked.iter().filter(|one| one.what.is_ok()).zip(granted);
        let selectors: Vec<&Selector> =
            wishes.filter(|(one, _)| is_subscribe(one)).map(|(_, selector)| selector).collect();
        let wire = match selectors.as_slice() {
            [] | [Selector::Subject(_)] => Wire::Sse,
            _ => Wire::SseMany,
        };
        let names: Vec<&str> = selectors.iter().map(|selector| selector.text()).collect();
        self.open_stream(socket, wire, listen.frame_bytes_max, EventIds::new(&names, wire == Wire::SseMany));
        let mut granted = granted.iter();
        for Asked { id, what } in &listen.asked {
            let done = match what {
                Ok(wish) => granted.next().map_or(Ok(()), |selector| self.begin_wish(socket, id, wish, selector)),
                Err(refusal) => Err(refusal.clone()),
            };
            if let Err(refusal) = done {
                self.refuse(socket, id, &refusal);
            }
        }
        self.look_at_token(socket);
        self.make_ready(socket);
    }

    fn begin_wish(&mut self, socket: u32, id: &Id, wish: &Wish<'_>, selector: &Selector) -> Result<(), Refusal> {
        match wish {
            Wish::Subscribe(subscribe) => self.subscribe(socket, id, subscribe, selector),
            Wish::Watch(pattern) => self.watch(socket, id, pattern).map(|_| ()),
        }
    }
}
