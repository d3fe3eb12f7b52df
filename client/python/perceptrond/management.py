"""Aliases and History: aliases of models; copies, files, names and kept states of models. Client has them as `aliases` and
`history`, AsyncClient those of management_aio."""

import uuid
from typing import Any, Callable, Iterator, Optional, Union

from . import transfers
from .calls import name_of
from .progress import OnTransfer, shown_transfer
from .v1 import alias_service_pb2, alias_service_pb2_grpc, history_service_pb2, history_service_pb2_grpc, model_pb2

# Seconds for calls whose time grows with the model.
PATIENT = 900.0
ERRORS = {"window": alias_service_pb2.COMPARED_ERROR_WINDOW, "progressive": alias_service_pb2.COMPARED_ERROR_PROGRESSIVE}

# Makes a call of a stub's method, and repeats it if told so, with the longest time of an attempt.
Call = Callable[..., Any]


def alias_name(alias: str) -> str:
    return alias if alias.startswith("aliases/") else f"aliases/{alias}"


def set_request(alias: str, model: str, description: Optional[str], etag: str) -> alias_service_pb2.UpdateAliasRequest:
    request = alias_service_pb2.UpdateAliasRequest(alias=alias_service_pb2.Alias(name=alias_name(alias), model=name_of(model), etag=etag), allow_missing=not etag)
    request.update_mask.paths.append("model")
    if description is not None:
        request.alias.description = description
        request.update_mask.paths.append("description")
    return request


def delete_request(alias: str, missing_ok: bool, etag: str) -> alias_service_pb2.DeleteAliasRequest:
    return alias_service_pb2.DeleteAliasRequest(name=alias_name(alias), etag=etag, allow_missing=missing_ok)


def challenge_request(alias: str, challenger: str, error: str, margin: float, min_examples: int, etag: str,
                      validate_only: bool) -> alias_service_pb2.ChallengeAliasRequest:
    if error not in ERRORS:
        raise ValueError(f"error={error!r}: expected one of {', '.join(ERRORS)}")
    return alias_service_pb2.ChallengeAliasRequest(name=alias_name(alias), challenger=name_of(challenger), error=ERRORS[error], margin=margin,
                                                   min_examples=min_examples, etag=etag, validate_only=validate_only)


def copy_request(model: str, new_name: str) -> history_service_pb2.CopyModelRequest:
    return history_service_pb2.CopyModelRequest(name=name_of(model), new_name=name_of(new_name), request_id=str(uuid.uuid4()))


def rename_request(model: str, new_name: str, etag: str) -> history_service_pb2.RenameModelRequest:
    return history_service_pb2.RenameModelRequest(name=name_of(model), new_name=name_of(new_name), etag=etag)


def roll_back_request(model: str, snapshot: Optional[str], revision: Optional[int], expected_revision: Optional[int]) -> history_service_pb2.RollBackModelRequest:
    if (snapshot is None) == (revision is None):
        raise ValueError("give a snapshot or a revision")
    return history_service_pb2.RollBackModelRequest(model=name_of(model), snapshot_id=snapshot or "", revision=revision, expected_revision=expected_revision)


class Aliases:
    """Names for models that can be moved from one model to another. Client's methods that read a model, predict or learn
    take "aliases/prod" instead of a model's name: a stream of predictions follows a move at its next message, one that
    learns stays on its model. Here an alias is "prod" or "aliases/prod".

    Threads: any number."""

    def __init__(self, stub: alias_service_pb2_grpc.AliasServiceStub, call: Call):
        self._stub, self._call = stub, call

    def get(self, alias: str) -> alias_service_pb2.Alias:
        """NOT_FOUND (ALIAS_NOT_FOUND)."""
        return self._call(self._stub.GetAlias, alias_service_pb2.GetAliasRequest(name=alias_name(alias)))

    def list(self) -> Iterator[alias_service_pb2.Alias]:
        """Yields the aliases in the order of their names."""
        request = alias_service_pb2.ListAliasesRequest(page_size=1000)
        while True:
            page = self._call(self._stub.ListAliases, request)
            yield from page.aliases
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def set(self, alias: str, model: str, *, description: Optional[str] = None, etag: str = "") -> alias_service_pb2.Alias:
        """Has the alias name this model, and creates it if there is none (UpdateAlias); returns it. etag: of the alias that is
        to be moved, which must exist; else ABORTED (ETAG_MISMATCH). NOT_FOUND (MODEL_NOT_FOUND; with etag ALIAS_NOT_FOUND)."""
        return self._call(self._stub.UpdateAlias, set_request(alias, model, description, etag), repeat=not etag)

    def delete(self, alias: str, *, missing_ok: bool = False, etag: str = "") -> None:
        """Deletes the alias; its model stays. NOT_FOUND (ALIAS_NOT_FOUND), unless missing_ok; ABORTED (ETAG_MISMATCH)."""
        self._call(self._stub.DeleteAlias, delete_request(alias, missing_ok, etag))

    def challenge(self, alias: str, challenger: str, *, error: str = "window", margin: float = 0, min_examples: int = 100, etag: str = "",
                  validate_only: bool = False) -> alias_service_pb2.ChallengeAliasResponse:
        """Compares the model that the alias names with the challenger, a model that learns the same examples, and moves the
        alias to it if that errs less.

        error: "window", of the latest 1000 examples of each, or "progressive", of all. margin: how much lower the
          challenger's must be; 0 to below 1. min_examples: of each, or the alias stays; from 1. etag: of the alias.
        validate_only: compare and move nothing.

        ABORTED (ETAG_MISMATCH) if the alias is moved meanwhile. Sent once: after UNAVAILABLE it may have been moved."""
        return self._call(self._stub.ChallengeAlias, challenge_request(alias, challenger, error, margin, min_examples, etag, validate_only), repeat=False)


