"""The sources of values, refused values, and helpful error texts."""

import tomllib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.config import Address, build_config, describe_config, load_config, show_config
from godwit.config.changes import LIVE_KEYS, compare_configs
from godwit.config.key_lines import KeyLines, find_key_lines
from godwit.config.tree import OPTIONS, SECTIONS, read_value
from godwit.errors import ConfigInvalid, ConfigsInvalid
from godwit.limits import LIMITS

TOKEN = "correct-horse-battery-staple"


def build(toml: str = "", environment: dict[str, str] | None = None, flags: dict[str, str] | None = None) -> Any:
    return build_config(tomllib.loads(toml), environment or {}, flags or {}, key_lines=KeyLines("godwit.toml"))


def refuse(toml: str = "", environment: dict[str, str] | None = None, flags: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        build(toml, environment, flags)
    return str(caught.value)


def test_every_value_has_a_sentence_and_numbers_have_bounds_around_their_default() -> None:
    for found in OPTIONS.values():
        assert found.sentence.endswith("."), found.key
        if found.type is int:
            assert found.minimum is not None and found.maximum is not None, found.key
            assert found.minimum <= found.default <= found.maximum, found.key
            assert found.key.endswith(("_ms", "_max", "_bytes", ".shards", "_min")), found.key


def test_later_sources_win_and_each_value_knows_its_own() -> None:
    toml = '[client]\naddress = "127.0.0.1:1"\n[node]\nname = "n"\nshards = 2\n'
    config = build(
        toml, {"GODWIT_NODE_SHARDS": "3", "GODWIT_CLIENT_ADDRESS": "127.0.0.1:2"}, {"client.address": "127.0.0.1:3"}
    )
    assert (config.node.name, config.node.shards, str(config.client.address)) == ("n", 3, "127.0.0.1:3")
    assert config.sources["node.name"] == "file godwit.toml"
    assert config.sources["node.shards"] == "environment GODWIT_NODE_SHARDS"
    assert config.sources["client.address"] == "flag"
    assert config.sources["node.driver"] == "default"


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("[node]\nshard = 2", "node.shard (from file godwit.toml) is not known; did you mean node.shards?"),
        ("[nodes]\nshards = 2", "did you mean node?"),
        ("[node]\nlog_messages_max = 2", "did you mean limits.log_messages_max?"),
        ("[client]\nnope = 1", "client.nope (from file godwit.toml) is not known; `godwit config doc` lists all names"),
        ("[what]\na = 1", "what (from file godwit.toml) is not known; `godwit config doc` lists all names"),
        ('[patterns."/a"]\nzz = 1', "is not known; `godwit config doc` lists all names"),
        ("node = 1", "must be a table: [node]"),
        ("[node]\nshards = 65", "65 must be a whole number from 0 to 64; the default is 0"),
        ("[node]\nshards = -1", "must be a whole number from 0 to 64"),
        ("[node]\nshards = true", "True must be a whole number"),
        ("[node]\nshards = 1.0", "1.0 must be a whole number"),
        ('[node]\nshards = "2"', "'2' must be a whole number"),
        ('[node]\ndriver = "kqueue"', "must be one of auto, io_uring, readiness"),
        ("[client]\naddress = 8800", "must be HOST:PORT"),
        ('[client]\naddress = "localhost"', "must be HOST:PORT"),
        ('[client]\naddress = "::1:8800"', "must be HOST:PORT"),
        ('[client]\naddress = "0.0.0.0:65536"', "must be HOST:PORT"),
        ('[client]\norigins = ["https://A.example"]', "which is not an origin"),
        ('[client]\norigins = ["https://a.example/"]', "which is not an origin"),
        ('[admin]\nhosts = "a"', "must be a list of texts"),
        ("[demo]\nenabled = 1", "must be true or false"),
        ('[patterns."/a/**/b"]', "has ** before its last segment"),
        (
            '[patterns."/a"]\nlog_mesages_max = 1',
            'patterns."/a".log_mesages_max (from file godwit.toml) is not known; did you mean log_messages_max?',
        ),
        ('[patterns."/a"]\nlog_messages_max = 0', "from 1 to 1,000,000; leave it out to use the node's"),
        ('[patterns]\n"/a" = 1', "must be a table"),
        ('[access]\nmode = "basic"', "needs access.publish_tokens"),
        (f'[access]\npublish_tokens = ["{TOKEN}"]', "does not use publishing tokens"),
        ('[access]\nanonymous_subscribe = ["/news"]', "does not use access.anonymous_subscribe"),
        (
            f'[access]\nmode = "basic"\npublish_tokens = ["{TOKEN}"]\nanonymous_subscribe = ["/news"]',
            "everybody may subscribe to everything",
        ),
        ('[access]\ncertificate_publish = ["/a"]', "does not use access.certificate_subscribe and"),
        ('[access]\nmode = "custom"', "must name the authorizer as module:attribute"),
        ('[access]\nauthorizer = "a:b"', "does not use access.authorizer"),
        ('[access]\nmode = "custom"\nauthorizer = "a:b:c"', "must be module:attribute"),
        ("[limits]\nidle_ms_max = 20000", "limits.ping_interval_ms (from default): 25000 must not exceed"),
        ('[client]\naddress = "127.0.0.1:8801"', "is also the client port's address"),
    ],
)
def test_wrong_files_are_refused_with_key_source_bound_and_hint(toml: str, expected: str) -> None:
    assert expected in refuse(toml)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("x, y", ("x", "y")),
        ('["x", "y"]', ("x", "y")),
        (" ['x',\n 'y', ] ", ("x", "y")),
        ('["a,b"]', ("a,b",)),
        ("[]", ()),
        ("[::1],x", ("[::1]", "x")),
        ("[" * 5_000, ("[" * 5_000,)),
        ("", ()),
    ],
)
def test_a_list_in_a_variable_or_flag_is_written_as_in_a_file_or_with_commas(text: str, read: tuple[str, ...]) -> None:
    option = OPTIONS["admin.token"]
    listed = replace(option, type=tuple[str, ...], is_secret=False, check=None)
    assert listed.parse(text, "flag") == read


