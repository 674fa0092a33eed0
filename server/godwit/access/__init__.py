"""Permissions: the authorizer's interface, its rules, and the access modes that come with Godwit.

Write an authorizer with the names exported here (see authorizer.py). The node uses gate.py to call it.
"""

from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .rights import Action, Grant, Refusal, Rule, Verdict

__all__ = ["Action", "Authorizer", "ConnectQuestion", "Grant", "Refusal", "Rule", "SelectorQuestion", "Verdict"]
