"""Client: models, learning and predictions, for programs with threads."""

import threading
import time
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import grpc

from . import calls
from .channels import Path, Target, channel, default_server, default_token_file, known_server, proxy_hint
from .datasets import Dataset
from .durations import Duration
from .errors import Backoff, PerceptrondError, is_transient, with_retries
from .labels import AnswerLabels
from .later_labels import examples_of
from .learn_stream import LearnStream
from .management import Aliases, History
from .model_check import ModelCheck
from .predict_stream import PredictStream
from .producers import Producers
from .progress import OnProgress
from .results import Learned, Predictions, learned
from .v1 import (alias_service_pb2_grpc, analysis_service_pb2, analysis_service_pb2_grpc, history_service_pb2_grpc, learner_pb2, learning_service_pb2_grpc,
                 model_pb2, model_service_pb2, model_service_pb2_grpc, prediction_service_pb2, prediction_service_pb2_grpc, report_pb2)
from .window import NAME_TABLE_SIZE, Examples


class Client:
    """A connection to a server, or to the servers of a fleet. A context manager.

    A model is named "spam" or "models/spam"; to read, predict and learn also by an alias, "aliases/prod". `aliases` (Aliases)
    manages these, `history` (History) copies, files, names and kept states of models. Calls are repeated while the server is
    unreachable or asks to wait, until `give_up_after` is over; every method raises PerceptrondError for what the server
    answers, ValueError and TypeError for wrong arguments.

    Threads: any number may call at once. A LearnStream is for one thread.
    """

    def __init__(self, server: Optional[str] = None, *, tls_ca: Optional[Path] = None, token_file: Optional[Path] = None,
                 give_up_after: float = 60, timeout: float = 30, on_reconnect: Callable[[PerceptrondError], None] = lambda error: None):
        """Returns at once; the first call connects. Raises OSError if a file cannot be read, ValueError for a wrong address.

        server: host:port, by default port 7600; host:port,host:port,... of a fleet; or unix:path. Default:
          $PERCEPTROND_SERVER, else 127.0.0.1:7600.
        tls_ca: connect with TLS and trust the certificate authorities in this file (PEM).
        token_file: send the token in this file with each call, if the server is on this machine or uses TLS. Default:
          $PERCEPTRONCTL_TOKEN_FILE.
        give_up_after: seconds without progress before a call fails; above 0. A call that waits for 3 s warns. timeout: of
          one attempt of a call.
        on_reconnect: called when a stream lost its connection, in a thread of its own."""
        self._target = Target(server or default_server(), tls_ca, token_file if token_file is not None else default_token_file())
        self._give_up_after, self._timeout, self._on_reconnect = give_up_after, timeout, on_reconnect
        self._proxy = proxy_hint(self._target)
        self._channel = channel(self._target)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)
        self._learning = learning_service_pb2_grpc.LearningServiceStub(self._channel)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._analyses = analysis_service_pb2_grpc.AnalysisServiceStub(self._channel)
        self.aliases = Aliases(alias_service_pb2_grpc.AliasServiceStub(self._channel), self._call)
        self.history = History(history_service_pb2_grpc.HistoryServiceStub(self._channel), self._call)
        self._producers = Producers()
        # Channels to single servers of a fleet.
        self._lock = threading.Lock()
        self._writers: dict[str, grpc.Channel] = {}

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the calls in flight and ends the connection. The client cannot be used afterwards. May be repeated."""
        with self._lock:
            for each in (self._channel, *self._writers.values()):
                each.close()

    # ---- Models ----

    def create(self, model: str, settings: Optional[model_pb2.Model] = None, *, exist_ok: bool = False, **keywords: Any) -> model_pb2.Model:
        """Creates a model and returns it. settings, or the arguments of model_settings(): features="named", labels=[...].

        ALREADY_EXISTS (MODEL_EXISTS), unless exist_ok: then the existing model is returned as it is."""
        request = calls.create_request(model, settings, keywords)
        try:
            return self._call(self._models.CreateModel, request)
        except PerceptrondError as error:
            if not exist_ok or error.code is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        return self.get(model)

    def get(self, model: str, *, learning_curve: bool = False) -> model_pb2.Model:
        """Returns settings, state and report, and the learning curve if it is asked for. NOT_FOUND (MODEL_NOT_FOUND)."""
        return self._call(self._models.GetModel, calls.get_request(model, learning_curve))

    def report(self, model: str) -> report_pb2.ConvergenceReport:
        """Returns how far the model is from convergence."""
        return self.get(model).report

    def list(self) -> Iterator[model_pb2.Model]:
        """Yields the models in the order of their names, without label_names, which get() returns. Those that cannot be read
        are left out."""
        request = model_service_pb2.ListModelsRequest(page_size=1000)
        while True:
            page = self._call(self._models.ListModels, request)
            yield from page.models
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def update(self, model: str, *, description: Optional[str] = None, margin_of_interest: Optional[float] = None,
               expire_after: Optional[Duration] = None, etag: str = "") -> model_pb2.Model:
        """Changes what may be changed, and returns the model. expire_after: a timedelta or "30d"; "never": the model stays. etag:
        of the model that is to be changed, else ABORTED."""
        return self._call(self._models.UpdateModel, calls.update_request(model, description, margin_of_interest, expire_after, etag))

    def delete(self, model: str, *, missing_ok: bool = False) -> None:
        """Deletes a model with its journal. NOT_FOUND, unless missing_ok; FAILED_PRECONDITION (MODEL_IN_USE)."""
        self._call(self._models.DeleteModel, model_service_pb2.DeleteModelRequest(name=calls.name_of(model), allow_missing=missing_ok))

    def freeze(self, model: str, frozen: bool = True) -> model_pb2.Model:
        """Ends learning, or allows it again, and returns the model."""
        return self._call(self._models.FreezeModel if frozen else self._models.UnfreezeModel, calls.freeze_request(model, frozen))

    def weights(self, model: str) -> learner_pb2.Weights:
        """Returns the weights that predict: one vector, or one for each class. FAILED_PRECONDITION (NOT_LINEAR); ABORTED
        (REVISION_MISMATCH) if the model learns meanwhile."""
        pages = calls.WeightPages(model)
        while pages.add(self._call(self._models.ListWeights, pages.request)):
            pass
        return pages.weights

    # ---- Learning ----

    def learn(self, model: str, examples: Any = None, labels: Optional[Sequence[Any]] = None, *, weights: Optional[Sequence[float]] = None,
              ids: Optional[Sequence[str]] = None, producer: Optional[str] = None, passes: Optional[int] = None,
              until_converged: bool = False, batch: int = 1000,
              window: int = 8192, progress: Union[bool, OnProgress, None] = None) -> Learned:
        """Learns examples, each exactly once a pass, also across restarts of the server.

        examples, labels, weights, batch: as Dataset has them: a matrix, a frame, dicts, texts or Rows.
        ids: instead of examples, Predictions.ids of predictions whose labels these are; each is learned once.
        producer: the name of this sequence of examples, for good; 1 to 128 bytes. The server keeps its position, so that the
          same call, after a failure of this program, learns the rest. Default: the examples are new, whatever was sent
          before.
        passes: at least 1. Default 1; with until_converged the most, 1000. An iterator has one.
        until_converged: stop after a pass without an update.
        window: most unanswered examples. progress: a callback, or True for a line on standard error.

        ValueError before any is learned for a label or an index that the model has not; of an iterator once it is at that row, after
        those before it. With two labels False and 0 are read as -1, with a warning.

        A row with another validation error is left out, with a warning at the end, or PerceptrondError if that are all; totals.row_errors counts them, and
        totals.first_row_error_position names the first: "row 12" of the examples, from 0, or "line 13" of the file if Row.line is set."""
        plan = calls.Passes(examples_of(examples, labels, weights, ids, batch), passes, until_converged, resumes=producer is not None, progress=progress)
        with self._producers.lent(calls.name_of(model), producer) as name, self.learn_stream(model, name, window=window) as stream:
            plan.check(self.get(model))
            plan.start(stream.next_offset, stream.passes)
            stream.number_rows(plan.row_of)
            while plan.left():
                for message in plan.messages(stream.totals):
                    stream.send(message)
                if not plan.refused:
                    plan.end(stream.end_pass(), stream.totals)
            stream.finish()
            plan.check_complete()
            return learned(stream.totals, stream.first_refused, plan.completed, plan.summary)

    def learn_stream(self, model: str, producer: str, *, window: int = 8192, name_table_size: int = NAME_TABLE_SIZE) -> LearnStream:
        """Opens a stream of a producer, for examples as they come. A context manager; it ends at finish() or with its block."""
        return LearnStream(self._learning, calls.name_of(model), producer, window=window, name_table_size=name_table_size,
                           give_up_after=self._give_up_after, on_reconnect=self._on_reconnect, writer_stub=self._writer_stub, proxy=self._proxy)

    # ---- Predictions ----

    def predict(self, model: str, examples: Any, *, batch: int = 1000, class_scores: bool = False, ids: bool = False,
                min_revision: int = 0) -> Predictions:
        """Predicts all examples, which are as in learn(). An alias that is moved meanwhile is followed: each label is that of the model that answered.
        class_scores: of several classes, the score of each. ids: the server keeps the features until learn(ids=..., labels=...),
        if the model has stored_predictions. min_revision: of the oldest state that may answer; ABORTED (REVISION_TOO_OLD).

        Raises PerceptrondError for the first row with a validation error, and names it."""
        found = self.get(model)
        predictions = Predictions()
        names = AnswerLabels(found)
        data = Dataset(examples, batch=calls.most_rows(batch, found, class_scores))
        data.check_names(ModelCheck(found))
        for message, answer in self.predict_stream(model, data.messages(), class_scores=class_scores, ids=ids, min_revision=min_revision):
            if names.lack(answer):
                names.read(self._answering(model, answer.model))
            predictions.add(answer, names.labels, message)
        return predictions

    def predict_stream(self, model: str, messages: Iterable[Any], *, window: int = 4, name_table_size: int = NAME_TABLE_SIZE,
                       class_scores: bool = False, ids: bool = False, min_revision: int = 0) -> Iterator[tuple[Examples, prediction_service_pb2.PredictResponse]]:
        """Yields each message with its answer, in their order, while others are on their way; a message with many new names is
        split. A message: a dict, a text or a Row, or a list of them; or what pack_matrix() makes. Many rows in one are faster.
        Rows with validation errors are in answer.row_errors."""
        if min_revision > 0:
            # A server of a fleet waits for this state here; on a stream it does not.
            self._call(self._predictions.Predict, prediction_service_pb2.PredictRequest(model=calls.name_of(model), min_revision=min_revision))
        stream = PredictStream(self._predictions, calls.name_of(model), window=window, name_table_size=name_table_size, class_scores=class_scores,
                               ids=ids, min_revision=min_revision, give_up_after=self._give_up_after, on_reconnect=self._on_reconnect, proxy=self._proxy)
        yield from stream.predict(messages)

    def explain(self, model: str, examples: Any, *, max_features: int = 20) -> prediction_service_pb2.ExplainResponse:
        """Returns what each feature contributes to the score of each example: of at most 100 examples, as in learn(), the
        largest contributions, 1 to 10,000."""
        return self._call(self._predictions.Explain, calls.explain_request(model, examples, max_features))

    # ---- Convergence ----

    def stored_examples(self, model: str) -> Iterator[analysis_service_pb2.StoredExample]:
        """Yields the examples that the model stores, mapped by its feature map: those that caused updates, then the sample."""
        request = analysis_service_pb2.ListStoredExamplesRequest(model=calls.name_of(model), page_size=10000)
        while True:
            page = self._call(self._analyses.ListStoredExamples, request)
            yield from page.examples
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch(self, model: str, interval: float = 1, timeout: Optional[float] = None) -> Iterator[model_pb2.Model]:
        """Yields the model, without label_names, now and whenever its report has changed, across restarts of the server, until
        it is deleted (NOT_FOUND) or the time is over (DEADLINE_EXCEEDED). interval: the shortest time between two, at least
        0.05 s."""
        request, deadline, backoff = calls.watch_request(model, interval), calls.Deadline(timeout), Backoff(self._give_up_after)
        while True:
            try:
                for response in self._models.WatchModel(request, timeout=deadline.left()):
                    backoff.progress()
                    # Stays on the model of an alias.
                    request.name = response.model.name
                    yield response.model
            except grpc.RpcError as error:
                wait = backoff.next_wait(error)
                if wait is None or not is_transient(error):
                    raise PerceptrondError.of(error, self._proxy) from None
                self._on_reconnect(PerceptrondError.of(error, self._proxy))
                time.sleep(wait)

    def analyze(self, model: str, *, replace_weights: bool = False, expected_revision: Optional[int] = None, time_limit: Optional[Duration] = None,
                progress: Callable[[analysis_service_pb2.AnalysisProgress], None] = lambda now: None, **limits: Any) -> analysis_service_pb2.AnalysisResult:
        """Returns the largest margin that any separator has on the stored examples, or a proof that none exists, or why neither
        was found; it enters the report. Sent once. Leaving it, by an exception of `progress`, cancels it.

        replace_weights: by the separator that was found; with expected_revision only if the model is at that revision, else
          ABORTED (REVISION_MISMATCH).
        time_limit: a timedelta or "10m"; default: the server's. limits: relative_gap, max_rounds, max_support_vectors,
          max_certificate_examples, as AnalyzeRequest has them.
        progress: called several times a second.

        FAILED_PRECONDITION (NOTHING_STORED, KERNEL_SPACE, ANALYSIS_TOO_LARGE; NO_SEPARATOR, NOT_REPLACEABLE)."""
        call = self._analyses.Analyze(calls.analyze_request(model, replace_weights, expected_revision, time_limit, limits))
        try:
            for answer in call:
                if answer.HasField("result"):
                    return answer.result
                progress(answer.progress)
        except grpc.RpcError as error:
            raise PerceptrondError.of(error, self._proxy) from None
        finally:
            call.cancel()
        raise calls.ended_early()

    def wait_until_converged(self, model: str, timeout: Optional[float] = None) -> model_pb2.Model:
        """Returns the model, as watch() yields it, once its state is CONVERGED. Raises TimeoutError with its state when the time
        is over, and PerceptrondError when it is deleted."""
        state = "unknown"
        try:
            for now in self.watch(model, 0.05, timeout):
                if now.report.state == report_pb2.CONVERGENCE_STATE_CONVERGED:
                    return now
                state = calls.state_name(now)
        except PerceptrondError as error:
            if error.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
        raise TimeoutError(f"{model} has not converged within {timeout} s: its state is {state}")

    # ----

    def _answering(self, asked: str, answering: str) -> model_pb2.Model:
        """The model that answered: by its alias, if that still names it, since a caller may have access by that alone."""
        found = self.get(asked)
        return found if answering in ("", found.name) else self.get(answering)

    def _call(self, method: Callable[..., Any], request: Any, *, repeat: bool = True, timeout: float = 0) -> Any:
        """repeat: while it fails for a reason that may pass. timeout: the least that an attempt has."""
        return with_retries(lambda: method(request, timeout=max(self._timeout, timeout)), self._give_up_after if repeat else 0, self._proxy)

    def _writer_stub(self, address: str) -> Optional[learning_service_pb2_grpc.LearningServiceStub]:
        server = known_server(self._target, address)
        if server is None:
            return None
        with self._lock:
            if server not in self._writers:
                self._writers[server] = channel(self._target, server)
            return learning_service_pb2_grpc.LearningServiceStub(self._writers[server])
