"""The promises of the protos that a client can observe, checked against everything that is answered. Each check notes the
violation and goes on; a soak fails if there is any."""

import collections
import threading
import time

from perceptrond.google_rpc import error_details_pb2

from perceptrond import errors


class Promises:
    """Threads: any."""

    def __init__(self, server):
        """server: its epoch counts starts and ends, odd while it serves; calls may fail when it ends. changed: when it did last.
        serving: set while it serves."""
        self._server = server
        self._lock = threading.Lock()
        self.violations, self.violated = [], threading.Event()
        # How often each promise was checked.
        self.checks = collections.Counter()
        self._answers = {}
        self._revisions = {}
        self._claims = {}

    def check(self, promise, holds, **facts):
        with self._lock:
            self.checks[promise] += 1
            if not holds:
                self.violations.append({"promise": promise, **facts})
                self.violated.set()
                print(f"VIOLATED: {promise}: {facts}", flush=True)
        return holds

    def epoch(self):
        return self._server.epoch

    def _may_fail(self, epoch):
        """A call that began in this epoch may have met the end of the server."""
        return epoch % 2 == 0 or self.epoch() != epoch

    def await_server(self):
        """Waits until the server serves again."""
        self._server.serving.wait()

    # ---- Learning ----

    def learned(self, stream, result, first_offset, rows, sole):
        """A LearnResult for `rows` examples. stream: has model, producer, acknowledged and revision of earlier ones. sole: no
        one else changes the model, so that every revision between is one of this producer."""
        facts = {"model": stream.model, "producer": stream.producer, "first_offset": first_offset, "rows": rows}
        self.check("every example is evaluated, a duplicate or an error", result.examples + result.duplicates + len(result.row_errors) == rows,
                   **facts, examples=result.examples, duplicates=result.duplicates)
        end = max(stream.acknowledged, first_offset + rows - 1)
        self.check("the acknowledged offset is the position less 1", result.acknowledged_offset == end, **facts, acknowledged=result.acknowledged_offset)
        stream.acknowledged = result.acknowledged_offset
        self.check("revisions of a stream do not descend", result.revision >= stream.revision, **facts, revision=result.revision, before=stream.revision)
        updates = list(result.update_revisions)
        self.check("updates are counted", result.updates == len(updates) == len(result.updated_rows), **facts)
        self.check("rows and revisions of updates ascend within the message",
                   _ascends(list(result.updated_rows)) and _ascends(updates) and all(stream.revision < one <= result.revision for one in updates),
                   **facts, updates=updates, revision=result.revision, before=stream.revision)
        if sole and result.duplicates == 0 and not stream.steps:
            expected = list(range(stream.revision + 1, stream.revision + 1 + len(updates)))
            self.check("a sole producer's updates are all revisions", updates == expected and result.revision == stream.revision + len(updates),
                       **facts, updates=updates, before=stream.revision)
        for row, revision in zip(result.updated_rows, updates):
            self._claim(stream, revision, first_offset + row)
        stream.revision = max(stream.revision, result.revision)
        self.reached(stream.model, result.revision)

    def _claim(self, stream, revision, offset):
        """A revision is one update of one example, also after the server ended and started."""
        with self._lock:
            claim = self._claims.setdefault(stream.model, {})
            owner = claim.setdefault(revision, (stream.producer, offset))
            # Ones long ago are forgotten.
            if len(claim) > 200_000:
                for old in list(claim)[:100_000]:
                    del claim[old]
        self.check("a revision is one example's update", owner == (stream.producer, offset), model=stream.model, revision=revision, one=list(owner),
                   other=[stream.producer, offset])

    def reached(self, model, revision):
        """A durable answer had this revision."""
        with self._lock:
            self._revisions[model] = max(self._revisions.get(model, 0), revision)

    def durable_revision(self, model):
        with self._lock:
            return self._revisions.get(model, 0)

    def start_again(self, model):
        """Another model has the name."""
        with self._lock:
            self._revisions.pop(model, None)
            self._claims.pop(model, None)

    # ---- Predicting ----

    def predicted(self, model, probe, response, min_revision):
        self.check("min_revision is honoured", response.revision >= min_revision, model=model, revision=response.revision, asked=min_revision)
        # A stream names the model in its first answer alone.
        unnamed = type(response)()
        unnamed.CopyFrom(response)
        unnamed.ClearField("model")
        answer = hash(unnamed.SerializeToString())
        key = (model, probe, response.revision, response.age)
        with self._lock:
            before = self._answers.setdefault(key, answer)
            if len(self._answers) > 400_000:
                for old in list(self._answers)[:200_000]:
                    del self._answers[old]
        self.check("one revision gives one answer, bit for bit", before == answer, model=model, revision=response.revision, age=response.age)

    # ---- Errors ----

    def failed(self, call, error, epoch, expected=()):
        """A call that began in this epoch failed. Returns whether to try it again."""
        status = errors.status_of(error)
        info = errors.error_info(status)
        code = error.code().name
        if info is None:
            # gRPC's own, where no server answers; a call just after the start may have been given to the connection before it.
            stale = time.monotonic() - self._server.changed < 2
            return self.check("a connection is lost only with the server", code in ("UNAVAILABLE", "CANCELLED") and (stale or self._may_fail(epoch)),
                              call=call, code=code, message=status.message)
        if info.reason in expected:
            return False
        retry = error_details_pb2.RetryInfo()
        self.check("errors that may pass have RetryInfo", code != "UNAVAILABLE" or any(d.Is(retry.DESCRIPTOR) for d in status.details), call=call,
                   reason=info.reason)
        return self.check("no other error than the end of the server", info.reason == "DRAINING" and self._may_fail(epoch), call=call, code=code,
                          reason=info.reason, message=status.message)


def _ascends(numbers):
    return all(a < b for a, b in zip(numbers, numbers[1:]))
