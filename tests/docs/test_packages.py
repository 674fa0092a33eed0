"""The distributions: their requirements, that the client's works alone, and the server's on a machine without compilers."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tomllib
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from godwit import __version__, testing
from godwit.children import follow_parent, wait_for_end
from tests.architecture.source import ROOT, kept_files, read

PROJECTS = [path for path in kept_files() if path.name == "pyproject.toml"]
LOCKS = [path for path in kept_files() if path.name == "requirements.lock"]
# A name, then an extra, a version or the end: `godwit`, which on the public index belongs to somebody else.
FOREIGN = re.compile(r"godwit(?:\[[\w,]+\])?\s*(?:[=<>~!]=?[\d.].*|@.*)?")
INSTALLS = re.compile(r"pip install ([^\n`]+)")


def list_requirements(project: Path) -> list[str]:
    tables = tomllib.loads(read(project))
    named = tables.get("project", {})
    lists = [named.get("dependencies", []), tables.get("build-system", {}).get("requires", [])]
    lists += [*named.get("optional-dependencies", {}).values(), *tables.get("dependency-groups", {}).values()]
    return [one for some in lists for one in some if isinstance(one, str)]


def test_nothing_requires_the_package_of_somebody_else() -> None:
    required = {str(path): one for path in PROJECTS for one in list_requirements(path) if FOREIGN.fullmatch(one)}
    required |= {
        str(path): line
        for path in LOCKS
        for line in read(path).splitlines()
        if FOREIGN.match(line + " ") and line.startswith("godwit=")
    }
    for path in kept_files():
        if path.suffix in (".md", ".py", ".toml", ".sh", "") and path.parts[0] != "tests":
            for command in INSTALLS.findall(read(path)):
                words = [word.strip("'\"();.,") for word in command.split()]
                required |= {str(path): command for word in words if FOREIGN.fullmatch(word)}
    assert len(PROJECTS) >= 3 and len(LOCKS) >= 2
    assert not required


def test_no_project_is_named_like_it() -> None:
    names = {tomllib.loads(read(path))["project"]["name"] for path in PROJECTS}
    assert names >= {"godwit-client", "godwit-server", "godwit-pipelines"} and "godwit" not in names


def test_the_package_of_the_client_has_every_module_that_it_imports() -> None:
    """Without this, `import godwit_client` fails in each installed client and in no working copy."""
    tables = tomllib.loads(read(Path("clients/python/pyproject.toml")))
    named = tables["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    packed = {(ROOT / "clients/python" / source).resolve() for source in named}
    files = [file for path in packed for file in (path.rglob("*.py") if path.is_dir() else [path])]
    imported = [(file, module) for file in files if file.suffix == ".py" for module in list_imported(file)]
    assert len(imported) > 100
    missing = {f"{module.name} for {file.name}" for file, module in imported if not packed & {module, *module.parents}}
    assert not missing


def list_imported(file: Path) -> Iterator[Path]:
    """The files that a module's relative imports name."""
    for node in ast.walk(ast.parse(read(file.relative_to(ROOT)))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for module in (base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)):
                if module.exists():
                    yield module


def test_the_client_has_the_version_of_the_server() -> None:
    assert tomllib.loads(read(Path("clients/python/pyproject.toml")))["project"]["version"] == __version__


def test_the_client_requires_what_the_server_requires() -> None:
    server, client = (
        set(tomllib.loads(read(Path(path)))["project"]["dependencies"])
        for path in ("pyproject.toml", "clients/python/pyproject.toml")
    )
    assert client <= server


PROGRAM = """
import asyncio, importlib.util, sys
from godwit_client import Client, Position

async def main():
    async with Client(sys.argv[1]) as client, asyncio.timeout(20):
        published = await client.publish("/greetings/en", {"hello": "world"})
        message = await anext(aiter(client.subscribe("/greetings/**")))
        assert message.json() == {"hello": "world"} and isinstance(published.position, Position)

asyncio.run(main())
assert importlib.util.find_spec("godwit") is None
print("done")
"""