@pytest.mark.parametrize("text", ["[1]", '["x", 2]', '[["x"]]'])
def test_a_list_of_something_else_is_refused(text: str) -> None:
    for given_by in ({"environment": {"GODWIT_ADMIN_HOSTS": text}}, {"flags": {"admin.hosts": text}}):
        assert "must be a list of texts" in refuse(**given_by)  # type: ignore[arg-type]  # one of the two


def test_a_list_in_a_refusal_is_shown_as_it_is_written() -> None:
    assert ": ['ftp://x'] contains 'ftp://x', which is not an origin" in refuse('[client]\norigins = ["ftp://x"]')


def test_wrong_variables_and_flags_are_refused() -> None:
    assert "did you mean GODWIT_NODE_SHARDS?" in refuse(environment={"GODWIT_NODE_SHARD": "1"})
    assert "`godwit config doc` lists all names" in refuse(environment={"GODWIT_SERVIC": "1"})
    assert "environment GODWIT_NODE_SHARDS" in refuse(environment={"GODWIT_NODE_SHARDS": "two"})
    assert "did you mean demo.enabled?" in refuse(flags={"demo.enable": "true"})
    assert "must be true or false" in refuse(flags={"demo.enabled": "maybe"})
    assert "in a configuration file only" in refuse(flags={'patterns."/a/**".merge': "true"})


@pytest.mark.parametrize("variable", ["GODWIT_SERVER", "GODWIT_TOKEN", "GODWIT_DISPATCH_KEY"])
def test_variables_of_commands_that_are_clients_set_nothing_of_a_node(variable: str) -> None:
    assert load_config(None, {variable: "x"}) == load_config(None, {})


def test_variables_of_the_pipelines_are_none_of_a_nodes() -> None:
    given = {"GODWIT_PIPELINES_LAKE_PATH": "/lake", "GODWIT_PIPELINES_CONFIG": "x.toml", "GODWIT_NODE_SHARDS": "3"}
    assert load_config(None, given).node.shards == 3
    assert "is not known" in refuse(environment={"GODWIT_PIPELINE_LAKE_PATH": "/lake"})


