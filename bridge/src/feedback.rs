//! The journal of dispatch as Python sees it.
use std::path::PathBuf;

use godwit_core::journal::FeedbackRow;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Rows of the stream `feedback`, each by its attributes.
#[derive(FromPyObject)]
pub(crate) struct Row {
    tenant: String,
    time_ms: u64,
    event: String,
    notification: String,
    receiver: String,
    address: String,
    channel: String,
    state: String,
    attempt: u32,
    reason: Option<String>,
    accepted_ms: Option<u64>,
    provider: Option<String>,
    group_name: Option<String>,
    category: Option<String>,
    possible_duplicate: bool,
    segments: Option<u32>,
}

impl From<Row> for FeedbackRow {
    fn from(row: Row) -> Self {
        Self {
            tenant: row.tenant.into(),
            time_ms: row.time_ms,
            event: row.event.into(),
            notification: row.notification.into(),
            receiver: row.receiver.into(),
            address: row.address.into(),
            channel: row.channel.into(),
            state: row.state.into(),
            attempt: row.attempt,
            reason: row.reason.map(Into::into),
            accepted_ms: row.accepted_ms,
            provider: row.provider.map(Into::into),
            group_name: row.group_name.map(Into::into),
            category: row.category.map(Into::into),
            possible_duplicate: row.possible_duplicate,
            segments: row.segments,
        }
    }
}

/// A journal that dispatch writes.
#[pyclass(module = "godwit._engine")]
pub struct FeedbackJournal(godwit_engine::FeedbackJournal);

#[pymethods]
impl FeedbackJournal {
    #[new]
    fn new(py: Python<'_>, directory: &str, node: &str, run: u64, age_ms_max: u64, bytes_max: u64) -> PyResult<Self> {
        let open = || godwit_engine::FeedbackJournal::open(PathBuf::from(directory), node, run, age_ms_max, bytes_max);
        py.detach(open).map(Self).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn write(&self, py: Python<'_>, rows: Vec<Row>) -> PyResult<()> {
        let rows = rows.into_iter().map(Into::into).collect();
        py.detach(|| self.0.write(rows)).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
