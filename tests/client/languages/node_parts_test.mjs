// The parts of the Node client that need no server: what is sent again after a connection broke, when, and in which form.
//
//   node --test node_parts_test.mjs

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it, mock } from 'node:test';

const lib = new URL('../../../client/node/lib/', import.meta.url);
const load = (name) => import(new URL(name, lib));
const { Window } = await load('window.mjs');
const { Backoff, isTransient } = await load('retry.mjs');
const { batches, pack } = await load('columns.mjs');
const { parseText, readRows, svmlightParser } = await load('formats.mjs');

const result = (messageNumber, more = {}) =>
  ({ messageNumber, examples: 0, mistakes: 0, updates: 0, duplicates: 0, acknowledgedThrough: -1, errors: [], ...more });
const rows = (count) => pack(Array(count).fill({ features: new Map([['a', 1]]), label: 1 }));

/** Three messages of 10 rows each, offsets 0, 10 and 20, and then the mark of a pass. */
function filledWindow() {
  const window = new Window('models/m', 'p', 25);
  window.opening();
  window.opened({ modelUid: 'u', nextOffset: 0, passes: 0 });
  for (let i = 0; i < 3; ++i) window.add(rows(10));
  window.add(undefined, 1);
  return window;
}

/** Everything that goes out now: [first offset, rows, end of pass]. */
function sent(window) {
  const all = [];
  for (let request; (request = window.nextToSend());) all.push([request.firstOffset, request.columns?.rowEnds.length ?? 0, request.endOfPass]);
  return all;
}

function reopen(window, nextOffset, modelUid = 'u') {
  window.opening();
  window.opened({ modelUid, nextOffset, passes: 0 });
}

describe('window', () => {
  it('numbers examples and sends them in their order, once', () => {
    const window = filledWindow();
    assert.deepEqual(sent(window), [[0, 10, 0], [10, 10, 0], [20, 10, 0], [30, 0, 1]]);
    assert.deepEqual(sent(window), []);
  });

  it('sends nothing before the server has said where it stands', () => {
    const window = filledWindow();
    window.opening();
    assert.equal(window.ready, false);
    assert.deepEqual(sent(window), []);
  });

  it('claims what was acknowledged when it resumes, and nothing when it is new', () => {
    const window = filledWindow();
    assert.equal(new Window('models/m', 'p', 1).opening().producer.resume, undefined);
    sent(window);
    window.answered(result(1, { acknowledgedThrough: 9 }));
    assert.deepEqual(window.opening().producer.resume, { modelUid: 'u', acknowledgedThrough: 9 });
  });

  it('sends again what was not learned', () => {
    const window = filledWindow();
    sent(window);
    window.answered(result(1, { examples: 10, acknowledgedThrough: 9 }));
    reopen(window, 10);
    assert.deepEqual(sent(window), [[10, 10, 0], [20, 10, 0], [30, 0, 1]]);
    window.answered(result(1, { examples: 10, acknowledgedThrough: 19 }));
    assert.equal(window.totals.examples, 20);
  });

  it('does not send again what was learned though its answer was lost', () => {
    const window = filledWindow();
    sent(window);
    reopen(window, 20);
    assert.deepEqual(sent(window), [[20, 10, 0], [30, 0, 1]]);
    assert.equal(window.totals.settledUnseen, 20);
  });

  it('sends a message of which a part was learned whole, with its numbers', () => {
    const window = filledWindow();
    sent(window);
    reopen(window, 13);
    assert.deepEqual(sent(window)[0], [10, 10, 0]);
  });

  it('sends the mark of a pass again after all its rows were settled', () => {
    const window = filledWindow();
    window.add(rows(1), 2);
    sent(window);
    reopen(window, 31);
    assert.deepEqual(sent(window).map(([, , mark]) => mark), [1, 2]);
    assert.equal(window.empty, false);
  });

  it('has room for what is not answered, again with answers and what is settled', () => {
    const window = filledWindow();
    assert.equal(window.hasRoom, false);
    sent(window);
    window.answered(result(1, { acknowledgedThrough: 9 }));
    assert.equal(window.hasRoom, true);
    window.add(rows(10));
    assert.equal(window.hasRoom, false);
    reopen(window, 20);
    assert.equal(window.hasRoom, true);
  });

  it('does not go on with another model, a server that forgot, or answers out of turn', () => {
    assert.throws(() => reopen(filledWindow(), 0, 'v'), /deleted and created again/);
    const window = filledWindow();
    assert.throws(() => window.answered(result(1)), /out of turn/);
    sent(window);
    assert.throws(() => window.answered(result(2)), /out of turn/);
    window.answered(result(1, { acknowledgedThrough: 9 }));
    assert.throws(() => reopen(window, 9), /acknowledged examples through 9 but now expects 9/);
  });

  it('ends with the reason of a message that was refused whole', () => {
    const window = filledWindow();
    sent(window);
    assert.throws(() => window.answered(result(1, { error: { code: 11, message: 'a gap', details: [] } })), /OUT_OF_RANGE: a gap/);
  });
});

