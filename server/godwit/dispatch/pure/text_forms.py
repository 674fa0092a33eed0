"""The forms of texts in bodies: patterns, and what each takes in words for a refusal. Pure."""

from __future__ import annotations

NAME = r"^(?!\.{1,2}\Z)[^\x00-\x1f\x7f/]+\Z"
CLOCK = r"^([01]\d|2[0-3]):[0-5]\d\Z"
LOCAL_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?\Z"
HEADER_NAME = r"^(?i:(?!host\Z|content-|transfer-|connection\Z|te\Z|upgrade\Z))[A-Za-z0-9-]{1,64}\Z"
HEADER_VALUE = r"^[\x20-\x7e]{0,2048}\Z"
FILE = r"^[^\x00-\x1f\x7f/\\\u2028-\u202e\u2066-\u2069]+\Z"
BASE64 = r"^[A-Za-z0-9+/]*={0,2}\Z"
MEDIA_TYPE = r"^(?!message/|multipart/)[a-z]+/[a-z0-9.+-]+\Z"
MAIL_HEADER = r"^(?i:X-[A-Za-z0-9-]{1,60}|List-Id|References|In-Reply-To|Importance|Precedence|Feedback-ID)\Z"
LOCALE = r"^[A-Za-z0-9-]{2,35}\Z"
WORDS = {
    NAME: "a name of 1 to 128 printable characters without a slash, and not . or ..",
    CLOCK: "a time of day such as 22:00",
    LOCAL_TIME: "a local time such as 2026-12-24T09:00",
    HEADER_NAME: "the name of a header that a request may choose",
    HEADER_VALUE: "up to 2,048 printable ASCII characters",
    FILE: "a file name without slashes, control characters and changes of direction",
    BASE64: "base64",
    MEDIA_TYPE: "a media type such as application/pdf, and not message/ or multipart/",
    MAIL_HEADER: "X-…, List-Id, References, In-Reply-To, Importance, Precedence or Feedback-ID",
    LOCALE: "a locale such as es-MX",
}
