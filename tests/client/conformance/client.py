"""The Python client as window_test.py drives it: reads a job from each line of standard input, and prints its outcome as a line.

    python3 client.py sync|asyncio
"""

import asyncio
import inspect
import json
import sys

from perceptrond import AsyncClient, Client, PerceptrondError, Row


def rows_of(given):
    return [Row(dict(map(tuple, one["features"])), one["label"]) for one in given]


def outcome(stream, passes, error, reconnects):
    totals = stream and stream.totals
    return {"error": error and [error.code.name, error.reason], "reconnects": len(reconnects), "passes": [[one.number, one.examples] for one in passes],
            "totals": totals and [totals.examples, totals.mistakes, totals.updates, totals.duplicates, totals.row_errors, totals.lost_answers]}


async def done(made):
    return await made if inspect.isawaitable(made) else made


async def run(job, kind):
    stream, passes, reconnects, failed = None, [], [], None
    client = kind(job["server"], give_up_after=job["giveUpAfter"], on_reconnect=reconnects.append)
    try:
        made = client.learn_stream(job["model"], job["producer"], window=job["window"])
        stream = await made.__aenter__() if kind is AsyncClient else made
        for action in job["actions"]:
            if action == "mark":
                passes.append(await done(stream.end_pass()))
            elif action == "finish":
                await done(stream.finish())
            else:
                await done(stream.send(rows_of(action)))
    except PerceptrondError as error:
        failed = error
    if stream is not None:
        await done(stream.cancel())
    await done(client.close())
    return outcome(stream, passes, failed, reconnects)


async def main():
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(await run(job, Client if sys.argv[1] == "sync" else AsyncClient)), flush=True)


asyncio.run(main())
