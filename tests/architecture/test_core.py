"""The core does no I/O: which crates it may use, what its lints forbid, and that nothing there is unsafe."""

import tomllib
from pathlib import Path

from tests.architecture.source import code_files, read

CRATES_WITHOUT_IO = {"base64", "flate2", "hashbrown", "httparse", "serde", "serde_json", "sha1", "siphasher"}
CRATES_FOR_TESTS = {"proptest"}
MUST_BE_FORBIDDEN = {
    *("std::time::Instant::now", "std::time::SystemTime::now", "std::time::Instant", "std::time::SystemTime"),
    *("std::net::TcpStream", "std::net::TcpListener", "std::net::UdpSocket", "std::fs::File", "std::thread::spawn"),
    *("std::env::var", "std::io::stdout", "std::println", "std::eprintln", "std::process::exit"),
}


def test_core_uses_only_crates_without_io() -> None:
    manifest = tomllib.loads(read(Path("core/Cargo.toml")))
    assert set(manifest["dependencies"]) <= CRATES_WITHOUT_IO
    assert set(manifest.get("dev-dependencies", {})) <= CRATES_FOR_TESTS
    assert "build-dependencies" not in manifest and "target" not in manifest


def test_core_forbids_unsafe_code() -> None:
    assert "#![forbid(unsafe_code)]" in read(Path("core/src/lib.rs"))


def test_core_lints_forbid_clock_sockets_files_threads_and_printing() -> None:
    lints = tomllib.loads(read(Path("core/clippy.toml")))
    forbidden = {entry["path"] for key, entries in lints.items() if key.startswith("disallowed") for entry in entries}
    assert forbidden >= MUST_BE_FORBIDDEN


def test_core_never_allows_what_its_lints_forbid() -> None:
    sources = [path for path in code_files(".rs") if path.parts[:2] == ("core", "src")]
    evaded = [str(path) for path in sources if "clippy::disallowed" in read(path)]
    assert not evaded


def test_every_crate_obeys_the_workspace_lints() -> None:
    members = tomllib.loads(read(Path("Cargo.toml")))["workspace"]["members"]
    assert all(tomllib.loads(read(Path(name) / "Cargo.toml"))["lints"] == {"workspace": True} for name in members)
