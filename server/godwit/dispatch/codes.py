"""Every code of the dispatch API: number, name, may the client retry, HTTP status, one sentence.

Generated from protocol/codes.toml by `make generate`; change it there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class DispatchCode(IntEnum):
    """Why a request was refused."""

    REQUEST_INVALID = 4300
    REQUEST_TOO_BIG = 4301
    API_KEY_MISSING = 4302
    API_KEY_INVALID = 4303
    SCOPE_MISSING = 4304
    NOTIFICATION_UNKNOWN = 4305
    RECEIVER_UNKNOWN = 4306
    NOTIFICATION_CONFLICT = 4307
    ROUTE_UNKNOWN = 4308
    VERB_FORBIDDEN = 4309
    RECEIVER_MISSING = 4310
    STORE_FAILING = 4311
    RECEIVER_TOKEN_INVALID = 4312
    ADDRESS_FORBIDDEN = 4313
    ATTEMPTS_TOO_MANY = 4314
    WAITERS_TOO_MANY = 4315
    GROUP_UNKNOWN = 4316
    GROUP_MISSING = 4317
    TENANT_MISSING = 4318
    KEY_MISSING = 4319
    CATEGORY_MISSING = 4320
    SUPPRESSION_MISSING = 4321
    SEND_TIME_PAST = 4322
    BATCH_TOO_BIG = 4323
    WEBHOOK_MISSING = 4324
    TEMPLATE_MISSING = 4325
    TEMPLATE_UNKNOWN = 4326
    TEMPLATE_INVALID = 4327
    DATA_MISSING = 4328
    RENDER_FAILED = 4329
    QUOTA_EXCEEDED = 4330
    TEST_KEY_FORBIDDEN = 4331
    UNSUBSCRIBE_TOKEN_INVALID = 4332
    REQUEST_FAILED = 4333
    ADDRESS_MISSING = 4334
    BODY_TIMEOUT = 4335
    DELIVERY_MISSING = 4336
    DELIVERY_NOT_RETRYABLE = 4337
    CHANNEL_MISSING = 4338
    PROVIDER_MISSING = 4339
    SENDER_FORBIDDEN = 4340
    NOTIFICATION_SETTLED = 4341
    GROUP_VERSION_MISSING = 4342


class DispatchCodeFacts(NamedTuple):
    """One row of codes.toml."""

    number: int
    name: str
    retry: bool
    http: int
    sentence: str


DISPATCH_CODES: dict[int, DispatchCodeFacts] = {
    DispatchCode.REQUEST_INVALID: DispatchCodeFacts(
        4300, "RequestInvalid", False, 422,
        "The request is not valid; `pointer` names the field.",
    ),
    DispatchCode.REQUEST_TOO_BIG: DispatchCodeFacts(
        4301, "RequestTooBig", False, 413,
        "The body is larger than `request_bytes_max`.",
    ),
    DispatchCode.API_KEY_MISSING: DispatchCodeFacts(
        4302, "ApiKeyMissing", False, 401,
        "The request has no API key: expected `Authorization: Bearer KEY`.",
    ),
    DispatchCode.API_KEY_INVALID: DispatchCodeFacts(
        4303, "ApiKeyInvalid", False, 401,
        "The API key does not exist, or was deleted.",
    ),
    DispatchCode.SCOPE_MISSING: DispatchCodeFacts(
        4304, "ScopeMissing", False, 403,
        "The API key lacks the scope that this request needs.",
    ),
    DispatchCode.NOTIFICATION_UNKNOWN: DispatchCodeFacts(
        4305, "NotificationUnknown", False, 404,
        "The notification does not exist.",
    ),
    DispatchCode.RECEIVER_UNKNOWN: DispatchCodeFacts(
        4306, "ReceiverUnknown", False, 422,
        "The receiver does not exist: create it first, or send its object.",
    ),
    DispatchCode.NOTIFICATION_CONFLICT: DispatchCodeFacts(
        4307, "NotificationConflict", False, 409,
        "A notification with this id exists, with another body or from the other kind of key (live or test).",
    ),
    DispatchCode.ROUTE_UNKNOWN: DispatchCodeFacts(
        4308, "RouteUnknown", False, 404,
        "The path does not exist.",
    ),
    DispatchCode.VERB_FORBIDDEN: DispatchCodeFacts(
        4309, "VerbForbidden", False, 405,
        "The path does not support this method.",
    ),
    DispatchCode.RECEIVER_MISSING: DispatchCodeFacts(
        4310, "ReceiverMissing", False, 404,
        "The receiver does not exist.",
    ),
    DispatchCode.STORE_FAILING: DispatchCodeFacts(
        4311, "StoreFailing", True, 503,
        "The store rejected the change; nothing was accepted.",
    ),
    DispatchCode.RECEIVER_TOKEN_INVALID: DispatchCodeFacts(
        4312, "ReceiverTokenInvalid", False, 401,
        "The receiver token is missing, damaged, expired, or not of this dispatch.",
    ),
    DispatchCode.ADDRESS_FORBIDDEN: DispatchCodeFacts(
        4313, "AddressForbidden", False, 422,
        "The channel is not allowed to reach this address.",
    ),
    DispatchCode.ATTEMPTS_TOO_MANY: DispatchCodeFacts(
        4314, "AttemptsTooMany", True, 429,
        "Too many requests with a wrong API key from this address.",
    ),
    DispatchCode.WAITERS_TOO_MANY: DispatchCodeFacts(
        4315, "WaitersTooMany", True, 503,
        "Too many long polls wait: retry later.",
    ),
    DispatchCode.GROUP_UNKNOWN: DispatchCodeFacts(
        4316, "GroupUnknown", False, 422,
        "The notification's group does not exist.",
    ),
    DispatchCode.GROUP_MISSING: DispatchCodeFacts(
        4317, "GroupMissing", False, 404,
        "The group does not exist.",
    ),
    DispatchCode.TENANT_MISSING: DispatchCodeFacts(
        4318, "TenantMissing", False, 404,
        "The tenant does not exist.",
    ),
    DispatchCode.KEY_MISSING: DispatchCodeFacts(
        4319, "KeyMissing", False, 404,
        "The tenant has no API key with this id.",
    ),
    DispatchCode.CATEGORY_MISSING: DispatchCodeFacts(
        4320, "CategoryMissing", False, 404,
        "The category does not exist.",
    ),
    DispatchCode.SUPPRESSION_MISSING: DispatchCodeFacts(
        4321, "SuppressionMissing", False, 404,
        "The suppression does not exist.",
    ),
    DispatchCode.SEND_TIME_PAST: DispatchCodeFacts(
        4322, "SendTimePast", False, 422,
        "The time in `send_at` has passed.",
    ),
    DispatchCode.BATCH_TOO_BIG: DispatchCodeFacts(
        4323, "BatchTooBig", False, 422,
        "The batch has more notifications than `batch_notifications_max`.",
    ),
    DispatchCode.WEBHOOK_MISSING: DispatchCodeFacts(
        4324, "WebhookMissing", False, 404,
        "The event webhook does not exist.",
    ),
    DispatchCode.TEMPLATE_MISSING: DispatchCodeFacts(
        4325, "TemplateMissing", False, 404,
        "The template, or this version of it, does not exist.",
    ),
    DispatchCode.TEMPLATE_UNKNOWN: DispatchCodeFacts(
        4326, "TemplateUnknown", False, 422,
        "The notification's template, or this version of it, does not exist.",
    ),
    DispatchCode.TEMPLATE_INVALID: DispatchCodeFacts(
        4327, "TemplateInvalid", False, 422,
        "A text of the template is not valid Liquid; `pointer` names it.",
    ),
    DispatchCode.DATA_MISSING: DispatchCodeFacts(
        4328, "DataMissing", False, 422,
        "`data` lacks a variable that the template needs.",
    ),
    DispatchCode.RENDER_FAILED: DispatchCodeFacts(
        4329, "RenderFailed", False, 422,
        "The template could not be rendered with this data.",
    ),
    DispatchCode.QUOTA_EXCEEDED: DispatchCodeFacts(
        4330, "QuotaExceeded", True, 429,
        "A quota of the tenant does not allow this; `detail` names it.",
    ),
    DispatchCode.TEST_KEY_FORBIDDEN: DispatchCodeFacts(
        4331, "TestKeyForbidden", False, 403,
        "A test key sends to the sandbox, and sees only what test keys sent and receivers `sandbox:…`.",
    ),
    DispatchCode.UNSUBSCRIBE_TOKEN_INVALID: DispatchCodeFacts(
        4332, "UnsubscribeTokenInvalid", False, 404,
        "The link to unsubscribe is damaged, or its signing key no longer exists.",
    ),
    DispatchCode.REQUEST_FAILED: DispatchCodeFacts(
        4333, "RequestFailed", True, 500,
        "Dispatch had an internal error; its log has the cause. It is unknown whether the request was accepted: repeat it with the same id.",
    ),
    DispatchCode.ADDRESS_MISSING: DispatchCodeFacts(
        4334, "AddressMissing", False, 404,
        "The receiver has no address with this name.",
    ),
    DispatchCode.BODY_TIMEOUT: DispatchCodeFacts(
        4335, "BodyTimeout", True, 408,
        "The body of the request did not arrive in time. Nothing was accepted; an import keeps the parts that arrived whole.",
    ),
    DispatchCode.DELIVERY_MISSING: DispatchCodeFacts(
        4336, "DeliveryMissing", False, 404,
        "The delivery does not exist.",
    ),
    DispatchCode.DELIVERY_NOT_RETRYABLE: DispatchCodeFacts(
        4337, "DeliveryNotRetryable", False, 409,
        "The delivery is being sent, was sent, or was ended on purpose. Only a waiting, failed or unknown delivery can be sent again.",
    ),
    DispatchCode.CHANNEL_MISSING: DispatchCodeFacts(
        4338, "ChannelMissing", False, 422,
        "The channel is not configured on this dispatch, so nothing can be sent over it.",
    ),
    DispatchCode.PROVIDER_MISSING: DispatchCodeFacts(
        4339, "ProviderMissing", False, 404,
        "The provider does not exist.",
    ),
    DispatchCode.SENDER_FORBIDDEN: DispatchCodeFacts(
        4340, "SenderForbidden", False, 422,
        "No provider of this tenant sends e-mail from this address; an operator assigns domains with /v1/providers.",
    ),
    DispatchCode.NOTIFICATION_SETTLED: DispatchCodeFacts(
        4341, "NotificationSettled", False, 409,
        "The notification is settled: all its deliveries have ended, so nothing can be cancelled. A recall still withdraws its inbox items.",
    ),
    DispatchCode.GROUP_VERSION_MISSING: DispatchCodeFacts(
        4342, "GroupVersionMissing", False, 409,
        "The group has no such version, or its import has not ended: import it, then switch to it.",
    ),
}
