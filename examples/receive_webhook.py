"""A receiver of webhooks: checks the signature of the raw body, then prints the event.

    python examples/receive_webhook.py 9000 whsec_…

Standard library only. The signature is that of Standard Webhooks; their libraries do the same in many languages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

AGE_S_MAX = 300


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Whether one of the signatures is valid, and the message is recent, so not a replay of an old one."""
    name, sent_s = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
    if not sent_s.isdigit() or abs(time.time() - int(sent_s)) > AGE_S_MAX:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{sent_s}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    return any(hmac.compare_digest(expected, one) for one in headers.get("webhook-signature", "").split())


class Receiver(BaseHTTPRequestHandler):
    secret = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_signed(self.secret, headers, body):
            self.send_response(401)
        else:
            event = json.loads(body)
            again = " (may have come before)" if event.get("possibleduplicate") else ""
            print(f"webhook {headers['webhook-id']}: {event['data']['content']}{again}", flush=True)
            self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing else."""


if __name__ == "__main__":
    Receiver.secret = sys.argv[2]
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
