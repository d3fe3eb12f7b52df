"""A learning service that does what a test's script says: it accepts streams, checks what arrives, and answers, refuses or breaks.

A script waits for events, never for time: for a stream, a message, or the end of the client that it serves.
"""

import concurrent.futures
import queue

import grpc

from perceptrond.google_rpc import error_details_pb2, status_pb2
from perceptrond.v1 import learning_service_pb2, learning_service_pb2_grpc, model_pb2, model_service_pb2_grpc
from proxy import Proxies
from server_table import ServerTable

DETAILS = "grpc-status-details-bin"
Response = learning_service_pb2.LearnStreamResponse
Result = learning_service_pb2.LearnResult


def row(key):
    """The example that a script calls by this key, as the clients' drivers read it: a number is an index, "a+b" are names."""
    if isinstance(key, int):
        return {"label": 1 if key % 2 else -1, "features": [[key, key / 2]]}
    return {"label": 1, "features": [[name, 1.0 + i] for i, name in enumerate(key.split("+"))]}


def status_of(code, reason="", retry_after=None):
    """A google.rpc.Status; retry_after: seconds."""
    status = status_pb2.Status(code=grpc.StatusCode[code].value[0], message=f"as the script says: {reason}")
    if reason:
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="perceptrond"))
    if retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(int(1000 * retry_after))
        status.details.add().Pack(retry)
    return status


class Stream:
    """One stream of the client, for the script."""

    def __init__(self, place, requests, context):
        self.place, self._requests, self._context = place, requests, context
        self.out = queue.SimpleQueue()
        # Ends responses() when the client has left.
        context.add_callback(lambda: self.out.put(None))
        self.metadata = dict(context.invocation_metadata())
        self.opening = next(requests)
        # Messages, the opening included, and how many are answered.
        self.received, self._answered = 1, 1
        self._table = ServerTable(0)

    # ---- What the client sends ----

    def claim(self):
        """(offset, revision, epoch) claimed; None: nothing is."""
        resume = self.opening.producer.resume
        return (resume.acknowledged_offset, resume.acknowledged_revision, resume.acknowledged_epoch) if self.opening.producer.HasField("resume") else None

    def read(self):
        """The next message: (first offset, rows, completed pass); None at the half-close."""
        try:
            request = next(self._requests)
        except StopIteration:
            return None
        except grpc.RpcError:
            raise AssertionError("the client left the stream") from None
        self.received += 1
        return request.first_offset if request.HasField("first_offset") else None, self._rows(request.columns), request.completed_pass

    def expect(self, first, keys, mark=0):
        """The next message has these rows. Marks without rows may have no offset."""
        offset, rows, completed = self.read() or (None, None, None)
        expected = [row(key) for key in keys]
        assert (rows, completed) == (expected, mark), f"expected {expected} and mark {mark}, got {rows} and {completed}"
        assert offset == first or not keys and offset is None, f"expected offset {first}, got {offset}"

    def expect_rows(self, first, keys, mark=0):
        """The next messages have these rows, however they are divided; each is answered when it comes."""
        left, offset = [row(key) for key in keys], first
        while left or mark:
            begin, rows, completed = self.read()
            assert begin == offset and rows == left[:len(rows)], f"expected {left} from {offset}, got {rows} from {begin}"
            del left[:len(rows)]
            offset += len(rows)
            assert completed == (0 if left else completed), "a mark before the last rows"
            self.answer(examples=len(rows), ack=offset - 1, passed=completed or None)
            if completed:
                assert completed == mark, f"expected mark {mark}, got {completed}"
                return

    def expect_end(self):
        """The client has half-closed; the stream ends."""
        message = self.read()
        assert message is None, f"expected the end of the stream, got {message}"
        self.end()

    # ---- What the server does ----

    def open(self, next_offset=0, passes=0, uid="u", epoch=4, revision=0, model="", table=0):
        self._table = ServerTable(table)
        self.out.put(Response(opened=learning_service_pb2.StreamOpened(next_offset=next_offset, passes=passes, model_uid=uid, epoch=epoch, revision=revision,
                                                                       model=model, name_table_size=table)))
        return self

    def answer(self, examples=0, mistakes=0, updates=0, duplicates=0, ack=-1, revision=0, epoch=4, passed=None, row_errors=(), error=None, number=None, writer=""):
        """Answers the oldest message. passed: the number of the pass, whose summary counts 100 examples. row_errors: (row, reason). error:
        of status_of."""
        result = Result(message_number=self._answered if number is None else number, examples=examples, mistakes=mistakes,
                        updates=updates, duplicates=duplicates, acknowledged_offset=ack, revision=revision, epoch=epoch)
        for index, reason in row_errors:
            result.row_errors.add(row=index, status=status_of("INVALID_ARGUMENT", reason))
        if error is not None:
            result.error.CopyFrom(error)
        if passed:
            result.completed_pass.number, result.completed_pass.examples = passed, 100
        if number is None:
            self._answered += 1
        self.out.put(Response(results=[result], writer_address=writer))

    def learn(self, first, keys, **more):
        """The next message has these rows, which are learned."""
        self.expect(first, keys)
        self.answer(examples=len(keys), ack=first + len(keys) - 1, **more)

    def unanswered(self):
        return self.received - self._answered

    def fail(self, code, reason="", retry_after=None):
        """Ends the stream with an error."""
        self.out.put(status_of(code, reason, retry_after))

    def end(self):
        """Ends the stream with OK."""
        self.out.put(None)

    def responses(self):
        """For gRPC's thread."""
        while isinstance(item := self.out.get(), Response):
            yield item
        if item is not None:
            if item.details:
                self._context.set_trailing_metadata([(DETAILS, item.SerializeToString())])
            self._context.abort(next(code for code in grpc.StatusCode if code.value[0] == item.code), item.message)

    def _rows(self, columns):
        labels = list(columns.labels)
        if columns.HasField("stream_names") or columns.HasField("feature_names"):
            return [{"label": label, "features": [list(pair) for pair in sorted(features.items(), key=lambda pair: pair[1])]}
                    for label, features in zip(labels, self._table.rows(columns))]
        ends = list(columns.row_ends)
        values = list(columns.values) or [1.0] * len(columns.indices)
        assert len(ends) == len(labels), "a label for each row"
        return [{"label": label, "features": [list(pair) for pair in zip(columns.indices[begin:end], values[begin:end])]}
                for label, begin, end in zip(labels, [0, *ends], ends)]


