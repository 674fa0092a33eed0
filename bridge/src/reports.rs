//! Reports as tuples, each beginning with its kind; their fields in the order of core's `Report`.
use std::sync::Arc;

use godwit_core::holder::Holder;
use godwit_core::report::{ConnectionId, Report};
use godwit_core::rights::Action;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

pub(crate) fn tuple(py: Python<'_>, report: Report) -> PyResult<Bound<'_, PyTuple>> {
    match report {
        Report::Authorize { connection, token, client, address, is_renewal, certificate } => {
            let certificate = certificate.map(|der| PyBytes::new(py, &der));
            ("authorize", connection.0, token, client, address.to_string(), is_renewal, certificate).into_pyobject(py)
        }
        Report::Ask { connection, holder, action, selector, is_background } => {
            let action = match action {
                Action::Subscribe => "subscribe",
                Action::Publish => "publish",
            };
            let (tenant, authority) = (&*holder.tenant, &*holder.authority);
            ("ask", connection.0, &*holder.identity, action, selector, tenant, authority, is_background)
                .into_pyobject(py)
        }
        Report::Connected { connection, holder, client, address, protocol } => {
            let (tenant, authority) = (&*holder.tenant, &*holder.authority);
            ("connected", connection.0, &*holder.identity, &*client, address.to_string(), protocol, tenant, authority)
                .into_pyobject(py)
        }
        Report::Renewed { connection, holder, token } => renewal(py, connection, &holder, token),
        Report::Subscribed { connection, selector, outcome, at } => {
            ("subscribed", connection.0, selector, outcome.name(), at.map(|at| at.to_string())).into_pyobject(py)
        }
        Report::Unsubscribed { connection, selector } => ("unsubscribed", connection.0, selector).into_pyobject(py),
        Report::Disconnected { connection, code, duration_ms } => {
            ("disconnected", connection.0, code, duration_ms).into_pyobject(py)
        }
        Report::CommandRefused { connection, holder, address, code, reason, client } => {
            let (address, client) = (address.to_string(), client.as_deref());
            let (identity, tenant, authority) = (&*holder.identity, &*holder.tenant, &*holder.authority);
            ("command_refused", connection.0, identity, address, code as u16, reason, client, tenant, authority)
                .into_pyobject(py)
        }
        Report::Refused { address, code, reason } => {
            ("refused", address.to_string(), code as u16, reason, 0, "").into_pyobject(py)
        }
        Report::LoginRefused { connection, client, address, code, reason } => {
            ("refused", address.to_string(), code as u16, reason, connection.0, &*client).into_pyobject(py)
        }
        Report::MqttMissed { client, selector, missed, reason } => {
            ("mqtt_missed", &*client, selector, missed, reason).into_pyobject(py)
        }
        Report::MqttOverdue { name, messages, bytes } => ("mqtt_overdue", &*name, messages, bytes).into_pyobject(py),
        Report::Drained { .. } => ("drained",).into_pyobject(py),
        Report::SnapshotsFile { reason } => ("snapshots_file", reason).into_pyobject(py),
        Report::Sealing { reason } => ("sealing", reason).into_pyobject(py),
        Report::Journal { reason } => ("journal", reason).into_pyobject(py),
        Report::ShardFailed { shard, reason } => ("shard_failed", shard, reason).into_pyobject(py),
        // The engine answers these itself.
        Report::Connections { ask, shard, rows, .. } => ("connections", ask, shard, rows.len()).into_pyobject(py),
    }
}

fn renewal<'py>(
    py: Python<'py>,
    connection: ConnectionId,
    holder: &Holder,
    token: Option<Arc<str>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let (tenant, authority) = (&*holder.tenant, &*holder.authority);
    ("renewed", connection.0, &*holder.identity, token.as_deref().unwrap_or(""), tenant, authority).into_pyobject(py)
}
