// Packed columns of the Node client: of rows, and of streams with a table of names, read by a model of the server's table.
//
//   node --test node_names_test.mjs

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

const load = (name) => import(new URL(`../../../client/node/lib/${name}`, import.meta.url));
const { pack } = await load('columns.mjs');
const { NameTable } = await load('name_table.mjs');
const { Window } = await load('window.mjs');

const row = (features, label = 1) => ({ features: new Map(features), label });
const ones = (...names) => row(names.map((name) => [name, 1]));

function namesOf({ text, lengths }) {
  let rest = Buffer.from(text);
  const names = lengths.map((length) => {
    const name = rest.subarray(0, length).toString();
    rest = rest.subarray(length);
    return name;
  });
  assert.equal(rest.length, 0, 'the lengths add up to the text');
  return names;
}

/** A model of the server's side of a stream's table of names, as the proto describes it. size 0: there is none. */
class ServerTable {
  names = [];
  // By the last message.
  appended = [];

  constructor(size) { this.size = size; }

  /** Reads the rows of the stream's next message as Maps. Fails if the server would refuse any. */
  rows({ streamNames, featureNames, rowEnds, indices, values }) {
    this.appended = [];
    if (streamNames) {
      assert.equal(featureNames, undefined);
      this.appended = namesOf(streamNames);
      assert.ok(this.appended.length <= this.size);
      this.names.push(...this.appended);
    }
    const names = streamNames ? this.names : namesOf(featureNames ?? { text: '', lengths: [] });
    const oldest = streamNames ? Math.max(names.length - this.size, 0) : 0;
    if (!streamNames) assert.equal(new Set(names).size, names.length, 'names are distinct');
    return rowEnds.map((end, i) => {
      const begin = i > 0 ? rowEnds[i - 1] : 0;
      let least = -1;
      return new Map(indices.slice(begin, end).map((index, at) => {
        assert.ok(index > least, 'indices ascend strictly');
        least = index;
        assert.ok(index >= oldest && index < names.length, 'the table has the name');
        return [names[index], values.length > 0 ? values[begin + at] : 1];
      }));
    });
  }
}

/** Sends rows in as many messages as it takes; returns what the server reads, and the names appended by each. */
function send(table, server, rows) {
  const [read, appended] = [[], []];
  for (let rest = rows; rest.length > 0;) {
    const [packed, count] = table.pack(rest);
    read.push(...server.rows(packed));
    appended.push(server.appended);
    rest = rest.slice(count);
  }
  return { read, appended };
}

