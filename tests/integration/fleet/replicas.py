"""What each nats-server has of the fleet's streams, read from its own files: the replicas of a stream must have the same messages,
and these must be what servers said that they committed.

The files are nats-server 2.9's: msgs/N.blk has records of a little-endian header (length, sequence, time, length of the subject),
subject, headers, data, and a checksum of 8 bytes."""

import collections
import contextlib
import struct
from typing import NamedTuple

from journal_records import fleet_pb2
from processes import wait_for

FLEET = "perceptrond"
HEADER = struct.Struct("<IQqH")
CHECKSUM_BYTES = 8
HAS_HEADERS = 1 << 31
ERASED = 1 << 63


class BeyondRepair(AssertionError):
    """Each nats-server has another message at one number, so that no majority says which one counts; or one that lost its disk does not
    read the others'."""


class Message(NamedTuple):
    sequence: int
    subject: str
    headers: bytes
    data: bytes


def read_stream(store, stream):
    """The messages that one nats-server has in its files, by sequence number."""
    messages = {}
    for block in (store / "jetstream/$G/streams" / stream / "msgs").glob("*.blk"):
        content, at = block.read_bytes(), 0
        while at + HEADER.size <= len(content):
            length, sequence, _, subject_length = HEADER.unpack_from(content, at)
            size, end = length & ~HAS_HEADERS, at + (length & ~HAS_HEADERS)
            if size < HEADER.size + CHECKSUM_BYTES or end > len(content):
                break
            if sequence and not sequence & ERASED:
                body = content[at + HEADER.size : end - CHECKSUM_BYTES]
                subject, rest, headers = body[:subject_length].decode(), body[subject_length:], b""
                if length & HAS_HEADERS:
                    (header_length,) = struct.unpack_from("<I", rest)
                    headers, rest = rest[4 : 4 + header_length], rest[4 + header_length :]
                messages[sequence] = Message(sequence, subject, headers, rest)
            at = end
    return messages


class Replicas:
    """Of all nats-servers. Nothing is appended meanwhile."""

    def __init__(self, nats):
        self._nats = nats
        self._stores = [nats.store(i) for i in range(len(nats.programs))]
        # Sequence numbers at which one nats-server has another message than the others, by stream.
        self.divergent = {}
        # The nats-servers that have those.
        self.outvoted = set()

    def await_equal(self, stream, seconds=20):
        """The messages that all have. If they are not equal in the end, those that two have: the third is noted."""
        copies = []

        def equal():
            states = [(self._nats.streams(i) or {}).get(stream, {}).get("state") for i in range(len(self._stores))]
            if None in states or len({(state["first_seq"], state["last_seq"], state["messages"]) for state in states}) != 1:
                return False
            # Deleted messages are only marked, in memory.
            copies[:] = self._copies(stream, states[0]["first_seq"])
            return all(copy == copies[0] for copy in copies) and len(copies[0]) >= states[0]["messages"]

        with contextlib.suppress(AssertionError):
            wait_for(f"equal replicas of {stream}", equal, seconds)
            return [copies[0][number] for number in sorted(copies[0])]
        firsts = [(self._nats.streams(i) or {}).get(stream, {}).get("state", {}).get("first_seq", 0) for i in range(len(self._stores))]
        copies = self._copies(stream, max(firsts))
        agreed = {}
        for number in sorted(set().union(*copies)):
            message, count = collections.Counter(copy.get(number) for copy in copies).most_common(1)[0]
            if count < 2:
                raise BeyondRepair(f"no two replicas of {stream} agree on message {number}")
            if count < len(copies):
                self.divergent.setdefault(stream, set()).add(number)
                self.outvoted |= {i for i, copy in enumerate(copies) if copy.get(number) != message}
            if message is not None:
                agreed[number] = message
        assert self.divergent, f"replicas of {stream} say that they differ, and do not"
        return list(agreed.values())

    def await_all_equal(self, partitions, seconds=20):
        for stream in [f"{FLEET}-catalogue", *(f"{FLEET}-p{partition}" for partition in range(partitions))]:
            self.await_equal(stream, seconds)

    def _copies(self, stream, first):
        return [{number: message for number, message in read_stream(store, stream).items() if number >= first} for store in self._stores]

    def repair(self, partitions):
        """Empties the nats-servers that have other messages than the others, one after the other: they read the others' then."""
        for i in sorted(self.outvoted):
            self._nats.empty(i)
            again = Replicas(self._nats)
            # It reads all of them from the others, of which one may have to be elected first.
            again.await_all_equal(partitions, 60)
            if again.divergent:
                raise BeyondRepair(f"nats-server {i} was emptied, and still differs: {again.divergent}")

    def model_id(self, name):
        """The number of the newest model of this name."""
        found = 0
        for message in self.await_equal(f"{FLEET}-catalogue"):
            entry = fleet_pb2.CatalogueEntry.FromString(message.data)
            if entry.model.model.name in (name, f"models/{name}"):
                found = entry.model.id
        assert found, f"{name} is not in the catalogue"
        return found

    def stream_of(self, model_id, partitions):
        return f"{FLEET}-p{model_id % partitions}"

    def committed(self, model_id, partitions):
        """The model's entries that count, of all replicas alike: an entry counts if its epoch is that of the last take-over before
        it. Returns them, and how many of superseded writers there are."""
        entries, superseded, epoch = [], 0, 0
        for message in self.await_equal(self.stream_of(model_id, partitions)):
            entry = fleet_pb2.LogEntry.FromString(message.data)
            if message.subject.endswith(".writer"):
                epoch = message.sequence
                assert entry.take_over.epoch == epoch, f"take-over {message.sequence} says that it is {entry.take_over.epoch}"
            elif entry.epoch != epoch:
                superseded += 1
            elif message.subject.endswith(f".m.{model_id}"):
                assert b"Perceptrond-Part" not in message.headers, "entries in parts are not read here"
                entries.append(entry)
        return entries, superseded
