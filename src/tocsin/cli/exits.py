"""How `tocsin` ends: a code that scripts can rely on, and a message that says the way out."""

from enum import IntEnum

#: A worker leaves within 5 s of SIGTERM, also when no broker answers any more: ending hard is safe
#: at any moment, and only costs the others the time until our session ends.
LEAVE_S_MAX = 4.0


class Exit(IntEnum):
    """Exit codes; listed in `tocsin --help`. Add, never renumber."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    ENGINE = 3
    STATE_DIR = 4
    UNREACHABLE = 5
    NO_ANSWER = 6


#: What each code means, for `tocsin --help`.
MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "refused, or the answer is no",
    Exit.USAGE: "usage or settings, missing topics included",
    Exit.ENGINE: "the engine refuses to start",
    Exit.STATE_DIR: "the state directory cannot be used",
    Exit.UNREACHABLE: "no broker answers",
    Exit.NO_ANSWER: "no answer in time, or no worker to ask",
}


class Failure(Exception):
    """Ends the command with `code`; said on stderr as message and way out, without a traceback."""

    def __init__(self, code: Exit, message: str, way_out: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.way_out = way_out
        #: With --json: more fields of the JSON object on stdout that tells of the failure.
        self.document: dict[str, object] | None = None
