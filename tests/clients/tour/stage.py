"""What the steps share."""

import asyncio
import time

STEPS = []


def step(function):
    """Registers a step. Its name is a sentence, and part of the names of its queues: steps share no queue."""
    STEPS.append(function)
    return function


class Stage:
    def __init__(self, queen, url: str, name: str):
        self.queen = queen
        self.url = url
        self.name = name

    def title(self, word: str = "") -> str:
        return f"{self.name}-{word}" if word else self.name

    def queue(self, word: str = ""):
        """A builder for a queue of this step's own, which waits only with wait(True)."""
        return self.queen.queue(self.title(word)).wait(False)

    async def push(self, payloads: list, word: str = "", partition: str = "Default") -> list:
        """Payloads, each with its position as transaction id."""
        items = [{"data": payload, "transactionId": f"{partition}-{n}"} for n, payload in enumerate(payloads)]
        results = await self.queue(word).partition(partition).push(items)
        same([result["status"] for result in results], ["queued"] * len(payloads), "the answers of a push")
        return results

    async def failing(self, awaitable) -> Exception:
        """The error it raises; it must raise one."""
        try:
            result = await awaitable
        except Exception as error:
            return error
        raise AssertionError(f"it should have failed, and answered {result!r}")

    async def until(self, question, what: str, seconds: float = 10):
        """Waits until the answer is yes."""
        deadline = time.monotonic() + seconds
        while not await question():
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
            await asyncio.sleep(0.02)


def carried(messages: list) -> list:
    """The payloads of messages."""
    return [message["data"] for message in messages]


def same(came, wanted, what: str) -> None:
    assert came == wanted, f"{what}:\n  wanted {wanted!r}\n  came   {came!r}"
