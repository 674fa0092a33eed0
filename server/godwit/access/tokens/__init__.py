"""JSON Web Tokens: their signatures and permissions (claims.py, keys.py, key_source.py, verifier.py, judge.py)."""

from .judge import TokenAuthorizer

__all__ = ["TokenAuthorizer"]
