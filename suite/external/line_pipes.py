"""Lines to and from a program that was started with pipes for its input and its output."""

import subprocess
import threading
from queue import SimpleQueue


def send_line(process: subprocess.Popen[str], line: str) -> None:
    """Write a line, newline included. That a program has ended is seen in its output, not here."""
    if process.stdin is None:
        raise AssertionError("it has a pipe for its input")
    try:
        process.stdin.write(line)
        process.stdin.flush()
    except BrokenPipeError:
        return


def lines_into(lines: "SimpleQueue[str | None]", process: subprocess.Popen[str]) -> threading.Thread:
    """Start to put each line of the program's output into ``lines``, and None at its end; return the thread."""
    output = process.stdout
    if output is None:
        raise AssertionError("it has a pipe for its output")

    def read() -> None:
        for line in output:
            lines.put(line)
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader
