//! Orders from tuples, each beginning with its verb; anything else is a ValueError or TypeError.
use godwit_core::codes::Code;
use godwit_core::command::Refusal;
use godwit_core::holder::{Holder, Revoked};
use godwit_core::report::{ConnectionId, Order};
use godwit_core::rights::{Rights, Rule, SharedRules};
use godwit_core::settings::RuleSettings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Rules that connections hold, once for all that were granted the same.
static SHARED: LazyLock<Mutex<SharedRules>> = LazyLock::new(Mutex::default);

type RuleTuple = (String, String, String);
type GrantTuple =
    (String, u64, String, Vec<RuleTuple>, Option<u64>, Option<String>, String, Option<String>, String, usize);
type RevokeTuple = (String, Option<String>, Option<String>, u16, Option<String>, Option<String>);

pub(crate) fn parse(order: &Bound<'_, PyTuple>) -> PyResult<Order> {
    let verb = order.get_item(0)?;
    match verb.extract::<&str>()? {
        "grant" => {
            let (_, id, identity, rules, expires_ms, token, tenant, source, authority, configured): GrantTuple =
                order.extract()?;
            let rules: Vec<_> = rules.into_iter().map(rule_settings).collect();
            let mut rights = Rights::compile_grant(&rules, configured).map_err(invalid)?;
            rights.source = source.map(Into::into);
            rights.share(&mut SHARED.lock().unwrap_or_else(PoisonError::into_inner));
            let rights = Arc::new(rights);
            Ok(Order::Grant {
                connection: ConnectionId(id),
                holder: Holder::new(&tenant, &authority, &identity),
                rights,
                expires_ms,
                token: token.map(Into::into),
            })
        }
        "refuse" => {
            let (connection, code, reason) = ending(order)?;
            Ok(Order::Refuse { connection, code, reason })
        }
        "close" => {
            let (connection, code, reason) = ending(order)?;
            Ok(Order::Close { connection, code, reason })
        }
        "withdraw" => {
            let (_, source, number, within_ms): (String, String, u16, u64) = order.extract()?;
            Ok(Order::Withdraw { source: source.into(), code: code(number)?, within_ms })
        }
        "ask_again" => {
            let (_, identity, tenant): (String, Option<String>, Option<String>) = order.extract()?;
            Ok(Order::AskAgain { identity: identity.map(Into::into), tenant: tenant.map(Into::into) })
        }
        "revoke" => {
            let (_, identity, token, number, tenant, authority): RevokeTuple = order.extract()?;
            let [identity, token, tenant, authority] =
                [identity, token, tenant, authority].map(|name| name.map(Into::into));
            Ok(Order::Revoke { revoked: Revoked { identity, tenant, authority, token }, code: code(number)? })
        }
        "answer" => {
            let (_, id, rule, is_background): (String, u64, RuleTuple, bool) = order.extract()?;
            let rule = Rule::compile(&rule_settings(rule)).map_err(invalid)?;
            Ok(Order::Answer { connection: ConnectionId(id), rule, is_background })
        }
        other => Err(PyValueError::new_err(format!("{other:?} is no order"))),
    }
}

fn ending(order: &Bound<'_, PyTuple>) -> PyResult<(ConnectionId, Code, String)> {
    let (_, id, number, reason): (String, u64, u16, String) = order.extract()?;
    Ok((ConnectionId(id), code(number)?, reason))
}

pub(crate) fn code(number: u16) -> PyResult<Code> {
    Code::from_number(number).ok_or_else(|| PyValueError::new_err(format!("{number} is no code")))
}

fn rule_settings((pattern, actions, verdict): RuleTuple) -> RuleSettings {
    RuleSettings { pattern, actions, verdict }
}

fn invalid(refusal: Refusal) -> PyErr {
    PyValueError::new_err(refusal.reason)
}
