"""Our tables against Delta on Spark, the format's own implementation: types and partition values, both ways, and operations of both."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark_types

from tests.pipelines.conftest import ROOT
from tests.pipelines.delta.test_partitions import KINDS, ours, schema_of, shown, write

FOLDER = ROOT / ".make/delta-spark"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXAMPLES = 3
"""Lists of values of each type: a table takes the other Spark a second."""
Ask = Callable[..., Any]
Case = tuple[spark_types.DataType, st.SearchStrategy[Any]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Asks the other Spark: `ask("read", path, kind)`."""
    if not (FOLDER / "jars").is_dir():
        pytest.skip("Delta on Spark is not installed: make .make/delta")
    helper = Path(__file__).parent / "spark/other_spark.py"
    python = str(FOLDER / "venv/bin/python")
    errors = tmp_path_factory.mktemp("spark") / "errors"
    command = [python, str(helper), str(FOLDER / "jars")]
    environment = {"PATH": "/usr/bin:/bin", "PYSPARK_PYTHON": python, "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        errors.open("w") as sink,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, env=environment, cwd=errors.parent
        ) as process,
    ):
        assert process.stdin and process.stdout
        first = process.stdout.readline()
        assert first == b"ready\n", errors.read_text()

        def ask_it(*arguments: Any) -> Any:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(arguments).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, (arguments, answer["error"])
            return answer["answer"]

        yield ask_it
        process.stdin.close()


def cross(value: Any) -> Any:
    """A value as it goes over to the other Spark."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - EPOCH.date()).days
    return str(value) if isinstance(value, Decimal) else value


def same(value: Any) -> str:
    """What two values that are equal have in common: NaN is equal to nothing, and -0.0 is 0.0 to Delta."""
    if isinstance(value, float):
        return repr(value + 0.0)
    return str(Decimal(value)) if isinstance(value, Decimal) else repr(value)


def examples_of(values: st.SearchStrategy[Any]) -> list[list[Any]]:
    """Lists of values, drawn anew at each run."""
    found: list[list[Any]] = []

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.none() | values, min_size=10, max_size=30))
    def collect(keys: list[Any]) -> None:
        found.append(keys)

    collect()
    return found


def name_of(kind: spark_types.DataType) -> str:
    return kind.simpleString()


@pytest.mark.long
@pytest.mark.parametrize("partitions", [("k",), ()], ids=["partition", "column"])
@pytest.mark.parametrize("case", KINDS, ids=lambda case: name_of(case[0]))
def test_values_of_every_type_are_the_same_to_delta_on_spark_and_to_us(
    ask: Ask, tmp_path: Path, case: Case, partitions: tuple[str, ...]
) -> None:
    kind, values = case
    schema, name, numbers = schema_of(kind), name_of(kind), count()
    for keys in examples_of(values):
        expected = [[same(cross(key)), row] for row, key in enumerate(keys)]
        written = tmp_path / f"ours-{next(numbers)}"
        write(written, schema, keys, partitions)
        rows = ask("read", str(written), name)
        assert [[same(key), row] for key, row in rows] == expected, keys
        theirs = tmp_path / f"theirs-{next(numbers)}"
        ask("write", str(theirs), name, [[cross(key), row] for row, key in enumerate(keys)], partitions)
        plain = [(key + 0.0 if isinstance(key, float) else key) for key in keys]
        found = [
            (repr(float(key) + 0.0) if isinstance(plain[row], float) else key, row) for key, row in ours(theirs, schema)
        ]
        assert found == [(shown(key), row) for row, key in enumerate(plain)], keys


@pytest.mark.long
@pytest.mark.parametrize("partitions", [("k",), ()], ids=["partition", "column"])
def test_a_table_that_both_write_to_has_the_rows_of_both(ask: Ask, tmp_path: Path, partitions: tuple[str, ...]) -> None:
    path, schema = tmp_path / "table", schema_of(spark_types.StringType())
    write(path, schema, ["a", None, "ü/ö=%"], partitions)
    ask("write", str(path), "string", [["b", 3], [None, 4], ["ü/ö=%", 5]], partitions)
    DeltaTable(str(path)).create_checkpoint()
    ask("run", f"DELETE FROM delta.`{path}` WHERE v = 4")
    ask("run", f"OPTIMIZE delta.`{path}`")
    write(path, schema, ["c"], partitions)
    expected = [["a", 0], ["c", 0], [None, 1], ["ü/ö=%", 2], ["b", 3], ["ü/ö=%", 5]]
    assert sorted(ask("read", str(path), "string"), key=lambda row: (row[1], str(row[0]))) == expected
    assert sorted(ours(path, schema), key=lambda row: (row[1], row[0])) == [(repr(key), row) for key, row in expected]
    ask("run", f"VACUUM delta.`{path}` RETAIN 168 HOURS")
    assert len(ours(path, schema)) == len(expected)
