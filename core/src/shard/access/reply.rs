//! Where replies may be asked for. Naming a subject in `reply_to` changes what is kept there and makes others publish on it, so the requester
//! needs a right of its own to it: to subscribe or to publish, or to publish where the settings are strict.
use crate::codes::Code;
use crate::command::Refusal;
use crate::rights::{Action, Verdict};
use crate::shard::Shard;
use crate::shard::session::Step;

/// May replies be awaited there?
pub(in crate::shard) enum ReplyRight {
    /// `may_publish`: the requester may publish there too.
    Granted { may_publish: bool },
    /// The server is asked.
    Asked(Step),
}

impl Shard {
    pub(in crate::shard) fn judge_reply(&mut self, socket: u32, reply_to: &str) -> Result<ReplyRight, Refusal> {
        let publish = self.judge_subject(socket, Action::Publish, reply_to);
        let subscribe = if self.settings.reply_to_needs_publish {
            Verdict::Deny
        } else {
            self.judge_subject(socket, Action::Subscribe, reply_to)
        };
        match (publish, subscribe) {
            (Verdict::Allow, _) => Ok(ReplyRight::Granted { may_publish: true }),
            (_, Verdict::Allow) => Ok(ReplyRight::Granted { may_publish: false }),
            (_, Verdict::Ask) => {
                self.commit();
                self.ask(socket, Action::Subscribe, reply_to).map(ReplyRight::Asked)
            }
            (Verdict::Ask, _) => {
                self.commit();
                self.ask(socket, Action::Publish, reply_to).map(ReplyRight::Asked)
            }
            (Verdict::Deny, Verdict::Deny) => {
                let why = if self.settings.reply_to_needs_publish {
                    "your rights do not cover publishing on reply_to"
                } else {
                    "your rights cover neither subscribing to nor publishing on reply_to"
                };
                Err(Refusal::new(Code::PublishForbidden, why))
            }
        }
    }
}