def test_variables_that_kubernetes_sets_for_a_service_are_named_and_ignored() -> None:
    links = {
        "GODWIT_SERVICE_HOST": "10.0.0.1",
        "GODWIT_SERVICE_PORT": "8800",
        "GODWIT_SERVICE_PORT_MQTT": "1883",
        "GODWIT_PORT": "tcp://10.0.0.1:8800",
        "GODWIT_PORT_8800_TCP": "tcp://10.0.0.1:8800",
        "GODWIT_PORT_8800_TCP_PROTO": "tcp",
        "GODWIT_PORT_8800_TCP_PORT": "8800",
        "GODWIT_PORT_8800_TCP_ADDR": "10.0.0.1",
        "GODWIT_ADMIN_SERVICE_HOST": "10.0.0.2",
        "GODWIT_ADMIN_PORT": "tcp://10.0.0.2:8801",
    }
    config = load_config(None, {**links, "GODWIT_NODE_SHARDS": "3"})
    assert config.ignored_variables == tuple(sorted(links)) and config.node.shards == 3
    for name, text in {"GODWIT_CLIENT_PORT": "8800", "GODWIT_PORT_8800_TCP_X": "1", "GODWIT_SERVICE": "1"}.items():
        assert "is not known" in refuse(environment={**links, name: text})


def test_secrets_stay_out_of_refusals_and_of_the_shown_configuration() -> None:
    assert "short-secret" not in refuse('[access]\nmode = "basic"\npublish_tokens = ["short-secret"]')
    assert "short-secret" not in refuse('[access]\nmode = "basic"\npublish_tokens = "short-secret"')
    config = build(f'[access]\nmode = "basic"\npublish_tokens = ["{TOKEN}"]')
    assert TOKEN not in show_config(config)


def test_a_text_with_control_characters_is_shown_as_toml_that_gives_the_same() -> None:
    text = '\x1b[2J"\\\n\x9b\u202e\U000e0001é'
    shown = show_config(build(flags={"node.name": text}))
    assert tomllib.loads(shown)["node"]["name"] == text
    assert all(each.isprintable() or each == "\n" for each in shown)


def test_shown_configuration_gives_the_same_configuration() -> None:
    config = build(
        '[node]\nname = "a\\"b"\nshards = 3\n[admin]\nhosts = ["x", "y"]\n[patterns."/a/**"]\nsnapshot = false\n'
    )
    again = build(show_config(config))
    assert [read_value(again, key) for key in OPTIONS] == [read_value(config, key) for key in OPTIONS]
    assert again.patterns == config.patterns


def test_reference_page_names_every_key_and_variable() -> None:
    page = describe_config()
    for found in OPTIONS.values():
        assert f"`{found.environment}`" in page
        assert found.sentence in page
    for section in SECTIONS.values():
        assert section.__doc__ and section.__doc__ in page


def test_a_file_that_cannot_be_read_or_is_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--config"):
        load_config(tmp_path / "missing.toml")
    with pytest.raises(ConfigInvalid, match="is longer than"):
        load_config(Path("/dev/zero"))
    broken = tmp_path / "broken.toml"
    broken.write_text("[node\n")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--config"):
        load_config(broken)
    for cut_short in ("", " \n"):
        broken.write_text(cut_short)
        load_config(broken)  # an empty configuration, at a start
        with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--config"):
            load_config(broken, is_reload=True)
    broken.write_text("# nothing is set")
    assert load_config(broken)
    broken.write_text("\ufeff[node]\nshards = 2")
    assert load_config(broken).node.shards == 2  # the byte order mark of some editors
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--config"):
        load_config(None, {"GODWIT_CONFIG": str(broken)})


