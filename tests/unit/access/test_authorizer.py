"""Methods that an authorizer does not define deny, and the text of a question never contains a token."""

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, SelectorQuestion


class Named(Authorizer):
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Grant(question.client or "nobody")


async def test_by_default_nothing_asked_is_allowed_and_a_new_token_is_judged_like_the_first() -> None:
    authorizer = Named()
    question = SelectorQuestion(1, "ann", "/a")
    assert await authorizer.subscribe(question) is False
    assert await authorizer.publish(question) is False
    answer = await authorizer.update_token(ConnectQuestion(1, "t", "ann", "127.0.0.1:1", is_renewal=True))
    assert answer == Grant("ann")


def test_a_question_does_not_show_its_token() -> None:
    assert "s3cret" not in repr(ConnectQuestion(1, "s3cret", None, "127.0.0.1:1"))
