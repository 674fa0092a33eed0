"""Raw requests, each named by the clause that defines its answer: `test_requests` sends this table unchanged.

A row is (clause and case, bytes, statuses that are right). A request that is refused because it could be read in two ways must
also end the connection: those rows are in CLOSING, of which only 404 and 405 may leave it open.
"""

from __future__ import annotations

from typing import NamedTuple

PATH = "/v1/messages?subject=/http/requests"


class Case(NamedTuple):
    """One request and what is right."""

    name: str
    sent: bytes
    statuses: frozenset[int]


def case(name: str, sent: str | bytes, *statuses: int) -> Case:
    return Case(name, sent.encode("latin-1") if isinstance(sent, str) else sent, frozenset(statuses))


def get(*lines: str, target: str = "/", version: str = "HTTP/1.1", host: str | None = "a") -> str:
    """A GET with these further field lines."""
    return "\r\n".join([f"GET {target} {version}", *([f"Host: {host}"] if host is not None else []), *lines, "", ""])


def post(*lines: str, body: str = "", target: str = PATH, version: str = "HTTP/1.1") -> str:
    """A POST of text with these further field lines, which say how long it is."""
    fields = ["Host: a", "Content-Type: text/plain", *lines]
    return "\r\n".join([f"POST {target} {version}", *fields, "", ""]) + body


def chunked(body: str, *lines: str, coding: str = "chunked") -> str:
    return post(f"Transfer-Encoding: {coding}", *lines, body=body)


OK = (200,)
BAD = (400,)

