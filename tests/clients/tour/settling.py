"""Acks, leases, dead letters."""

import asyncio
from datetime import datetime, timezone

from .stage import Stage, carried, same, step


@step
async def an_ack_names_the_place_and_a_repeat_is_harmless(stage: Stage):
    await stage.push([1], partition="p")
    [message] = await stage.queue().pop()

    first = await stage.queen.ack(message)
    again = await stage.queen.ack(message, "completed")

    same(
        first,
        {
            "index": 0,
            "transactionId": "p-0",
            "success": True,
            "error": None,
            "queueName": stage.title(),
            "partitionName": "p",
            "leaseReleased": True,
            "dlq": False,
        },
        "the first ack",
    )
    same((again["success"], again["noop"]), (True, True), "the repeat")
    same(await stage.queue().pop(), [], "what is left")


@step
async def a_failure_a_retry_and_a_dead_letter(stage: Stage):
    await stage.push([1])

    [message] = await stage.queue().pop()
    same((await stage.queen.ack(message, False, {"error": "broke"}))["success"], True, "a nack")
    [message] = await stage.queue().pop()
    same(message["deliveryAttempt"], 2, "the second attempt")
    same((await stage.queen.ack(message, "retry"))["dlq"], False, "a retry")
    [message] = await stage.queue().pop()
    answer = await stage.queen.ack(message, "dlq", {"error": "given up"})
    same((answer["success"], answer["dlq"]), (True, True), "a dead letter")

    same(await stage.queue().pop(), [], "what is left")
    dead = await stage.queue().dlq().get()
    same((dead["total"], dead["messages"][0]["errorMessage"]), (1, "given up"), "the dead letter")


@step
async def a_batch_is_acked_together_or_one_by_one(stage: Stage):
    await stage.push(list(range(6)))
    messages = await stage.queue().batch(3).pop()
    answer = await stage.queen.ack(messages)
    same([result["success"] for result in answer["results"]], [True, True, True], "a batch")
    same([result["leaseReleased"] for result in answer["results"]], [True, True, True], "its lease")

    messages = await stage.queue().batch(3).pop()
    same(carried(messages), [3, 4, 5], "the next ones")
    messages[1].update(_status=False, _error="the middle one")
    answer = await stage.queen.ack(messages)
    same([result["success"] for result in answer["results"]], [True, True, False], "with a failure in the middle")
    same(carried(await stage.queue().batch(9).pop()), [4, 5], "what comes again")
    same(await stage.queen.ack([]), {"processed": 0, "results": []}, "nothing to ack")


@step
async def a_refused_ack_says_why(stage: Stage):
    await stage.queue().config({"lease_time": 1}).create()
    await stage.push([1])
    [message] = await stage.queue().pop()
    [again] = await stage.queue().wait(True).timeout_millis(10_000).pop()

    late = await stage.queen.ack(message)
    same((late["success"], late["error"]), (False, "invalid or expired lease"), "a lease that was lost")
    stranger = await stage.queen.ack({**again, "transactionId": "nobody"})
    same((stranger["success"], stranger["error"]), (False, "Message not found"), "a message that never was")
    odd = await stage.queen.ack(again, "eaten")
    assert odd["success"] is False and "eaten" in odd["error"], odd
    same((await stage.queen.ack("only-an-id"))["success"], False, "an id without its partition")
    same((await stage.queen.ack(again))["success"], True, "the one who has it")


@step
async def a_lease_is_renewed_by_id_by_message_and_by_list(stage: Stage):
    await stage.queue().config({"lease_time": 1}).create()
    await stage.push([1], partition="a")
    await stage.push([2], partition="b")
    messages = await stage.queue().partitions(2).batch(2).pop()
    lease = messages[0]["leaseId"]

    for what in (lease, messages[0], messages):
        renewed = await stage.queen.renew(what)
        if isinstance(what, list):
            same(len(renewed), 1, "one renewal for one lease")
            renewed = renewed[0]
        same((renewed["leaseId"], renewed["success"]), (lease, True), "a renewal")
        until = datetime.fromisoformat(renewed["newExpiresAt"])
        left = (until - datetime.now(timezone.utc)).total_seconds()
        assert 50 < left < 61, f"the lease lasts {left:.0f} s more"
    await asyncio.sleep(1.2)
    same(await stage.queue().partitions(2).batch(2).pop(), [], "what is leased for longer now")
    lost = await stage.queen.renew("00000000-0000-4000-8000-000000000000")
    same(lost["newExpiresAt"], None, "a lease that never was")
    same((await stage.queen.renew([]))["success"], False, "no lease at all")


@step
async def failures_beyond_the_limit_are_dead_letters_that_can_be_searched(stage: Stage):
    begun = datetime.now(timezone.utc).isoformat()
    await stage.queue().config({"retry_limit": 1}).create()
    for partition, group in (("p", None), ("p", "g"), ("q", None)):
        await stage.queue().partition(partition).push({"data": [partition, group]})
        for _ in range(2):
            builder = stage.queue().partition(partition).batch(9)
            messages = await (builder.group(group) if group else builder).pop()
            await stage.queen.ack(messages[-1], False, {"group": group, "error": f"broke in {group}"})

    async def found(builder) -> list:
        dead = await builder.get()
        same(dead["total"] >= len(dead["messages"]), True, "the total")
        return carried(dead["messages"])

    dead = stage.queue().dlq
    same((await dead().get())["total"], 3, "all of them")
    same(len(await found(dead().limit(2))), 2, "a page")
    same(len(await found(dead().limit(2).offset(2))), 1, "the next page")
    same(len(await found(dead("g"))), 1, "of a group")
    same(len(await found(stage.queue().partition("p").dlq())), 2, "of a partition")
    same(len(await found(dead().from_(begun))), 3, "since it began")
    same(await found(dead().to(begun)), [], "before it began")
    letter = (await dead("g").get())["messages"][0]
    same((letter["errorMessage"], letter["retryCount"]), ("broke in g", 2), "what went wrong, and how often")
    same((letter["queue"], letter["partition"], letter["consumerGroup"]), (stage.title(), "p", "g"), "where")
