//! What a segment's rows span, gathered batch by batch: the run, times, arrivals. Owns reading them; where they are kept is the manifest.
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, Int64Array, RecordBatch};

use crate::catalog::Sealed;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) run: String,
    pub(crate) rows: u64,
    times: Option<(i64, i64)>,
    pub(crate) arrivals: Option<(u64, u64)>,
}

impl Facts {
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        if let Some(runs) = batch.column_by_name("run").and_then(|column| column.as_string_opt::<i32>()) {
            self.run = runs.iter().flatten().next().unwrap_or_default().to_owned();
        }
        let times =
            batch.column_by_name("time").and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
        for time in times.into_iter().flatten().flatten() {
            let (min, max) = self.times.get_or_insert((time, time));
            (*min, *max) = (time.min(*min), time.max(*max));
        }
        let arrivals = batch.column_by_name("arrival").and_then(|column| column.as_primitive_opt::<Int64Type>());
        for arrival in arrivals.into_iter().flatten().flatten() {
            let arrival = u64::try_from(arrival).unwrap_or(0);
            let (min, max) = self.arrivals.get_or_insert((arrival, arrival));
            (*min, *max) = (arrival.min(*min), arrival.max(*max));
        }
    }

    /// The manifest's entry of a sealed file with these rows.
    pub(crate) fn into_sealed(self, file: String, span: (u64, u64), bytes: u64, missing: Vec<(u64, u64)>) -> Sealed {
        let (first, next) = span;
        let (time_min, time_max) = self.times.unwrap_or_default();
        let (arrival_min, arrival_max) = self.arrivals.unzip();
        let Self { run, rows, .. } = self;
        Sealed { file, first, next, rows, bytes, run, time_min, time_max, arrival_min, arrival_max, missing }
    }
}

/// The run of a row's text.
pub(crate) fn parse_run(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or(0)
}

/// The text at a row, where there is one.
pub(crate) fn text_at<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> Option<&'a str> {
    let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
    column.is_valid(row).then(|| column.value(row))
}

/// The number at a row, where there is one.
pub(crate) fn number_at(batch: &RecordBatch, name: &str, row: usize) -> Option<u64> {
    number_in(batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?, row)
}

/// The same of a column.
pub(crate) fn number_in(column: &Int64Array, row: usize) -> Option<u64> {
    column.is_valid(row).then(|| u64::try_from(column.value(row)).ok())?
}
