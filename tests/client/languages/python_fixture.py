"""The fixture of the Python package's tests: a server for each class of tests, and both clients under one body. The command line is
TEST PERCEPTROND."""

import asyncio
import inspect
import os
import pathlib
import sys
import tempfile
import unittest

from perceptrond import AsyncClient, Client
from processes import Server, wait_for

PERCEPTROND = sys.argv.pop(1)


class Waiting:
    """An AsyncClient, or a part of it, each method of which waits for its end: used as a Client is."""

    def __init__(self, of, loop):
        self._of, self._loop = of, loop

    def __getattr__(self, name):
        found = getattr(self._of, name)
        return (lambda *given, **more: self._wait(found(*given, **more))) if callable(found) else Waiting(found, self._loop)

    def _wait(self, made):
        if inspect.isasyncgen(made):
            return self._items(made)
        return self._loop.run_until_complete(made) if inspect.isawaitable(made) else made

    def _items(self, made):
        with_end = object()
        while (item := self._loop.run_until_complete(anext(made, with_end))) is not with_end:
            yield item


class ServedTest(unittest.TestCase):
    asynchronous = False

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.server = cls.start_server()
        # The default of estimators and clients.
        os.environ["PERCEPTROND_SERVER"] = cls.server.address
        # For the test's own calls; `tested` is the one that the test is about.
        cls.client = cls.tested = cls.enterClassContext(Client())
        if cls.asynchronous:
            loop = cls.enterClassContext(asyncio.Runner()).get_loop()
            cls.tested = Waiting(loop.run_until_complete(make_async_client()), loop)
            cls.addClassCleanup(cls.tested.close)

    @classmethod
    def start_server(cls):
        """On a socket whose name no other program takes, so that it can be started again."""
        return cls.enterClassContext(Server(PERCEPTROND, cls.directory / "store", cls.directory / "log", address=f"unix:{cls.directory}/socket"))

    @classmethod
    def restart_server(cls):
        cls.server.kill()
        cls.server = cls.start_server()

    def models(self):
        return [model.name.removeprefix("models/") for model in self.client.list()]

    def create(self, name, **settings):
        """A model for the time of the test."""
        self.addCleanup(self.client.delete, name, missing_ok=True)
        return self.client.create(name, **settings)

    def await_models(self, *names):
        wait_for(f"the models are {names}", lambda: self.models() == sorted(names))

    def assert_fails(self, reason, call, *arguments, **more):
        from perceptrond import PerceptrondError
        with self.assertRaises(PerceptrondError) as raised:
            call(*arguments, **more)
        self.assertEqual(raised.exception.reason, reason)


async def make_async_client():
    return AsyncClient()


def for_both_clients(cls):
    """The tests of the class, and the same for AsyncClient."""
    sys.modules[cls.__module__].__dict__[f"Async{cls.__name__}"] = type(f"Async{cls.__name__}", (cls,), {"asynchronous": True, "__module__": cls.__module__})
    return cls
