"""One table of figures: names that are unique in their scope, sentences, units, and no word that a client could choose."""

import re

import pytest

from godwit.monitoring.metric_specs import (
    CODE,
    CODE_NAMES,
    ENGINE_NAMES,
    NODE,
    PROTOCOL,
    REASON,
    SHARD,
    Kind,
    MetricSpec,
)

SCOPES = {"node": NODE, "protocol": PROTOCOL, "shard": (*PROTOCOL, *SHARD), "code": CODE, "reason": REASON}


@pytest.mark.parametrize("figures", SCOPES.values(), ids=SCOPES)
def test_a_scopes_figures_have_names_of_their_own(figures: tuple[MetricSpec, ...]) -> None:
    names = [figure.name for figure in figures]
    metrics = [figure.metric for figure in figures if figure.metric]
    assert len(set(names)) == len(names) and len(set(metrics)) == len(metrics)


def test_every_figure_has_a_sentence_and_a_unit() -> None:
    for figure in {figure for figures in SCOPES.values() for figure in figures}:
        assert figure.sentence.endswith(".") and "\n" not in figure.sentence
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", figure.name)
        assert figure.unit or figure.kind is Kind.NUMBER
        assert figure.kind is not Kind.GAUGE or figure.name.endswith("_bytes") == (figure.unit == "bytes")


def test_a_counters_metric_is_its_growth_a_second_and_a_number_has_none() -> None:
    by_name = {figure.name: figure for figure in (*NODE, *PROTOCOL)}
    assert (by_name["gaps"].metric, by_name["gaps"].metric_unit) == ("gaps_per_second", "gaps per second")
    assert (by_name["cpu_seconds"].metric, by_name["cpu_seconds"].metric_unit) == ("cpu", "cores")
    assert (by_name["connections"].metric, by_name["epoch"].metric) == ("connections", "")


def test_other_names_belong_to_figures() -> None:
    names = {figure.name for figures in SCOPES.values() for figure in figures}
    assert ENGINE_NAMES.keys() <= names
    assert CODE_NAMES.keys() == {figure.name for figure in CODE}
