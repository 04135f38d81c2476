"""A `reveille serve` for the tests: a free port, a private PostgreSQL, a temporary directory; removed afterwards."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

# With a first initdb on a busy machine; it usually takes a few seconds.
START_SECONDS = 90
STOP_SECONDS = 30
LISTENING = "listening on http://"
PSQL = re.compile(r"; (psql -h .* -U \S+ \S+)$", re.MULTILINE)


class Server:
    def __init__(self, program: str):
        self.program = program
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="reveille-clients-"))
        # Root's private server runs as another user, who must be able to enter.
        self.home.chmod(0o711)
        self.log = (self.home / "log").open("w")
        self.process = None
        self.address = "127.0.0.1:0"

    def __enter__(self) -> "Server":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def restart(self) -> None:
        """Ends it with SIGTERM, and starts it again at the same address on the same database."""
        self._stop()
        self._start()

    def crash_postgres(self) -> None:
        """Kills it as a crash would, and waits until its supervisor has started it again and the server is well."""
        [found] = self.home.rglob("postmaster.pid")
        killed = found.read_text().splitlines()[0]
        os.kill(int(killed), signal.SIGKILL)
        deadline = time.monotonic() + START_SECONDS
        while not (self._is_restarted(found, killed) and self._is_well()):
            assert time.monotonic() < deadline, f"PostgreSQL did not come back\n{self.last_words()}"
            time.sleep(0.1)

    @staticmethod
    def _is_restarted(pid_file: pathlib.Path, killed: str) -> bool:
        try:
            return pid_file.read_text().splitlines()[0] != killed
        except (OSError, IndexError):
            return False

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def database(self) -> str:
        """How to connect to its PostgreSQL, from the line that it prints at its start."""
        found = PSQL.findall((self.home / "log").read_text())
        assert found, f"the server did not print where its database is\n{self.last_words()}"
        words = shlex.split(found[-1])
        return f"host={words[2]} user={words[4]} dbname={words[5]}"

    def last_words(self) -> str:
        return "\n".join((self.home / "log").read_text().splitlines()[-30:])

    def _start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not foreign(key)}
        self.process = subprocess.Popen(
            [self.program, "serve", "--listen", self.address, "--data-dir", str(self.home / "postgres")],
            env={**environment, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        signal.signal(signal.SIGALRM, self._too_late)
        signal.alarm(START_SECONDS)
        line = self.process.stdout.readline().strip()
        signal.alarm(0)
        if not line.startswith(LISTENING):
            raise AssertionError(f"the server did not start; it printed {line!r} and\n{self.last_words()}")
        self.address = line.removeprefix(LISTENING).rstrip("/")

    def _too_late(self, *_: object) -> None:
        raise AssertionError(f"the server did not listen within {START_SECONDS} s\n{self.last_words()}")

    def _stop(self) -> None:
        if self.process is None:
            return
        # The same Ctrl-C may have ended it already.
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def foreign(key: str) -> bool:
    """The settings of the user who runs this must not matter; only PostgreSQL's binaries may be named."""
    return key == "DATABASE_URL" or (key.startswith("REVEILLE_") and key != "REVEILLE_PG_BIN")
