"""Enqueues jobs with an ordinary PostgreSQL driver, in transactions of its own, and checks that a waiting worker does them.

The worker is `examples/jobs_worker.rs`. Its heartbeat is an hour, and it prints when it claims without being woken: so every
job here was announced by a wake-up.
"""

import json
import os
import signal
import subprocess

import psycopg
from psycopg.types.json import Json, Jsonb

# A job begins within milliseconds; after this time it will not come.
PATIENCE_SECONDS = 30
ENQUEUE = "select reveille.enqueue('receipt', %s, queue => 'mail')"


class Worker:
    def __init__(self, program: str, database: str):
        self.process = subprocess.Popen(
            [program, database, "mail", "3600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        # Until it receives hints it claims now and then.
        while self._line() != "waiting":
            pass

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def does(self, *expected: int) -> list[object]:
        """Waits until it did these jobs and no others; their arguments, in the order of the jobs."""
        done = {}
        while len(done) < len(expected):
            words = self._line().split(" ", 2)
            assert words[0] == "did", f"the worker printed {' '.join(words)!r} instead of doing {expected}"
            done[int(words[1])] = json.loads(words[2])
        assert set(done) == set(expected), f"the worker did {sorted(done)} and not {expected}"
        return [done[job] for job in expected]

    def ends(self) -> None:
        """It had nothing more to do, and did not claim without being woken."""
        printed, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert (self.process.returncode, printed) == (0, ""), f"at its end the worker printed {printed!r}"

    def _line(self) -> str:
        signal.signal(signal.SIGALRM, self._too_late)
        signal.alarm(PATIENCE_SECONDS)
        line = self.process.stdout.readline()
        signal.alarm(0)
        assert line, f"the worker ended with status {self.process.wait()}"
        return line.strip()

    @staticmethod
    def _too_late(*_: object) -> None:
        raise AssertionError(f"the worker printed nothing within {PATIENCE_SECONDS} s")


def enqueue(connection: psycopg.Connection, args: object) -> int:
    return connection.execute(ENQUEUE, [args]).fetchone()[0]


def number(connection: psycopg.Connection, table: str) -> int:
    return connection.execute(f"select count(*) from {table}").fetchone()[0]


def rolled_back(connection: psycopg.Connection, worker: Worker) -> None:
    """There is neither an order nor a job, and the worker was not woken: it does the next job, and nothing before."""
    with connection.transaction():
        connection.execute("insert into orders values (1)")
        enqueue(connection, '{"order": 1}')
        many = Jsonb([{"kind": "receipt", "queue": "mail"}] * 3)
        connection.execute("select reveille.enqueue_many(%s::json)", [many])
        raise psycopg.Rollback()
    assert (number(connection, "orders"), number(connection, "reveille.job_body")) == (0, 0)


def committed(connection: psycopg.Connection, worker: Worker) -> None:
    """The order and its job come together."""
    with connection.transaction():
        connection.execute("insert into orders values (2)")
        job = enqueue(connection, '{"order": 2, "to": "Zoë"}')
    assert worker.does(job) == [{"order": 2, "to": "Zoë"}]
    assert number(connection, "orders") == 1


def as_json(connection: psycopg.Connection, worker: Worker) -> None:
    """The driver's own types for JSON are taken without a cast."""
    jobs = [enqueue(connection, kind({"order": 3})) for kind in (Json, Jsonb)]
    assert worker.does(*jobs) == [{"order": 3}] * 2


def many(connection: psycopg.Connection, worker: Worker) -> None:
    """A hundred in one call and one transaction; their ids come in order."""
    wanted = [{"kind": "receipt", "args": {"order": n}, "queue": "mail", "tags": ["bulk"]} for n in range(100)]
    with connection.transaction():
        rows = connection.execute("select * from reveille.enqueue_many(%s)", [Json(wanted)]).fetchall()
    jobs = [row[0] for row in rows]
    assert jobs == sorted(jobs)
    assert worker.does(*jobs) == [job["args"] for job in wanted]


def held_open(connection: psycopg.Connection, worker: Worker) -> None:
    """A job does not run before its transaction commits; jobs that commit earlier do not wait for it."""
    with psycopg.connect(os.environ["REVEILLE_DATABASE"]) as other:
        late = enqueue(other, '{"late": true}')
        worker.does(enqueue(connection, '{"late": false}'))
        other.commit()
        assert worker.does(late) == [{"late": True}]


def unique(connection: psycopg.Connection, worker: Worker) -> None:
    """A second job with the same key is not created; its call returns the first job's id."""
    once = "select reveille.enqueue('receipt', '{}', queue => 'mail', unique_scope => 'kind', unique_key => 'order-5')"
    with connection.transaction():
        ids = [connection.execute(once).fetchone()[0] for _ in range(2)]
    assert ids[0] == ids[1]
    worker.does(ids[0])


def refused(connection: psycopg.Connection, worker: Worker) -> None:
    """An invalid job is refused with a reason, and the transaction fails."""
    for call, words in [
        ("enqueue('', '{}')", "the job's kind is empty"),
        ("enqueue('receipt', '{}', delay => '-1 s')", "the delay must not be negative"),
        ("enqueue_many('[{\"kind\": \"receipt\", \"colour\": 1}]')", 'a job has no field "colour"'),
    ]:
        try:
            connection.execute(f"select reveille.{call}")
        except psycopg.errors.InvalidParameterValue as error:
            assert words in str(error), f"{call}: {error}"
        else:
            raise AssertionError(f"{call} was not refused")


STEPS = [rolled_back, committed, as_json, many, held_open, unique, refused]


def main() -> None:
    database = os.environ["REVEILLE_DATABASE"]
    with Worker(os.environ["REVEILLE_WORKER"], database) as worker:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("create table orders (id int)")
            for step in STEPS:
                step(connection, worker)
        worker.ends()
    print(f"outbox: {len(STEPS)} steps with psycopg {psycopg.__version__}, and the worker never claimed without being woken")


if __name__ == "__main__":
    main()
