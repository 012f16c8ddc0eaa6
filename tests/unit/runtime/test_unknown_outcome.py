"""Rule 8: an outcome that nobody tells is waited for, but not for ever: a new producer of the same
id settles it, and the state topic says what became of it.
"""

import pytest

from tests.unit.runtime.engine import Engine
from tocsin.core.events import Armed
from tocsin.ports import Broken, Unknown
from tocsin.runtime.step import UNKNOWN_MS_MAX

TRY_MS = 5_000


def test_a_commit_that_stays_unknown_is_given_up_and_settled_by_a_new_producer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine()
    node = engine.live("w")
    tries = []

    def before(call: str) -> None:
        if call == "transaction.commit":
            tries.append(call)
            engine.advance(TRY_MS)
            raise Unknown("no answer")

    engine.arm("a", after=60_000)
    with monkeypatch.context() as patched:
        patched.setattr(engine.failures, "before", before)
        with pytest.raises(Broken, match="nobody tells"):
            node.turn()
    assert len(tries) == UNKNOWN_MS_MAX // TRY_MS + 1
    assert engine.events() == []

    node.leave()
    engine.live("again")
    engine.until(lambda: engine.events(Armed))
    assert [stamp.step for stamp in engine.stamps()] == [1]
