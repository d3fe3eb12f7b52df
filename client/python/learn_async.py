#!/usr/bin/python3
"""Learns a file like learn.py, with asyncio: one loop sends examples, follows the report and predicts.

    learn_async.py spam train.tsv --named --labels ham,spam --producer train.tsv --passes 3 --predict test.tsv
"""

import argparse
import asyncio
import threading
from typing import Any, AsyncIterator, Callable, Iterator, TypeVar

import grpc

import connection
import program
from columns import pack
from errors import Backoff, is_transient, with_retries_async
from examples import Labels, Row, batches, open_input
from learn import create_request, is_wanted, learning_flags, passes_left
from learn_stream_aio import LearnStream
from perceptron.v1 import (learning_service_pb2_grpc, model_pb2, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2,
                           prediction_service_pb2_grpc)
from predict import Summary
from window import Totals

Result = TypeVar("Result")


async def ensure_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> None:
    request = create_request(flags)
    try:
        await with_retries_async(lambda: stub.CreateModel(request, timeout=30), flags.give_up_after)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


async def get_model(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> model_pb2.Model:
    request = model_service_pb2.GetModelRequest(name=f"models/{flags.model}")
    return await with_retries_async(lambda: stub.GetModel(request, timeout=30), flags.give_up_after)


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


async def learn(stub: learning_service_pb2_grpc.LearningServiceStub, models: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> Totals:
    def writer_stub(address: str) -> learning_service_pb2_grpc.LearningServiceStub | None:
        server = connection.known_server(flags, address)
        return server and learning_service_pb2_grpc.LearningServiceStub(connection.aio_channel(flags, server))

    async with LearnStream(stub, f"models/{flags.model}", flags.producer, window=flags.window, name_table_size=flags.name_table_size,
                           give_up_after=flags.give_up_after, on_reconnect=program.reconnecting, writer_stub=writer_stub) as stream:
        # Read after the stream is open, when the server is reachable.
        labels = Labels(await get_model(models, flags))
        for rows in passes_left(flags, labels, stream.next_offset, stream.passes):
            async for part in batches_in_threads(rows, flags.batch):
                await stream.send(part)
            summary = await stream.end_pass()
            print(program.pass_sentence(summary), flush=True)
            if flags.until_converged and summary.converged:
                break
        return await stream.finish()


async def follow(stub: model_service_pb2_grpc.ModelServiceStub, flags: argparse.Namespace) -> None:
    """Prints a line per second while the model changes, across restarts of the server, until cancelled."""
    request = model_service_pb2.WatchModelRequest(name=f"models/{flags.model}")
    backoff = Backoff(flags.give_up_after)
    while True:
        try:
            async for response in stub.WatchModel(request):
                backoff.progress()
                print(f"  {program.sentence(response.model)}", flush=True)
        except grpc.RpcError as error:
            wait = backoff.next_wait(error)
            if wait is None or not is_transient(error):
                raise
            await asyncio.sleep(wait)


async def predict(stub: prediction_service_pb2_grpc.PredictionServiceStub, labels: Labels, flags: argparse.Namespace) -> Summary:
    """Predicts with all messages in flight at once."""
    parts = list(batches(program.rows_of(flags, labels, labels_required=False, file=flags.predict), flags.batch))
    requests = [prediction_service_pb2.PredictRequest(model=f"models/{flags.model}", columns=pack(part)) for part in parts]
    answers = await asyncio.gather(*(with_retries_async(lambda request=request: stub.Predict(request, timeout=30), flags.give_up_after) for request in requests))
    summary = Summary(labels)
    for part, answer in zip(parts, answers):
        summary.revision = answer.revision
        for row, label in zip(part, answer.predicted_labels):
            summary.add(row, label)
    return summary


async def learn_and_predict(flags: argparse.Namespace) -> int:
    async with connection.aio_channel(flags) as channel:
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        learning = learning_service_pb2_grpc.LearningServiceStub(channel)
        if is_wanted(flags):
            await ensure_model(models, flags)
        following = asyncio.create_task(follow(models, flags))
        try:
            totals = await learn(learning, models, flags)
        finally:
            following.cancel()
        now = await get_model(models, flags)
        print(f"{flags.model} is at {program.sentence(now)}")
        if flags.predict:
            predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            print((await predict(predictions, Labels(now), flags)).text())
    return program.code_of(totals)


def main() -> int:
    flags = learning_flags(__doc__)
    flags.add_argument("--predict", type=open_input, metavar="FILE", help="examples to predict afterwards")
    return asyncio.run(learn_and_predict(flags.parse_args()))


if __name__ == "__main__":
    program.run(main, program.GOES_ON)
