"""Pops, without and with waiting."""

import asyncio
import re
import time

from queen import Queen

from .stage import Stage, carried, same, step


@step
async def a_message_has_every_field_the_client_reads(stage: Stage):
    await stage.queue().config({"lease_time": 30}).create()
    await stage.push([{"a": 1}], partition="p")

    [message] = await stage.queue().pop()

    for name, value in {
        "transactionId": "p-0",
        "traceId": None,
        "data": {"a": 1},
        "producerSub": None,
        "queue": stage.title(),
        "partition": "p",
        "consumerGroup": "__QUEUE_MODE__",
        "deliveryAttempt": 1,
        "leaseSeconds": 30.0,
    }.items():
        same(message[name], value, name)
    uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    for name in ("id", "partitionId", "leaseId"):
        assert re.fullmatch(uuid, message[name]), f"{name} is {message[name]!r}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", message["createdAt"]), message["createdAt"]


@step
async def nothing_is_an_empty_list_at_once_or_at_the_deadline(stage: Stage):
    same(await stage.queue().pop(), [], "a queue that is not there")
    began = time.monotonic()
    same(await stage.queue().wait(True).timeout_millis(400).pop(), [], "a pop that waited")
    took = time.monotonic() - began
    assert 0.39 < took < 5, f"it waited {took:.3f} s instead of 0.4"


@step
async def a_batch_takes_from_one_partition_unless_more_are_asked_for(stage: Stage):
    for partition in ("a", "b", "c"):
        await stage.push([f"{partition}{n}" for n in range(3)], partition=partition)

    one = await stage.queue().batch(100).pop()
    same((len(one), len({message["partition"] for message in one})), (3, 1), "the messages of one partition")
    rest = await stage.queue().partitions(5).batch(5).pop()
    same(len(rest), 5, "the batch is for all partitions together")
    same(len({message["leaseId"] for message in rest}), 1, "one lease for all of them")
    same(await stage.queue().partitions(5).batch(5).pop(), [], "leased messages go to no other consumer")
    for partition in ("a", "b", "c"):
        came = carried([message for message in one + rest if message["partition"] == partition])
        same(came, [f"{partition}{n}" for n in range(len(came))], f"the order in {partition}")


@step
async def a_partition_is_popped_by_its_name(stage: Stage):
    await stage.push([1], partition="mine")
    await stage.push([2], partition="with space and 🦆")

    same(carried(await stage.queue().partition("with space and 🦆").pop()), [2], "the other partition")
    same(carried(await stage.queue().partition("mine").batch(9).pop()), [1], "mine")
    same(await stage.queue().partition("none").pop(), [], "one that is not there")


@step
async def namespaces_and_tasks_are_popped_together(stage: Stage):
    space, job = stage.title("space"), stage.title("job")
    await stage.queue("one").namespace(space).task(job).create()
    await stage.queue("two").namespace(space).task("other").create()
    await stage.push([1], "one")
    await stage.push([2], "two")

    def nameless():
        return stage.queen.queue().wait(False)

    [both] = await nameless().namespace(space).task(job).pop()
    same((both["data"], both["queue"]), (1, stage.title("one")), "by both")
    [second] = await nameless().namespace(space).pop()
    same((second["data"], second["queue"]), (2, stage.title("two")), "by namespace")
    same(await nameless().task(job).pop(), [], "by task, while it is leased")
    await stage.queen.ack(both, False)
    [again] = await nameless().task(job).pop()
    same((again["data"], again["deliveryAttempt"]), (1, 2), "by task, after it failed")


@step
async def a_push_wakes_a_waiting_pop_on_each_route(stage: Stage):
    space = stage.title("space")
    await stage.queue().namespace(space).create()
    await stage.push(["before"])
    await stage.queen.ack(await stage.queue().pop())

    def waiting(builder):
        return asyncio.create_task(builder.wait(True).timeout_millis(20_000).pop())

    for builder in (stage.queue(), stage.queue().partition("p"), stage.queen.queue().namespace(space)):
        pop = waiting(builder)
        await stage.until(parked(stage), "the pop waits in the server")
        await stage.queue().partition("p").push({"data": "now"})
        messages = await asyncio.wait_for(pop, 10)
        same(carried(messages), ["now"], "what woke it")
        await stage.queen.ack(messages)


def parked(stage: Stage):
    async def is_parked() -> bool:
        return (await stage.queen.admin.get_status())["registry"]["waiting"] == 1

    return is_parked


@step
async def delays_and_windows_are_waited_for(stage: Stage):
    await stage.queue("late").config({"delayed_processing": 1}).create()
    await stage.queue("calm").config({"window_buffer": 1}).create()
    for word in ("late", "calm"):
        began = time.monotonic()
        await stage.push([1], word)
        same(await stage.queue(word).pop(), [], f"{word}, before its time")
        messages = await stage.queue(word).wait(True).timeout_millis(10_000).pop()
        took = time.monotonic() - began
        same(carried(messages), [1], f"{word}, after its time")
        assert 0.9 < took < 6, f"{word} came after {took:.2f} s"


@step
async def a_client_with_several_addresses_goes_round_the_dead_ones(stage: Stage):
    # No server listens on port 1.
    for strategy in ("affinity", "round-robin", "session"):
        async with Queen(urls=["http://127.0.0.1:1", stage.url], load_balancing_strategy=strategy) as several:
            queue = several.queue(stage.title(strategy)).wait(False)
            # One try finds the dead address; after that it is not used.
            results = await queue.push({"n": 1})
            same(results[0]["status"], "queued", f"a push by {strategy}")
            same(carried(await queue.pop()), [{"n": 1}], f"a pop by {strategy}")
