"""A consumer of the official client survives a restart of the server and a crash of PostgreSQL.

Prints `waiting` when a message was consumed and acked and the next pop was sent; reads `back` when it may go on.
"""

import asyncio
import contextlib
import io
import os
import sys
import time

from queen import Queen

QUEUE = "survivor"
EVENTS = 2
PATIENCE_SECONDS = 30


async def main() -> None:
    queen = Queen(f"http://{os.environ['REVEILLE_ADDRESS']}")
    got: asyncio.Queue = asyncio.Queue()

    async def handle(message: dict) -> None:
        await got.put(message["data"])

    consumer = asyncio.create_task(run(queen, handle))
    for n in range(EVENTS + 1):
        # The client prints what it does, and its errors while the server is away.
        with contextlib.redirect_stdout(io.StringIO()):
            await push_until_stored(queen, n)
            came = await asyncio.wait_for(got.get(), PATIENCE_SECONDS)
            assert came == {"n": n}, f"message {n} was to come, and {came} came"
            await until_acked(queen)
        if n < EVENTS:
            print("waiting", flush=True)
            assert (await asyncio.to_thread(sys.stdin.readline)).strip() == "back"
    # The consumer has reached its limit and ends by itself.
    await asyncio.wait_for(consumer, PATIENCE_SECONDS)
    with contextlib.redirect_stdout(io.StringIO()):
        await queen.close()


async def run(queen: Queen, handle) -> None:
    await queen.queue(QUEUE).limit(EVENTS + 1).timeout_millis(20_000).consume(handle)


async def push_until_stored(queen: Queen, n: int) -> None:
    """As a careful producer does: the same transaction id is stored once, however often it is sent."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await queen.queue(QUEUE).push({"data": {"n": n}, "transactionId": f"message-{n}"})
        except Exception:
            if time.monotonic() > deadline:
                raise


async def until_acked(queen: Queen) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if (await queen.admin.get_queue(QUEUE))["messages"]["pending"] == 0:
                return
        except Exception:
            # Connections to PostgreSQL come back at different times.
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, "its ack did not arrive"
        await asyncio.sleep(0.02)


asyncio.run(main())
print("survivor: a consumer went on by itself after a restart of the server and a crash of PostgreSQL")
