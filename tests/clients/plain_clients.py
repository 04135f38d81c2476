"""Common HTTP clients push and pop: curl, Node's fetch, Python's httpx, Go's net/http. The server must take none of them for a
browser."""

import json
import os
import pathlib
import subprocess
import sys
import time

PLAIN = pathlib.Path(__file__).resolve().parent / "plain"
# Go compiles first.
LIMIT_SECONDS = 120

CLIENTS = {
    "curl": ["sh", PLAIN / "push_pop.sh"],
    "node": ["node", PLAIN / "push_pop.mjs"],
    "httpx": [sys.executable, PLAIN / "push_pop.py"],
    "go": ["go", "run", PLAIN / "push_pop.go"],
}


def plain_clients(address: str) -> None:
    for name, command in CLIENTS.items():
        began = time.monotonic()
        # Go's build cache stays beside the other builds, not in the user's home.
        environment = {**os.environ, "GOCACHE": str(pathlib.Path(sys.prefix) / "go"), "GO111MODULE": "off"}
        ran = subprocess.run(
            [*map(str, command), address, f"plain-{name}"],
            env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
        )
        assert ran.returncode == 0, f"{name} failed:\n{ran.stdout}{ran.stderr}"
        [message] = json.loads(ran.stdout)["messages"]
        assert message["data"] == f"from plain-{name}", f"{name} popped {message}"
        print(f"plain client {name}: pushed and popped ({time.monotonic() - began:.1f} s)")
