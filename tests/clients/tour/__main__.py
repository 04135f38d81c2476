"""Runs every step in order, or those named, and reports the one that failed.

Fails if a public method of the client was never called.
"""

import asyncio
import contextlib
import io
import os
import sys
import time
import traceback

from queen import Queen

# Each module registers its steps; they run in this order.
from . import pushing, popping, settling, consuming, grouping, transacting, administering  # noqa: F401, I001
from .calls import record_calls, uncalled
from .stage import STEPS, Stage

STEP_SECONDS = 40


async def main() -> int:
    record_calls()
    url = f"http://{os.environ['REVEILLE_ADDRESS']}"
    began = time.monotonic()
    steps = [step for step in STEPS if step.__name__ in sys.argv[1:]] or STEPS
    for step in steps:
        # The client prints what it does; that matters only when a step fails.
        chatter, step_began = io.StringIO(), time.monotonic()
        queen = Queen(url)
        try:
            with contextlib.redirect_stdout(chatter):
                await asyncio.wait_for(step(Stage(queen, url, step.__name__)), STEP_SECONDS)
                await queen.close()
        except Exception:
            report(step, traceback.format_exc(limit=-4), chatter.getvalue())
            return 1
        print(f"  {time.monotonic() - step_began:5.1f} s  {step.__name__}", flush=True)
    missing = uncalled()
    if missing and steps is STEPS:
        print(f"tour: never called: {', '.join(missing)}")
        return 1
    print(f"tour: {len(steps)} steps of queen-mq's Python client in {time.monotonic() - began:.0f} s")
    return 0


def report(step, trace: str, chatter: str) -> None:
    print(f"tour: step {step.__name__} of {step.__module__} failed\n\n{trace}")
    if chatter:
        print(f"What the client printed in it:\n{chatter[-4000:]}")


sys.exit(asyncio.run(main()))
