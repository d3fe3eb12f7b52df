"""TCP connections that fail on purpose: proxies on the loopback address that forward, cut, hold back or delay."""

import asyncio
import collections
import contextlib
import os
import socket
import struct
import threading

CHUNK = 1 << 16
# What may be on its way in one direction of a delayed connection.
MOST_CHUNKS = 64
# A state of /proc/net/tcp.
LISTEN = "0A"


class Faults:
    """What a proxy does to connections."""

    # Closes them with a reset, and new ones at once.
    CUT = "cut"
    # Accepts them and forwards nothing, nor an end, until it is healed: as if packets were lost.
    BLACK_HOLE = "black hole"


class Proxies:
    """Any number of proxies, served by one thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def add(self, target):
        """A proxy to this port of the loopback address."""
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
    """One listening port. Methods are called by any thread but that of the proxies; the fault holds on return."""

    def __init__(self, proxies, target):
        self._proxies, self._target = proxies, target
        self.address, self.server = "", None
        self._fault, self._delay, self._pid = None, 0, None
        self._healed = asyncio.Event()
        self._healed.set()
        # Open connections: the port of who connected, and the writers of both ends.
        self._connections = {}

    def fail(self, fault, pid=None):
        """Begins a fault; of the connections of one process only, with `pid`."""
        self._proxies.run(self._fail(fault, pid))

    def delay(self, seconds):
        """Each chunk of bytes arrives later by this, in both directions."""
        self._delay = seconds

    def heal(self):
        self._delay = 0
        self._proxies.run(self._heal())

    async def _fail(self, fault, pid):
        self._fault, self._pid = fault, pid
        self._healed.clear()
        if fault == Faults.CUT:
            for port, writers in list(self._connections.items()):
                if self._is_affected(port):
                    for writer in writers:
                        reset(writer)

    async def _heal(self):
        self._fault, self._pid = None, None
        self._healed.set()

    def _is_affected(self, port):
        return self._fault is not None and (self._pid is None or owns(self._pid, port))

    async def serve(self, reader, writer):
        port = writer.get_extra_info("peername")[1]
        writers = self._connections[port] = [writer]
        try:
            if self._is_affected(port):
                if self._fault == Faults.CUT:
                    return
                await self._healed.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(far_writer)
            ends = [asyncio.ensure_future(self._pump(port, *ends)) for ends in ((reader, far_writer), (far_reader, writer))]
            await asyncio.wait(ends, return_when=asyncio.FIRST_EXCEPTION)
            for end in ends:
                end.cancel()
        except OSError:
            pass
        finally:
            self._connections.pop(port, None)
            for one in writers:
                reset(one)

    async def _pump(self, port, reader, writer):
        """Passes on what comes, each chunk at its time, and the end last."""
        chunks, room = asyncio.Queue(MOST_CHUNKS), None
        sender = asyncio.ensure_future(self._send(port, chunks, writer))
        try:
            while room is None:
                data = await reader.read(CHUNK)
                await chunks.put((self._proxies.loop.time() + self._delay, data))
                if not data:
                    return await sender
        finally:
            sender.cancel()

    async def _send(self, port, chunks, writer):
        while True:
            due, data = await chunks.get()
            left = due - self._proxies.loop.time()
            if left > 0:
                await asyncio.sleep(left)
            while self._is_affected(port):
                await self._healed.wait()
            if not data:
                # Either end is done: the protocols here have no half-closed connections.
                raise ConnectionResetError
            writer.write(data)
            await writer.drain()


def reset(writer):
    """Closes a connection as if the other machine had no such one."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def owns(pid, port):
    """Whether a process has the socket with this local port of an established connection."""
    inodes = set()
    # A socket for IPv6 may connect to an address of IPv4.
    for protocol in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{protocol}") as table:
            for line in list(table)[1:]:
                fields = line.split()
                if int(fields[1].partition(":")[2], 16) == port and fields[3] != LISTEN:
                    inodes.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") in inodes:
                    return True
    return False
