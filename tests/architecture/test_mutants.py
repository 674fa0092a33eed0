"""The node with deliberate faults is a separate program: released code contains none of it."""

import tomllib
from pathlib import Path

from tests.architecture.source import ROOT, code_files, read

CRATE = "godwit-mutants"


def test_no_crate_depends_on_the_broken_node() -> None:
    workspace = tomllib.loads(read(Path("Cargo.toml")))["workspace"]
    assert CRATE not in workspace["dependencies"], "nobody may name it"
    for member in workspace["members"]:
        manifest = tomllib.loads(read(Path(member) / "Cargo.toml"))
        needs = {
            **manifest.get("dependencies", {}),
            **manifest.get("dev-dependencies", {}),
            **manifest.get("features", {}),
        }
        assert CRATE not in needs, member
        assert member == "mutants" or manifest["package"]["name"] != CRATE


def test_the_released_crates_do_not_speak_of_it() -> None:
    released = {"core", "engine", "bridge"}
    speaking = [
        str(path) for path in code_files(".rs") if path.parts[0] in released and "mutants" in read(path).lower()
    ]
    assert not speaking


def test_the_compiled_engine_has_none_of_it() -> None:
    built = list((ROOT / "server" / "godwit").glob("_engine*.so"))
    assert built, "make setup builds it"
    for path in built:
        held = path.read_bytes()
        assert b"hide-gap" not in held and CRATE.encode() not in held
