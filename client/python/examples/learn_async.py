#!/usr/bin/python3
"""Learns a file like learn.py, with asyncio: one loop sends examples, follows the report and predicts.

    learn_async.py spam train.tsv --text --labels ham,spam --producer train.tsv --passes 3 --predict test.tsv
"""

import argparse
import asyncio
import threading
from typing import Any, AsyncIterator, Callable, Iterator, TypeVar

from perceptrond import AsyncClient, Row
from perceptrond.labels import Labels
from perceptrond.rows import batches
from perceptrond.v1 import model_pb2
from perceptrond.window import Totals

import program
from formats import open_input
from learn import is_wanted, learning_flags, passes_left, settings_of
from predict import Summary

Result = TypeVar("Result")


async def batches_in_threads(rows: Iterator[Row], batch: int) -> AsyncIterator[list[Row]]:
    """Reads in threads, because reading a pipe would block the loop."""
    parts = batches(rows, batch)
    while (part := await in_thread(lambda: next(parts, None))) is not None:
        yield part


async def in_thread(call: Callable[[], Result]) -> Result:
    """Like asyncio.to_thread, but the program does not wait for the thread when it is interrupted."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(give: Callable[[Any], None], what: Any) -> None:
        if not done.cancelled():
            give(what)

    def run() -> None:
        try:
            result = call()
        except Exception as error:
            loop.call_soon_threadsafe(settle, done.set_exception, error)
        else:
            loop.call_soon_threadsafe(settle, done.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return await done


async def learn(client: AsyncClient, flags: argparse.Namespace) -> Totals:
    async with client.learn_stream(flags.model, flags.producer, window=flags.window) as stream:
        # Read after the stream is open, when the server is reachable.
        labels = Labels(await client.get(flags.model))
        for rows in passes_left(flags, labels, stream.next_offset, stream.passes):
            async for part in batches_in_threads(rows, flags.batch):
                await stream.send(part)
            summary = await stream.end_pass()
            print(program.pass_sentence(summary), flush=True)
            if flags.until_converged and summary.converged:
                break
        return await stream.finish()


async def follow(client: AsyncClient, model: str) -> None:
    """Prints a line per second while the model changes, across restarts of the server, until cancelled."""
    async for now in client.watch(model):
        print(f"  {program.sentence(now)}", flush=True)


async def predict(client: AsyncClient, model: model_pb2.Model, flags: argparse.Namespace) -> Summary:
    """Predicts with several messages in flight."""
    labels = Labels(model)
    summary = Summary(labels, model.learner)
    parts = batches(program.rows_of(flags, labels, labels_required=False, file=flags.predict), flags.batch)
    async for rows, answer in client.predict_stream(model.name, parts):
        summary.revision = answer.revision
        for row, label, score in zip(rows, answer.predicted_labels, answer.scores):
            summary.add(row, label, score)
    return summary


async def learn_and_predict(flags: argparse.Namespace) -> int:
    async with AsyncClient(**program.settings_of(flags)) as client:
        if is_wanted(flags):
            await client.create(flags.model, **settings_of(flags))
        following = asyncio.create_task(follow(client, flags.model))
        try:
            totals = await learn(client, flags)
        finally:
            following.cancel()
        now = await client.get(flags.model)
        print(f"{flags.model} is at {program.sentence(now)}")
        if flags.predict:
            print((await predict(client, now, flags)).text())
    return program.code_of(totals)


def main() -> int:
    flags = learning_flags(__doc__)
    flags.add_argument("--predict", type=open_input, metavar="FILE", help="examples to predict afterwards")
    return asyncio.run(learn_and_predict(flags.parse_args()))


if __name__ == "__main__":
    program.run(main, program.GOES_ON)
