"""A model of the server's side of a stream's table of names, as the proto describes it, for tests of the clients."""

import itertools


class ServerTable:
    """size: how many names it holds; 0: there is none."""

    def __init__(self, size):
        self.size = size
        self.names = []
        # Names of the last message.
        self.appended = []

    def rows(self, columns):
        """Reads the rows of the stream's next message, {name: value} each. Fails if the server would refuse any."""
        self.appended = []
        if columns.HasField("stream_names"):
            assert not columns.HasField("feature_names"), "feature_names or stream_names, not both"
            self.appended = names_of(columns.stream_names)
            assert len(self.appended) <= self.size, f"{len(self.appended)} names for a table of {self.size}"
            self.names += self.appended
            names, oldest = self.names, max(len(self.names) - self.size, 0)
        else:
            names, oldest = names_of(columns.feature_names), 0
            assert len(set(names)) == len(names), "names are distinct"
        ends = list(columns.row_ends)
        return [self._row(columns, names, oldest, begin, end) for begin, end in zip([0, *ends], ends)]

    def _row(self, columns, names, oldest, begin, end):
        indices = list(columns.indices[begin:end])
        assert all(a < b for a, b in zip(indices, indices[1:])), "indices ascend strictly"
        assert all(oldest <= index < len(names) for index in indices), "the table has the name"
        values = columns.values[begin:end] if columns.values else [1.0] * (end - begin)
        row = {names[index]: value for index, value in zip(indices, values)}
        assert len(row) == len(indices), "names do not repeat"
        return row


def names_of(column):
    text, ends = column.text.encode(), list(itertools.accumulate(column.lengths))
    assert (ends or [0])[-1] == len(text), "the lengths add up to the text"
    return [text[begin:end].decode() for begin, end in zip([0, *ends], ends)]
