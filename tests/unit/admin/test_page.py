"""The page's files: colours that can be read in both schemes, a policy that cannot be widened, no markup made from texts."""

import re
from itertools import pairwise

import pytest

from godwit.admin.page import FILES, make_policy

GROUNDS, INKS = ("ground", "panel"), ("ink", "quiet", "accent", "good", "warn", "bad")
CONTRAST_MIN = 4.5


def read_schemes() -> list[dict[str, str]]:
    css = FILES["/page.css"].read_text()
    blocks = re.findall(r":root \{([^}]*)\}", css)
    return [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", read_schemes(), ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(scheme: dict[str, str]) -> None:
    pairs = [(ink, ground) for ink in INKS for ground in GROUNDS] + [("on-accent", "accent")]
    for ink, ground in pairs:
        darker, lighter = sorted((luminance(scheme[ink]), luminance(scheme[ground])))
        assert (lighter + 0.05) / (darker + 0.05) >= CONTRAST_MIN, (ink, ground)


def test_no_script_makes_markup_from_texts() -> None:
    scripts = "".join(file.read_text() for path, file in FILES.items() if path.endswith(".js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", scripts)
    html = FILES["/"].read_text()
    assert not re.search(r"<style|style=|<script(?! type=\"module\" src=)| on[a-z]+=", html)


def test_headings_do_not_skip_a_level() -> None:
    levels = [int(level) for level in re.findall(r"<h(\d)", FILES["/"].read_text())]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))


def test_a_policy_names_the_client_port_of_the_same_host_only() -> None:
    policy = make_policy("[::1]:8801", 8800)
    assert "connect-src 'self' ws://[::1]:8800 wss://[::1]:8800;" in policy and "unsafe" not in policy
