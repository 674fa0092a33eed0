//! The load generator's Python face: text in, text out.
use godwit_loadgen::LoadGenerator as Load;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A load on native threads; its plan, progress and result are JSON.
#[pyclass(module = "godwit._engine")]
pub struct LoadGenerator(Load);

#[pymethods]
impl LoadGenerator {
    #[new]
    fn new(plan_json: &str) -> PyResult<Self> {
        Load::new(plan_json).map(Self).map_err(PyValueError::new_err)
    }

    fn start(&mut self) -> PyResult<()> {
        self.0.start().map_err(PyOSError::new_err)
    }

    fn progress(&self) -> String {
        self.0.progress()
    }

    /// Waits for the end of the load.
    fn result(&mut self, py: Python<'_>) -> String {
        let load = &mut self.0;
        py.detach(|| load.result())
    }

    fn stop(&mut self) {
        self.0.stop();
    }
}
