"""The identity and permissions of a client by its TLS certificate.

The engine has verified that a configured authority signed it; this module reads the identity that it names, by
`tls.client_identity`. This authorizer is asked before the mode's own. If the client sends a token, the token decides. The
permissions are patterns in which {identity} is one whole segment. Invariant: a name never becomes more than that segment,
so no identity can be `**`. A certificate without a usable name is refused. A reload that removes an authority, or narrows
the patterns, ends the connections that depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256

from ..codes import Code
from ..config.forms import IDENTITY
from ..config.tree import AccessConfig
from ..errors import ConfigInvalid
from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .rights import Grant, Refusal, Rule
from .templates import RuleTemplate, fill_template


def _read_common_name(certificate: x509.Certificate) -> list[str]:
    named = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return [str(one.value) for one in named]


def _read_alternative(
    kind: type[x509.DNSName] | type[x509.RFC822Name] | type[x509.UniformResourceIdentifier],
) -> Callable[[x509.Certificate], list[str]]:
    def read(certificate: x509.Certificate) -> list[str]:
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return []
        return list(names.get_values_for_type(kind))

    return read


_READERS: dict[str, Callable[[x509.Certificate], list[str]]] = {
    "subject_cn": _read_common_name,
    "san_dns": _read_alternative(x509.DNSName),
    "san_email": _read_alternative(x509.RFC822Name),
    "san_uri": _read_alternative(x509.UniformResourceIdentifier),
}


_SOURCE, _CHAIN = "certificate", "chain"
"""`_CHAIN`: the handshake found an authority that this library cannot find, for example because it does not know the kind of
signature.
"""


CHAIN_MAX = 8
"""Certificates that a client may send with its own: each one costs a signature check on the event loop."""


class CertificateAuthorizer(Authorizer):
    """Judges clients with a certificate and without a token; all others are judged by `inner`, or refused."""

    def __init__(
        self,
        inner: Authorizer | None,
        access: AccessConfig,
        part: str,
        basis: tuple[Rule, ...],
        *,
        leaves_rights: bool = False,
        authorities: Iterable[x509.Certificate] = (),
    ) -> None:
        self.inner = inner
        self._authorities = {one.fingerprint(SHA256()).hex()[:32]: one for one in authorities}
        self._removed: dict[str, x509.Certificate] = {}
        self._withdrawn: list[tuple[str, Code]] = []
        self._part = part
        # After a start that reads certificates in another way, nothing that they vouched for before counts.
        self._source = f"{_SOURCE}\n{part}" + (" for an authorizer" if leaves_rights else "")
        self._basis = basis
        self._templates = [(template, "subscribe") for template in access.certificate_subscribe]
        self._templates += [(template, "publish") for template in access.certificate_publish]
        self._leaves_rights = leaves_rights

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.certificate is None or (question.token is not None and self.inner is not None):
            if self.inner is None:
                return Refusal("this node requires a client certificate that names its holder", Code.CONNECT_REFUSED)
            return await self.inner.connect(question)
        try:
            holder, expires_ms = read_holder(question.certificate, self._part)
            rules = [] if self._leaves_rights else [*self._basis, *self._make_rules(holder)]
            source = self._name_source(question.certificate, question.certificate_chain)
        except ValueError as error:
            return Refusal(str(error), Code.CONNECT_REFUSED)
        if self._leaves_rights and self.inner is not None:
            granted = await self.inner.connect(replace(question, certificate_identity=holder))
            return replace(granted, source=source) if isinstance(granted, Grant) else granted
        return Grant(holder, rules, expires_ms, source=source, authority="certificate", configured=len(rules))

    async def update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        if self.inner is None or (question.certificate is not None and question.token is None):
            return await self.connect(question)
        return await self.inner.update_token(question)

    async def subscribe(self, question: SelectorQuestion) -> bool:
        return self.inner is not None and await self.inner.subscribe(question)

    async def publish(self, question: SelectorQuestion) -> bool:
        return self.inner is not None and await self.inner.publish(question)

    async def start(self) -> None:
        if self.inner is not None:
            await self.inner.start()

    async def stop(self) -> None:
        if self.inner is not None:
            await self.inner.stop()

    def list_trusted(self) -> list[str]:
        if not self._authorities:
            return [self._source]
        return [f"{self._source}\n{name}" for name in (*self._authorities, _CHAIN)]

    def list_rules(self) -> dict[str, list[RuleTemplate]]:
        """The rules that the configuration gives holders of certificates."""
        if self._leaves_rights:
            return {}
        basis = [(rule.pattern, str(rule.actions), str(rule.verdict)) for rule in self._basis]
        return {_SOURCE: [*basis, *((template, action, "allow") for template, action in self._templates)]}

    def take_withdrawn(self) -> list[tuple[str, Code]]:
        """The authorities removed since the last call, and how the connections of each end."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def adopt(self, other: CertificateAuthorizer) -> list[str]:
        """Judge like another authorizer from now on. Returns the identities whose token is no longer valid."""
        gone = [name for name in self._authorities if name not in other._authorities]
        self._withdrawn += [(f"{self._source}\n{name}", Code.TOKEN_INVALID) for name in gone]
        if gone:  # the next handshake shows whether one of them issued the others
            self._withdrawn.append((f"{self._source}\n{_CHAIN}", Code.RIGHTS_CHANGED))
        if set(self._templates) - set(other._templates) or set(self._basis) - set(other._basis):
            self._withdrawn.append((_SOURCE, Code.RIGHTS_CHANGED))
        self._removed = {**self._removed, **{name: self._authorities[name] for name in gone}}
        self._authorities = other._authorities
        for name in self._authorities:
            self._removed.pop(name, None)
        self._templates, self._basis = other._templates, other._basis
        adopt: Callable[[Authorizer | None], list[str]] | None = getattr(self.inner, "adopt", None)
        return adopt(other.inner) if adopt is not None else []

    def _name_source(self, der: bytes, chain: Sequence[bytes]) -> str:
        """The name of the authority that signed the certificate, as an order that withdraws it uses it. Raises ValueError if
        the certificates of the client lead to none. The handshake may be older than a reload that removed the authority;
        the gate refuses such a grant.
        """
        if len(chain) > CHAIN_MAX:
            raise ValueError(f"the client sent more than {CHAIN_MAX} certificates beside its own")
        if not self._authorities and not self._removed:
            return self._source
        certificate = x509.load_der_x509_certificate(der)
        between = [x509.load_der_x509_certificate(one) for one in chain]
        for _ in range(len(between) + 1):
            for name, authority in (*self._authorities.items(), *self._removed.items()):
                if _has_signed(authority, certificate):
                    return f"{self._source}\n{name}"
            signer = next((one for one in between if _has_signed(one, certificate)), None)
            if signer is None:
                break
            between.remove(signer)
            certificate = signer
        return f"{self._source}\n{_CHAIN}"

    def _make_rules(self, holder: str) -> list[Rule]:
        """The rules of one identity; raises ValueError if the name cannot be a segment of a subject."""
        names = {IDENTITY: holder}
        return [Rule.allow(fill_template(template, names), action) for template, action in self._templates]


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    if authority.subject != certificate.issuer:
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def read_authorities(file: str) -> list[x509.Certificate]:
    """Read the authorities that sign clients' certificates; raises ConfigInvalid."""
    key = "tls.client_authorities_file"
    try:
        return x509.load_pem_x509_certificates(Path(file).read_bytes()) if file else []
    except OSError as error:
        raise ConfigInvalid(key, file, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigInvalid(key, file, "holds no certificate (PEM)") from error


def read_holder(der: bytes, part: str) -> tuple[str, int]:
    """The identity that a certificate names, and its end (Unix ms). Raises ValueError if it does not name exactly one."""
    certificate = x509.load_der_x509_certificate(der)
    try:
        names = _READERS[part](certificate)
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType, UnicodeError) as error:
        raise ValueError("the certificate's names cannot be read") from error
    if len(names) != 1 or not names[0]:
        raise ValueError(f"the certificate has {len(names)} names of the kind {part} and must have one")
    return names[0], int(certificate.not_valid_after_utc.timestamp() * 1000)
