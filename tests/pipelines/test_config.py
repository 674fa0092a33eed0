"""Settings: their sources, and the errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit_pipelines.config import describe_config, list_options, load_config
from godwit_pipelines.errors import ConfigInvalid

FILE = """
[journal]
paths = ["/var/lib/godwit"]
rows_per_batch = 5000
[spark]
conf = { "spark.eventLog.enabled" = true, "spark.task.maxFailures" = 2 }
[maintain]
keep_days = { "bronze.access" = 30 }
"""


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(FILE)
    environment = {"GODWIT_PIPELINES_JOURNAL_ROWS_PER_BATCH": "6000", "GODWIT_PIPELINES_LAKE_PATH": "env", "HOME": "/"}
    config = load_config(file, environment, {"lake.path": "flag"})
    assert config.journal.paths == ("/var/lib/godwit",) and config.journal.rows_per_batch == 6000
    assert config.lake.path == "flag" and config.sources["lake.path"] == "a flag"
    assert dict(config.spark.conf) == {"spark.eventLog.enabled": "true", "spark.task.maxFailures": "2"}
    assert dict(config.maintain.keep_days) == {"bronze.access": "30"}
    assert load_config(None, {"GODWIT_PIPELINES_CONFIG": str(file)}).journal.rows_per_batch == 5000


PATHS = ("journal.paths", "lake.path", "lake.checkpoints", "kafka.jars", "metrics.file", "spark.class_archive")


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("journal.rows_per_batch", "0", "from 1 to 1,000,000,000"),
        ("journal.rows_per_batch", "many", "whole number"),
        ("journal.verify", "perhaps", "true or false"),
        ("node.timeout_s", "nan", "a number from"),
        ("node.ack", "sometimes", "must be one of"),
        ("spark.conf", "a", "NAME=VALUE"),
        ("lake.path", "a%20b", "has '%' in it: expected a path without this character"),
        ("lake.path", "/a[1]", r"lake.path \(from a flag\): '/a\[1\]' has '\[' in it"),
        (
            "maintain.keep_days",
            "bronze.access=3,bronze.acces=3",
            "'bronze.acces' is not a table; did you mean bronze.access?",
        ),
        ("maintain.keep_days", "bronze.access=-1", "'bronze.access=-1' must be a number of days from 0 to 100,000"),
        ("maintain.keep_days", "gold.slo=nan", "'gold.slo=nan' must be a number of days"),
        ("maintain.keep_days", "ops.erased=9", "'ops.erased' has no column of days"),
        ("maintain.keep_days", "gold.slo=1_0", "'gold.slo=1_0' must be a number of days"),
        ("node.timeout_s", "Infinity", "a number from"),
        ("node.timeout_s", "1d", "a number from"),
        ("node.timeout_s", "\u0661", "a number from"),
        ("journal.rows_per_batch", "\u0661", "whole number"),
        ("journal.rows_per_batch", "1e3", "whole number"),
        ("journal.rows_per_batch", "1_000", "whole number"),
        ("node.timeout_s", "_1__0_", "a number from"),
        *((key, f"{scheme}://bucket/x", "is not a local path") for key in PATHS for scheme in ("s3", "S3A")),
        ("lake.path", "s3:/bucket/lake", "is not a local path"),
        ("lake.path", "file://host/lake", "is not a local path"),
        ("journal.paths", "/a,hdfs://n/b", "'hdfs://n/b' is not a local path"),
        ("lake.pth", "x", "did you mean lake.path?"),
    ],
)
def test_what_cannot_be_is_told_with_its_bounds(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigInvalid, match=said.replace("?", r"\?")):
        load_config(None, {}, {key: value})


@pytest.mark.parametrize("key", ["journal.paths", "lake.path", "lake.checkpoints", "metrics.file"])
def test_an_address_of_this_machine_is_its_path(key: str) -> None:
    section, name = key.split(".")
    for given, meant in (
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("FILE:/a", "/a"),
        ("~/a", str(Path.home() / "a")),
        ("a:b", "a:b"),
    ):
        found = getattr(getattr(load_config(None, {}, {key: given}), section), name)
        assert found == ((meant,) if key == "journal.paths" else meant)


@pytest.mark.parametrize(
    "text, said",
    [
        ("[journl]\npath='x'", "did you mean journal"),
        ("[lake]\npaths='x'", "did you mean lake.path"),
        ("[lake]\npath=5", "must be a string"),
        ("[journal]\npaths='x", "is not TOML"),
        ("[journal]\npaths=[5]", "list of strings"),
        ("[journal]\nrows_per_batch=true", "whole number"),
    ],
)
def test_a_file_that_cannot_be_is_told_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid, match=said) as raised:
        load_config(file, {})
    assert "x.toml" in str(raised.value) and raised.value.exit_code == 2


def test_the_file_of_settings_is_a_path_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "a b.toml"
    file.write_text("[lake]\npath='tables'")
    assert load_config(None, {"GODWIT_PIPELINES_CONFIG": file.as_uri()}).lake.path == "tables"
    with pytest.raises(ConfigInvalid, match="is not a local path"):
        load_config(None, {"GODWIT_PIPELINES_CONFIG": "s3://bucket/x.toml"})


@pytest.mark.parametrize("name", ["GODWIT_PIPELINES_NODE_TOKEN", "GODWIT_PIPELINES_NODE_TOKN"])
def test_no_error_shows_a_token(tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text("[node]\ntoken=['correct-horse']")
    with pytest.raises(ConfigInvalid) as raised:
        load_config(file, {name: "correct-horse"} if name.endswith("TOKN") else {})
    assert "correct-horse" not in str(raised.value)


def test_an_unknown_variable_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigInvalid, match="GODWIT_PIPELINES_LAKE_PATH"):
        load_config(None, {"GODWIT_PIPELINES_LAKE_PTH": "x"})


def test_every_setting_has_a_sentence_and_is_in_the_reference() -> None:
    page = describe_config()
    for key, found, _ in list_options():
        assert found.metadata["about"].endswith(".") and f"`{key}`" in page
