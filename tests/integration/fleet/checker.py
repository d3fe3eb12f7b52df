"""Checks the recorded history of a model's producers against the servers."""

from clients import DIMENSION, PROBE, ROWS, updates_in, weights_after
from cluster import eventually
from perceptrond.columns import pack
from perceptrond.rows import Row
from perceptrond.v1 import model_service_pb2, prediction_service_pb2


def require(condition, what, *facts):
    if not condition:
        raise AssertionError(f"{what}: {facts}")


def check_history(producers):
    """Nothing that was acknowledged was taken back, and no update is of two revisions or two updates of one."""
    by_revision = {}
    for producer in producers:
        acknowledged, revision, by_offset = -1, 0, {}
        for server, next_offset, opened_revision, known, known_revision in producer.opened:
            require(next_offset > known and opened_revision >= known_revision, f"{producer.name} was taken back by server {server}", next_offset, known,
                    opened_revision, known_revision)
        for answer in producer.answers:
            require(answer.acknowledged >= answer.first + ROWS - 1, f"{producer.name}: an answer does not acknowledge its rows", answer)
            require(answer.revision >= revision or answer.first <= acknowledged, f"{producer.name}: revisions go back", revision, answer)
            acknowledged, revision = max(acknowledged, answer.acknowledged), max(revision, answer.revision)
            for offset, update in answer.updates:
                require(offset not in by_offset, f"{producer.name} learned a row twice", offset, by_offset.get(offset), update)
                require(update not in by_revision, "two updates have one revision", update, by_revision.get(update), (producer.number, offset))
                by_offset[offset], by_revision[update] = update, (producer.number, offset)
            expected = [offset for offset in updates_in(answer.first // ROWS + 1) if offset >= answer.first]
            if answer.duplicates == 0:
                require([offset for offset, _ in answer.updates] == expected, f"{producer.name}: other rows were updates", expected, answer)


def current(model):
    """The model; None if the server says that it may be older than what its writer has."""
    return None if model.HasField("stale_since") else model


def look(fleet, stubs, model, revision):
    """The model as a server returns it, and the scores of each feature alone by its own copy, which are the weights."""
    get = model_service_pb2.GetModelRequest(name=f"models/{model}", view=model_service_pb2.MODEL_VIEW_WEIGHTS)
    found = eventually(f"{model} is read, as it is now", lambda: current(stubs.models.GetModel(get, timeout=30)), fleet.check_running)
    units = pack([Row({i: 1.0}, None) for i in range(DIMENSION)])
    predict = prediction_service_pb2.PredictRequest(model=f"models/{model}", min_revision=revision, columns=units)
    answer = eventually(f"{model} predicts", lambda: stubs.predictions.Predict(predict, timeout=30), fleet.check_running)
    return found.revision, found.weights.SerializeToString(deterministic=True), list(answer.scores), found.report.examples


def check_servers(fleet, model, producers, probes, more=0):
    """All servers have the model that the producers' rows, so many probes and so many more correct rows make, once each; and the same bits
    of it. Returns how many correct rows were not counted, and how many were sent."""
    messages = [producer.messages for producer in producers]
    expected, sent = probes + sum(len(updates_in(count)) for count in messages), probes + more + ROWS * sum(messages)
    weights_expected = weights_after(messages)
    weights_expected[PROBE] = float(probes)
    looks = [look(fleet, stubs, model, expected) for stubs in fleet.stubs]
    for revision, weights, scores, examples in looks:
        require(revision == expected, "the revision is not the number of updates that were sent", revision, expected, messages)
        require(weights == looks[0][1], "servers return different weights", model)
        require(scores == weights_expected, "the weights are not those of the rows", scores, weights_expected)
        require(examples <= sent, "rows were counted twice", examples, sent)
    return sent - looks[0][3], sent
