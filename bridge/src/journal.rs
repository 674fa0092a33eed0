//! A journal's files as rows, for operators.
use godwit_core::journal::StatsRow;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::Path;

/// (metric, scope, label, window, covered_s, (value, max, mean, deviation)).
pub(crate) type Statistic = (String, String, String, String, f64, [Option<f64>; 4]);

pub(crate) fn make_stats(time_ms: u64, row: Statistic) -> StatsRow {
    let (metric, scope, label, window, covered_s, [value, max, mean, deviation]) = row;
    StatsRow {
        time_ms,
        metric: metric.into(),
        scope: scope.into(),
        label: label.into(),
        window: window.into(),
        covered_s,
        value,
        max,
        mean,
        deviation,
    }
}

/// What is in each file of a journal, every row read against its checksum.
#[pyfunction]
pub(crate) fn check_journal<'py>(py: Python<'py>, directory: &str) -> PyResult<Bound<'py, PyList>> {
    let checked = py.detach(|| godwit_engine::check_journal(Path::new(directory)));
    let rows = PyList::empty(py);
    for file in checked.map_err(|error| PyOSError::new_err(error.to_string()))? {
        let dict = PyDict::new(py);
        let is_whole = file.is_whole();
        dict.set_item("stream", file.stream.name())?;
        dict.set_item("file", file.file)?;
        dict.set_item("first", file.first)?;
        dict.set_item("next", file.next)?;
        dict.set_item("rows", file.rows)?;
        dict.set_item("bytes", file.bytes)?;
        dict.set_item("damaged", file.damaged)?;
        dict.set_item("torn_bytes", file.torn_bytes)?;
        dict.set_item("lost", file.lost)?;
        dict.set_item("is_bent", file.is_bent)?;
        dict.set_item("is_missing", file.is_missing)?;
        dict.set_item("is_gap", file.is_gap)?;
        dict.set_item("is_whole", is_whole)?;
        rows.append(dict)?;
    }
    Ok(rows)
}
