//! The history of runs, read back from the stream `runs`.
use std::io;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;

use crate::Stream;
use crate::decode::facts::{number_at, parse_run, text_at};
use crate::reader::Reader;
use crate::runs::{Follows, RunRecord};

pub(crate) fn read_run_history(reader: &Reader) -> io::Result<Vec<RunRecord>> {
    let mut runs = Vec::new();
    reader.each_batch(Stream::Runs, 0, u64::MAX, &mut |batch| {
        for row in 0..batch.num_rows() {
            add_row(&mut runs, &batch, row);
        }
        ControlFlow::Continue(())
    })?;
    Ok(runs)
}

fn add_row(runs: &mut Vec<RunRecord>, batch: &RecordBatch, row: usize) {
    let run = parse_run(text_at(batch, "run", row).unwrap_or_default());
    let kind = text_at(batch, "kind", row).unwrap_or_default();
    if kind == "began" {
        let follows_run = text_at(batch, "follows_run", row).map(parse_run);
        let is_clean = batch.column_by_name("follows_clean").and_then(|column| column.as_boolean_opt());
        let is_clean = is_clean.is_some_and(|column| column.value(row));
        let arrival = number_at(batch, "follows_arrival", row).unwrap_or(0);
        runs.push(RunRecord {
            run,
            epoch: number_at(batch, "epoch", row).unwrap_or(0),
            began_ms: time_ms_at(batch, row),
            follows: follows_run.map(|run| Follows { run, arrival, is_clean }),
            ended: None,
            missing: Vec::new(),
        });
        return;
    }
    let Some(run) = runs.last_mut().filter(|known| known.run == run) else { return };
    let (from, to) = (number_at(batch, "from_arrival", row), number_at(batch, "to_arrival", row));
    match kind {
        "ended" => run.ended = Some(to.unwrap_or(0)),
        "lost" => run.missing.extend(from.zip(to)),
        _ => {}
    }
}

fn time_ms_at(batch: &RecordBatch, row: usize) -> u64 {
    let times = batch
        .column_by_name("time")
        .and_then(|column| column.as_primitive_opt::<arrow_array::types::TimestampMicrosecondType>());
    times.map_or(0, |times| u64::try_from(times.value(row) / 1000).unwrap_or(0))
}
