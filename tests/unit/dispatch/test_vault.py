"""Encrypted texts: only their key reads them, and a damaged one is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.dispatch.vault import Vault, read_keys, write_keys
from godwit.errors import ConfigInvalid

OLD, NEW = b"a" * 32, b"b" * 32


def test_a_text_is_read_by_the_keys_that_are_there() -> None:
    old, both, new = Vault([OLD]), Vault([NEW, OLD]), Vault([NEW])
    sealed = old.seal("whsec_Zm9v")
    assert "whsec" not in sealed and sealed != old.seal("whsec_Zm9v"), "no two are alike"
    assert old.unseal(sealed) == both.unseal(sealed) == "whsec_Zm9v" and new.unseal(sealed) == ""
    again = both.seal(both.unseal(sealed))
    assert new.unseal(again) == "whsec_Zm9v" and old.unseal(again) == ""
    assert old.seal("") == old.unseal("") == "" and old.unseal("whsec_plain") == "whsec_plain"


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-8], lambda text: text + "!", lambda text: "g1..", lambda text: text[:12]]
)
def test_a_damaged_text_is_empty(damage: object) -> None:
    vault = Vault([OLD])
    assert vault.unseal(damage(vault.seal("x" * 40))) == ""  # type: ignore[operator]  # a function


def test_a_key_file_is_made_private_once_and_refused_where_it_holds_no_keys(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    keys = read_keys(file)
    assert read_keys(file) == keys and len(keys) == 1 and file.stat().st_mode & 0o077 == 0
    write_keys(file, [NEW, OLD])
    assert read_keys(file) == [NEW, OLD]
    for wrong in ("", "abc", "AAAA\n", "ä"):
        file.write_text(wrong, "utf-8")
        with pytest.raises(ConfigInvalid):
            read_keys(file)
