"""Consumer groups: each sees all messages, from where it asks, and again after it was moved."""

import asyncio

from .stage import Stage, carried, same, step


@step
async def every_group_gets_every_message_for_itself(stage: Stage):
    await stage.push([1, 2, 3])
    came = {"mine": [], "yours": [], None: []}

    def handler(group):
        async def handle(messages: list):
            came[group] += carried(messages)

        return handle

    for group in came:
        builder = stage.queue().wait(True).batch(3).limit(3)
        await (builder.group(group) if group else builder).consume(handler(group))

    same(came, {"mine": [1, 2, 3], "yours": [1, 2, 3], None: [1, 2, 3]}, "what each group got")
    groups = {row["name"]: row for row in await stage.queen.admin.list_consumer_groups() if row["queueName"] == stage.title()}
    lags = {name: row["totalLag"] for name, row in groups.items()}
    same(lags, {"mine": 0, "yours": 0, "__QUEUE_MODE__": 0}, "how far they are behind")


@step
async def a_group_begins_where_it_says(stage: Stage):
    await stage.push([1], partition="early")

    def group(name: str):
        return stage.queue().group(name).batch(9).partitions(9)

    same(await group("new").subscription_mode("new").pop(), [], "from now on")
    same(await group("now").subscription_from("now").pop(), [], "from now on, by time")
    [first] = await group("clock").pop()
    await asyncio.sleep(0.01)
    await stage.push([2], partition="early-2")
    await stage.push([3], partition="late")

    same(sorted(carried(await group("new").pop())), [2, 3], "new: also partitions made later")
    same(sorted(carried(await group("now").pop())), [2, 3], "now: also partitions made later")
    same(sorted(carried(await group("all").subscription_mode("all").pop())), [1, 2, 3], "all")
    same(sorted(carried(await group("plain").pop())), [1, 2, 3], "by default")
    from_first = group("time").subscription_from(first["createdAt"])
    same(sorted(carried(await from_first.pop())), [1, 2, 3], "from the time of the first message")
    same(await group("future").subscription_from("2999-01-01T00:00:00Z").pop(), [], "from a time to come")


@step
async def a_group_replays_when_it_is_deleted_or_moved(stage: Stage):
    await stage.push([1, 2])
    group, admin = stage.title("group"), stage.queen.admin

    async def consumed(**subscription) -> list:
        builder = stage.queue().group(group).batch(9)
        for word, value in subscription.items():
            builder = getattr(builder, word)(value)
        messages = await builder.pop()
        if messages:
            await stage.queen.ack(messages, True, {"group": group})
        return carried(messages)

    same(await consumed(), [1, 2], "the first time")
    same(await consumed(), [], "and then no more")

    gone = await stage.queen.delete_consumer_group(group)
    same((gone["success"], gone["metadataDeleted"]), (True, True), "forgetting it")
    same(await consumed(subscription_mode="all"), [1, 2], "a new group of the same name")

    back = await stage.queen.delete_consumer_group(group, delete_metadata=False)
    same((back["success"], back["metadataDeleted"]), (True, False), "setting it back")
    same(await consumed(), [1, 2], "from where it began")

    moved = await admin.seek_consumer_group(group, stage.title(), {"timestamp": "2020-01-01T00:00:00.000Z"})
    same((moved["success"], moved["partitionsUpdated"]), (True, 1), "moving it to a time")
    same(await consumed(), [1, 2], "from that time")

    await admin.seek_consumer_group(group, stage.title(), {"timestamp": "2020-01-01T00:00:00.000Z"})
    end = await admin.seek_consumer_group(group, stage.title(), {"toEnd": True})
    same((end["success"], end["seekToEnd"]), (True, True), "moving it to the end")
    same(await consumed(), [], "after the end")
    refused = await stage.failing(admin.seek_consumer_group(group, stage.title()))
    same(refused.response.status_code, 400, "moving it nowhere")

    changed = await stage.queen.update_consumer_group_timestamp(group, "2020-01-01T00:00:00.000Z")
    same((changed["success"], changed["rowsUpdated"]), (True, 1), "changing where it began")
    here = await admin.delete_consumer_group_for_queue(group, stage.title(), delete_metadata=False)
    same((here["success"], here["queueName"]), (True, stage.title()), "setting it back in one queue")
    same(await consumed(), [1, 2], "from its new beginning")


@step
async def groups_are_described(stage: Stage):
    await stage.push([1, 2, 3])
    [message] = await stage.queue().group("g").pop()
    admin = stage.queen.admin

    one = (await admin.get_consumer_group("g"))[stage.title()]["partitions"]
    same([(row["partition"], row["offsetLag"], row["leaseActive"]) for row in one], [("Default", 3, True)], "a group")
    behind = await admin.get_lagging_consumers(min_lag_seconds=0)
    mine = [row for row in behind if row["queueName"] == stage.title()]
    same([(row["consumerGroup"], row["offsetLag"]) for row in mine], [("g", 3)], "who is behind")
    await stage.queen.ack(message, True, {"group": "g"})
    one = (await admin.get_consumer_group("g"))[stage.title()]["partitions"]
    same([(row["offsetLag"], row["leaseActive"]) for row in one], [(2, False)], "the group after an ack")
