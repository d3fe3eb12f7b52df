"""Models as files by Client and AsyncClient of the installed package, against a real server and beside perceptronctl.

    ENVIRONMENT/bin/python python_files_test.py PERCEPTROND PERCEPTRONCTL
"""

import asyncio
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import grpc
import numpy
import scipy.sparse

from perceptrond import AsyncClient, Client, PerceptrondError

PERCEPTRONCTL = sys.argv.pop(2)
from python_fixture import ServedTest  # noqa: E402: it takes the server's path from the command line

# Weights of 8 MiB: more than is on its way at once.
WIDE = 1 << 21


class Terminal(io.StringIO):
    def isatty(self):
        return True


class FilesTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.create("spam", features="named", labels=["ham", "spam"])
        cls.client.learn("spam", [{"free": 1}, {"lunch": 1}], ["spam", "ham"], passes=3, producer="file")
        cls.client.create("wide", features=WIDE)
        values = numpy.arange(1, WIDE + 1, dtype=numpy.float32)
        rows = scipy.sparse.csr_matrix((values, numpy.arange(WIDE), [0, WIDE // 2, WIDE]), shape=(2, WIDE))
        assert cls.client.learn("wide", rows, [1, -1], batch=1).totals.updates == 2

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(self.client.delete, "made", missing_ok=True)

    def perceptronctl(self, *arguments):
        subprocess.run([PERCEPTRONCTL, "--server", self.server.address, "--quiet", *arguments], check=True)

    def exported(self, model="spam"):
        file = io.BytesIO()
        self.client.history.export_model(model, file)
        return file.getvalue()

    def assert_same(self, made, model):
        self.assertEqual(self.client.weights(made), self.client.weights(model))
        figures = [(report.examples, report.mistakes, report.updates) for report in map(self.client.report, (made, model))]
        self.assertEqual(figures[0], figures[1])

    def assert_is_file_of(self, model, file):
        """Bytes differ with the time of the export: a server that imports them checks them."""
        self.client.history.import_model("checked", io.BytesIO(file))
        self.assert_same("checked", model)
        self.client.delete("checked")

    def assert_nothing_is_left(self):
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(self.models(), ["spam", "wide"])

    def assert_fails(self, reason, call, *arguments):
        with self.assertRaises(PerceptrondError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.reason, reason)


class FormatTest(FilesTest):
    def test_the_command_line_imports_what_was_exported_and_exports_what_is_imported(self):
        for model in ("spam", "wide"):
            ours, theirs = self.folder / f"ours-{model}", self.folder / f"theirs-{model}"
            self.assertEqual(self.client.history.export_model(model, ours), ours.stat().st_size)
            self.perceptronctl("import", "made", ours)
            self.assert_same("made", model)
            self.client.delete("made")
            self.perceptronctl("export", model, theirs)
            self.assertEqual(ours.stat().st_mode, theirs.stat().st_mode)
            self.assertEqual(self.client.history.import_model("made", str(theirs)).name, "models/made")
            self.assert_same("made", model)
            self.client.delete("made")

    def test_an_imported_model_goes_on_where_its_producers_were(self):
        self.client.history.import_model("made", io.BytesIO(self.exported()))
        self.assertEqual(self.client.learn("made", [{"free": 1}, {"lunch": 1}], ["spam", "ham"], passes=3, producer="file").totals.examples, 0)


class ErrorTest(FilesTest):
    def test_a_file_that_is_there_stays_as_it_is(self):
        file = self.folder / "spam.model"
        file.write_text("kept")
        with self.assertRaisesRegex(FileExistsError, "spam.model exists: give the path of a new file"):
            self.client.history.export_model("spam", file)
        self.assertEqual(file.read_text(), "kept")

    def test_an_export_that_fails_leaves_no_file(self):
        self.assert_fails("MODEL_NOT_FOUND", self.client.history.export_model, "nothing", self.folder / "file")
        self.assert_nothing_is_left()

    def test_an_import_that_fails_leaves_no_model(self):
        whole = self.exported("wide")
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        for file in (whole[:-1], whole[:100], b"", bytes(damaged), whole + b"x"):
            self.assert_fails("BAD_MODEL_FILE", self.client.history.import_model, "made", io.BytesIO(file))
            self.assert_nothing_is_left()
        self.assert_fails("MODEL_EXISTS", self.client.history.import_model, "spam", io.BytesIO(whole))
        with self.assertRaises(FileNotFoundError):
            self.client.history.import_model("made", self.folder / "none")

    def test_what_the_file_or_the_callback_raises_ends_the_call(self):
        def fail(now):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.client.history.export_model("wide", self.folder / "file", progress=fail)
        with self.assertRaisesRegex(KeyError, "mine"):
            self.client.history.import_model("made", io.BytesIO(self.exported()), progress=fail)
        with self.assertRaisesRegex(TypeError, "returned str; expected bytes: open it in binary mode"):
            self.client.history.import_model("made", io.StringIO("text"))
        file = mock.Mock(spec=["read"], read=mock.Mock(side_effect=[self.exported("wide")[:1000], OSError("the disk is gone")]))
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            self.client.history.import_model("made", file)
        self.assert_nothing_is_left()


class StreamTest(FilesTest):
    def test_a_pipe_is_written_and_read(self):
        expected = self.exported("wide")
        for write in (lambda file: self.client.history.export_model("wide", file), lambda file: file.write(expected)):
            reading, writing = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb")))

            def run():
                with writing:
                    write(writing)

            thread = threading.Thread(target=run)
            thread.start()
            with reading:
                self.client.history.import_model("made", reading)
            thread.join()
            self.assert_same("made", "wide")
            self.client.delete("made")

    def test_a_file_object_is_used_from_where_it_is(self):
        file = io.BytesIO(b"before")
        file.seek(6)
        size = self.client.history.export_model("spam", file)
        self.assertEqual((file.getvalue()[:6], file.tell()), (b"before", 6 + size))
        file.seek(6)
        seen = []
        self.client.history.import_model("made", file, progress=seen.append)
        self.assertEqual(seen[-1], (size, size, True))

    def test_an_object_that_takes_a_part_gets_the_rest(self):
        taken = bytearray()

        def write(piece):
            taken.extend(piece[:100])
            return min(len(piece), 100)

        self.client.history.export_model("spam", mock.Mock(spec=["write"], write=write))
        self.assert_is_file_of("spam", bytes(taken))


class RepeatTest(FilesTest):
    def restart_once(self):
        """A callback in the middle of whose transfer the server is killed."""
        killed = []

        def now(transfer):
            if not killed:
                killed.append(transfer)
                self.restart_server()
        return now

    def test_a_file_begins_again_when_the_server_was_killed(self):
        file = self.folder / "file"
        self.client.history.export_model("wide", file, progress=self.restart_once())
        self.client.history.import_model("made", file, progress=self.restart_once())
        self.assert_same("made", "wide")
        in_memory = io.BytesIO(b"before")
        in_memory.seek(6)
        self.client.history.export_model("wide", in_memory, progress=self.restart_once())
        self.assertEqual(in_memory.getvalue()[:6], b"before")
        self.assert_is_file_of("wide", in_memory.getvalue()[6:])

    def test_a_pipe_that_has_moved_is_an_error(self):
        whole = io.BytesIO(self.exported("wide"))
        for call in (lambda: self.client.history.import_model("made", mock.Mock(spec=["read"], read=whole.read), progress=self.restart_once()),
                     lambda: self.client.history.export_model("wide", mock.Mock(spec=["write"], write=lambda piece: None), progress=self.restart_once())):
            with self.assertRaises(PerceptrondError) as raised:
                call()
            self.assertIs(raised.exception.code, grpc.StatusCode.UNAVAILABLE)
        self.assert_nothing_is_left()


class ProgressTest(FilesTest):
    def test_a_callback_sees_how_far_it_is(self):
        seen = []
        file = self.folder / "file"
        size = self.client.history.export_model("wide", file, progress=seen.append)
        self.assertGreater(len(seen), 8)
        self.assertEqual([now.bytes for now in seen], sorted(now.bytes for now in seen))
        self.assertEqual({(now.total, now.complete) for now in seen[:-1]}, {(None, False)})
        self.assertEqual(seen[-1], (size, size, True))
        seen.clear()
        self.client.history.import_model("made", file, progress=seen.append)
        self.assertEqual({(now.total, now.complete) for now in seen[:-1]}, {(size, False)})
        self.assertEqual(seen[-1], (size, size, True))

    def test_true_is_a_line_on_standard_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            size = self.client.history.export_model("wide", self.folder / "file", progress=True)
        self.assertEqual(said.getvalue(), f"{size} bytes\n")
        with contextlib.redirect_stderr(Terminal()) as said:
            self.client.history.import_model("made", self.folder / "file", progress=True)
        self.assertRegex(said.getvalue(), rf"^\r\x1b\[K0\.1 of {size / 1e6:.1f} MB.*\r\x1b\[K{size} bytes\n$")


class AsyncTest(FilesTest):
    def test_an_async_client_writes_and_reads_the_same_files(self):
        path, seen = self.folder / "file", []

        async def run():
            async with AsyncClient() as client:
                history = client.history
                self.assertEqual(await history.export_model("wide", path, progress=seen.append), path.stat().st_size)
                self.assertEqual(seen[-1], (path.stat().st_size, path.stat().st_size, True))
                self.assertEqual((await history.import_model("made", path)).name, "models/made")
                for arguments, error in ((("made", io.BytesIO(path.read_bytes()[:-1])), "BAD_MODEL_FILE|MODEL_EXISTS"), (("other", io.BytesIO(path.read_bytes()[:-1])), "BAD_MODEL_FILE")):
                    with self.assertRaisesRegex(PerceptrondError, error):
                        await history.import_model(*arguments)
                with self.assertRaisesRegex(TypeError, "expected bytes"):
                    await history.import_model("other", io.StringIO("text"))
                with self.assertRaisesRegex(PerceptrondError, "MODEL_NOT_FOUND"):
                    await history.export_model("nothing", self.folder / "other")

        asyncio.run(run())
        self.assert_same("made", "wide")
        self.assertEqual((list(self.folder.iterdir()), self.models()), ([path], ["made", "spam", "wide"]))

    def test_calls_of_a_trace_are_files_too(self):
        with mock.patch.dict(os.environ, TRACEPARENT="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
            file = io.BytesIO()
            with Client() as client:
                client.history.export_model("wide", file)
                file.seek(0)
                client.history.import_model("made", file)
                client.delete("made")

            async def run():
                file = io.BytesIO()
                async with AsyncClient() as client:
                    await client.history.export_model("wide", file)
                    file.seek(0)
                    await client.history.import_model("made", file)
                    with self.assertRaisesRegex(PerceptrondError, "BAD_MODEL_FILE"):
                        await client.history.import_model("other", io.BytesIO(b"x" * WIDE))

            asyncio.run(run())
        self.assert_same("made", "wide")


if __name__ == "__main__":
    unittest.main()
