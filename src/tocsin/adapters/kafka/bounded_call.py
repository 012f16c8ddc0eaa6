"""Calls of the client library that may never come back, made in a thread that can be given up.

Seen with librdkafka 2.16: `send_offsets_to_transaction(timeout=5)` waits for ever when the group's
coordinator went away and came back between its two requests.
"""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

_Call = tuple[Callable[..., object], tuple[object, ...]]


class NeverBack(Exception):
    """A call did not return in time. It may still be under way: its thread is given up."""


class BoundedCalls:
    """One call after the other, in a thread of its own; after NeverBack the next one has a new one.

    Costs some 50 us a call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: SimpleQueue[_Call | None] | None = None
        self._told: SimpleQueue[BaseException | None] = SimpleQueue()

    def call(self, seconds: float, call: Callable[..., object], *arguments: object) -> None:
        """Make `call`; what it raises is raised here. NeverBack after `seconds`."""
        if self._asked is None:
            self._asked, self._told = SimpleQueue(), SimpleQueue()
            arguments_of_thread = (self._asked, self._told)
            Thread(target=_serve, args=arguments_of_thread, name=self._name, daemon=True).start()
        self._asked.put((call, arguments))
        try:
            raised = self._told.get(timeout=seconds)
        except Empty:
            self.close()
            raise NeverBack(f"no return within {seconds:g} s") from None
        if raised is not None:
            raise raised

    def close(self) -> None:
        """Let the thread end, once it is back."""
        if self._asked is not None:
            self._asked.put(None)
            self._asked = None


def _serve(asked: "SimpleQueue[_Call | None]", told: "SimpleQueue[BaseException | None]") -> None:
    while True:
        request: Any = asked.get()
        if request is None:
            return
        call, arguments = request
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001  raised in the thread that asked
            told.put(error)
        else:
            told.put(None)
        # Nothing of the last call is kept alive while there is none.
        del request, call, arguments
