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
        minimum=8, maximum=1_024,
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
    sweep_ms: int = option(
        5_000, "How often due jobs and deliveries are looked for, whatever wake-ups were lost.",
        minimum=100, maximum=600_000,
    )
    wrong_keys_per_minute_max: int = option(
        10, "Most requests with a wrong API key from one address in a minute.",
        minimum=1, maximum=10_000,
    )
    batch_notifications_max: int = option(
        1_000, "Most notifications in one batch.",
        minimum=1, maximum=10_000,
    )
    send_at_ms_max: int = option(
        31_536_000_000, "How far ahead `send_at` may lie.",
        minimum=1_000, maximum=315_360_000_000,
    )
