"""Each hostile input of the design that applies to inbox, webhooks and e-mail has a test, found here by its number."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parents[1]
UNIT = Path(__file__).parents[2] / "unit" / "dispatch"
APPLIES = {*range(1, 22), 23, *range(25, 29), 31, 34, *range(37, 42), *range(45, 55)}
TESTS: dict[int, tuple[Path, str]] = {
    1: (HERE / "test_tenants.py", "test_a_hostile_request_gets_a_code"),
    2: (UNIT / "test_api.py", "test_a_body_that_is_not_valid_is_refused"),
    3: (HERE / "test_tenants.py", "test_a_hostile_request_gets_a_code"),
    4: (HERE / "test_inbox.py", "test_the_same_id_is_one_notification_and_another_body_is_refused"),
    5: (HERE / "hostile/test_other_sides.py", "test_05_"),
    6: (HERE / "test_tenants.py", "test_a_hostile_request_gets_a_code"),
    7: (HERE / "hostile/test_inbox_requests.py", "test_a_field_that_cannot_be_is_named"),
    8: (HERE / "hostile/test_inbox_requests.py", "test_a_name_that_stands_twice_gets_one_delivery"),
    9: (HERE / "test_policies.py", "test_a_time_is_waited_for_also_through_a_restart_and_a_wrong_one_is_refused"),
    10: (HERE / "hostile/test_inbox_requests.py", "test_a_field_that_cannot_be_is_named"),
    11: (HERE / "test_tenants.py", "test_ten_wrong_keys_bar_the_address"),
    12: (HERE / "test_tenants.py", "test_a_tenant_sees_nothing_of_another"),
    13: (HERE / "hostile/test_stores_and_time.py", "test_13_"),
    14: (HERE / "hostile/test_other_sides.py", "test_14_"),
    15: (HERE / "test_quotas.py", "test_a_million_accepts_of_one_tenant_meet_its_rate"),
    16: (HERE / "hostile/test_stores_and_time.py", "test_16_"),
    17: (HERE / "email/test_email.py", "test_an_e_mail_is_signed_and_no_content_becomes_a_header"),
    18: (UNIT / "test_content.py", "test_every_locale_is_rendered_and_html_is_escaped"),
    19: (UNIT / "test_content.py", "test_a_bomb_is_refused_and_the_next_template_renders"),
    20: (UNIT / "test_content.py", "test_a_variable_that_is_not_there_and_a_text_that_is_not_liquid"),
    21: (HERE / "content/test_mjml.py", "test_mjml_that_includes_or_is_not_valid_is_refused"),
    23: (HERE / "hostile/test_stores_and_time.py", "test_23_"),
    25: (HERE / "test_webhook.py", "test_an_address_that_may_not_be_reached_is_refused_at_registration"),
    26: (HERE / "test_webhook.py", "test_a_redirect_is_not_followed"),
    27: (HERE / "hostile/test_other_sides.py", "test_27_"),
    28: (HERE / "hostile/test_other_sides.py", "test_28_"),
    31: (HERE / "hostile/test_stores_and_time.py", "test_31_"),
    34: (HERE / "hostile/test_stores_and_time.py", "test_34_"),
    37: (HERE / "hostile/test_stores_and_time.py", "test_37_"),
    38: (HERE / "email/test_bounces.py", "test_38_"),
    39: (HERE / "test_unsubscribe.py", "test_a_token_names_an_address_and_a_category_and_no_other_key_signs_it"),
    40: (HERE / "test_unsubscribe.py", "test_get_changes_nothing_and_post_ends_the_category_only"),
    41: (HERE / "hostile/test_other_sides.py", "test_41_"),
    45: (HERE / "hostile/test_certificates.py", "test_45_"),
    46: (HERE / "hostile/test_inbox_requests.py", "test_a_token_reads_and_marks_its_own_inbox_only"),
    47: (HERE / "hostile/test_inbox_requests.py", "test_a_token_reads_and_marks_its_own_inbox_only"),
    48: (HERE / "hostile/test_inbox_requests.py", "test_a_flood_of_marks_changes_an_item_once"),
    49: (HERE / "test_issuer.py", "test_only_a_token_of_dispatch_publishes_and_watches_there"),
    50: (HERE / "hostile/test_failing_host.py", "test_50_"),
    51: (HERE / "hostile/test_stores_and_time.py", "test_51_"),
    52: (HERE / "hostile/test_failing_host.py", "test_52_"),
    53: (HERE / "hostile/test_failing_host.py", "test_53_"),
    54: (HERE / "test_process.py", "test_it_names_its_listener_keeps_its_key_private_and_ends_in_order"),
}


def test_every_number_has_a_test() -> None:
    assert set(TESTS) == APPLIES
    for number, (file, name) in TESTS.items():
        assert re.search(rf"^(async )?def {name}", file.read_text("utf-8"), re.MULTILINE), number
