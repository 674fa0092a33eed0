"""An authorizer: everybody reads the news, clients with a token publish in their own room, and each order is asked about.

    PYTHONPATH=examples godwit serve --set access.mode=custom --set access.authorizer=authorizer:Rooms

It is asked when a client connects, and for what its rules say `ask`; never for a message. The engine applies the rules.
"""

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion

USERS = {"token-of-ada-lovelace": "ada", "token-of-alan-turing": "alan"}
TRADERS = {"ada"}


class Rooms(Authorizer):
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.token is None:
            return Grant("guest", [Rule.allow("/news/**", "subscribe")])
        user = USERS.get(question.token)
        if user is None:
            return Refusal("no user has this token")
        return Grant(
            user,
            [
                Rule.allow("/news/**", "subscribe"),
                Rule.allow(f"/rooms/{user}/**"),
                Rule.ask("/orders/**"),
            ],
        )

    async def publish(self, question: SelectorQuestion) -> bool:
        return question.identity in TRADERS

    async def subscribe(self, question: SelectorQuestion) -> bool:
        return question.identity in TRADERS
