"""Certificates in one file, one after the other."""

from pathlib import Path

import pytest

from godwit.access.chain import split_certificates
from tests.authority import Authority, read_der


@pytest.mark.parametrize(
    "shown", [b"\x30", b"\x30\x82\x01", b"\x30\x05abc", b"\x02\x01\x00", b"\x30\x00\x30\x84\xff\xff\xff\xff"], ids=repr
)
def test_certificates_that_are_cut_are_refused(shown: bytes) -> None:
    with pytest.raises(ValueError):
        split_certificates(shown)


def test_certificates_that_came_together_are_told_apart(tmp_path: Path) -> None:
    ders = [read_der(Authority(tmp_path).issue(client=name)[0]) for name in ("a", "b")]
    assert split_certificates(b"".join(ders)) == tuple(ders)
    assert split_certificates(None) == ()
