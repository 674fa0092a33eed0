"""What is revoked stays so: over a restart, until its time, and when it cannot be written nobody is told that it was."""

from pathlib import Path

import pytest

from godwit.access.revocation import FILE_NAME, Revocation, Revocations
from godwit.errors import NodeFailed


def test_identities_and_token_ids_are_two_things() -> None:
    revoked = Revocations()
    revoked.add(Revocation(identity="ann"))
    revoked.add(Revocation(token_id="t1"))
    assert revoked.covers("ann", None) and revoked.covers("ann", "t9") and revoked.covers("bob", "t1")
    assert not revoked.covers("t1", None) and not revoked.covers("bob", "ann")
    assert revoked.lift(identity="ann") and not revoked.lift(identity="ann") and not revoked.lift(identity="t1")
    assert not revoked.covers("ann", None) and len(revoked) == 1


def test_one_with_an_end_ends() -> None:
    now = [1000.0]
    revoked = Revocations(now_ms=lambda: now[0])
    revoked.add(Revocation(identity="ann", until_ms=2000))
    assert revoked.covers("ann", None) and len(revoked.list()) == 1
    now[0] = 2000
    assert not revoked.covers("ann", None) and revoked.list() == []


def test_they_outlive_the_node_and_a_broken_file_keeps_it_from_starting(tmp_path: Path) -> None:
    revoked = Revocations(tmp_path)
    for one in (
        Revocation(identity="ann"),
        Revocation(token_id="t1", until_ms=2**62),
        Revocation(token_id="t0", until_ms=1),
    ):
        revoked.add(one)
    revoked.add(Revocation(identity="bob"))
    revoked.lift(identity="bob")
    assert [one.name for one in Revocations(tmp_path).list()] == ["ann", "t1"]
    for broken in ("", "{}", "[5]", '[{"identity": "a", "token_id": "b"}]', '[{"identity": ""}]'):
        (tmp_path / FILE_NAME).write_text(broken)
        if broken == "{}":
            assert Revocations(tmp_path).list() == []
            continue
        with pytest.raises(NodeFailed, match="who is revoked"):
            Revocations(tmp_path)


def test_one_that_cannot_be_kept_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    revoked = Revocations(folder)
    revoked.add(Revocation(identity="ann", until_ms=2**62))
    (folder / FILE_NAME).unlink()
    folder.rmdir()
    for name in ("ann", "bob"):
        with pytest.raises(NodeFailed, match="cannot be kept"):
            revoked.add(Revocation(identity=name))
    assert [one.until_ms for one in revoked.list()] == [2**62]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"identity": "a", "token_id": "b"},
        {"identity": ""},
        {"token_id": "x" * 300},
        {"identity": "a", "until_ms": -1},
    ],
)
def test_what_names_nobody_or_two_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Revocation(**given)  # type: ignore[arg-type]  # what a request may hold
