"""Behind a node the process ends with the node's code: by itself, or when its time is over."""

import threading

import pytest

from godwit.signals.ending import Ending

DEADLINE_S = 10


def test_a_process_that_does_not_end_by_itself_is_ended_with_the_nodes_code() -> None:
    codes: list[int] = []
    reported: list[str] = []
    is_over, release = threading.Event(), threading.Event()
    left = threading.Thread(target=release.wait, args=(DEADLINE_S,), name="left")
    left.start()

    def end(code: int) -> None:
        codes.append(code)
        is_over.set()

    def tell(threads: str) -> None:
        reported.append(threads)
        raise OSError("no log")

    with pytest.raises(SystemExit, check=lambda raised: raised.code == 3):
        Ending(tell, end, limit_s=0).leave(3)
    assert is_over.wait(DEADLINE_S)
    release.set()
    left.join()
    assert codes == [3] and "left" in reported[0]


def test_the_last_exit_handler_ends_a_process_whose_node_has_stopped_and_no_other() -> None:
    codes: list[int] = []
    ending = Ending(lambda _: None, codes.append, limit_s=3_600)
    ending.end()
    assert codes == []
    with pytest.raises(SystemExit):
        ending.leave(1)
    ending.end()
    assert codes == [1]
