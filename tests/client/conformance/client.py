"""The Python client as window_test.py drives it: reads a job from each line of standard input, and prints its outcome as a line.

    python3 client.py sync|asyncio
"""

import asyncio
import json
import sys

from perceptrond import AsyncClient, Client, PerceptrondError, Row


def rows_of(given):
    return [Row(dict(map(tuple, one["features"])), one["label"]) for one in given]


def outcome(stream, passes, error, reconnects):
    totals = stream and stream.totals
    return {"error": error and [error.code.name, error.reason], "reconnects": len(reconnects), "passes": [[one.number, one.examples] for one in passes],
            "totals": totals and [totals.examples, totals.mistakes, totals.updates, totals.duplicates, totals.row_errors, totals.lost_answers]}


def run_sync(job):
    stream, passes, reconnects, failed = None, [], [], None
    with Client(job["server"], give_up_after=job["giveUpAfter"], on_reconnect=reconnects.append) as client:
        try:
            stream = client.learn_stream(job["model"], job["producer"], window=job["window"])
            for action in job["actions"]:
                if action == "mark":
                    passes.append(stream.end_pass())
                elif action == "finish":
                    stream.finish()
                else:
                    stream.send(rows_of(action))
        except PerceptrondError as error:
            failed = error
        if stream is not None:
            stream.cancel()
        return outcome(stream, passes, failed, reconnects)


async def run_asyncio(job):
    stream, passes, reconnects, failed = None, [], [], None
    async with AsyncClient(job["server"], give_up_after=job["giveUpAfter"], on_reconnect=reconnects.append) as client:
        try:
            stream = await client.learn_stream(job["model"], job["producer"], window=job["window"]).__aenter__()
            for action in job["actions"]:
                if action == "mark":
                    passes.append(await stream.end_pass())
                elif action == "finish":
                    await stream.finish()
                else:
                    await stream.send(rows_of(action))
        except PerceptrondError as error:
            failed = error
        if stream is not None:
            await stream.cancel()
        return outcome(stream, passes, failed, reconnects)


async def main():
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(run_sync(job) if sys.argv[1] == "sync" else await run_asyncio(job)), flush=True)


asyncio.run(main())
