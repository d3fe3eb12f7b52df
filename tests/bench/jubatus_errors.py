"""Errors of Jubatus's classifier on a file of texts, after one pass over another, by its method.

    jubatus_errors.py TRAIN TEST

Lines are `label<TAB>text`. Needs jubaclassifier on PATH and Debian's python3-msgpack, not Jubatus's client: the calls are
MessagePack-RPC. Features are the counts of lower-case words and a bias input.
"""

import json
import pathlib
import socket
import sys
import tempfile

import msgpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "deploy"))

from processes import Program, free_ports, logs_on_failure

# As in the configurations that Jubatus installs.
METHODS = {"perceptron": {}, "AROW": {"regularization_weight": 1.0}}
CONVERTER = {"string_types": {"words": {"method": "regexp", "pattern": r"[\w']+"}},
             "string_rules": [{"key": "*", "type": "words", "sample_weight": "tf", "global_weight": "bin"}],
             "num_rules": [{"key": "*", "type": "num"}]}


class Classifier(Program):
    """A jubaclassifier, and a connection to it. A context manager."""

    def __init__(self, directory, method):
        config = pathlib.Path(directory, f"{method}.json")
        config.write_text(json.dumps({"method": method, "parameter": METHODS[method], "converter": CONVERTER}))
        (port,) = free_ports(1)
        super().__init__(["jubaclassifier", "-f", config, "-b", "127.0.0.1", "-p", port, "-d", directory], pathlib.Path(directory, f"{method}.log"))
        try:
            self.said("RPC server startup")
            self._connection = socket.create_connection(("127.0.0.1", port))
        except BaseException:
            self.kill()
            raise
        self._answers = msgpack.Unpacker(self._connection.makefile("rb", 0))

    def call(self, method, rows):
        # A request is its type, number, method and arguments, of which the first is the cluster's name.
        self._connection.sendall(msgpack.packb([0, 0, method, ["", rows]]))
        _, _, error, result = next(self._answers)
        if error is not None:
            raise AssertionError(f"{method}: {error}")
        return result

    def kill(self):
        super().kill()
        if hasattr(self, "_connection"):
            self._connection.close()


def read(path):
    """Label and datum of each line; a datum has strings, numbers and binaries by key."""
    for line in pathlib.Path(path).read_text().rstrip("\n").split("\n"):
        label, text = line.split("\t")
        yield label, [[("text", text.lower())], [("bias", 1.0)], []]


def count_errors(classifier, train, test):
    classifier.call("train", list(read(train)))
    labels, rows = zip(*read(test))
    # An answer has all labels with their scores.
    answers = [max(scores, key=lambda one: one[1])[0] for scores in classifier.call("classify", rows)]
    return sum(answer != label for answer, label in zip(answers, labels))


def main():
    train, test = sys.argv[1:]
    errors = []
    for method in METHODS:
        with tempfile.TemporaryDirectory() as directory, logs_on_failure(directory), Classifier(directory, method) as classifier:
            errors.append(f"{method} {count_errors(classifier, train, test)}")
    print(f"errors: {', '.join(errors)}")


if __name__ == "__main__":
    main()
