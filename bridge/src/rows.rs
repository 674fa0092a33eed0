//! Figures and rows as dictionaries whose keys are the fields' names.
use godwit_core::command::GapReason;
use godwit_core::message::Kind;
use godwit_core::node::Heard;
use godwit_core::report::Counters;
use godwit_core::report::{ConnectionRow, SubjectRow};
use godwit_engine::{Figures, Found, JournalFigures, Resumed, Stats};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyTuple};

macro_rules! put {
    ($dict:expr, $from:expr, $($field:ident),+ $(,)?) => {
        $($dict.set_item(stringify!($field), $from.$field)?;)+
    };
}

pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    put!(
        dict,
        stats.totals,
        epoch,
        arrival,
        oldest_resumable_arrival,
        subjects,
        patterns,
        messages,
        message_bytes,
        snapshots,
        snapshot_bytes,
        owed_bytes,
        holders,
        owed_skips,
        mqtt_sessions,
        mqtt_wills_bytes,
        keys,
        index_entries,
        feed_entries,
        feed_bytes,
        feed_overruns,
        accepted,
        refused,
        repeats,
        messages_evicted_by_count,
        messages_evicted_by_age,
        messages_evicted_by_bytes,
        evicted_snapshots,
        forgotten,
        accounts,
        rate_limit_entries_evicted,
    );
    dict.set_item("reports_dropped", stats.reports_dropped)?;
    if let Some(journal) = &stats.journal {
        put_journal(&dict, journal)?;
    }
    let shards = stats.shards.iter().map(|figures| shard(py, figures)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("shards", shards)?;
    Ok(dict)
}

/// The journal's figures among the node's; by stream beside them.
fn put_journal(dict: &Bound<'_, PyDict>, journal: &JournalFigures) -> PyResult<()> {
    let sum = |of: fn(&(u64, u64)) -> u64| journal.rows.values().map(of).sum::<u64>();
    dict.set_item("journal_failing", u8::from(journal.is_failing))?;
    dict.set_item("journal_failures", journal.failures)?;
    dict.set_item("journal_rows", sum(|rows| rows.0))?;
    dict.set_item("journal_rows_lost", sum(|rows| rows.1))?;
    dict.set_item("journal_rows_damaged", journal.damaged)?;
    dict.set_item("journal_bytes", journal.bytes)?;
    dict.set_item("journal_syncs", journal.syncs)?;
    dict.set_item("journal_sync_seconds", journal.sync_us as f64 / 1e6)?;
    dict.set_item("journal_waiting_bytes", journal.waiting_bytes)?;
    dict.set_item("journal_snapshot_failures", journal.snapshot_failures)?;
    dict.set_item("journal_arrival", journal.journaled_arrival)?;
    dict.set_item("journal_synced_arrival", journal.synced_arrival)?;
    let streams = PyDict::new(dict.py());
    for (name, (rows, lost)) in &journal.rows {
        streams.set_item(name, (rows, lost))?;
    }
    dict.set_item("journal_streams", streams)?;
    dict.set_item("journal_reason", journal.reason.as_deref())
}

pub(crate) fn resumed<'py>(py: Python<'py>, resumed: &Resumed) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    put!(dict, resumed.restored, rows, rows_skipped, missing_ranges, subjects, messages, keys, sessions, arrival);
    put!(dict, resumed, took_ms, was_clean, damaged);
    dict.set_item("said", resumed.said.clone())?;
    Ok(dict)
}