/** Numbers below a bound, the same in each run. */
function generator(seed) {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** The features of rows, without their order. */
const sorted = (maps) => maps.map((features) => [...features].sort(([a], [b]) => (a < b ? -1 : 1)));

describe('columns', () => {
  it('have names in the order in which they occur, and rows in that of the positions of their names', () => {
    const packed = pack([row([['b', 1], ['\u{1f600}', 3], ['a', 2]], 'x'), row([], 'y'), row([['c', 6], ['a', 5]], 'x')]);
    assert.deepEqual(namesOf(packed.featureNames), ['b', '\u{1f600}', 'a', 'c']);
    assert.deepEqual([packed.rowEnds, packed.indices, packed.values], [[3, 3, 5], [0, 1, 2, 2, 3], [1, 3, 2, 5, 6]]);
    assert.deepEqual(packed.labels.map((label) => packed.labelNames[label]), ['x', 'y', 'x']);
  });

  it('have values if one is not 1', () => {
    assert.deepEqual(pack([ones('a', 'b')]).values, []);
    assert.deepEqual(pack([row([['a', 1], ['b', 2]])]).values, [1, 2]);
  });

  it('have no index beyond uint32', () => {
    assert.deepEqual(pack([row([[2 ** 32 - 1, 1]])]).indices, [2 ** 32 - 1]);
    for (const index of [2 ** 32, 2 ** 32 + 1, -1, 0.5, NaN]) assert.throws(() => pack([row([[index, 1]])]), RangeError);
  });
});

describe('table of names', () => {
  it('has any rows read by the server as they were', () => {
    const below = generator(17);
    for (const size of [0, 1, 2, 4, 8, 16, 64]) {
      for (let stream = 0; stream < 60; ++stream) {
        const names = Array.from({ length: [1, 3, 10, 40][below(4)] }, (_, i) => `n\u00e4me${i}`);
        const [table, server] = [new NameTable(size), new ServerTable(size)];
        let total = 0;
        for (let message = 0; message < 30; ++message) {
          const rows = Array.from({ length: 1 + below(8) },
            () => row(Array.from({ length: below(6) }, () => [names[below(names.length)], 1 + below(3)])));
          const { read, appended } = send(table, server, rows);
          assert.deepEqual(sorted(read), sorted(rows.map(({ features }) => features)));
          for (const { length } of appended) assert.ok(length <= size / 4);
          total += appended.flat().length;
        }
        if (names.length <= size / 4) assert.ok(total <= names.length);
      }
    }
  });

  it('appends a name once while it is among the latest three quarters', () => {
    const [table, server] = [new NameTable(8), new ServerTable(8)];
    const say = (...names) => send(table, server, [ones(...names)]).appended;
    assert.deepEqual([say('a', 'b'), say('b', 'a')], [[['a', 'b']], [[]]]);
    assert.deepEqual([say('c', 'd'), say('e', 'f')], [[['c', 'd']], [['e', 'f']]]);
    // a is the sixth from the end: the two names that a message may append would not push it out.
    assert.deepEqual([say('a', 'b'), say('g'), say('b', 'a')], [[[]], [['g']], [['a']]]);
  });

  it('leaves a row with too many new names its own names', () => {
    const rows = [ones('a'), ones('b', 'c', 'd'), ones('b', 'a')];
    const { read, appended } = send(new NameTable(8), new ServerTable(8), rows);
    assert.deepEqual(sorted(read), sorted(rows.map(({ features }) => features)));
    assert.deepEqual(appended, [['a'], [], ['b']]);
  });

  it('is left alone by rows by index', () => {
    assert.deepEqual(new NameTable(8).pack([row([[3, 1]])]), [pack([row([[3, 1]])]), 1]);
  });
});

describe('window with a table of names', () => {
  const requests = (window) => {
    const all = [];
    for (let request; (request = window.nextToSend());) all.push(request);
    return all;
  };
  const open = (window, nameTableSize) => {
    const opening = window.opening();
    window.opened({ modelUid: 'u', nextOffset: 0, passes: 0, nameTableSize });
    return opening;
  };

  it('splits a message with more new names than a quarter of the table, and marks the end of the pass after its last part', () => {
    const window = new Window('models/m', 'p', 10);
    assert.equal(open(window, 8).nameTableSize, 262144);
    window.add([...'abcde'].map((name) => ones(name)), 1);
    assert.deepEqual(requests(window).map(({ firstOffset, columns, completedPass }) => [firstOffset, columns.rowEnds.length, completedPass]),
      [[0, 2, 0], [2, 2, 0], [4, 1, 1]]);
  });

  it('has an empty table of its own size on each connection', () => {
    const window = new Window('models/m', 'p', 10);
    const examples = [...'abc'].map((name) => [row([[name, 2], ['both', 1]])]);
    for (const size of [16, 8, 0, 16]) {
      open(window, size);
      if (window.empty) for (const rows of examples) window.add(rows);
      const server = new ServerTable(size);
      const read = requests(window).flatMap(({ columns }) => server.rows(columns));
      assert.deepEqual(sorted(read), sorted(examples.flat().map(({ features }) => features)));
    }
  });

  it('asks a server without tables for none the next time', () => {
    const window = new Window('models/m', 'p', 10, 16);
    assert.equal(window.opening().nameTableSize, 16);
    assert.deepEqual(['MODEL_NOT_FOUND', 'UNSUPPORTED_FIELD', 'UNSUPPORTED_FIELD'].map((reason) => window.doWithoutTable(reason)), [false, true, false]);
    assert.equal(window.opening().nameTableSize, 0);
  });
});
