"""Models as files, in pieces: what export_model() and import_model() of History write and read."""

import asyncio
import contextlib
import os
import pathlib
import threading
import uuid
from typing import Any, BinaryIO, Iterator, Optional, Union

import grpc

from .calls import name_of
from .channels import Path
from .errors import PerceptrondError
from .progress import OnTransfer, Transfer
from .v1 import history_service_pb2, history_service_pb2_grpc, model_pb2

# A path, or an object with write() or read().
File = Union[Path, BinaryIO]
Stub = history_service_pb2_grpc.HistoryServiceStub
# Fits, with a name, into the smallest --max-message-bytes of a server.
UPLOAD_BYTES = 60 << 10


def export_request(model: str) -> history_service_pb2.ExportModelRequest:
    return history_service_pb2.ExportModelRequest(name=name_of(model))


def import_request(model: str) -> history_service_pb2.ImportModelRequest:
    """The first message, with a request id, so that the file can be sent again after a lost answer."""
    return history_service_pb2.ImportModelRequest(new_name=name_of(model), request_id=str(uuid.uuid4()))


class Transferred:
    """A file that moves in pieces from where it is at first, and from there again if the call is repeated.

    Threads: one at a time."""

    def __init__(self, file: Any, say: OnTransfer):
        self._file, self._say = file, say
        self._start: Optional[int] = file.tell() if hasattr(file, "seekable") and file.seekable() else None
        # By this attempt.
        self._bytes = 0
        self._total: Optional[int] = None

    def error_of(self, error: grpc.RpcError) -> Exception:
        """What to raise: gRPC's error has the call repeated, which a pipe cannot be that has moved."""
        return error if self._start is not None or self._bytes == 0 else PerceptrondError.of(error)

    def say(self) -> None:
        self._say(Transfer(self._bytes, self._total, False))

    def end(self) -> int:
        """Returns the bytes, once the server has sent or taken all."""
        self._say(Transfer(self._bytes, self._bytes, True))
        return self._bytes


class Target(Transferred):
    """Where an export goes."""

    def begin(self) -> None:
        """Before each attempt."""
        if self._bytes > 0:
            self._file.seek(self._start)
            self._file.truncate()
        self._bytes = 0

    def write(self, piece: bytes) -> None:
        left = memoryview(piece)
        while left:
            # A raw file may take a part. An object that does not say how much takes all.
            left = left[self._file.write(left) or len(left):]
        self._bytes += len(piece)


class Source(Transferred):
    """Where an import comes from."""

    def __init__(self, file: Any, say: OnTransfer):
        super().__init__(file, say)
        if self._start is not None:
            self._total = file.seek(0, os.SEEK_END) - self._start
            file.seek(self._start)

    def requests(self, first: history_service_pb2.ImportModelRequest) -> Iterator[history_service_pb2.ImportModelRequest]:
        """Yields the messages of an attempt."""
        if self._start is not None:
            self._file.seek(self._start)
        self._bytes = 0
        yield history_service_pb2.ImportModelRequest(new_name=first.new_name, request_id=first.request_id, piece=self._read())
        while piece := self._read():
            yield history_service_pb2.ImportModelRequest(piece=piece)

    def _read(self) -> bytes:
        piece = self._file.read(UPLOAD_BYTES)
        if not isinstance(piece, bytes):
            raise TypeError(f"read() of the file returned {type(piece).__name__}; expected bytes: open it in binary mode")
        self._bytes += len(piece)
        return piece


@contextlib.contextmanager
def open_target(file: File, say: OnTransfer) -> Iterator[Target]:
    """A path is there once the file is whole. Raises FileExistsError if it is there already."""
    if not isinstance(file, (str, os.PathLike)):
        yield Target(file, say)
        return
    path = pathlib.Path(file)
    if path.exists():
        raise FileExistsError(f"{path} exists: give the path of a new file")
    partial = path.with_name(f"{path.name}.part-{uuid.uuid4().hex[:6]}")
    try:
        with open(partial, "xb") as opened:
            yield Target(opened, say)
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def open_source(file: File, say: OnTransfer) -> Iterator[Source]:
    if not isinstance(file, (str, os.PathLike)):
        yield Source(file, say)
        return
    with open(file, "rb") as opened:
        yield Source(opened, say)


# ---- An attempt. Raises what its file does. ----


def receive(stub: Stub, request: history_service_pb2.ExportModelRequest, timeout: float, target: Target) -> None:
    target.begin()
    call = stub.ExportModel(request, timeout=timeout)
    try:
        for response in call:
            target.write(response.piece)
            target.say()
    except grpc.RpcError as error:
        raise target.error_of(error) from None
    finally:
        call.cancel()


def send(stub: Stub, first: history_service_pb2.ImportModelRequest, timeout: float, source: Source) -> model_pb2.Model:
    raised: list[Exception] = []
    begun = threading.Event()

    def requests() -> Iterator[history_service_pb2.ImportModelRequest]:
        # In gRPC's thread, which would log what is raised there.
        try:
            for request in source.requests(first):
                source.say()
                yield request
        except Exception as error:
            raised.append(error)
            begun.wait()
            call.cancel()

    call = stub.ImportModel.future(requests(), timeout=timeout)
    begun.set()
    try:
        return call.result()
    except grpc.FutureCancelledError:
        raise raised[0] from None
    except grpc.RpcError as error:
        raise source.error_of(error) from None
    finally:
        call.cancel()


async def receive_async(stub: Stub, request: history_service_pb2.ExportModelRequest, timeout: float, target: Target) -> None:
    target.begin()
    call = stub.ExportModel(request, timeout=timeout)
    try:
        async for response in call:
            await asyncio.to_thread(target.write, response.piece)
            target.say()
    except grpc.RpcError as error:
        raise target.error_of(error) from None
    finally:
        call.cancel()


async def send_async(stub: Stub, first: history_service_pb2.ImportModelRequest, timeout: float, source: Source) -> model_pb2.Model:
    call = stub.ImportModel(timeout=timeout)
    requests = source.requests(first)
    try:
        while (request := await asyncio.to_thread(lambda: next(requests, None))) is not None:
            source.say()
            await call.write(request)
        await call.done_writing()
    except (grpc.RpcError, asyncio.InvalidStateError):
        # The server has ended the call, which says why.
        pass
    except BaseException:
        call.cancel()
        raise
    try:
        return await call
    except grpc.RpcError as error:
        raise source.error_of(error) from None
    finally:
        call.cancel()
