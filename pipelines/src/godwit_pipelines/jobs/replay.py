"""`replay`: publishes stored messages again, each once under the replay's name, in each subject's order. With a bounded rate they are in
the order of time over all subjects.

Without --option publish=yes it only reports what it would publish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import ConfigInvalid
from ..lake import Lake, Refused
from ..subject import check_pattern, check_subject
from ..transforms.replay import choose, preview, replay_messages, split_expired
from ..words import counted
from .job import Job, Outcome, Run
from .options import is_yes, number_of, text_of, time_of

_SHOWN = 20
_RATE_MAX = 1e9


def run(run: Run) -> Outcome:
    """Select and report the messages, and publish them if requested."""
    options = run.options
    check(options)
    since, until = (text_of(time_of(options, name)) for name in ("since", "until"))
    chosen = choose(
        run.lake.read("bronze.messages"),
        *(options["subjects"], since, until, options.get("tenant", "")),
    ).persist()
    try:
        living, expired = split_expired(chosen, datetime.now(UTC))
        shown = preview(living).orderBy(F.desc("messages"), "subject")
        count, total = shown.count(), shown.agg(F.sum("messages")).first()
        for row in shown.limit(_SHOWN).collect():
            run.say(f"{row.messages:>9,}  {row.subject}  ({row.bytes:,} bytes, {row['first']} to {row['last']})")
        if over := expired.count():
            run.say(f"{counted(over, 'message')} skipped: expired (expiry_s)")
        messages = (total[0] if total is not None else 0) or 0
        if options.get("publish", "no") != "yes":
            what = f"{counted(messages, 'message')} on {counted(count, 'subject')}"
            return Outcome(f"would publish {what}; run with --option publish=yes to publish")
        refused = publish(run, living)
        for why, number in refused.reasons:
            run.say(f"{counted(number, 'message')} skipped: refused by the node: {why}")
        if other := refused.messages - sum(number for _, number in refused.reasons):
            run.say(f"{counted(other, 'message')} skipped: refused by the node for other reasons or on other subjects")
        what = f"{counted(messages, 'message')} on {counted(count, 'subject')}"
        if refused.messages:
            what = f"{messages - refused.messages:,} of {what}; {refused.messages:,} refused"
        return Outcome(f"published {what}; messages that already existed were not published again")
    finally:
        chosen.unpersist()


def publish(run: Run, messages: DataFrame) -> Refused:
    """Publish them in order; returns the messages that the node refused."""
    options = run.options
    rate = rate_of(options) or run.config.node.messages_per_second
    lake = Lake(run.spark, replace(run.config, node=replace(run.config.node, messages_per_second=rate)))
    rows = replay_messages(
        messages, options["name"], options.get("below", ""), replies=is_yes(options, "replies", "no")
    )
    order = ("time", "node", "run", "arrival")
    ordered = rows.orderBy(*order) if rate else rows.repartition("subject").sortWithinPartitions(*order)
    skips = options.get("refused", "fail") == "skip"
    return lake.publish(ordered.drop(*order), app=f"replay-{options['name']}", skips_refused=skips)


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for options that would otherwise fail at the first message, or not at all."""
    if not options.get("subjects"):
        raise ConfigInvalid("--option subjects", "", "must name a subject or pattern", hint="subjects=/orders/**")
    check_pattern("subjects", options["subjects"])
    if options.get("below"):
        check_subject("below", options["below"])
    for name in ("since", "until"):
        time_of(options, name)
    rate_of(options)
    is_yes(options, "replies", "no")
    if options.get("refused", "fail") not in ("fail", "skip"):
        raise ConfigInvalid("--option refused", options["refused"], "must be fail or skip")
    if options.get("publish", "no") == "yes" and not options.get("name"):
        raise ConfigInvalid("--option name", "", "must name the replay: each message is published once per name")


def rate_of(options: Mapping[str, str]) -> float:
    """Maximum messages per second; 0 means unlimited."""
    return number_of(options, "rate", 0.0, 0, _RATE_MAX)


JOB = Job(
    name="replay",
    about="publishes stored messages again, each once; without publish=yes it only reports what it would do",
    run=run,
    reads=("bronze.messages",),
    writes=("subjects",),
    can_rebuild=False,
    kind="batch",
    every_s=86_400.0,
    options={
        "subjects": "Subject or pattern, such as /orders/**.",
        "since": "Start time in UTC, such as 2026-11-21 10:00, or a duration before now, such as 24h.",
        "until": "End time, exclusive. Same form as since.",
        "tenant": "Only messages of this tenant. Default: all.",
        "below": "Publish under this subject, such as /again. Default: the original subjects.",
        "rate": "Maximum messages per second.",
        "replies": "yes: keep reply subjects, so that responders answer again.",
        "refused": "skip: skip and count messages that the node refuses. fail (default): stop at the first.",
        "name": "Name of the replay. Each message is published once per name.",
        "publish": "yes: publish. Otherwise only report what would be published.",
    },
    check=check,
)