def test_a_refusal_names_the_line_and_so_does_every_source(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    for toml, line in [
        ('[node]\nname = "n"\n\n[limits]\nlog_mesages_max = 1\n', 5),
        ('\n[patterns."/a/**"] # these\nsnapshot = true\n"log_messages_max" = 0\n', 4),
        ("[node]\nshards = 1\nlimits.x = 1\n", 3),
        ("node.shards = 99\n", 1),
        ("\nnode = { shards = 99 }\n", 2),
        ("[nodes]\n", 1),
        ('[admin]\nhosts = [\n  "shards = 1",\n  2,\n]\n[node]\nshards = 1\n', 2),
        ('[issuers."https://a.b/c"]\nkeys = 1\n', 2),
    ]:
        file.write_text(toml)
        with pytest.raises(ConfigInvalid, match=rf"from file .*node\.toml:{line}\)"):
            load_config(file)
    file.write_text('[node]\nname = "n"\nshards = 2\n')
    sources = load_config(file).sources
    assert (sources["node.name"], sources["node.shards"]) == (f"file {file}:2", f"file {file}:3")


def test_what_stands_within_a_long_text_is_no_key() -> None:
    text = '[a]\nb = """\nc = 1\n[d]\n"""\nc = 2\n[[e]]\nf."g.h" = 3\n'
    assert dict(find_key_lines("file", text).lines) == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 6,
        ("e",): 7,
        ("e", "f"): 8,
        ("e", "f", "g.h"): 8,
    }