class History:
    """Copies, files, names and kept states of models. Only copy(), the lists and files are repeated when an answer is lost:
    after UNAVAILABLE the others may have been done.

    Threads: any number."""

    def __init__(self, stub: history_service_pb2_grpc.HistoryServiceStub, call: Call):
        self._stub, self._call = stub, call

    def copy(self, model: str, new_name: str) -> model_pb2.Model:
        """Copies a model as it is now: settings, weights, revision, counters, producers' positions and stored examples;
        returns the copy, which learns by itself from then on. ALREADY_EXISTS (MODEL_EXISTS)."""
        return self._call(self._stub.CopyModel, copy_request(model, new_name), timeout=PATIENT)

    def rename(self, model: str, new_name: str, *, etag: str = "") -> model_pb2.Model:
        """Gives a model another name; its aliases follow, its streams end and resume under the new name. ALREADY_EXISTS
        (MODEL_EXISTS); ABORTED (ETAG_MISMATCH); FAILED_PRECONDITION (MODEL_IN_USE)."""
        return self._call(self._stub.RenameModel, rename_request(model, new_name, etag), repeat=False, timeout=PATIENT)

    def export_model(self, model: str, file: transfers.File, *, progress: Union[bool, OnTransfer, None] = None) -> int:
        """Writes a model to a file as copy() would copy it, and returns its bytes: what `perceptronctl export` writes.

        file: a path without a file, which is there once it is whole (FileExistsError); or an object with write(), which
          begins again where it was if it can seek() and truncate(), and has a part of the file after an error.
        progress: a callback, or True for a line on standard error.

        A call takes at most 900 s, or Client's timeout if that is more."""
        with transfers.open_target(file, shown_transfer(progress)) as target:
            self._call(lambda request, timeout: transfers.receive(self._stub, request, timeout, target), transfers.export_request(model), timeout=PATIENT)
            return target.end()

    def import_model(self, model: str, file: transfers.File, *, progress: Union[bool, OnTransfer, None] = None) -> model_pb2.Model:
        """Creates a model from such a file, also of another server, and returns it. An error leaves no model.

        file: a path; or an object with read(), which begins again where it was if it can seek(). A thread of gRPC reads it,
          and calls progress.

        INVALID_ARGUMENT (BAD_MODEL_FILE); ALREADY_EXISTS (MODEL_EXISTS)."""
        with transfers.open_source(file, shown_transfer(progress)) as source:
            made = self._call(lambda request, timeout: transfers.send(self._stub, request, timeout, source), transfers.import_request(model), timeout=PATIENT)
            source.end()
            return made

    def create_snapshot(self, model: str, snapshot: str) -> history_service_pb2.Snapshot:
        """Keeps the model's current state under this name, for roll_back(). ALREADY_EXISTS (SNAPSHOT_EXISTS);
        RESOURCE_EXHAUSTED (SNAPSHOT_LIMIT: a model keeps 16)."""
        request = history_service_pb2.CreateSnapshotRequest(model=name_of(model), snapshot_id=snapshot)
        return self._call(self._stub.CreateSnapshot, request, repeat=False, timeout=PATIENT)

    def list_snapshots(self, model: str) -> "list[history_service_pb2.Snapshot]":
        """Returns the kept snapshots, oldest first."""
        return [*self._call(self._stub.ListSnapshots, history_service_pb2.ListSnapshotsRequest(model=name_of(model))).snapshots]

    def delete_snapshot(self, model: str, snapshot: str) -> None:
        """NOT_FOUND (SNAPSHOT_NOT_FOUND)."""
        self._call(self._stub.DeleteSnapshot, history_service_pb2.DeleteSnapshotRequest(model=name_of(model), snapshot_id=snapshot), repeat=False)

    def roll_back(self, model: str, snapshot: Optional[str] = None, *, revision: Optional[int] = None,
                  expected_revision: Optional[int] = None) -> model_pb2.Model:
        """Gives a model the state of a snapshot, or of a revision from that of the oldest snapshot on, as a new revision.
        Examples and positions of producers that were counted stay.

        expected_revision: only if the model is at this revision, else ABORTED (REVISION_MISMATCH). NOT_FOUND
        (SNAPSHOT_NOT_FOUND; REVISION_NOT_KEPT); FAILED_PRECONDITION (MODEL_FROZEN)."""
        return self._call(self._stub.RollBackModel, roll_back_request(model, snapshot, revision, expected_revision), repeat=False, timeout=PATIENT)