@pytest.fixture
def client_python(tmp_path: Path) -> Path:
    """A Python with the client's package and nothing else of Godwit."""
    build = (Path(sys.executable).with_name("uv"), "build", "--quiet", "--wheel", "--out-dir", tmp_path)
    subprocess.run([*build, ROOT / "clients/python"], check=True, timeout=300)
    [wheel] = tmp_path.glob("godwit_client-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = (tmp_path / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, wheel], check=True, timeout=300)
    return tmp_path / "venv/bin/python"


@pytest.mark.long
async def test_the_client_works_where_only_its_own_package_is_installed(client_python: Path) -> None:
    async with testing.node() as node:
        process = await asyncio.create_subprocess_exec(
            *(client_python, "-c", PROGRAM, node.url), stdout=asyncio.subprocess.PIPE, cwd=client_python.parent
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert out == b"done\n"


@pytest.mark.long
def test_the_wheel_is_for_every_linux_of_glibc_2_28_and_python_3_11(wheel: Path) -> None:
    """The tag is what maturin found in the symbols of the engine; a newer one is refused at the build."""
    assert re.fullmatch(r"godwit_server-[\d.]+-cp311-abi3-manylinux_2_28_(x86_64|aarch64)\.whl", wheel.name)


def test_each_module_that_the_docs_name_in_the_server_is_in_the_client_too(tmp_path: Path) -> None:
    """The client's README says: write `godwit_client` where the guide writes `godwit.client`."""
    project = ROOT / "clients/python"
    shutil.copytree(project / "src/godwit_client", tmp_path / "godwit_client")
    tables = tomllib.loads(read(Path("clients/python/pyproject.toml")))
    for source, target in tables["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        copy = shutil.copytree if (project / source).is_dir() else shutil.copyfile
        copy(project / source, tmp_path / target)
    pages = [page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))]
    names = {name for page in pages for name in re.findall(r"(?:from|import) godwit\.client((?:\.\w+)+)", page)}
    assert ".inbox" in names
    program = "".join(
        f"import godwit_client{name} as one, godwit.client{name} as other\nassert one.__all__ == other.__all__\n"
        for name in sorted(names)
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environment)


WITHOUT_COMPILERS = ("python3", "sh", "env", "openssl")
"""Programs of a machine that is not for development; the node's commands may use no others."""


@pytest.fixture(scope="module")
def bare(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose PATH has the installed wheel, and neither Rust nor Node nor C."""
    folder = tmp_path_factory.mktemp("bare")
    for name in WITHOUT_COMPILERS:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return {"PATH": f"{installed / 'bin'}:{folder}", "HOME": str(folder)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["token", "keys", "keys"], ""),
        (["plan", "--help"], "connections"),
        (["verify", "--seconds", "5", "--subscribers", "10", "--fault", "none"], "subscribers are skipped"),
        (["bench", "idle", "--size", "0.01", "--rounds", "1"], "baseline is left out"),
    ],
    ids=["token", "plan", "verify", "bench"],
)
def test_commands_of_the_wheel_work_without_compilers(
    words: list[str], says: str, bare: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(["godwit", *words], env=bare, cwd=tmp_path, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout + done.stderr


@pytest.mark.long
async def test_a_node_of_the_wheel_serves_without_compilers(bare: dict[str, str], tmp_path: Path) -> None:
    serve = ("serve", "--demo", "--client", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    node = await asyncio.create_subprocess_exec(
        "godwit", *serve, env=bare, cwd=tmp_path, stdout=PIPE, stderr=DEVNULL, preexec_fn=follow_parent()
    )
    try:
        async with asyncio.timeout(60):
            assert node.stdout is not None
            found = re.search(r"client=(\S+)", (await node.stdout.readline()).decode())
            assert found is not None
            url = f"ws://{found.group(1)}"
            for words, says in (
                (["publish", "/rooms/kitchen", '{"celsius":21}', "--server", url], "/rooms/kitchen"),
                (["tail", "/rooms/**", "--count", "1", "--server", url], '{"celsius":21}'),
                (["tail", "/host/**", "--count", "1", "--server", url], "/host/"),
            ):
                one = await asyncio.create_subprocess_exec("godwit", *words, env=bare, cwd=tmp_path, stdout=PIPE)
                out, _ = await one.communicate()
                assert one.returncode == 0 and says in out.decode()
            node.terminate()
            assert await wait_for_end(node) == 0
    finally:
        if node.returncode is None:
            node.kill()
            await wait_for_end(node)