@given(st.text(alphabet="ab.\"'=[]{},\n\\ #1"))
def test_no_text_that_is_toml_breaks_the_finding_of_places(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    find_key_lines("file", text)


def test_addresses_of_both_families_round_trip() -> None:
    for text in ["127.0.0.1:0", "[::1]:8800", "localhost:65535", "0.0.0.0:1"]:
        assert str(Address.parse(text)) == text


@given(st.text())
def test_no_text_breaks_an_option(text: str) -> None:
    for found in OPTIONS.values():
        try:
            found.parse(text, "test")
        except ConfigInvalid as refusal:
            assert refusal.key == found.key


def test_limits_are_those_of_the_contract() -> None:
    rows = {f"limits.{row.name}": (row.default, row.minimum, row.maximum) for row in LIMITS}
    options = {key: (o.default, o.minimum, o.maximum) for key, o in OPTIONS.items() if key.startswith("limits.")}
    assert options == rows
    assert build("[limits]\nlog_messages_max = 7").limits == {row.name: row.default for row in LIMITS} | {
        "log_messages_max": 7
    }


def test_what_a_running_node_takes_over_is_told_from_what_waits_for_its_next_start() -> None:
    before = build("[limits]\nidempotency_keys_max = 5")
    after = build('[logging]\nlevel = "debug"\nformat = "json"\n[node]\nshards = 3\n[patterns."/a"]\nsnapshot = false')
    assert compare_configs(before, before) == ([], [])
    assert compare_configs(before, after) == (
        ["logging.level", "patterns"], ["node.shards", "limits.idempotency_keys_max", "logging.format"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prefixes", "are_apart"),
    [(("a:", "b:"), True), (("a:", "a:"), False), (("", "b:"), False), (("a", "b", "ab"), False), (("",), True)],
)
def test_no_issuer_can_name_another_issuers_holders(prefixes: tuple[str, ...], are_apart: bool) -> None:
    issuers = {f"i{place}": {"keys_file": "k", "identity_prefix": prefix} for place, prefix in enumerate(prefixes)}
    with nullcontext() if are_apart else pytest.raises(ConfigInvalid, match="identity_prefix"):
        build_config({"access": {"mode": "jwt"}, "issuers": issuers}, {}, {})


@pytest.mark.parametrize(
    ("issuer", "problem"),
    [
        ({"keys_file": "k", "keys_authorities_file": "a"}, "keys_authorities_file.*https"),
        ({"keys_url": "http://localhost/k", "keys_authorities_file": "a"}, "keys_authorities_file.*https"),
        ({"keys_url": "http://login.example/k"}, "keys_url.*must be https"),
        ({}, "needs exactly one of keys_file and keys_url"),
        ({"keys_url": "https://login.example/k", "keys_authorities_file": "a"}, None),
    ],
)
def test_where_an_issuers_keys_come_from_is_checked(issuer: dict[str, Any], problem: str | None) -> None:
    with pytest.raises(ConfigInvalid, match=problem) if problem else nullcontext():
        build_config({"access": {"mode": "jwt"}, "issuers": {"i": issuer}}, {}, {})


def test_the_reference_page_says_what_a_reload_changes() -> None:
    section, changes = "", {}
    for line in describe_config().splitlines():
        if line.startswith("## "):
            section = line[4:-1] if line.endswith("]") else line
        elif line.startswith("| `"):
            cells = line.split(" | ")
            changes[f"{section}.{cells[0].split('`')[1]}"] = cells[3]
    assert {
        key for key, change in changes.items() if change == "reload" and not key.startswith(("patterns", "issuers"))
    } == LIVE_KEYS
    assert {changes[key] for key in changes if key.startswith(("patterns", "issuers"))} == {"reload"}


def test_all_mistakes_are_told_at_once_in_their_order() -> None:
    table = {
        "acces": {"mode": "none"},
        "limits": {"log_messages_max": "x", "foo": 2},
        "patterns": {"a": {}, "/a/**": {"b": 1, "visible": "never"}},
        "node": 7,
    }
    with pytest.raises(ConfigsInvalid) as raised:
        build_config(table, {"GODWIT_NODE_SHARDS": "-1", "GODWIT_NO": "1"}, {"client.address": "nowhere", "no": "1"})
    found = [error.key for error in raised.value.errors]
    assert found[:5] == ["acces", "limits.log_messages_max", "limits.foo", "patterns", 'patterns."/a/**".b']
    assert found[6:] == ["node", "node.shards", "GODWIT_NO", "client.address", "no"]
    assert str(raised.value).splitlines() == [str(error) for error in raised.value.errors]
    with pytest.raises(ConfigsInvalid) as raised:
        build_config({"access": {"mode": "basic"}, "client": {"tls_address": "127.0.0.1:1"}}, {}, {})
    assert [error.key for error in raised.value.errors] == ["access.mode", "client.tls_address"]


def test_rules_between_values_are_reported_with_invalid_values_unless_they_are_about_one() -> None:
    rules = {"access": {"mode": "basic"}, "client": {"tls_address": "127.0.0.1:1"}}

    def found(table: dict[str, dict[str, object]], *, environment: dict[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigInvalid) as refused:
            build_config(rules | table, environment or {}, {})
        return [error.key for error in getattr(refused.value, "errors", [refused.value])]

    assert found({"node": {"shards": -1}}) == ["node.shards", "access.mode", "client.tls_address"]
    assert found({"tls": {"certificate_files": 7}}) == ["tls.certificate_files", "access.mode"]
    assert found({"access": {"mode": "basik"}}) == ["access.mode", "client.tls_address"]
    # The unknown name may be the one that a rule misses.
    assert found({"access": {"mode": "basic", "publish_tokns": ["x"]}}) == [
        "access.publish_tokns",
        "client.tls_address",
    ]
    assert found({}, environment={"GODWIT_TLS_CERTS": "x"}) == ["GODWIT_TLS_CERTS"]
    assert found({"issuers": {"https://a": 7}, "access": {"mode": "jwt"}}) == [
        'issuers."https://a"',
        "client.tls_address",
    ]


@pytest.mark.parametrize("toml", ['[acess]\nbasic = "hunter2"', '[access]\nbasicc = "hunter2"'])
def test_the_value_of_an_unknown_name_is_not_shown(toml: str) -> None:
    """It may be a secret whose name is misspelt."""
    assert "hunter2" not in refuse(toml)
    assert "hunter2" not in refuse(environment={"GODWIT_ADMIN_TOKN": "hunter2"})


def test_a_value_that_is_not_utf_8_is_refused_and_in_a_locale_of_ascii_utf_8_is_read() -> None:
    broken, right = b"a\xff".decode(errors="surrogateescape"), "ä".encode().decode("ascii", "surrogateescape")
    with pytest.raises(ConfigInvalid, match="is not valid UTF-8") as refused:
        build_config({}, {"GODWIT_NODE_NAME": broken}, {})
    assert refused.value.key == "node.name" and str(refused.value).isprintable()
    assert build_config({}, {"GODWIT_NODE_NAME": right}, {}).node.name == "ä"
