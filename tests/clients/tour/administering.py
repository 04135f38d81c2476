"""The requests of dashboards and operators. Each method of the admin interface is called at least once."""

from queen import Stream

from .stage import Stage, carried, same, step


@step
async def the_server_says_how_it_is(stage: Stage):
    admin = stage.queen.admin
    health = await admin.health()
    same((health["status"], health["database"]), ("healthy", "connected"), "health")
    # The client reads only JSON, and metrics are Prometheus' text: it returns nothing, and does not fail.
    same(await admin.metrics(), None, "metrics")
    status = await admin.get_status()
    same((status["wake"]["link"], status["registry"]["waiting"]), ("proven", 0), "status")
    same((await admin.refresh_consumer_stats())["success"], True, "a refresh of figures that are always current")


@step
async def queues_namespaces_and_tasks_are_listed(stage: Stage):
    admin, space, job = stage.queen.admin, stage.title("space"), stage.title("job")
    await stage.queue().namespace(space).task(job).create()
    await stage.push([1, 2, 3])

    listed = (await admin.list_queues(search=stage.name, limit=10))["queues"]
    same([(queue["name"], queue["messages"]["pending"]) for queue in listed], [(stage.title(), 3)], "queues")
    one = await admin.get_queue(stage.title())
    same((one["namespace"], one["task"], one["messages"]["total"]), (space, job, 3), "a queue")
    spaces = {row["namespace"]: row["queues"] for row in (await admin.get_namespaces())["namespaces"]}
    jobs = {row["task"]: row["queues"] for row in (await admin.get_tasks())["tasks"]}
    same((spaces[space], jobs[job]), (1, 1), "namespaces and tasks")
    missing = await stage.failing(admin.get_queue("never-made"))
    same(missing.response.status_code, 404, "a queue that is not there")


@step
async def messages_are_read_and_deleted(stage: Stage):
    admin = stage.queen.admin
    await stage.push([{"n": 1}, {"n": 2}])

    listed = (await admin.list_messages(queue=stage.title(), limit=10))["messages"]
    same([message["transactionId"] for message in listed], ["Default-1", "Default-0"], "the newest first")
    first = listed[1]
    one = await admin.get_message(first["partitionId"], first["transactionId"])
    same((one["payload"], one["status"]), ({"n": 1}, "pending"), "one of them")
    gone = await admin.delete_message(first["partitionId"], first["transactionId"])
    same(gone["success"], True, "deleting it")
    same(carried(await stage.queue().batch(9).pop()), [{"n": 2}], "what is left")


@step
async def a_queue_is_emptied(stage: Stage):
    await stage.push([1, 2, 3])

    cleared = await stage.queen.admin.clear_queue(stage.title())

    same((cleared["success"], cleared["queue"]), (True, stage.title()), "the answer")
    same(await stage.queue().pop(), [], "what is left")
    await stage.queue().push({"data": 4})
    same(carried(await stage.queue().pop()), [4], "what came afterwards")


@step
async def pushes_and_pops_are_paused_for_maintenance(stage: Stage):
    admin = stage.queen.admin
    await stage.push([0])

    same((await admin.set_maintenance_mode(True))["maintenanceMode"], True, "pausing pushes")
    try:
        results = await stage.queue().push([{"data": 1}, {"data": 2}])
        same([result["status"] for result in results], ["buffered", "buffered"], "pushes meanwhile")
        same((await admin.get_maintenance_mode())["bufferedMessages"], 2, "how many are kept")
        [message] = await stage.queue().batch(9).pop()
        same(message["data"], 0, "pops go on")
        await stage.queen.ack(message)
    finally:
        same((await admin.set_maintenance_mode(False))["maintenanceMode"], False, "going on")
    messages = []
    while len(messages) < 2:
        messages += await stage.queue().wait(True).timeout_millis(10_000).batch(9).pop()
        assert messages, "what was kept does not come"
        await stage.queen.ack(messages)
    same(carried(messages), [1, 2], "what was kept, in order")

    same((await admin.set_pop_maintenance_mode(True))["popMaintenanceMode"], True, "pausing pops")
    try:
        await stage.queue().push({"data": 3})
        same(await stage.queue().pop(), [], "pops meanwhile")
        same((await admin.get_pop_maintenance_mode())["popMaintenanceMode"], True, "it is shown")
    finally:
        same((await admin.set_pop_maintenance_mode(False))["popMaintenanceMode"], False, "going on")
    same(carried(await stage.queue().wait(True).timeout_millis(10_000).pop()), [3], "afterwards")


@step
async def routes_that_are_not_offered_are_refused(stage: Stage):
    """docs/compatibility.md lists these; the client raises, with our 404."""
    admin = stage.queen.admin
    for call in (
        admin.get_overview(),
        admin.get_partitions(queue="q"),
        admin.retry_message("p", "t"),
        admin.move_message_to_dlq("p", "t"),
        admin.get_queue_stats(),
        admin.get_queue_detail("q"),
        admin.get_analytics(interval="hour"),
        admin.get_system_metrics(),
        admin.get_worker_metrics(),
        admin.get_postgres_stats(),
    ):
        error = await stage.failing(call)
        same((error.response.status_code, error.response.json()["code"]), (404, "no_such_route"), "the refusal")
    stream = Stream.from_(stage.queue()).map(lambda value: value).to(stage.queue("out"))
    error = await stage.failing(stream.run(query_id="q", url=stage.url))
    same((error.status, error.body["code"]), (404, "no_such_route"), "a stream")
