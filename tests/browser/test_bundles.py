"""One import of the JavaScript client works under every module system, bundler and runtime: each is built and run, from the package.

The bundlers are those of tests/browser/bundlers/package-lock.json, and are installed when the first test needs them.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from playwright.async_api import Page

from godwit import testing
from tests.architecture.source import ROOT
from tests.browser.conftest import Serve
from tests.browser.test_javascript_client import EVERYTHING

BUNDLERS = ROOT / "tests/browser/bundlers"
DEADLINE_S = 120
EXPECTED = [42, {"x": "é😀"}, [0, 255], "text", ["CommandRefused", 4101, "SubjectInvalid"], "ClientClosed"]
ESM = 'import * as godwit from "godwit-client";\n'
COMMON = 'const godwit = require("godwit-client");\n'
RUN = f"const everything = {EVERYTHING};\n"
PRINT = RUN + 'everything([process.argv[2], "json"]).then((found) => console.log(JSON.stringify(found)));\n'
PAGE = RUN + "globalThis.everything = everything;\n"
VITE = """
const lib = { entry: "page.mjs", formats: ["iife"], name: "x", fileName: () => "page.js" };
export default { logLevel: "error", build: { minify: true, lib } };
"""
WEBPACK = """
const webpack = require(process.argv[2] + "/node_modules/webpack");
const entry = process.argv[3];
webpack({ mode: "production", entry, output: { path: process.cwd() + "/dist", filename: "page.js" } }, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
});
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of the bundlers' programs."""
    installed = BUNDLERS / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (BUNDLERS / "package-lock.json").stat().st_mtime:
        npm = shutil.which("npm")
        assert npm is not None, "npm is missing: make check names the way to get it"
        subprocess.run([npm, "ci", "--silent", "--no-progress"], cwd=BUNDLERS, check=True, timeout=600)
    return BUNDLERS / "node_modules/.bin"


@pytest.fixture
def project(package: Path, tmp_path: Path) -> Path:
    """A project that has installed the client with its dependency, and nothing else."""
    shutil.copytree(package, tmp_path / "node_modules/godwit-client")
    shutil.copytree(ROOT / "clients/javascript/node_modules/ws", tmp_path / "node_modules/ws")
    (tmp_path / "package.json").write_text("{}")
    for name, text in {
        "program.mjs": ESM + PRINT,
        "program.cjs": COMMON + PRINT,
        "page.mjs": ESM + PAGE,
        "page.cjs": COMMON + PAGE,
        "vite.config.mjs": VITE,
        "webpack.cjs": WEBPACK,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


async def run(project: Path, *words: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(*words, cwd=project, stdout=PIPE, stderr=PIPE)
    output, errors = await process.communicate()
    assert process.returncode == 0, output.decode() + errors.decode()
    return output.decode()


BUNDLE = ("--bundle", "--platform=node", "--log-level=warning", "--outfile=bundled.cjs")


@pytest.mark.long
@pytest.mark.parametrize("source", ["program.mjs", "program.cjs"])
@pytest.mark.parametrize("runtime", ["node", "deno", "bun", "esbuild"])
async def test_a_program_runs(runtime: str, source: str, project: Path, programs: Path) -> None:
    commands: dict[str, list[str | Path]] = {
        "node": ["node", source],
        "deno": [programs / "deno", "run", "--quiet", "--allow-all", "--node-modules-dir=manual", source],
        "bun": [programs / "bun", source],
        "esbuild": ["node", "bundled.cjs"],
    }
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        if runtime == "esbuild":
            await run(project, programs / "esbuild", source, *BUNDLE)
        assert json.loads(await run(project, *commands[runtime], node.url)) == EXPECTED


@pytest.mark.long
@pytest.mark.parametrize("source", ["page.mjs", "page.cjs"])
@pytest.mark.parametrize("bundler", ["esbuild", "vite", "webpack"])
async def test_a_page_that_was_bundled_runs(
    bundler: str, source: str, project: Path, programs: Path, page: Page, serve: Serve
) -> None:
    commands: dict[str, list[str | Path]] = {
        "esbuild": [
            programs / "esbuild",
            source,
            "--bundle",
            "--minify",
            "--log-level=warning",
            "--outfile=dist/page.js",
        ],
        "vite": [programs / "vite", "build"],
        "webpack": ["node", "webpack.cjs", BUNDLERS, f"./{source}"],
    }
    (project / "vite.config.mjs").write_text(VITE.replace("page.mjs", source))
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        await run(project, *commands[bundler])
        await page.goto(await serve("<!doctype html>"))
        await page.add_script_tag(path=project / "dist/page.js")
        assert await page.evaluate("(url) => everything([url, 'json'])", node.url) == EXPECTED


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_the_one_file_works_from_a_script_tag(page: Page, serve: Serve, encoding: str) -> None:
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        await page.goto(await serve('<!doctype html><script src="/godwit-client/dist/godwit-client.js"></script>'))
        script = EVERYTHING.replace("godwit.Client", "Godwit.Client")
        assert script != EVERYTHING
        assert await page.evaluate(script, [node.url, encoding]) == EXPECTED


def test_the_package_has_the_types_of_its_modules_and_no_others(package: Path) -> None:
    types = {path.relative_to(package / "types").as_posix() for path in package.glob("types/**/*.d.ts")}
    modules = {path.relative_to(package / "src").as_posix() for path in package.glob("src/**/*.js")}
    assert types == {name.removesuffix(".js") + ".d.ts" for name in modules}
