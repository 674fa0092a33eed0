"""JSON Web Tokens: who signed one, what it lets its holder do (claims.py, keys.py, key_source.py, verifier.py, judge.py)."""

from .judge import TokenAuthorizer

__all__ = ["TokenAuthorizer"]
