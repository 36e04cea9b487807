"""A worker process: does one job at a time for the server, so that the server's own loop never waits for it.

Spoken over standard input and output: a frame is four bytes of length and a pickle, from and to our own parent only.
The process ends when its input does, so it cannot outlive the server. It imports neither pygls nor lsprotocol.
"""

from __future__ import annotations

import os
import pickle
import struct
import traceback
from typing import BinaryIO

LENGTH = struct.Struct(">I")


def frame(message: object) -> bytes:
    body = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(body)) + body


def _read(stream: BinaryIO) -> object:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        raise EOFError
    return pickle.loads(body)  # written by our parent process


def main() -> None:
    # Answers travel on a copy of standard output; whatever a job prints goes to the log instead.
    answers = os.fdopen(os.dup(1), "wb")
    questions = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if hasattr(os, "nice"):
        os.nice(10)  # the editor and the server come first

    from phobos.lsp import jobs

    while True:
        try:
            question = _read(questions)
        except EOFError:
            return
        assert isinstance(question, tuple)
        job, arguments = question
        try:
            answer: tuple[bool, object] = (True, getattr(jobs, job)(**arguments))
        except jobs.JobError as error:
            answer = (False, str(error))
        except Exception:
            traceback.print_exc()
            answer = (False, f"{job} failed: " + traceback.format_exc(limit=0).strip())
        answers.write(frame(answer))
        answers.flush()


if __name__ == "__main__":
    main()
