"""`replay`: history into subjects again, each message once under the replay's name, in each subject's order; where it
is not to go faster than is asked, in the order of time of all.

Says what it would publish and does nothing else unless it is told --option publish=yes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import functions as F

from ..errors import ConfigInvalid
from ..lake import Lake
from ..subject import check_pattern, check_subject
from ..transforms.replay import choose, preview, replay_messages
from ..words import counted
from .job import Job, Outcome, Run
from .options import number_of, text_of, time_of

_SHOWN = 20
_RATE_MAX = 1e9


def run(run: Run) -> Outcome:
    """Choose, show, and publish if that is wanted."""
    options = run.options
    check(options)
    since, until = (text_of(time_of(options, name)) for name in ("since", "until"))
    chosen = choose(
        run.lake.read("bronze.messages"),
        *(options["subjects"], since, until, options.get("tenant", "")),
    ).persist()
    try:
        shown = preview(chosen).orderBy(F.desc("messages"), "subject")
        count, total = shown.count(), shown.agg(F.sum("messages")).first()
        for row in shown.limit(_SHOWN).collect():
            run.say(f"{row.messages:>9,}  {row.subject}  ({row.bytes:,} bytes, {row['first']} to {row['last']})")
        messages = (total[0] if total is not None else 0) or 0
        what = f"{counted(messages, 'message')} on {counted(count, 'subject')}"
        if options.get("publish", "no") != "yes":
            return Outcome(f"would publish {what}; --option publish=yes does")
        rate = rate_of(options) or run.config.node.messages_per_second
        lake = Lake(run.spark, replace(run.config, node=replace(run.config.node, messages_per_second=rate)))
        rows = replay_messages(chosen, options["name"], options.get("below", ""))
        order = ("time", "node", "run", "arrival")
        ordered = rows.orderBy(*order) if rate else rows.repartition("subject").sortWithinPartitions(*order)
        lake.publish(ordered.select("subject", "content", "kind", "key", "retain"), app=f"replay-{options['name']}")
        return Outcome(f"published {what}; those that were there already, once")
    finally:
        chosen.unpersist()


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for what would fail only when the first message is published, or not be found at all."""
    if not options.get("subjects"):
        raise ConfigInvalid("--option subjects", "", "must name a subject or pattern", hint="subjects=/orders/**")
    check_pattern("subjects", options["subjects"])
    if options.get("below"):
        check_subject("below", options["below"])
    for name in ("since", "until"):
        time_of(options, name)
    rate_of(options)
    if options.get("publish", "no") == "yes" and not options.get("name"):
        raise ConfigInvalid("--option name", "", "must name the replay: a message is published once under it")


def rate_of(options: Mapping[str, str]) -> float:
    """Most messages a second; 0 where there is no bound."""
    return number_of(options, "rate", 0.0, 0, _RATE_MAX)


JOB = Job(
    name="replay",
    about="history into subjects again, each message once; says what it would do unless told publish=yes",
    run=run,
    reads=("bronze.messages",),
    writes=("subjects",),
    can_rebuild=False,
    kind="batch",
    every_s=86_400.0,
    options={
        "subjects": "Which subject or pattern: /orders/**.",
        "since": "From when, UTC: 2026-11-21 10:00, or how long ago: 24h.",
        "until": "Up to, not including, when; as since.",
        "tenant": "Whose only.",
        "below": "Publish below this subject instead of on the same ones: /again.",
        "rate": "Most messages a second.",
        "name": "The replay's name: under the same name a message is published once.",
        "publish": "yes publishes; anything else only says what it would do.",
    },
    check=check,
)
