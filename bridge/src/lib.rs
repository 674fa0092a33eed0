//! The Python face of the engine: conversions only, no logic.
use pyo3::prelude::*;

/// The engine as Python sees it; `godwit.engine` is its only importer.
#[pymodule]
mod _engine {}
