"""Aliases and History, for asyncio: as those of management, whose methods say more."""

from typing import Any, AsyncIterator, Awaitable, Callable, Optional, Union

from . import management, transfers
from .calls import name_of
from .management import PATIENT
from .progress import OnTransfer, shown_transfer
from .v1 import alias_service_pb2, alias_service_pb2_grpc, history_service_pb2, history_service_pb2_grpc, model_pb2

Call = Callable[..., Awaitable[Any]]


class Aliases:
    """AsyncClient.aliases."""

    def __init__(self, stub: alias_service_pb2_grpc.AliasServiceStub, call: Call):
        self._stub, self._call = stub, call

    async def get(self, alias: str) -> alias_service_pb2.Alias:
        return await self._call(self._stub.GetAlias, alias_service_pb2.GetAliasRequest(name=management.alias_name(alias)))

    async def list(self) -> AsyncIterator[alias_service_pb2.Alias]:
        request = alias_service_pb2.ListAliasesRequest(page_size=1000)
        while True:
            page = await self._call(self._stub.ListAliases, request)
            for alias in page.aliases:
                yield alias
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def set(self, alias: str, model: str, *, description: Optional[str] = None, etag: str = "") -> alias_service_pb2.Alias:
        return await self._call(self._stub.UpdateAlias, management.set_request(alias, model, description, etag), repeat=not etag)

    async def delete(self, alias: str, *, missing_ok: bool = False, etag: str = "") -> None:
        await self._call(self._stub.DeleteAlias, management.delete_request(alias, missing_ok, etag))

    async def challenge(self, alias: str, challenger: str, *, error: str = "window", margin: float = 0, min_examples: int = 100, etag: str = "",
                        validate_only: bool = False) -> alias_service_pb2.ChallengeAliasResponse:
        request = management.challenge_request(alias, challenger, error, margin, min_examples, etag, validate_only)
        return await self._call(self._stub.ChallengeAlias, request, repeat=False)


class History:
    """AsyncClient.history."""

    def __init__(self, stub: history_service_pb2_grpc.HistoryServiceStub, call: Call):
        self._stub, self._call = stub, call

    async def copy(self, model: str, new_name: str) -> model_pb2.Model:
        return await self._call(self._stub.CopyModel, management.copy_request(model, new_name), timeout=PATIENT)

    async def rename(self, model: str, new_name: str, *, etag: str = "") -> model_pb2.Model:
        return await self._call(self._stub.RenameModel, management.rename_request(model, new_name, etag), repeat=False, timeout=PATIENT)

    async def export_model(self, model: str, file: transfers.File, *, progress: Union[bool, OnTransfer, None] = None) -> int:
        """The file is written in a thread."""
        with transfers.open_target(file, shown_transfer(progress)) as target:
            await self._call(lambda request, timeout: transfers.receive_async(self._stub, request, timeout, target), transfers.export_request(model), timeout=PATIENT)
            return target.end()

    async def import_model(self, model: str, file: transfers.File, *, progress: Union[bool, OnTransfer, None] = None) -> model_pb2.Model:
        """The file is read in a thread; progress is called in that of the loop."""
        with transfers.open_source(file, shown_transfer(progress)) as source:
            made = await self._call(lambda request, timeout: transfers.send_async(self._stub, request, timeout, source), transfers.import_request(model), timeout=PATIENT)
            source.end()
            return made

    async def create_snapshot(self, model: str, snapshot: str) -> history_service_pb2.Snapshot:
        request = history_service_pb2.CreateSnapshotRequest(model=name_of(model), snapshot_id=snapshot)
        return await self._call(self._stub.CreateSnapshot, request, repeat=False, timeout=PATIENT)

    async def list_snapshots(self, model: str) -> list[history_service_pb2.Snapshot]:
        return [*(await self._call(self._stub.ListSnapshots, history_service_pb2.ListSnapshotsRequest(model=name_of(model)))).snapshots]

    async def delete_snapshot(self, model: str, snapshot: str) -> None:
        request = history_service_pb2.DeleteSnapshotRequest(model=name_of(model), snapshot_id=snapshot)
        await self._call(self._stub.DeleteSnapshot, request, repeat=False)

    async def roll_back(self, model: str, snapshot: Optional[str] = None, *, revision: Optional[int] = None,
                        expected_revision: Optional[int] = None) -> model_pb2.Model:
        request = management.roll_back_request(model, snapshot, revision, expected_revision)
        return await self._call(self._stub.RollBackModel, request, repeat=False, timeout=PATIENT)
