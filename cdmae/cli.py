"""End a process well: with one sentence for an error that a user can cause, not a traceback.

The exit status is 1 for wrong input, a full disk or too little memory, and 75 for a stop with saved
state.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from cdmae.errors import InputError, Interrupted, said

_OTHER = "check that the path exists and that you have permission; then run again"
INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: the next run resumes
_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space and run again, finished steps are kept",
    errno.EDQUOT: "the quota is used up; free some space and run again, finished steps are kept",
}


def ending(work: Callable[[], Any]) -> NoReturn:
    """Run `work` and exit with status 0, or with an error's message and status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an ASCII locale cannot write every letter
    try:
        try:
            work()
            sys.stdout.flush()
        finally:
            _ignore_stops()
    except Exception as error:
        sys.exit(_report(error))
    except Interrupted as stopped:
        sys.exit(_say(str(stopped) or "stopped by a signal", INTERRUPTED))
    except KeyboardInterrupt:
        sys.exit(_say("stopped from the keyboard; finished work is kept", 128 + signal.SIGINT))
    sys.exit(0)


def _report(error: Exception) -> int:
    """Print the message for an error and return the exit status; re-raise unexpected errors."""
    if isinstance(error, InputError):
        return _say(str(error), 1)
    if isinstance(error, BrokenPipeError):
        # otherwise the interpreter would print an error while it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    # torch has its own OutOfMemoryError
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        cause = str(error).partition(". ")[0] or "while running"
        return _say(f"out of memory ({cause}); use more memory, or a smaller batch or chunk", 1)
    # libraries written in Rust report a system error's number only in the message
    in_message = re.search(r"\(os error (\d+)\)", str(error))
    if isinstance(error, OSError) and error.errno:  # pyarrow's have none
        number = error.errno
    elif in_message:
        number = int(in_message[1])
    else:
        raise error
    path = getattr(error, "filename", None) or "a file"
    reason = getattr(error, "strerror", None) or str(error)
    words = _REMEDY.get(number) or f"cannot be read or written ({reason}); {_OTHER}"
    return _say(f"{path}: {words}", 1)


def _say(sentence: str, status: int) -> int:
    print(said(sentence), file=sys.stderr, flush=True)
    return status


def _ignore_stops() -> None:
    """Let the exit functions of libraries run undisturbed: the work has its result or its error."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
