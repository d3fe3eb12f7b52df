"""Checks the recorded history of a model's producers against the servers, and against what each nats-server has in its files."""

import re
import subprocess

from cluster import PARTITIONS, eventually
from clients import ROWS, DIMENSION, updates_in, weights_after
from perceptrond.columns import pack
from perceptrond.rows import Row
from perceptrond.v1 import model_service_pb2, prediction_service_pb2
from processes import wait_for
from replicas import BeyondRepair, Replicas


def require(condition, what, *facts):
    if not condition:
        raise AssertionError(f"{what}: {facts}")


class Outcome:
    """What a model became, for comparing it later."""

    def __init__(self, revision, weights, scores):
        self.revision, self.weights, self.scores = revision, weights, scores

    def __eq__(self, other):
        return (self.revision, self.weights, self.scores) == (other.revision, other.weights, other.scores)


def check_history(producers):
    """Nothing that was acknowledged was taken back, and no update is of two revisions or two updates of one."""
    by_revision = {}
    for producer in producers:
        acknowledged, revision, by_offset = -1, 0, {}
        for _, server, next_offset, opened_revision, known, known_revision in producer.opened:
            require(next_offset > known and opened_revision >= known_revision, f"{producer.name} was taken back by server {server}", next_offset, known,
                    opened_revision, known_revision)
        for answer in producer.answers:
            require(answer.acknowledged >= answer.first + answer.rows - 1, f"{producer.name}: an answer does not acknowledge its rows", answer)
            require(answer.revision >= revision or answer.first <= acknowledged, f"{producer.name}: revisions go back", revision, answer)
            acknowledged, revision = max(acknowledged, answer.acknowledged), max(revision, answer.revision)
            for offset, update in answer.updates:
                require(offset not in by_offset, f"{producer.name} learned a row twice", offset, by_offset.get(offset), update)
                require(update not in by_revision, "two updates have one revision", update, by_revision.get(update), (producer.number, offset))
                by_offset[offset], by_revision[update] = update, (producer.number, offset)
            expected = [offset for offset in updates_in(answer.first // ROWS + 1) if offset >= answer.first]
            if answer.duplicates == 0:
                require([offset for offset, _ in answer.updates] == expected, f"{producer.name}: other rows were updates", expected, answer)
    return by_revision


def score_all(stubs, model, revision):
    """The scores of each feature alone, which are the weights, of this server's copy."""
    request = prediction_service_pb2.PredictRequest(model=f"models/{model}", min_revision=revision, columns=pack([Row({i: 1.0}, None) for i in range(DIMENSION)]))
    answer = eventually(f"{model} predicts", lambda: stubs.predictions.Predict(request, timeout=30))
    epoch, answer.epoch = answer.epoch, 0
    return answer.revision, answer.SerializeToString(), list(answer.scores), epoch


def get_model(stubs, model):
    request = model_service_pb2.GetModelRequest(name=f"models/{model}", view=model_service_pb2.MODEL_VIEW_WEIGHTS)
    return eventually(f"{model} is read", lambda: stubs.models.GetModel(request, timeout=30))


def check_servers(fleet, model, producers, probe=None):
    """All servers have the model that the producers' rows make, once each; and the same bits of it. `probe`: a feature that one more
    row had."""
    messages = [producer.messages for producer in producers]
    probes = 0 if probe is None else 1
    expected = sum(len(updates_in(count)) for count in messages) + probes
    weights = weights_after(messages)
    if probe is not None:
        weights[probe] = 1.0
    models = [get_model(stubs, model) for stubs in fleet.stubs]
    require({found.revision for found in models} == {expected}, "the revision is not the number of updates that were sent", [found.revision for found in models],
            expected, messages)
    require(len({found.weights.SerializeToString(deterministic=True) for found in models}) == 1, "servers return different weights")
    answers = [score_all(stubs, model, expected) for stubs in fleet.stubs]
    require(len({answer[1] for answer in answers}) == 1, "copies differ", answers)
    # A copy may have the last update before it knows of a take-over since.
    wait_for("servers know the same epoch", lambda: len({score_all(stubs, model, expected)[3] for stubs in fleet.stubs}) == 1)
    require(answers[0][2] == weights, "the weights are not those of the rows", answers[0][2], weights)
    sent = ROWS * sum(messages) + probes
    examples = models[0].report.examples
    require(examples <= sent, "rows were counted twice", examples, sent)
    return Outcome(expected, models[0].weights.SerializeToString(deterministic=True), answers[0][2]), sent - examples, sent


# A nats-server that leads a stream while it is parted from the others, or killed, may keep a message that no other has, at the number
# of one that a majority has: nats-server's issue 5957, until 2.10.22.
NATS_ISSUE, FIRST_WITHOUT = "nats-server issue 5957", (2, 10, 22)


def nats_version():
    said = subprocess.run(["nats-server", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.search(r"(\d+)\.(\d+)\.(\d+)", said).groups()))


def require_issue(may_diverge, what, *facts):
    """What nothing but that issue explains, where NATS itself was disturbed."""
    version = nats_version()
    require(may_diverge and version < FIRST_WITHOUT, what, version, *facts)
    print(f"NATS {version}: {what}, {NATS_ISSUE}: {facts}", flush=True)


def repair(replicas, may_diverge):
    if replicas.divergent:
        require_issue(may_diverge, "a replica differs from the two others", replicas.divergent)
        replicas.repair(PARTITIONS)


def beyond_repair(fleet, failure):
    """Whether a check failed since NATS, which was disturbed, has left replicas that cannot be made equal. Prints which issue that is."""
    if not isinstance(failure, BeyondRepair):
        try:
            Replicas(fleet.nats).await_all_equal(PARTITIONS)
            return False
        except BeyondRepair as found:
            failure = found
    require_issue(True, str(failure))
    return True


def restart_ended(fleet, may_diverge):
    """Starts servers that ended because a leader that differs from the others lacked what they had read. Whether there were any."""
    ended = [i for i, program in enumerate(fleet.programs) if program.process.poll() is not None]
    for i in ended:
        log = fleet.programs[i].log.read_text()
        require("the journal has lost entries" in log, f"server {i} ended", log[-2000:])
        require_issue(may_diverge, f"server {i} ended, as the log lacked what it had read")
    if ended:
        replicas = Replicas(fleet.nats)
        replicas.await_all_equal(PARTITIONS)
        repair(replicas, may_diverge)
    for i in ended:
        fleet.start(i)
        fleet.await_serving(i)
    return bool(ended)


def check_log(fleet, model, producers, by_revision, may_diverge=False):
    """A majority of the replicas of the log has each update that was acknowledged, at its revision, once. The others are equal to it,
    unless NATS itself was disturbed and has that issue: then what differs is printed, and made equal."""
    replicas = Replicas(fleet.nats)
    model_id = replicas.model_id(model)
    entries, superseded = replicas.committed(model_id, PARTITIONS)
    log = {}
    for entry in entries:
        for record in entry.records:
            require(record.dense_width in (0, DIMENSION), "records have another form than is read here")
            for i, label in enumerate(record.labels):
                revision = record.first_revision + i
                require(revision not in log, "the log has a revision twice", revision)
                log[revision] = (feature_of(record, i), label)
    require(sorted(log) == list(range(1, len(log) + 1)), "the log has not each revision once", len(log))
    for revision, (number, offset) in by_revision.items():
        feature = 2 * number + (1 if offset == 1 else 0)
        require(log.get(revision, (None,))[0] == feature, "an acknowledged update is not in the log at its revision", revision, number, offset, log.get(revision))
    for producer in producers:
        labels = [label for _, (feature, label) in sorted(log.items()) if feature == 2 * producer.number]
        require(labels == [1 if k % 2 == 0 else -1 for k in range(len(labels))], f"{producer.name}: rows are missing or repeated", labels)
    if may_diverge:
        replicas.await_all_equal(PARTITIONS)
    repair(replicas, may_diverge)
    return len(log), superseded


def feature_of(record, i):
    """The only feature of a record's row."""
    if record.dense_width:
        values = record.values[i * record.dense_width : (i + 1) * record.dense_width]
        return next(feature for feature, value in enumerate(values) if value)
    return record.indices[record.row_ends[i - 1] if i else 0]
