"""The promises that a client can observe. Each check notes the violation and goes on; a soak fails if there is any."""

import collections
import threading


class Promises:
    """Threads: any."""

    def __init__(self):
        self._lock = threading.Lock()
        self.violations, self.violated = [], threading.Event()
        # How often each promise was checked.
        self.checks = collections.Counter()
        self._answers, self._revisions = {}, {}

    def check(self, promise, holds, **facts):
        with self._lock:
            self.checks[promise] += 1
            if not holds:
                self.violations.append({"promise": promise, **facts})
                self.violated.set()
                print(f"VIOLATED: {promise}: {facts}", flush=True)

    def reached(self, model, revision):
        """A durable answer had this revision."""
        with self._lock:
            self._revisions[model] = max(self.durable_revision(model), revision)

    def durable_revision(self, model):
        return self._revisions.get(model, 0)

    def predicted(self, model, probe, response, min_revision):
        self.check("min_revision is honoured", response.revision >= min_revision, model=model, revision=response.revision, asked=min_revision)
        # A stream has the name and the limit in its first answer alone; each start of the server has another epoch.
        unnamed = type(response)()
        unnamed.CopyFrom(response)
        unnamed.ClearField("model")
        unnamed.ClearField("max_message_bytes")
        unnamed.ClearField("epoch")
        answer = hash(unnamed.SerializeToString())
        key = (model, probe, response.revision, response.age)
        with self._lock:
            before = self._answers.setdefault(key, answer)
            if len(self._answers) > 400_000:
                for old in list(self._answers)[:200_000]:
                    del self._answers[old]
        self.check("one revision gives one answer, bit for bit", before == answer, model=model, revision=response.revision, age=response.age)

    def reported(self, model):
        """What a model says of itself holds at any time."""
        report = model.report
        self.check("a report's counters fit together", report.mistakes <= report.examples and report.streak <= report.examples, model=model.name)
        self.check("the norm is within its bound", not report.HasField("bound_in_use") or report.bound_in_use <= 1, model=model.name,
                   bound_in_use=report.bound_in_use)
        self.check("updates are the revision", report.updates == model.revision, model=model.name, updates=report.updates, revision=model.revision)
