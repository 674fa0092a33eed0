"""The section `dispatch_limits`: every limit of dispatch with its default, bounds and meaning.

Generated from protocol/limits.toml by `make generate`; change it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from .option import option


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """Limits of dispatch. Times are milliseconds."""

    request_bytes_max: int = option(
        1_048_576, "Largest body of a request, in bytes.",
        minimum=1_024, maximum=16_777_216,
    )
    receivers_per_notification_max: int = option(
        10_000, "Most receivers that one notification lists.",
        minimum=1, maximum=100_000,
    )
    name_characters_max: int = option(
        128, "Longest id of a notification and longest name of a receiver, in characters.",
        minimum=8, maximum=128,
    )
    inbox_items_max: int = option(
        1_000, "Most items of an inbox; the oldest are removed.",
        minimum=10, maximum=100_000,
    )
    inbox_page_items_max: int = option(
        200, "Most items in one answer of the inbox.",
        minimum=1, maximum=1_000,
    )
    inbox_waiters_max: int = option(
        20_000, "Most long polls that wait at once.",
        minimum=1, maximum=1_000_000,
    )
    inbox_wait_ms_max: int = option(
        30_000, "Longest time that a long poll waits.",
        minimum=0, maximum=120_000,
    )
    page_receivers_max: int = option(
        500, "Most receivers of one page of a job.",
        minimum=1, maximum=5_000,
    )
    lease_ms: int = option(
        30_000, "How long a worker owns a job or a delivery without renewing its lease.",
        minimum=1_000, maximum=600_000,
    )
    webhook_sends_max: int = option(
        512, "Most webhooks in flight at once.",
        minimum=1, maximum=10_000,
    )
    webhook_sends_per_host_max: int = option(
        8, "Most webhooks in flight to one host while other hosts wait.",
        minimum=1, maximum=1_000,
    )
    webhook_timeout_ms: int = option(
        15_000, "A webhook without an answer after this time is in doubt.",
        minimum=100, maximum=120_000,
    )
    receiver_token_ms: int = option(
        3_600_000, "How long a receiver token is valid.",
        minimum=60_000, maximum=86_400_000,
    )
    expires_ms: int = option(
        259_200_000, "A notification that does not say when it expires does so after this time.",
        minimum=1_000, maximum=2_592_000_000,
    )
    retention_ms: int = option(
        2_592_000_000, "How long a notification is kept, with its deliveries and items.",
        minimum=1_000, maximum=315_360_000_000,
    )
    port_connections_max: int = option(
        25_000, "Most connections of a port of dispatch, and at most a third of the process's file descriptors; beyond it the one that has been silent longest is closed.",
        minimum=4, maximum=1_000_000,
    )
    request_head_ms_max: int = option(
        60_000, "A connection without the whole head of a request for this time is closed: after it was accepted, and after each answer.",
        minimum=100, maximum=3_600_000,
    )
    request_body_ms_max: int = option(
        30_000, "The whole body of a request, or of an import its next bytes, must arrive within this time.",
        minimum=100, maximum=600_000,
    )
    feedback_age_ms_max: int = option(
        604_800_000, "How long sealed segments of the feedback journal are kept.",
        minimum=60_000, maximum=315_360_000_000,
    )
    feedback_bytes_max: int = option(
        1_073_741_824, "Most bytes of sealed segments of the feedback journal; the oldest are removed.",
        minimum=1_048_576, maximum=1_099_511_627_776,
    )
    sweep_ms: int = option(
        5_000, "Interval at which due jobs and deliveries are looked up, even if a wake-up was lost.",
        minimum=100, maximum=600_000,
    )
    wrong_keys_per_minute_max: int = option(
        10, "Most requests with a wrong API key from one address in a minute.",
        minimum=1, maximum=10_000,
    )
    previews_per_second_max: int = option(
        20, "Most previews, dry runs and stored templates of a tenant in a second: each renders, or reads, templates.",
        minimum=1, maximum=10_000,
    )
    batch_notifications_max: int = option(
        1_000, "Most notifications in one batch.",
        minimum=1, maximum=10_000,
    )
    send_at_ms_max: int = option(
        31_536_000_000, "Furthest `send_at` in the future.",
        minimum=1_000, maximum=315_360_000_000,
    )
