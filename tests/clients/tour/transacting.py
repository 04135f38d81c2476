"""Transactions: acks and pushes in one commit."""

from .stage import Stage, carried, same, step


@step
async def acks_and_pushes_happen_together(stage: Stage):
    await stage.push([1, 2], "in")
    messages = await stage.queue("in").batch(2).pop()

    done = await (
        stage.queen.transaction()
        .ack(messages)
        .queue(stage.title("out"))
        .push([{"data": "a"}, {"payload": "b"}])
        .queue(stage.title("out"))
        .partition("p")
        .push({"bare": "c"})
        .commit()
    )

    same(done["success"], True, "the commit")
    kinds = [(result["type"], result["success"]) for result in done["results"]]
    same(kinds, [("ack", True)] * 2 + [("push", True)] * 3, "its results")
    same(await stage.queue("in").pop(), [], "what came in")
    out = await stage.queue("out").batch(9).partitions(9).pop()
    same(sorted(map(str, carried(out))), ["a", "b", "{'bare': 'c'}"], "what went out")
    same([message["partition"] for message in out if message["data"] == {"bare": "c"}], ["p"], "its partition")


@step
async def what_cannot_be_acked_undoes_the_pushes(stage: Stage):
    await stage.push([1], "in")
    [message] = await stage.queue("in").pop()

    stranger = {**message, "transactionId": "nobody"}
    error = await stage.failing(
        stage.queen.transaction().ack(message).ack(stranger).queue(stage.title("out")).push({"data": 1}).commit()
    )
    empty = await stage.failing(stage.queen.transaction().commit())

    assert "Message not found" in str(error), error
    assert "no operations" in str(empty), empty
    same(await stage.queue("out").pop(), [], "nothing was pushed")
    same((await stage.queen.ack(message))["success"], True, "the message is still leased, and can be acked")


@step
async def a_lost_lease_undoes_everything(stage: Stage):
    await stage.queue("in").config({"lease_time": 1}).create()
    await stage.push([1], "in")
    [lost] = await stage.queue("in").pop()
    [held] = await stage.queue("in").wait(True).timeout_millis(10_000).pop()

    push = stage.queen.transaction().ack(lost).queue(stage.title("out")).push({"data": 1})
    error = await stage.failing(push.commit())
    await stage.queen.transaction().ack(held).queue(stage.title("out")).push({"data": 2}).commit()

    assert "lease" in str(error), error
    same(carried(await stage.queue("out").batch(9).pop()), [2], "what went out")


@step
async def groups_failures_and_several_leases_may_be_in_one_transaction(stage: Stage):
    await stage.push([1], "a")
    await stage.push([2], "b")
    await stage.push([3], "c")
    [one] = await stage.queue("a").group("g").pop()
    [two] = await stage.queue("b").pop()
    [three] = await stage.queue("c").pop()

    done = await (
        stage.queen.transaction()
        .ack(one, "completed", {"consumer_group": "g"})
        .ack(two, "failed")
        .ack([three], "dlq")
        .commit()
    )

    same([result["dlq"] for result in done["results"]], [False, False, True], "which are dead letters")
    same(await stage.queue("a").group("g").pop(), [], "the completed one")
    [again] = await stage.queue("b").pop()
    same((again["data"], again["deliveryAttempt"]), (2, 2), "the failed one comes again")
    same((await stage.queue("c").dlq().get())["total"], 1, "the dead one")