class _Service(learning_service_pb2_grpc.LearningServiceServicer):
    def __init__(self, events, place):
        self._events, self._place = events, place

    def LearnStream(self, requests, context):
        stream = Stream(self._place, requests, context)
        self._events.put(stream)
        return stream.responses()


class _Models(model_service_pb2_grpc.ModelServiceServicer):
    """For clients that ask for the names of the labels: there are none."""

    def GetModel(self, request, context):
        return model_pb2.Model(name=request.name)


class ScriptedServer:
    """Two addresses, as of a fleet's servers: `first`, whose connections can be cut, and `second`. Streams, and what else the test puts into
    `events`, are taken from there in their order."""

    def __init__(self):
        self.events = queue.SimpleQueue()
        self._servers, ports = [], []
        for place in ("first", "second"):
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
            learning_service_pb2_grpc.add_LearningServiceServicer_to_server(_Service(self.events, place), server)
            model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Models(), server)
            ports.append(server.add_insecure_port("127.0.0.1:0"))
            server.start()
            self._servers.append(server)
        self._proxies = Proxies()
        self._proxy = self._proxies.add(ports[0])
        self.first, self.second = self._proxy.address, f"127.0.0.1:{ports[1]}"

    def accept(self, place="first"):
        """The client's next stream."""
        stream = self.events.get()
        assert isinstance(stream, Stream), f"expected a stream, but the client has ended: {stream}"
        assert stream.place == place, f"expected a stream to the {place} server"
        return stream

    def cut(self):
        """Resets all connections, as a machine that is lost does: what is in flight is lost."""
        self._proxy.heal(broken=True)

    def stop(self):
        for server in self._servers:
            server.stop(None)
        self._proxies.close()
