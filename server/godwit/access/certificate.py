"""Who a client is by its TLS certificate, and what its holder may do.

The engine's TLS has verified that one of our authorities signed it; here it is read whom it names, by `tls.client_identity`. It
stands before the mode's own authorizer: a token, where one is shown, decides as ever. What a holder may do is said by
patterns in which {identity} is one whole segment. Invariant: a name never becomes more than that segment, so that nobody can be
called `**`; a certificate that names nobody, or nobody that can be named, lets nobody in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cryptography import x509

from ..codes import Code
from ..config.forms import IDENTITY
from ..config.tree import AccessConfig
from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .rights import Grant, Refusal, Rule
from .templates import fill_template


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


class CertificateAuthorizer(Authorizer):
    """Judges who shows a certificate and no token; everybody else is `inner`'s, or nobody's."""

    def __init__(
        self,
        inner: Authorizer | None,
        access: AccessConfig,
        part: str,
        basis: tuple[Rule, ...],
        *,
        leaves_rights: bool = False,
    ) -> None:
        self.inner = inner
        self._part = part
        self._basis = basis
        self._templates = [(template, "subscribe") for template in access.certificate_subscribe]
        self._templates += [(template, "publish") for template in access.certificate_publish]
        self._leaves_rights = leaves_rights

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.certificate is None or (question.token is not None and self.inner is not None):
            if self.inner is None:
                return Refusal("this node asks for a certificate that names its holder", Code.CONNECT_REFUSED)
            return await self.inner.connect(question)
        try:
            holder, expires_ms = read_holder(question.certificate, self._part)
            if self._leaves_rights and self.inner is not None:
                return await self.inner.connect(replace(question, certificate_identity=holder))
            return Grant(holder, [*self._basis, *self._make_rules(holder)], expires_ms, authority="certificate")
        except ValueError as error:
            return Refusal(str(error), Code.CONNECT_REFUSED)

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

    def adopt(self, other: CertificateAuthorizer) -> list[str]:
        """Judges as another does from now on; the identities whose token is none any more."""
        self._templates, self._basis = other._templates, other._basis
        adopt: Callable[[Authorizer | None], list[str]] | None = getattr(self.inner, "adopt", None)
        return adopt(other.inner) if adopt is not None else []

    def _make_rules(self, holder: str) -> list[Rule]:
        """Raises ValueError where the name cannot stand in a subject."""
        names = {IDENTITY: holder}
        return [Rule.allow(fill_template(template, names), action) for template, action in self._templates]


def read_holder(der: bytes, part: str) -> tuple[str, int]:
    """Whom a certificate names, and when it ends (Unix ms); raises ValueError where that is not exactly one."""
    certificate = x509.load_der_x509_certificate(der)
    try:
        names = _READERS[part](certificate)
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType, UnicodeError) as error:
        raise ValueError("the certificate's names cannot be read") from error
    if len(names) != 1 or not names[0]:
        raise ValueError(f"the certificate has {len(names)} names of the kind {part} and must have one")
    return names[0], int(certificate.not_valid_after_utc.timestamp() * 1000)