fn shard<'py>(py: Python<'py>, figures: &Figures) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    put!(
        dict,
        figures.shard,
        connections,
        subscriptions,
        streams,
        window_bytes,
        held_bytes,
        catching_up,
        accepted,
        refused,
        disconnected,
        messages_in,
        bytes_in,
        bytes_out,
        sends,
        short_sends,
        blocked_sends,
        publishes_refused,
        commands_refused,
        gaps,
        recovered,
        resynced,
        dropped,
        mqtt_missed,
        catch_up_messages,
        window_misses,
        reports_dropped,
    );
    put!(dict, figures, turns, has_failed);
    dict.set_item("cpu_seconds", figures.cpu.map(|cpu| cpu.as_secs_f64()))?;
    let counters = &figures.shard;
    dict.set_item("protocols", protocols(py, counters)?)?;
    let reasons = GapReason::ALL.iter().map(|reason| reason.name()).zip(counters.gap_reasons);
    dict.set_item("gap_reasons", reasons.into_py_dict(py)?)?;
    dict.set_item("refused_codes", counters.codes.refused.each().into_py_dict(py)?)?;
    dict.set_item("publish_codes", counters.codes.publishes.each().into_py_dict(py)?)?;
    dict.set_item("command_codes", counters.codes.commands.each().into_py_dict(py)?)?;
    dict.set_item("close_codes", counters.codes.closes.each().into_py_dict(py)?)?;
    dict.set_item("limit_hits", counters.codes.limits.each().into_py_dict(py)?)?;
    dict.set_item("sockets", figures.driver.sockets)?;
    dict.set_item("sockets_refused", figures.driver.refused)?;
    dict.set_item("receives_starved", figures.driver.starved)?;
    dict.set_item("enters", figures.driver.enters)?;
    Ok(dict)
}

/// Each wire's counters by its name.
fn protocols<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for (name, protocol) in counters.wires.each() {
        let dict = PyDict::new(py);
        put!(
            dict,
            protocol,
            connections,
            subscriptions,
            slow_consumers,
            connects,
            disconnects,
            messages_in,
            messages_out,
            bytes_in,
            bytes_out,
            publishes_refused,
            gaps,
            recovered,
            resynced,
            dropped,
        );
        by_name.set_item(name, dict)?;
    }
    Ok(by_name)
}

pub(crate) fn subject<'py>(py: Python<'py>, row: &SubjectRow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("subject", &*row.subject)?;
    dict.set_item("at", row.at.to_string())?;
    put!(dict, row, messages, bytes, subscribers, has_snapshot, last_ms);
    Ok(dict)
}

pub(crate) fn survey<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
    let rows = found.rows.iter().map(|surveyed| {
        let dict = subject(py, &surveyed.row)?;
        dict.set_item("rate_per_s", surveyed.rate_per_s)?;
        Ok(dict)
    });
    let dict = PyDict::new(py);
    dict.set_item("rows", rows.collect::<PyResult<Vec<_>>>()?)?;
    put!(dict, found, total, taken_ms, is_partial);
    dict.set_item("took_ms", found.took.as_millis() as u64)?;
    Ok(dict)
}

pub(crate) fn connection<'py>(py: Python<'py>, row: &ConnectionRow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("connection", row.connection.0)?;
    dict.set_item("shard", row.connection.shard())?;
    dict.set_item("address", row.address.to_string())?;
    dict.set_item("identity", &*row.holder.identity)?;
    dict.set_item("tenant", &*row.holder.tenant)?;
    dict.set_item("authority", &*row.holder.authority)?;
    dict.set_item("client", &*row.client)?;
    put!(dict, row, protocol, connected_ms, subscriptions, behind, lag_bytes, lag_arrivals);
    if !row.stands.is_empty() {
        let stands = row.stands.iter().map(|stand| {
            let dict = PyDict::new(py);
            dict.set_item("selector", &*stand.selector)?;
            put!(dict, stand, stand, lag_bytes, lag_arrivals, lag_messages, conflate_ms);
            Ok(dict)
        });
        dict.set_item("stands", stands.collect::<PyResult<Vec<_>>>()?)?;
    }
    Ok(dict)
}

/// (subject, position or none, time, kind, identity, bytes of content, content or none, tenant, authority) of one message.
pub(crate) fn heard<'py>(py: Python<'py>, heard: &Heard, with_content: bool) -> PyResult<Bound<'py, PyTuple>> {
    let message = &heard.message;
    let kind = match message.kind {
        Kind::Json => "json",
        Kind::Text => "text",
        Kind::Bytes => "bytes",
    };
    let content = message.content();
    (
        &*message.subject,
        (message.sequence > 0).then(|| format!("{}.{}", message.epoch, message.sequence)),
        message.time_ms,
        kind,
        &*heard.holder.identity,
        content.len(),
        with_content.then(|| PyBytes::new(py, content)),
        &*heard.holder.tenant,
        &*heard.holder.authority,
    )
        .into_pyobject(py)
}