describe('backoff', () => {
  it('doubles its waits up to the longest, and draws them from their upper half', () => {
    const drawn = [[], [], [], [], [], []];
    for (let i = 0; i < 200; ++i) {
      const backoff = new Backoff(60, 0.1, 1);
      for (const waits of drawn) waits.push(backoff.nextWait());
    }
    [100, 200, 400, 800, 1000, 1000].forEach((ceiling, i) => {
      const [least, most] = [Math.min(...drawn[i]), Math.max(...drawn[i])];
      assert.ok(least >= ceiling / 2 && most <= ceiling && most - least > ceiling / 4, `${least} to ${most} of ${ceiling}`);
    });
  });

  it('ends with its patience, which begins anew with progress', () => {
    let now = 0;
    const clock = mock.method(performance, 'now', () => now);
    const backoff = new Backoff(10, 1, 1);
    now = 9_900;
    assert.equal(backoff.nextWait(), undefined);
    backoff.progress();
    assert.notEqual(backoff.nextWait(), undefined);
    clock.mock.restore();
  });

  it('tries again only while the server is away', () => {
    for (let code = 0; code <= 16; ++code) assert.equal(isTransient({ code }), code === 14);
  });
});

describe('columns', () => {
  it('sort names by their bytes, and rows by the places of their names', () => {
    const row = (features, label) => ({ features: new Map(features), label });
    const packed = pack([row([['b', 1], ['a', 2], ['\u{1f600}', 3], ['\uffee', 4]], 'x'), row([], 'y'), row([['a', 5]], 'x')]);
    assert.deepEqual(packed.featureNames, ['a', 'b', '\uffee', '\u{1f600}']);
    assert.deepEqual([packed.rowEnds, packed.indices, packed.values], [[4, 4, 5], [0, 1, 2, 3, 0], [2, 1, 4, 3, 5]]);
    assert.deepEqual(packed.labels.map((label) => packed.labelNames[label]), ['x', 'y', 'x']);
  });

  it('hold every row once', async () => {
    const all = [];
    for await (const batch of batches('abcdefg', 3)) all.push(batch.join(''));
    assert.deepEqual(all, ['abc', 'def', 'g']);
  });
});

describe('formats', () => {
  const read = async (chunks, parse) => {
    const all = [];
    for await (const row of readRows(Readable.from(chunks.map((chunk) => Buffer.from(chunk)), { objectMode: false }), 'f', parse)) all.push(row);
    return all;
  };

  it('take words of ASCII in lower case and bytes beyond, wherever the chunks of a file end', async () => {
    const bytes = Buffer.from("ham\tGo, GO! Ünder\u00a0don't 4u\r\n\nspam\t!");
    for (let cut = 0; cut <= bytes.length; ++cut) {
      const [first, second] = await read([bytes.subarray(0, cut), bytes.subarray(cut)], parseText);
      assert.deepEqual([...first.features].sort(), [['4u', 1], ["go", 2], ["Ünder\u00a0don't", 1]].sort());
      assert.deepEqual([first.label, second.label, second.features.size], ['ham', 'spam', 0]);
    }
  });

  it('name what is no row by its line', async () => {
    for (const [text, said] of [['+1 1:x\n', /"1:x" is no feature/], ['+1 1:1\n\n2 1:1\n', /f:3: label "2" is neither/],
      ['+1 0:1\n', /--index-base 0/], ['+1 1:0x10\n', /is no feature/], ['+1 1:nan\n', /is no feature/]]) {
      await assert.rejects(read([text], svmlightParser(1)), said);
    }
    await assert.rejects(read([Buffer.from([0x68, 0x09, 0xff, 0x0a])], parseText), /f:1: it is not UTF-8/);
  });
});
