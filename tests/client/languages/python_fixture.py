"""The fixture of the Python package's tests: a server for each class of tests. The command line is TEST PERCEPTROND."""

import os
import pathlib
import signal
import sys
import tempfile
import unittest

from perceptrond import Client
from processes import Server, wait_for

PERCEPTROND = sys.argv.pop(1)


class ServedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.server = cls.enterClassContext(Server(PERCEPTROND, cls.directory / "store", cls.directory / "log"))
        # What estimators and clients use by default.
        os.environ["PERCEPTROND_SERVER"] = cls.server.address
        cls.client = cls.enterClassContext(Client())

    @classmethod
    def restart_server(cls):
        cls.server.process.send_signal(signal.SIGKILL)
        cls.server.process.wait()
        cls.server = cls.enterClassContext(Server(PERCEPTROND, cls.directory / "store", cls.directory / "log", address=cls.server.address))

    def models(self):
        return [model.name.removeprefix("models/") for model in self.client.list()]

    def create(self, name, **settings):
        """A model for the time of the test."""
        self.addCleanup(self.client.delete, name, missing_ok=True)
        return self.client.create(name, **settings)

    def await_models(self, *names):
        wait_for(f"the models are {names}", lambda: self.models() == sorted(names))


def texts_are_supported(client):
    """Whether the server has text spaces; the reason if it has not."""
    from perceptrond import PerceptrondError
    try:
        client.create("texts", features="text")
    except PerceptrondError as error:
        if error.reason != "UNSUPPORTED_FIELD":
            raise
        return error.reason
    client.delete("texts")
    return ""
