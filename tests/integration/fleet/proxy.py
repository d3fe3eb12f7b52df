"""TCP connections that fail on purpose: proxies on the loopback address that forward, hold back or delay."""

import asyncio
import contextlib
import socket
import struct
import threading

CHUNK = 1 << 16
# At most so many are on their way in one direction of a delayed connection.
MOST_CHUNKS = 64


class Proxies:
    """Any number of proxies, served by one thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def add(self, target):
        """A proxy to this port of the loopback address, or this Unix socket."""
        return self.run(self._add(target))

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def _add(self, target):
        proxy = Proxy(self, target)
        proxy.server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        proxy.address = f"127.0.0.1:{proxy.server.sockets[0].getsockname()[1]}"
        return proxy

    def close(self):
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_all(self):
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Proxy:
    """One listening port. Methods are called by any thread but that of the proxies; a cut holds on return."""

    def __init__(self, proxies, target):
        self._proxies, self._target = proxies, target
        self.address, self.server, self._delay = "", None, 0
        # Set while bytes to the target, and those from it, are forwarded.
        self._ways = asyncio.Event(), asyncio.Event()
        # The next bytes of each way that end their connection.
        self._ends = [None, None]
        self._connections = set()
        for way in self._ways:
            way.set()

    def cut(self, to=True, back=True):
        """Forwards nothing to the target, or back, nor an end, until it is healed: as if packets were lost."""
        self._proxies.run(self._set(not to, not back))

    def end_before(self, to=None, back=None):
        """The next connection with these bytes on their way to the target, or back, is reset before they arrive."""
        self._ends = [to, back]

    @property
    def has_ended(self):
        return self._ends == [None, None]

    def delay(self, seconds):
        """Each chunk of bytes arrives later by this, in both directions."""
        self._delay = seconds

    def heal(self, broken=False):
        """What was held back arrives, or with `broken` is lost with all connections, as if they had been given up."""
        self._delay, self._ends = 0, [None, None]
        self._proxies.run(self._heal(broken))

    async def _heal(self, broken):
        if broken:
            connections = list(self._connections)
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
        await self._set(True, True)

    async def _set(self, *whole):
        for way, is_whole in zip(self._ways, whole):
            way.set() if is_whole else way.clear()

    async def serve(self, reader, writer):
        task = asyncio.current_task()
        self._connections.add(task)
        writers, tasks = [writer], []
        try:
            await self._ways[0].wait()
            far_reader, far_writer = await self._connect()
            writers.append(far_writer)
            for way, (source, target) in enumerate(((reader, far_writer), (far_reader, writer))):
                chunks = asyncio.Queue(MOST_CHUNKS)
                tasks += [asyncio.ensure_future(self._receive(source, chunks)), asyncio.ensure_future(self._send(chunks, target, way))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.remove(task)
            for one in tasks:
                one.cancel()
            for one in writers:
                reset(one)

    def _connect(self):
        if isinstance(self._target, int):
            return asyncio.open_connection("127.0.0.1", self._target)
        return asyncio.open_unix_connection(self._target)

    async def _receive(self, reader, chunks):
        data = True
        while data:
            data = await reader.read(CHUNK)
            await chunks.put((self._proxies.loop.time() + self._delay, data))

    async def _send(self, chunks, writer, way):
        """Passes on what comes, each chunk at its time, and the end last."""
        while True:
            due, data = await chunks.get()
            left = due - self._proxies.loop.time()
            if left > 0:
                await asyncio.sleep(left)
            await self._ways[way].wait()
            end = data.find(self._ends[way]) if self._ends[way] is not None else -1
            if end >= 0:
                self._ends[way] = None
            writer.write(data if end < 0 else data[:end])
            await writer.drain()
            if end >= 0 or not data:
                # Either end is done: the protocols here have no half-closed connections.
                raise ConnectionResetError


def reset(writer):
    """Closes a connection as if the other machine had no such one."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