REQUEST_LINE = [
    case("9112 3 a plain request", get(), 200),
    case("9112 2.2 one empty line before", "\r\n" + get(), 200),
    case("9112 2.2 two empty lines before", "\r\n\r\n" + get(), 200),
    case("9112 2.2 a bare LF ends the request line", get().replace("\r\n", "\n", 1), 400),
    case("9112 2.2 bare LF everywhere", get().replace("\r\n", "\n"), 400),
    case("9112 2.2 a bare CR in the request line", "GET /\rHTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 2.2 a bare CR ends the request line", get().replace("\r\n", "\r", 1), 400),
    case("9112 2.2 blanks before the first field", get().replace("Host", " Host", 1), 400),
    case("9112 2.2 a line of blanks before the first field", "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n", 400),
    case("9112 2.3 HTTP/0.9", "GET /\r\n", 400),
    case("9112 2.3 the version in small letters", get(version="http/1.1"), 400),
    case("9112 2.3 no such protocol", get(version="HTTPS/1.1"), 400),
    case("9112 2.3 two digits", get(version="HTTP/1.10"), 400),
    case("9112 2.3 leading zeros", get(version="HTTP/01.1"), 400),
    case("9112 2.3 no minor version", get(version="HTTP/1"), 400),
    case("9112 2.3 a blank in the version", get(version="HTTP/ 1.1"), 400),
    case("9112 2.3 a sign in the version", get(version="HTTP/+1.1"), 400),
    case("9112 2.3 text behind the version", get(version="HTTP/1.1 x"), 400),
    case("9110 2.5 a higher minor version", get(version="HTTP/1.2"), 505, 200),
    case("9110 2.5 version 2.0", get(version="HTTP/2.0"), 505),
    case("9110 2.5 version 3.0", get(version="HTTP/3.0"), 505),
    case("9110 2.5 version 9.9", get(version="HTTP/9.9"), 505),
    case("9113 3.4 the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 400),
    case("9112 2.3 version 1.0 without Host", get(version="HTTP/1.0", host=None), 200),
    case("9112 2.3 version 1.0 with Host", get(version="HTTP/1.0"), 200),
    case("9112 3 two blanks before the target", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 two blanks behind the target", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 a tab for a blank", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 a blank behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
    case("9112 3 a blank before the method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 nothing but a method", "GET\r\nHost: a\r\n\r\n", 400),
    case("9112 3 a vertical tab in the line", "GET /\x0b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3 a long target is taken", get(target="/?" + "a" * 8000), 200),
    case("9112 3 a target that is too long", get(target="/" + "a" * 70_000), 414),
    case("9112 3.1 a method of its own", get().replace("GET", "FETCH", 1), 501),
    case("9112 3.1 a method in small letters", get().replace("GET", "get", 1), 501, 405, 400),
    case("9112 3.1 a method that is no token", get().replace("GET", "G(T", 1), 400),
    case("9112 3.1 a method with a NUL", get().replace("GET", "GE\0T", 1), 400),
    case("9112 3.1 a method beyond ASCII", get().replace("GET", "G\xc9T", 1), 400),
    case("9112 3.1 an endless method", "A" * 100_000 + " / HTTP/1.1\r\nHost: a\r\n\r\n", 414, 400, 501),
]

TARGETS = [
    case("9112 3.2.1 a query", get(target="/?a=b&c"), 200),
    case("9112 3.2.1 a fragment", get(target="/#a"), 400),
    case("9112 3.2.1 no slash", get(target="index"), 400),
    case("9112 3.2.1 a NUL", get(target="/\0"), 400),
    case("9112 3.2.1 beyond ASCII", get(target="/\xe9"), 400),
    case("9112 3.2.1 a control character", get(target="/\x01"), 400),
    case("9112 3.2.1 a delete character", get(target="/\x7f"), 400),
    case("9112 3.2.1 a backslash", get(target="/\\..\\x"), 400),
    case("9112 3.2.1 a quote", get(target='/"x'), 400),
    case("9112 3.2.1 an angle", get(target="/<x>"), 400),
    case("3986 2.1 half a percent sign", get(target="/%"), 400),
    case("3986 2.1 no hexadecimal digits", get(target="/%zz"), 400),
    case("3986 2.1 a NUL in percent signs", get(target="/%00"), 404, 400),
    case("3986 2.1 overlong UTF-8", get(target="/%c0%af"), 404, 400),
    case("3986 5.2.4 dots", get(target="/../../etc/passwd"), 404, 400),
    case("3986 5.2.4 dots in percent signs", get(target="/%2e%2e/%2e%2e/etc/passwd"), 404, 400),
    case("3986 2.1 encoded twice", get(target="/..%252f"), 404, 400),
    case("9112 3.2.2 the absolute form", get(target="http://a/"), 200),
    case("9112 3.2.2 the absolute form without a path", get(target="http://a"), 200),
    case("9112 3.2.2 the absolute form in capitals", get(target="HTTP://A/"), 200),
    case("9112 3.2.2 the absolute form with another Host", get(target="http://b/"), 200, 400),
    case("9112 3.2.2 the absolute form still needs Host", get(target="http://a/", host=None), 400),
    case("9112 3.2.2 user information", get(target="http://u@a/"), 400),
    case("9112 3.2.2 no host", get(target="http:///"), 400),
    case("9112 3.2.2 another scheme", get(target="ftp://a/"), 400),
    case("9112 3.2.3 CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 404, 405, 501, 400),
    case("9112 3.2.3 CONNECT with a path", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3.2.3 CONNECT without a port", "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    case("9112 3.2.3 GET of an authority", get(target="a:80"), 400),
    case("9112 3.2.4 OPTIONS *", get(target="*").replace("GET", "OPTIONS", 1), 204, 200),
    case("9112 3.2.4 GET *", get(target="*"), 400),
]

HOSTS = [
    case("9112 3.2 no Host", get(host=None), 400),
    case("9112 3.2 two Hosts", get("Host: b"), 400),
    case("9112 3.2 the same Host twice", get("Host: a"), 400),
    case("9112 3.2 Host in other letters twice", get("hOST: a"), 400),
    case("9112 3.2 an empty Host", get(host=""), 400),
    case("9112 3.2 a blank in Host", get(host="a b"), 400),
    case("9112 3.2 a path in Host", get(host="a/b"), 400),
    case("9112 3.2 a user in Host", get(host="u@a"), 400),
    case("9112 3.2 a list in Host", get(host="a,b"), 400),
    case("9112 3.2 a port", get(host="a:8800"), 200),
    case("9112 3.2 an empty port", get(host="a:"), 200, 400),
    case("9112 3.2 a port that is no number", get(host="a:b"), 400),
    case("9112 3.2 a port that is too large", get(host="a:65536"), 400),
    case("9112 3.2 two ports", get(host="a:1:2"), 400),
    case("9112 3.2 an address of version 6", get(host="[::1]:80"), 200),
    case("9112 3.2 half an address of version 6", get(host="[::1"), 400),
    case("9112 3.2 no address in brackets", get(host="[a]"), 400),
    case("9112 3.2 a scheme in Host", get(host="http://a"), 400),
    case("9112 3.2 a fragment in Host", get(host="a#b"), 400),
]

FIELDS = [
    case("9112 5.1 a blank before the colon", get().replace("Host:", "Host :"), 400),
    case("9112 5.1 a tab before the colon", get().replace("Host:", "Host\t:"), 400),
    case("9112 5.1 a blank before the colon of another field", get("X : a"), 400),
    case("9112 5.1 no colon", get("X"), 400),
    case("9112 5.1 no name", get(": a"), 400),
    case("9112 5.1 a blank in the name", get("X Y: a"), 400),
    case("9112 5.1 no blank behind the colon", get("X:a"), 200),
    case("9112 5.1 many blanks around the value", get("X: \t a \t "), 200),
    case("9112 5.1 an empty value", get("X:"), 200),
    case("9112 5.2 a folded line", get("X: a\r\n b"), 400),
    case("9112 5.2 a line folded by a tab", get("X: a\r\n\tb"), 400),
    case("9112 5.2 a folded Host", "GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n", 400),
    case("9110 5.1 a name beyond ASCII", get("X\xe9: a"), 400),
    case("9110 5.1 a bracket in the name", get("X(): a"), 400),
    case("9110 5.1 an underscore in the name", get("X_Y: a"), 200),
    case("9110 5.5 a NUL in the value", get("X: a\0b"), 400),
    case("9110 5.5 a bare CR in the value", get("X: a\rb"), 400),
    case("9110 5.5 a bare LF in the value", get("X: a\nb"), 400),
    case("9110 5.5 a control character in the value", get("X: a\x01b"), 400),
    case("9110 5.5 a delete character in the value", get("X: a\x7fb"), 400),
    case("9110 5.5 a tab in the value", get("X: a\tb"), 200),
    case("9110 5.5 Latin letters in the value", get("X: \xe9"), 200),
    case("6585 5 a long line", get("X: " + "a" * 100_000), 431),
    case("6585 5 many fields", get(*["X: 1"] * 5000), 431),
    case("6585 5 a field without an end", "GET / HTTP/1.1\r\nHost: a\r\nX: " + "a" * 100_000, 431),
]

LENGTHS = [
    case("9112 6.2 a body", post("Content-Length: 5", body="hello"), 201),
    case("9112 6.3 no length is no body", post(), 201, 411),
    case("9112 6.2 a length of 0", post("Content-Length: 0"), 201),
    case("9112 6.2 blanks around it", post("Content-Length:  5 ", body="hello"), 201),
    case("9112 6.2 leading zeros", post("Content-Length: 005", body="hello"), 201, 400),
    case("9112 6.2 a body on GET", get("Content-Length: 5") + "hello", 200, 400),
    case("9112 6.3 two lengths", post("Content-Length: 5", "Content-Length: 6", body="hello!"), 400),
    case("9112 6.3 the same length twice", post("Content-Length: 5", "Content-Length: 5", body="hello"), 400, 201),
    case("9112 6.3 a list of lengths", post("Content-Length: 5, 6", body="hello!"), 400),
    case("9112 6.3 a list of the same length", post("Content-Length: 5, 5", body="hello"), 400, 201),
    case("9112 6.3 a negative length", post("Content-Length: -1"), 400),
    case("9112 6.3 a sign", post("Content-Length: +5", body="hello"), 400),
    case("9112 6.3 hexadecimal", post("Content-Length: 0x5", body="hello"), 400),
    case("9112 6.3 a fraction", post("Content-Length: 5.0", body="hello"), 400),
    case("9112 6.3 a blank within", post("Content-Length: 1 0", body="0123456789"), 400),
    case("9112 6.3 an underscore", post("Content-Length: 1_0", body="0123456789"), 400),
    case("9112 6.3 letters", post("Content-Length: five", body="hello"), 400),
    case("9112 6.3 empty", post("Content-Length:", body="hello"), 400),
    case("9112 6.3 a semicolon", post("Content-Length: 5;a", body="hello"), 400),
    case("9112 6.3 digits beyond ASCII", post("Content-Length: \xb2"), 400),
    case("9110 8.6 more than can be counted", post("Content-Length: 99999999999999999999999"), 413, 400),
    case("9110 8.6 2^63", post("Content-Length: 9223372036854775808"), 413, 400),
    case("9110 15.5.14 more than is taken", post("Content-Length: 100000000"), 413),
    case("9112 6.3 a vertical tab", post("Content-Length: \x0b5", body="hello"), 400),
]

CODINGS = [
    case("9112 7.1 chunks", chunked("5\r\nhello\r\n0\r\n\r\n"), 201),
    case("9112 7.1 chunks in capitals", chunked("5\r\nhello\r\n0\r\n\r\n", coding="CHUNKED"), 201),
    case("9112 7.1 several chunks", chunked("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), 201),
    case("9112 7.1 no chunks", chunked("0\r\n\r\n"), 201),
    case("9112 7.1 hexadecimal in capitals", chunked("A\r\n0123456789\r\n0\r\n\r\n"), 201),
    case("9112 7.1 leading zeros", chunked("005\r\nhello\r\n000\r\n\r\n"), 201, 400),
    case("9112 7.1.1 an extension", chunked("5;a=b\r\nhello\r\n0\r\n\r\n"), 201),
    case("9112 7.1.1 an extension without a value", chunked("5;a\r\nhello\r\n0\r\n\r\n"), 201),
    case("9112 7.1.1 a quoted extension", chunked('5;a="b;c"\r\nhello\r\n0\r\n\r\n'), 201),
    case("9112 7.1.1 an extension without a name", chunked("5;\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1.1 an extension with a bare LF", chunked("5;a\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1.1 an extension with a bare CR", chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1.1 an extension with a NUL", chunked("5;a\0\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1.1 an endless extension", chunked("5;" + "a" * 70_000), 400, 413, 431),
    case("9112 7.1.2 a trailer", chunked("5\r\nhello\r\n0\r\nX: a\r\n\r\n"), 201),
    case("9110 6.5.1 a length in the trailer", chunked("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"), 201, 400),
    case("9110 6.5.1 a Host in the trailer", chunked("5\r\nhello\r\n0\r\nHost: b\r\n\r\n"), 201, 400),
    case("9112 7.1.2 a trailer without a colon", chunked("5\r\nhello\r\n0\r\nbad\r\n\r\n"), 400),
    case("9112 7.1 0x before the size", chunked("0x5\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a sign before the size", chunked("+5\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a negative size", chunked("-5\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a blank before the size", chunked(" 5\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a blank behind the size", chunked("5 \r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 an underscore in the size", chunked("1_0\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 no hexadecimal", chunked("g\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 no size", chunked("\r\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a size that overflows", chunked("FFFFFFFFFFFFFFFFF\r\nhello"), 413, 400),
    case("9112 7.1 a size over the limit", chunked("FFFFFFF\r\nhello"), 413),
    case("9112 7.1 a bare LF behind the size", chunked("5\nhello\r\n0\r\n\r\n"), 400),
    case("9112 7.1 a bare LF behind the data", chunked("5\r\nhello\n0\r\n\r\n"), 400),
    case("9112 7.1 more data than was said", chunked("5\r\nhello!\r\n0\r\n\r\n"), 400),
    case("9112 7.1 nothing behind the data", chunked("5\r\nhello0\r\n\r\n"), 400),
    case("9112 6.1 chunked twice", chunked("0\r\n\r\n", coding="chunked, chunked"), 400),
    case("9112 6.1 chunked is not last", chunked("0\r\n\r\n", coding="chunked, gzip"), 400),
    case("9112 6.1 another coding alone", chunked("0\r\n\r\n", coding="gzip"), 400, 501),
    case("9112 6.1 another coding before", chunked("0\r\n\r\n", coding="gzip, chunked"), 501, 400),
    case("9112 6.1 identity", chunked("hello", coding="identity"), 400, 501),
    case("9112 6.1 a coding like chunked", chunked("0\r\n\r\n", coding="xchunked"), 400, 501),
    case("9112 7 a parameter of chunked", chunked("0\r\n\r\n", coding="chunked;a=b"), 400),
    case("9112 6.1 an empty coding", chunked("0\r\n\r\n", coding=""), 400),
    case("9112 6.1 an empty coding in a list", chunked("0\r\n\r\n", coding=", chunked"), 400, 201),
    case("9112 6.1 chunked in quotes", chunked("0\r\n\r\n", coding='"chunked"'), 400, 501),
    case("9112 6.1 a vertical tab before it", chunked("0\r\n\r\n", coding="\x0bchunked"), 400),
    case("9112 6.1 a NUL behind it", chunked("0\r\n\r\n", coding="chunked\0"), 400),
    case("9112 6.1 two lines of it", chunked("0\r\n\r\n", "Transfer-Encoding: chunked"), 400),
    case("9112 5.2 folded", chunked("0\r\n\r\n", coding="\r\n chunked"), 400),
    case("9112 6.1 beside a length", chunked("0\r\n\r\n", "Content-Length: 5"), 400),
    case("9112 6.1 beside a length of 0", chunked("0\r\n\r\n", "Content-Length: 0"), 400),
    case("9112 6.1 a length before it", post("Content-Length: 5", "Transfer-Encoding: chunked", body="0\r\n\r\n"), 400),
    case("9112 6.1 in HTTP/1.0", post("Transfer-Encoding: chunked", body="0\r\n\r\n", version="HTTP/1.0"), 400),
]

MEANING = [
    case("9110 9.3.2 HEAD", get().replace("GET", "HEAD", 1), 200),
    case("9110 9.3.7 OPTIONS", get(target="/v1/messages").replace("GET", "OPTIONS", 1), 204, 200),
    case("9110 9.3.8 TRACE", get().replace("GET", "TRACE", 1), 405, 501),
    case("9110 9.3.5 DELETE", get().replace("GET", "DELETE", 1), 405),
    case("9110 9.3.4 PUT", get().replace("GET", "PUT", 1), 405),
    case("9110 9.3.3 POST where there is none", get().replace("GET", "POST", 1), 405),
    case("9110 15.5.5 nothing there", get(target="/nothing"), 404),
    case("9110 10.1.1 an unknown expectation", get("Expect: tea"), 417),
    case("9110 10.1.1 100-continue without a body", get("Expect: 100-continue"), 200),
    case("9110 10.1.1 a body that does not wait", post("Expect: 100-continue", "Content-Length: 1", body="x"), 201),
    case("9110 10.1.1 a body that is refused", post("Expect: 100-continue", "Content-Length: 100000000"), 413),
    case("9110 7.8 another upgrade is ignored", get("Connection: upgrade", "Upgrade: tea"), 200),
    case("9110 7.8 an upgrade without Connection", get("Upgrade: websocket"), 200),
    case("9110 8.3 a form", post("Content-Length: 3", body="a=b").replace("text/plain", "multipart/form-data"), 415),
    case("9110 8.3 two media types", post("Content-Type: text/html", "Content-Length: 1", body="x"), 400),
    case("9110 8.4 a coded body", post("Content-Encoding: gzip", "Content-Length: 1", body="x"), 415),
    case("9110 14.2 a range is ignored", get("Range: bytes=0-1"), 200),
    case("9110 8.3 text that is no UTF-8", post("Content-Length: 1", body="\xff"), 400),
    case("6455 4.2.1 a WebSocket where there is none", get("Connection: upgrade", "Upgrade: websocket"), 200, 400),
]

CLOSING = [*REQUEST_LINE, *TARGETS, *HOSTS, *FIELDS, *LENGTHS, *CODINGS]
"""What is about where a request begins and ends, and to whom it goes."""
