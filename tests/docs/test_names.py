"""Names in the docs exist in the program: settings, limits, codes and metrics."""

from __future__ import annotations

import dataclasses
import re

from godwit.client import Settings
from godwit.codes import Code
from godwit.config.tree import OPTIONS
from godwit.limits import LIMITS
from godwit.monitoring.schema import list_metrics
from tests.architecture.source import read
from tests.docs.test_snippets import TEXTS

SPAN = re.compile(r"`([^`\n]+)`")
SECTIONS = {key.split(".")[0] for key in OPTIONS}
SETTING = re.compile(rf"({'|'.join(sorted(SECTIONS))})\.([a-z_0-9]+)(?: = .+)?")
OTHERS = {"journal.fail_on_data_loss"}
"""Settings of the pipelines, whose own tests hold them."""
OUTSIDE = ("refresh_ms_min", "keys_age_ms_max", "delay_ms_max", "nf_conntrack_max", "mqtt_owed_max", "batch_bytes_max")
"""An issuer's, a workload's, the kernel's and a pattern's."""
FORMATS = ("godwit_delta", "godwit_publish")
"""Of Spark."""


def list_spans() -> list[tuple[str, str]]:
    return [(str(path), span) for path in TEXTS for span in SPAN.findall(read(path))]


def test_every_setting_named_is_one() -> None:
    found = [(path, match) for path, span in list_spans() if (match := SETTING.fullmatch(span))]
    assert len(found) > 60
    unknown = {(path, key) for path, match in found if (key := f"{match[1]}.{match[2]}") not in {*OPTIONS, *OTHERS}}
    assert not unknown


def test_every_limit_named_is_one() -> None:
    clients = {field.name for field in dataclasses.fields(Settings)}
    known = {row.name for row in LIMITS} | {key.split(".")[1] for key in OPTIONS} | clients | set(OUTSIDE)
    spans = [(path, span) for path, span in list_spans() if not path.startswith("docs/pipelines/")]  # columns of tables
    named = [(path, span) for path, span in spans if re.fullmatch(r"[a-z_]+_(max|min)", span)]
    assert len(named) > 20
    assert not {(path, name) for path, name in named if name not in known}


def test_every_code_named_is_one() -> None:
    """A number of the contract's, wherever it stands alone; years and the like do not look so."""
    known = {int(code) for code in Code}
    number = re.compile(r"(?<![\w.,/:+-])(4[012]\d\d)(?![\w,/-])")
    named = {(str(path), int(number_of)) for path in TEXTS for number_of in number.findall(read(path))}
    assert len(named) > 10
    assert not {(path, number) for path, number in named if number not in known}


def test_every_metric_named_is_one() -> None:
    known = {name for name, *_ in list_metrics()}
    known |= {name + "_total" for name in known}
    named = {(str(path), name) for path in TEXTS for name in re.findall(r"\bgodwit_[a-z_]+", read(path))}
    named = {
        (path, name)
        for path, name in named
        if not name.startswith(("godwit_pipelines", "godwit_server", "godwit_client", *FORMATS))
    }
    assert len(named) > 10
    assert not {(path, name) for path, name in named if name not in known and not name.endswith("_")}
