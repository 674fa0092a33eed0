//! The node's Python face. The GIL is released around what may wait for a lock or a thread, never around a copy; what
//! comes from Python is converted before any lock is taken.
use crate::{journal, orders, reports, rows};
use godwit_core::holder::Revoked;
use godwit_core::message::Kind;
use godwit_core::report::{ConnectionId, ConnectionList};
use godwit_core::subject::Pattern;
use godwit_engine::{JournalUnusable, Question, Sort};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// One node. Every method may be called from any thread.
#[pyclass(module = "godwit._engine", frozen)]
pub struct Engine(godwit_engine::Engine);

#[pymethods]
impl Engine {
    #[new]
    fn new(settings_json: &str) -> PyResult<Self> {
        godwit_engine::Engine::new(settings_json).map(Self).map_err(PyValueError::new_err)
    }

    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let started = py.detach(|| self.0.start()).map_err(os_error)?;
        let told = PyDict::new(py);
        for (name, address) in &started.addresses {
            told.set_item(name, address.to_string())?;
        }
        told.set_item("driver", started.driver)?;
        told.set_item("driver_reason", started.driver_reason)?;
        told.set_item("shards", started.shards)?;
        told.set_item("descriptors_max", started.descriptors_max)?;
        if let Some(resumed) = &started.resumed {
            told.set_item("resumed", rows::resumed(py, resumed)?)?;
        }
        Ok(told)
    }

    fn report_fd(&self) -> i32 {
        self.0.report_descriptor()
    }

    fn reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let taken = self.0.reports();
        let list = PyList::empty(py);
        for report in taken {
            list.append(reports::tuple(py, report)?)?;
        }
        Ok(list)
    }

    fn order(&self, py: Python<'_>, orders: Vec<Bound<'_, PyTuple>>) -> PyResult<()> {
        let orders = orders.iter().map(orders::parse).collect::<PyResult<Vec<_>>>()?;
        let given = py.detach(|| self.0.order(orders));
        given.map_err(|refused| PyTimeoutError::new_err(format!("{refused} orders were not taken in time")))
    }

    fn publish_many(&self, py: Python<'_>, messages: Vec<Bound<'_, PyTuple>>) -> PyResult<Vec<(u16, String)>> {
        let mut publications = self.0.publications();
        for message in &messages {
            let subject = message.get_borrowed_item(0)?;
            let content = message.get_borrowed_item(1)?;
            let kind = message.get_borrowed_item(2)?;
            let kind = match kind.extract::<&str>()? {
                "json" => Kind::Json,
                "text" => Kind::Text,
                "bytes" => Kind::Bytes,
                other => return Err(PyValueError::new_err(format!("{other:?} is no kind of content"))),
            };
            let is_retained = message.get_borrowed_item(3)?.extract()?;
            publications.push(subject.extract()?, content.extract()?, kind, is_retained);
        }
        let answers = py.detach(|| self.0.publish(publications));
        Ok(answers
            .into_iter()
            .map(|answer| match answer {
                Ok(at) => (0, at.to_string()),
                Err(code) => (code as u16, String::new()),
            })
            .collect())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stats());
        rows::stats(py, &stats)
    }

    /// Rows of the stream `stats`, all of one time; false where there is no journal.
    fn write_stats(&self, py: Python<'_>, time_ms: u64, rows: Vec<journal::Statistic>) -> bool {
        py.detach(|| self.0.write_stats(rows.into_iter().map(|row| journal::make_stats(time_ms, row)).collect()))
    }

    #[pyo3(signature = (after, limit, pattern))]
    fn subjects<'py>(
        &self,
        py: Python<'py>,
        after: &str,
        limit: usize,
        pattern: Option<&str>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let pattern =
            pattern.map(Pattern::parse).transpose().map_err(|refusal| PyValueError::new_err(refusal.reason))?;
        let found = py.detach(|| self.0.subjects(after, limit, pattern.as_ref()));
        found.iter().map(|row| rows::subject(py, row)).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    #[pyo3(signature = (pattern, search, sort, is_descending, offset, limit))]
    fn survey<'py>(
        &self,
        py: Python<'py>,
        pattern: Option<&str>,
        search: String,
        sort: &str,
        is_descending: bool,
        offset: usize,
        limit: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let pattern =
            pattern.map(Pattern::parse).transpose().map_err(|refusal| PyValueError::new_err(refusal.reason))?;
        let sort = Sort::from_name(sort).ok_or_else(|| PyValueError::new_err(format!("{sort:?} is no order")))?;
        let question = Question { pattern, search, sort, is_descending, offset, limit };
        let found = py.detach(|| self.0.survey(&question));
        rows::survey(py, &found)
    }

    #[pyo3(signature = (after, limit, search, is_behind))]
    fn connections<'py>(
        &self,
        py: Python<'py>,
        after: u64,
        limit: u32,
        search: Option<String>,
        is_behind: bool,
    ) -> PyResult<(Vec<Bound<'py, PyDict>>, Option<u64>)> {
        let list = ConnectionList { after: ConnectionId(after), limit, search, is_behind };
        let (found, next) = py.detach(|| self.0.connections(list));
        let found = found.iter().map(|row| rows::connection(py, row)).collect::<PyResult<_>>()?;
        Ok((found, next.map(|next| next.0)))
    }

    fn connection<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = py.detach(|| self.0.connection(ConnectionId(connection)));
        found.as_ref().map(|row| rows::connection(py, row)).transpose()
    }

    fn configure(&self, py: Python<'_>, settings_json: &str) -> PyResult<()> {
        py.detach(|| self.0.configure(settings_json)).map_err(PyValueError::new_err)
    }

    fn take_heard<'py>(
        &self,
        py: Python<'py>,
        max: usize,
        bytes_max: usize,
        with_content: bool,
    ) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64)> {
        let (heard, lost) = py.detach(|| self.0.take_heard(max, bytes_max));
        let rows = heard.iter().map(|heard| rows::heard(py, heard, with_content)).collect::<PyResult<_>>()?;
        Ok((rows, lost))
    }

    fn purge(&self, py: Python<'_>, subject: &str) -> (Option<usize>, bool) {
        py.detach(|| self.0.purge(subject))
    }

    #[pyo3(signature = (identity, token, code, tenant, authority))]
    fn revoke(
        &self,
        py: Python<'_>,
        identity: Option<String>,
        token: Option<String>,
        code: u16,
        tenant: Option<String>,
        authority: Option<String>,
    ) -> PyResult<(u64, u64, u64)> {
        let code = orders::code(code)?;
        let [identity, token, tenant, authority] =
            [identity, token, tenant, authority].map(|name| name.map(Into::into));
        let revoked = Revoked { identity, tenant, authority, token };
        let ended = py.detach(|| self.0.revoke(revoked, code));
        Ok((ended.connections, ended.sessions, ended.wills))
    }

    fn drain(&self, py: Python<'_>, grace_ms: u64, spread_ms: u64) {
        py.detach(|| self.0.drain(grace_ms, spread_ms));
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

/// The error with its number, so that Python sees what it is; a journal's is none of the ports'.
fn os_error(error: std::io::Error) -> PyErr {
    if error.get_ref().is_some_and(|inner| inner.is::<JournalUnusable>()) {
        return PyRuntimeError::new_err(error.to_string());
    }
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, std::io::Error::from_raw_os_error(number).to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}
