"""A machine as `godwit plan` would measure it, for tests that measure nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from godwit.plan.machine import Machine

MACHINE = Machine(
    cores=2,
    memory_mb=24_000,
    descriptors=20_000,
    driver="io_uring",
    send_us={"234": 5.0, "1114": 6.0, "8282": 8.0},
    send_growth=0.3,
    frame_us=0.02,
    full_share=1.0,
    turn_us={"400": 100.0, "8000": 40.0},
    rest_cores=0.002,
    publish_us=0.7,
    publish_byte_us=0.002,
    connect_us=35.0,
    catch_up_us=0.2,
    user_kb=0.4,
    kernel_kb=4.7,
    base_mb=40.0,
)


def machine(**changed: Any) -> Machine:
    return replace(MACHINE, **changed)
