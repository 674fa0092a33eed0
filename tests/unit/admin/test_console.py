"""The console's files: colours that can be read in both schemes, a policy that cannot be widened, no markup made from texts."""

import re

import pytest

from godwit.admin.console import FILES, FOLDER, make_policy

GROUNDS, INKS = ("ground", "panel", "raised"), ("ink", "quiet", "accent", "good", "warn", "bad")
OTHERS = (
    ("on-accent", "accent"),
    ("accent", "accent-soft"),
    ("bad", "bad-soft"),
    ("warn", "warn-soft"),
    ("ink", "bad-soft"),
)
SERIES = tuple(f"s{number}" for number in range(1, 9))
CONTRAST_MIN, CONTRAST_OF_LINES_MIN = 4.5, 3.0


def read_schemes() -> list[dict[str, str]]:
    css = FILES["/style/theme.css"].read_text()
    blocks = re.findall(r":root(?:\[data-theme=\"dark\"\])? \{([^}]*)\}", css)
    assert len(blocks) == 2
    return [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", read_schemes(), ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(scheme: dict[str, str]) -> None:
    for ink, ground in [(ink, ground) for ink in INKS for ground in GROUNDS] + list(OTHERS):
        assert contrast(scheme[ink], scheme[ground]) >= CONTRAST_MIN, (ink, ground)
    for line in SERIES:
        assert contrast(scheme[line], scheme["panel"]) >= CONTRAST_OF_LINES_MIN, line


def test_no_script_makes_markup_from_texts() -> None:
    scripts = "".join(file.read_text() for path, file in FILES.items() if path.endswith(".js") and "vendor" not in path)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", scripts)
    html = FILES["/"].read_text()
    assert not re.search(r"<style|style=|<script(?! type=\"module\" src=)| on[a-z]+=", html)


def test_what_is_imported_is_served() -> None:
    for path, file in FILES.items():
        if path.endswith(".js"):
            for name in re.findall(r"""from "(\.[^"]+)";""", file.read_text()):
                target = (file.parent / name).resolve().relative_to(FOLDER.resolve())
                assert f"/{target}" in FILES, (path, name)


def test_only_the_console_is_served_of_its_folder() -> None:
    assert "/" in FILES and "/console.js" in FILES and "/vendor/uPlot.esm.js" in FILES
    assert not [path for path in FILES if "node_modules" in path or "package" in path]


def test_a_policy_names_the_client_port_of_the_same_host_only() -> None:
    policy = make_policy("[::1]:8801", 8800)
    assert "connect-src 'self' ws://[::1]:8800 wss://[::1]:8800;" in policy and "unsafe" not in policy
