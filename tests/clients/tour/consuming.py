"""Consumers: loops of the client that pop, call a handler, and ack."""

import asyncio
from collections import Counter, defaultdict

from .stage import Stage, carried, same, step

IDLE = 1500


@step
async def concurrent_consumers_get_each_message_once_and_each_partition_in_order(stage: Stage):
    partitions, each = 10, 30
    for p in range(partitions):
        await stage.push(list(range(each)), partition=f"p{p}")
    came = defaultdict(list)

    async def handle(messages: list):
        for message in messages:
            came[message["partition"]].append(message["data"])
        await asyncio.sleep(0)

    await stage.queue().wait(True).timeout_millis(500).concurrency(8).batch(7).idle_millis(IDLE).consume(handle)

    same(dict(came), {f"p{p}": list(range(each)) for p in range(partitions)}, "every message once, in order")
    same(await stage.queue().partitions(99).pop(), [], "what is left")


@step
async def a_consumer_of_single_messages_stops_at_its_limit(stage: Stage):
    await stage.push([1, 2, 3, 4])
    came = []

    async def handle(message: dict):
        came.append(message["data"])

    await stage.queue().wait(True).limit(3).consume(handle)

    same(came, [1, 2, 3], "as many as were wanted")
    same(carried(await stage.queue().pop()), [4], "what is left")


@step
async def each_message_of_a_batch_is_handled_alone(stage: Stage):
    await stage.push([1, 2, 3])
    came = []

    async def handle(message: dict):
        came.append(message["data"])

    await stage.queue().wait(True).batch(3).each().limit(3).consume(handle)

    same(came, [1, 2, 3], "one at a time")
    same(await stage.queue().pop(), [], "what is left")


@step
async def a_consumer_is_stopped_by_a_signal(stage: Stage):
    stop = asyncio.Event()
    await stage.push([1, 2, 3])

    async def handle(message: dict):
        stop.set()

    await stage.queue().wait(True).consume(handle, signal=stop)

    same(carried(await stage.queue().batch(9).pop()), [2, 3], "what is left")


@step
async def a_handler_that_fails_gets_its_batch_again_and_is_charged_once_for_it(stage: Stage):
    await stage.queue().config({"retry_limit": 3}).create()
    await stage.push(list(range(100)))
    attempts = Counter()

    async def handle(messages: list):
        attempts.update(carried(messages))
        if attempts[0] < 3:
            raise ValueError("not yet")

    await stage.queue().wait(True).batch(100).limit(300).consume(handle)

    same(attempts, Counter(dict.fromkeys(range(100), 3)), "attempts of each message")
    same((await stage.queue().dlq().get())["total"], 0, "dead letters")
    same(await stage.queue().pop(), [], "what is left")


@step
async def callbacks_ack_instead_of_the_consumer(stage: Stage):
    await stage.queue().config({"retry_limit": 0}).create()
    await stage.push(["good", "bad"])
    received = []

    async def handle(message: dict):
        if message["data"] == "bad":
            raise ValueError("a bad one")

    async def success(message, result):
        received.append(("success", message["data"]))
        await stage.queen.ack(message)

    async def error(message, error):
        received.append((str(error), message["data"]))
        await stage.queen.ack(message, False, {"error": str(error)})

    await stage.queue().wait(True).limit(2).consume(handle).on_success(success).on_error(error)

    same(received, [("success", "good"), ("a bad one", "bad")], "what the callbacks got")
    dead = await stage.queue().dlq().get()
    same([(letter["data"], letter["errorMessage"]) for letter in dead["messages"]], [("bad", "a bad one")], "the dead")


@step
async def without_acks_a_consumer_leaves_its_messages_leased(stage: Stage):
    await stage.queue().config({"lease_time": 1}).create()
    await stage.push([1])
    came = []

    async def handle(message: dict):
        came.append(message["deliveryAttempt"])

    await stage.queue().wait(True).auto_ack(False).limit(2).consume(handle)

    same(came, [1, 2], "the lease ended in between")


@step
async def a_lease_is_renewed_while_the_handler_works(stage: Stage):
    await stage.queue().config({"lease_time": 1}).create()
    await stage.push([1])
    came = []

    async def handle(message: dict):
        came.append(message["deliveryAttempt"])
        await asyncio.sleep(2.5)

    consumers = [
        stage.queue().wait(True).timeout_millis(500).renew_lease(True, 300).idle_millis(4000).consume(handle)
        for _ in range(2)
    ]
    await asyncio.gather(*[run(consumer) for consumer in consumers])

    same(came, [1], "it came once, though its handler took longer than its lease")


async def run(consumer):
    await consumer


@step
async def several_partitions_and_whole_namespaces_are_consumed(stage: Stage):
    space = stage.title("space")
    for word in ("one", "two"):
        await stage.queue(word).namespace(space).task("t").create()
        for partition in ("a", "b"):
            await stage.push([1, 2], word, partition)
    came = []

    async def handle(messages: list):
        came.extend((message["queue"], message["partition"], message["data"]) for message in messages)

    nameless = stage.queen.queue().namespace(space).task("t").wait(True).timeout_millis(500)
    await nameless.batch(4).partitions(4).idle_millis(IDLE).consume(handle)

    wanted = [(stage.title(word), partition, n) for word in ("one", "two") for partition in ("a", "b") for n in (1, 2)]
    same(sorted(came), sorted(wanted), "every message of the namespace")


@step
async def a_handler_notes_what_it_does(stage: Stage):
    await stage.push([1])
    noted = []
    trip = stage.title("trip")

    async def handle(message: dict):
        noted.append(message)
        noted.append(await message["trace"]({"traceName": [trip, "tour"], "eventType": "step", "data": {"n": 1.5}}))
        noted.append(await message["trace"]({"data": {"n": 2}}))

    await stage.queue().wait(True).limit(1).group("g").consume(handle)

    message, first, second = noted
    same((first["success"], second["success"]), (True, True), "the notes")
    admin = stage.queen.admin
    traces = (await admin.get_traces_for_message(message["partitionId"], message["transactionId"]))["traces"]
    same(sorted((trace["event_type"], trace["data"]["n"]) for trace in traces), [("info", 2), ("step", 1.5)], "by message")
    named = await admin.get_traces_by_name(trip, limit=10)
    same([(trace["data"], trace["consumer_group"]) for trace in named["traces"]], [({"n": 1.5}, "g")], "by name")
    names = {name["trace_name"]: name["trace_count"] for name in (await admin.get_trace_names(limit=100))["trace_names"]}
    same((names[trip], names["tour"]), (1, 1), "the names")
