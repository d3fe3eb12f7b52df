"""AsyncClient: models, learning and predictions, for asyncio."""

import asyncio
import collections
from typing import Any, AsyncIterator, Callable, Deque, Iterable, Optional, Sequence, Union

import grpc

from . import calls
from .channels import Path, Target, aio_channel, default_server, default_token_file, known_server, proxy_hint
from .columns import copy, count, packed, packed_parts
from .datasets import Dataset
from .durations import Duration
from .errors import Backoff, PerceptrondError, is_too_large, is_transient, with_retries_async
from .labels import AnswerLabels
from .later_labels import examples_of
from .learn_stream_aio import LearnStream
from .management_aio import Aliases, History
from .model_check import ModelCheck
from .producers import Producers
from .progress import OnProgress
from .results import Learned, Predictions, learned
from .rows import position_of
from .v1 import (alias_service_pb2_grpc, analysis_service_pb2, analysis_service_pb2_grpc, history_service_pb2_grpc, learner_pb2, learning_service_pb2_grpc,
                 model_pb2, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2, prediction_service_pb2_grpc, report_pb2)
from .window import NAME_TABLE_SIZE, Examples, as_messages


class AsyncClient:
    """As Client, whose methods say more, for asyncio: a method that calls the server is awaited, one that yields is an
    asynchronous iterator. An asynchronous context manager. Examples are packed in the loop's thread, a message at a time.

    Tasks: any number of one loop may call at once. A LearnStream is for one task.
    """

    def __init__(self, server: Optional[str] = None, *, tls_ca: Optional[Path] = None, token_file: Optional[Path] = None,
                 give_up_after: float = 60, timeout: float = 30, on_reconnect: Callable[[PerceptrondError], None] = lambda error: None):
        """As Client(). Within a running loop."""
        self._target = Target(server or default_server(), tls_ca, token_file if token_file is not None else default_token_file())
        self._give_up_after, self._timeout, self._on_reconnect = give_up_after, timeout, on_reconnect
        self._proxy = proxy_hint(self._target)
        self._channel = aio_channel(self._target)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)
        self._learning = learning_service_pb2_grpc.LearningServiceStub(self._channel)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._analyses = analysis_service_pb2_grpc.AnalysisServiceStub(self._channel)
        self.aliases = Aliases(alias_service_pb2_grpc.AliasServiceStub(self._channel), self._call)
        self.history = History(history_service_pb2_grpc.HistoryServiceStub(self._channel), self._call)
        self._producers = Producers()
        # Channels to single servers of a fleet.
        self._writers: dict[str, grpc.aio.Channel] = {}

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels the calls in flight and ends the connection."""
        for channel in (self._channel, *self._writers.values()):
            await channel.close()

    # ---- Models ----

    async def create(self, model: str, settings: Optional[model_pb2.Model] = None, *, exist_ok: bool = False, **keywords: Any) -> model_pb2.Model:
        request = calls.create_request(model, settings, keywords)
        try:
            return await self._call(self._models.CreateModel, request)
        except PerceptrondError as error:
            if not exist_ok or error.code is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        return await self.get(model)

    async def get(self, model: str, *, learning_curve: bool = False) -> model_pb2.Model:
        return await self._call(self._models.GetModel, calls.get_request(model, learning_curve))

    async def report(self, model: str) -> report_pb2.ConvergenceReport:
        return (await self.get(model)).report

    async def list(self) -> AsyncIterator[model_pb2.Model]:
        request = model_service_pb2.ListModelsRequest(page_size=1000)
        while True:
            page = await self._call(self._models.ListModels, request)
            for model in page.models:
                yield model
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def update(self, model: str, *, description: Optional[str] = None, margin_of_interest: Optional[float] = None,
                     expire_after: Optional[Duration] = None, etag: str = "") -> model_pb2.Model:
        return await self._call(self._models.UpdateModel, calls.update_request(model, description, margin_of_interest, expire_after, etag))

    async def delete(self, model: str, *, missing_ok: bool = False) -> None:
        await self._call(self._models.DeleteModel, model_service_pb2.DeleteModelRequest(name=calls.name_of(model), allow_missing=missing_ok))

    async def freeze(self, model: str, frozen: bool = True) -> model_pb2.Model:
        return await self._call(self._models.FreezeModel if frozen else self._models.UnfreezeModel, calls.freeze_request(model, frozen))

    async def weights(self, model: str) -> learner_pb2.Weights:
        pages = calls.WeightPages(model)
        while pages.add(await self._call(self._models.ListWeights, pages.request)):
            pass
        return pages.weights

    # ---- Learning ----

    async def learn(self, model: str, examples: Any = None, labels: Optional[Sequence[Any]] = None, *, weights: Optional[Sequence[float]] = None,
                    ids: Optional[Sequence[str]] = None, producer: Optional[str] = None, passes: Optional[int] = None,
                    until_converged: bool = False, batch: int = 1000,
                    window: int = 8192, progress: Union[bool, OnProgress, None] = None) -> Learned:
        plan = calls.Passes(examples_of(examples, labels, weights, ids, batch), passes, until_converged, resumes=producer is not None, progress=progress)
        with self._producers.lent(calls.name_of(model), producer) as name:
            async with self.learn_stream(model, name, window=window) as stream:
                plan.check(await self.get(model))
                plan.start(stream.next_offset, stream.passes)
                stream.number_rows(plan.row_of)
                while plan.left():
                    for message in plan.messages(stream.totals):
                        await stream.send(message)
                    if not plan.refused:
                        plan.end(await stream.end_pass(), stream.totals)
                await stream.finish()
                plan.check_complete()
                return learned(stream.totals, stream.first_refused, plan.completed, plan.summary)

    def learn_stream(self, model: str, producer: str, *, window: int = 8192, name_table_size: int = NAME_TABLE_SIZE) -> LearnStream:
        return LearnStream(self._learning, calls.name_of(model), producer, window=window, name_table_size=name_table_size,
                           give_up_after=self._give_up_after, on_reconnect=self._on_reconnect, writer_stub=self._writer_stub, proxy=self._proxy)

    # ---- Predictions ----

    async def predict(self, model: str, examples: Any, *, batch: int = 1000, class_scores: bool = False, ids: bool = False,
                      min_revision: int = 0) -> Predictions:
        found = await self.get(model)
        predictions = Predictions()
        names = AnswerLabels(found)
        data = Dataset(examples, batch=calls.most_rows(batch, found, class_scores))
        data.check_names(ModelCheck(found))
        async for message, answer in self.predict_stream(model, data.messages(), class_scores=class_scores, ids=ids, min_revision=min_revision):
            if names.lack(answer):
                names.read(await self._answering(model, answer.model))
            predictions.add(answer, names.labels, message)
        return predictions

    async def predict_stream(self, model: str, messages: Iterable[Any], *, window: int = 4, class_scores: bool = False,
                             ids: bool = False, min_revision: int = 0) -> AsyncIterator[tuple[Examples, prediction_service_pb2.PredictResponse]]:
        """As Client's, but each message is a call of its own with its own names, so that a row with a validation error raises
        PerceptrondError."""
        name = calls.name_of(model)
        pending: Deque[tuple[Examples, asyncio.Task[Any]]] = collections.deque()
        parts = packed_parts(as_messages(messages))
        answered = 0
        try:
            while True:
                while len(pending) < window and (part := next(parts, None)) is not None:
                    message, columns = part
                    request = prediction_service_pb2.PredictRequest(model=name, include_class_scores=class_scores, include_prediction_ids=ids,
                                                                    min_revision=min_revision)
                    copy(columns, request.columns)
                    pending.append((message, asyncio.create_task(self._call(self._predictions.Predict, request))))
                if not pending:
                    return
                message, call = pending.popleft()
                try:
                    answer = await call
                except PerceptrondError as error:
                    if is_too_large(error) and count(message) == 1:
                        raise PerceptrondError.row_too_large(position_of(message, 0, answered), packed(message).ByteSize(), 0) from None
                    raise
                yield message, answer
                answered += count(message)
        finally:
            for _, call in pending:
                call.cancel()

    async def explain(self, model: str, examples: Any, *, max_features: int = 20) -> prediction_service_pb2.ExplainResponse:
        return await self._call(self._predictions.Explain, calls.explain_request(model, examples, max_features))

    # ---- Convergence ----

    async def stored_examples(self, model: str) -> AsyncIterator[analysis_service_pb2.StoredExample]:
        request = analysis_service_pb2.ListStoredExamplesRequest(model=calls.name_of(model), page_size=10000)
        while True:
            page = await self._call(self._analyses.ListStoredExamples, request)
            for example in page.examples:
                yield example
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def watch(self, model: str, interval: float = 1, timeout: Optional[float] = None) -> AsyncIterator[model_pb2.Model]:
        request, deadline, backoff = calls.watch_request(model, interval), calls.Deadline(timeout), Backoff(self._give_up_after)
        while True:
            try:
                async for response in self._models.WatchModel(request, timeout=deadline.left()):
                    backoff.progress()
                    # Stays on the model of an alias.
                    request.name = response.model.name
                    yield response.model
            except grpc.RpcError as error:
                wait = backoff.next_wait(error)
                if wait is None or not is_transient(error):
                    raise PerceptrondError.of(error, self._proxy) from None
                self._on_reconnect(PerceptrondError.of(error, self._proxy))
                await asyncio.sleep(wait)

    async def analyze(self, model: str, *, replace_weights: bool = False, expected_revision: Optional[int] = None, time_limit: Optional[Duration] = None,
                      progress: Callable[[analysis_service_pb2.AnalysisProgress], None] = lambda now: None, **limits: Any) -> analysis_service_pb2.AnalysisResult:
        call = self._analyses.Analyze(calls.analyze_request(model, replace_weights, expected_revision, time_limit, limits))
        try:
            async for answer in call:
                if answer.HasField("result"):
                    return answer.result
                progress(answer.progress)
        except grpc.RpcError as error:
            raise PerceptrondError.of(error, self._proxy) from None
        finally:
            call.cancel()
        raise calls.ended_early()

    async def wait_until_converged(self, model: str, timeout: Optional[float] = None) -> model_pb2.Model:
        state = "unknown"
        try:
            async for now in self.watch(model, 0.05, timeout):
                if now.report.state == report_pb2.CONVERGENCE_STATE_CONVERGED:
                    return now
                state = calls.state_name(now)
        except PerceptrondError as error:
            if error.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
        raise TimeoutError(f"{model} has not converged within {timeout} s: its state is {state}")

    # ----

    async def _answering(self, asked: str, answering: str) -> model_pb2.Model:
        """The model that answered: by its alias, if that still names it, since a caller may have access by that alone."""
        found = await self.get(asked)
        return found if answering in ("", found.name) else await self.get(answering)

    async def _call(self, method: Callable[..., Any], request: Any, *, repeat: bool = True, timeout: float = 0) -> Any:
        return await with_retries_async(lambda: method(request, timeout=max(self._timeout, timeout)), self._give_up_after if repeat else 0, self._proxy)

    def _writer_stub(self, address: str) -> Optional[learning_service_pb2_grpc.LearningServiceStub]:
        server = known_server(self._target, address)
        if server is None:
            return None
        if server not in self._writers:
            self._writers[server] = aio_channel(self._target, server)
        return learning_service_pb2_grpc.LearningServiceStub(self._writers[server])
