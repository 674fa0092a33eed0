//! The Python face of the engine: conversions only, no logic.
use pyo3::prelude::*;

mod engine;
mod feedback;
mod journal;
mod loadgen;
mod orders;
mod reports;
mod rows;

/// The engine as Python sees it; `godwit.engine` is its only importer.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::feedback::FeedbackJournal;
    #[pymodule_export]
    use super::journal::check_journal;
    #[pymodule_export]
    use super::loadgen::LoadGenerator;
}
