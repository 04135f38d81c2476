"""Creating queues, and pushing to them."""

import asyncio

from .stage import Stage, carried, same, step

# Every option the client knows, none of them at its default.
OPTIONS = {
    "lease_time": 77,
    "retry_limit": 5,
    "retry_delay": 250,
    "priority": 4,
    "delayed_processing": 1,
    "window_buffer": 2,
    "max_size": 1000,
    "ttl": 900,
    "retention_enabled": True,
    "retention_seconds": 3600,
    "completed_retention_seconds": 1800,
    "dead_letter_queue": True,
    "dlq_after_max_retries": True,
    "max_wait_time_seconds": 7200,
    "encryption_enabled": False,
}


@step
async def a_queue_is_made_changed_and_deleted(stage: Stage):
    received = []

    async def receive(result):
        received.append(result)

    made = await stage.queue().namespace("tour").task("made").config(OPTIONS).create().on_success(receive)

    same((made["configured"], made["queue"]), (True, stage.title()), "a configured queue")
    same((made["namespace"], made["task"]), ("tour", "made"), "its namespace and task")
    for name, value in OPTIONS.items():
        first, *rest = name.split("_")
        spelt = first + "".join(word.capitalize() for word in rest)
        same(made["options"][spelt], value, f"the option {spelt}")
    same(received, [made], "what on_success got")
    plain = await stage.queue("plain").create()
    same((plain["configured"], plain["options"]["leaseTime"]), (True, 300), "a queue of the client's defaults")

    gone = await stage.queue().delete()
    again = await stage.queue().delete()
    same((gone["deleted"], gone["existed"]), (True, True), "a deletion")
    same((again["deleted"], again["existed"]), (False, False), "a second deletion")


@step
async def a_queue_that_cannot_be_is_refused(stage: Stage):
    received = []

    async def receive(error):
        received.append(str(error))

    error = await stage.failing(stage.queue().config({"retry_limit": -1}).create())
    answer = await stage.queue().config({"retry_limit": -1}).create().on_error(receive)

    assert "retry" in str(error), error
    same(answer, {"success": False, "error": received[0]}, "the answer when a callback takes the error")


@step
async def pushed_messages_come_back_as_they_were(stage: Stage):
    payloads = [
        None,
        {},
        [],
        {"nested": {"list": [1, 2.5, "three", None, True]}},
        "a text",
        42,
        {"duck": "🦆", "quote": '"', "line": "a\nb", "nul": "a\x00b"},
        {"large": "x" * 1_000_000},
    ]
    results = await stage.push(payloads)

    same([result["queueName"] for result in results], [stage.title()] * len(payloads), "the queue of each answer")
    same([result["index"] for result in results], list(range(len(payloads))), "the place of each answer")
    messages = await stage.queue().batch(100).pop()
    same(carried(messages), payloads, "what came back")
    same([message["id"] for message in messages], [result["message_id"] for result in results], "their ids")
    same({message["partitionId"] for message in messages}, {results[0]["partition_id"]}, "their partition")


@step
async def a_payload_may_be_given_three_ways_and_be_traced(stage: Stage):
    trace = "0d3e3f0a-8f0b-4c53-9d2c-0d9a6a3c7f10"
    await stage.queue().push({"bare": 1})
    await stage.queue().push([{"payload": {"named": 2}, "traceId": trace}, {"data": None, "traceId": "no uuid"}])

    messages = await stage.queue().batch(3).pop()
    same(carried(messages), [{"bare": 1}, {"named": 2}, None], "the payloads")
    same([message["traceId"] for message in messages], [None, trace, None], "the trace ids")


@step
async def duplicates_are_recognised_and_stored_once(stage: Stage):
    received = {"new": [], "old": []}

    async def new(items):
        received["new"] += [item["result"]["index"] for item in items]

    async def old(items, error):
        received["old"] += [item["result"]["index"] for item in items]

    first = await stage.queue().push({"data": 1, "transactionId": "t"})
    items = [{"data": 2, "transactionId": "t"}, {"data": 3, "transactionId": "u"}, {"data": 4, "transactionId": "u"}]
    second = await stage.queue().push(items).on_success(new).on_duplicate(old)
    elsewhere = await stage.queue().partition("other").push({"data": 5, "transactionId": "t"})

    same([result["status"] for result in second], ["duplicate", "queued", "duplicate"], "the answers")
    same(second[0]["message_id"], first[0]["message_id"], "the id of the first one")
    same(second[2]["message_id"], second[1]["message_id"], "the id of the first one in the same call")
    same(elsewhere[0]["status"], "queued", "the same id in another partition")
    same(received, {"new": [1], "old": [0, 2]}, "what the callbacks got")
    same(carried(await stage.queue().partitions(2).batch(9).pop()), [1, 3, 5], "what was stored")


@step
async def one_bad_item_fails_alone(stage: Stage):
    received = []

    async def receive(items, error):
        received.extend(items)

    items = [{"data": 1}, {"data": 2, "transactionId": "a\x00b"}, {"data": 3}]
    error = await stage.failing(stage.queue().push(items))
    assert "NUL" in str(error), error
    results = await stage.queue().push([{"data": 4}, items[1]]).on_error(receive)

    same([result["status"] for result in results], ["queued", "failed"], "the answers")
    same([item["payload"] for item in received], [2], "what on_error got")
    same(carried(await stage.queue().batch(9).pop()), [1, 3, 4], "what was stored")
    alone = await stage.failing(stage.queue().push(items[1]))
    same(alone.response.status_code, 400, "the status when nothing was stored")


@step
async def buffered_pushes_are_sent_in_batches_by_number_and_by_time(stage: Stage):
    by_number = {"message_count": 10, "time_millis": 60_000}
    for n in range(25):
        buffered = await stage.queue().buffer(by_number).push({"n": n})
        same(buffered, {"buffered": True, "count": 1}, "the answer of a buffered push")
    await stage.queue().flush_buffer()
    same(stage.queen.get_buffer_stats()["totalBufferedMessages"], 0, "messages left in the buffer")
    # The client sends the two batches at the same time, and either may come first.
    came = [message["n"] for message in carried(await stage.queue().batch(100).pop())]
    first, second = list(range(10)), list(range(10, 25))
    assert came in (first + second, second + first), f"the batches, each in order: {came}"

    await stage.queue("timed").buffer({"message_count": 100, "time_millis": 50}).push([{"n": 1}, {"n": 2}])
    timed = await stage.queue("timed").wait(True).timeout_millis(10_000).batch(2).pop()
    same(carried(timed), [{"n": 1}, {"n": 2}], "what left by itself after its time")

    await stage.queue("all").buffer(by_number).push({"n": 1})
    await stage.queen.flush_all_buffers()
    same(carried(await stage.queue("all").pop()), [{"n": 1}], "what all buffers held")
    stats = stage.queen.get_buffer_stats()
    same((stats["activeBuffers"], stats["totalBufferedMessages"]), (0, 0), "the buffers afterwards")


@step
async def many_producers_at_once_are_all_stored(stage: Stage):
    # The client has a hundred connections at most, and slows down when it must share them.
    async def producer(p: int):
        for n in range(4):
            await stage.queue().partition(f"p{p % 10}").push({"n": 4 * p + n})

    await asyncio.gather(*[producer(p) for p in range(50)])

    came = []
    while len(came) < 200:
        messages = await stage.queue().partitions(10).batch(200).pop()
        assert messages, f"only {len(came)} of 200 came"
        came += [message["data"]["n"] for message in messages]
        await stage.queen.ack(messages)
    same(sorted(came), list(range(200)), "each once")
