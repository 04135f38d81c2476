"""Runs clients against a real server: the README's quick start, plain HTTP clients in several languages, the tour of Queen's
official Python client, and jobs that an ordinary driver enqueues.

Owns the server, a private PostgreSQL in a directory of its own, and every child; all of them end with this program.
Usage: run.py <the reveille program> <the example jobs_worker>
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

from plain_clients import plain_clients
from quick_start import quick_start
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent.parent / "README.md"
# A whole run takes a minute; after this time something hangs.
LIMIT_SECONDS = 150


def main() -> int:
    # Ends the children on the way out, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    with Server(sys.argv[1]) as server:
        try:
            quick_start(README, server.address)
            plain_clients(server.address)
            Child("tour", server, began).finish()
            Child("outbox", server, began).finish()
            survives(server, began)
        except Exception as error:
            print(f"\nclients: {error}\n\nThe end of the server's log:\n{server.last_words()}", file=sys.stderr)
            return 1
    print(f"clients: green after {time.monotonic() - began:.0f} s")
    return 0


def survives(server: Server, began: float) -> None:
    """A consumer of the official client goes on by itself after the server or PostgreSQL was restarted."""
    with Child("survivor", server, began) as survivor:
        for event in (server.restart, server.crash_postgres):
            survivor.until("waiting")
            event()
            survivor.say("back")
        survivor.finish()


class Child:
    """A program that uses the client. It is another process because the client installs signal handlers."""

    def __init__(self, module: str, server: Server, began: float):
        self.module = module
        self.left = lambda: max(1.0, LIMIT_SECONDS - (time.monotonic() - began))
        environment = {**os.environ, "REVEILLE_ADDRESS": server.address, "PYTHONPATH": str(HERE)}
        environment |= {"REVEILLE_DATABASE": server.database(), "REVEILLE_WORKER": sys.argv[2]}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def until(self, word: str) -> None:
        """Reads its output until this word."""
        signal.signal(signal.SIGALRM, self._too_late)
        signal.alarm(int(self.left()))
        try:
            for line in self.process.stdout:
                if line.strip() == word:
                    return
                print(line, end="")
        finally:
            signal.alarm(0)
        raise AssertionError(f"{self.module} ended before it printed {word!r}, with status {self.process.wait()}")

    def say(self, word: str) -> None:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def finish(self) -> None:
        with self:
            try:
                printed, _ = self.process.communicate(timeout=self.left())
            except subprocess.TimeoutExpired as late:
                print((late.stdout or b"").decode(), end="")
                raise AssertionError(f"{self.module} did not end in time") from None
            print(printed, end="")
            if self.process.returncode != 0:
                raise AssertionError(f"{self.module} failed")

    def _too_late(self, *_: object) -> None:
        raise AssertionError(f"{self.module} did not print the expected word in time")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("clients: interrupted")
