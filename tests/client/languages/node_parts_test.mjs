// The parts of the Node client that need no server: the window, retries, columns, file formats, labels and flags.
//
//   node --test node_parts_test.mjs

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { describe, it, mock } from 'node:test';

const lib = new URL('../../../client/node/lib/', import.meta.url);
const grpc = createRequire(lib)('@grpc/grpc-js');
const load = (name) => import(new URL(name, lib));
const { Window } = await load('window.mjs');
const { serversOf } = await load('connection.mjs');
const { Backoff, isTransient } = await load('rpc.mjs');
const { pack } = await load('columns.mjs');
const { Labels, batches } = await load('rows.mjs');
const { readRows, svmlightParser, textParser } = await load('../examples/formats.mjs');
const { UsageError, seconds, whole } = await load('../examples/program.mjs');

const result = (messageNumber, more = {}) =>
  ({ messageNumber, examples: 0, mistakes: 0, updates: 0, duplicates: 0, acknowledgedOffset: -1, rowErrors: [], ...more });
const rows = (count) => Array(count).fill({ features: new Map([['a', 1]]), label: 1 });

/** Three messages of 10 rows each, offsets 0, 10 and 20, and then the mark of a pass. */
function filledWindow() {
  const window = new Window('models/m', 'p', 25);
  window.opening();
  window.opened({ modelUid: 'u', nextOffset: 0, passes: 0, historyId: 'h' });
  for (let i = 0; i < 3; ++i) window.add(rows(10));
  window.add([], 1);
  return window;
}

/** All messages to send now: [first offset, rows, completed pass]. */
function sent(window) {
  const all = [];
  for (let request; (request = window.nextToSend());) all.push([request.firstOffset, request.columns?.rowEnds.length ?? 0, request.completedPass]);
  return all;
}

function reopen(window, nextOffset, modelUid = 'u') {
  window.opening();
  window.opened({ modelUid, nextOffset, passes: 0 });
}

describe('window', () => {
  it('numbers examples and sends them once in their order', () => {
    const window = filledWindow();
    assert.deepEqual(sent(window), [[0, 10, 0], [10, 10, 0], [20, 10, 0], [30, 0, 1]]);
    assert.deepEqual(sent(window), []);
  });

  it('sends nothing before the server has sent the position', () => {
    const window = filledWindow();
    window.opening();
    assert.equal(window.ready, false);
    assert.deepEqual(sent(window), []);
  });

  it('claims what was acknowledged when it resumes, and nothing when it is new', () => {
    const window = filledWindow();
    assert.equal(new Window('models/m', 'p', 1).opening().producer.resume, undefined);
    sent(window);
    window.answered(result(1, { acknowledgedOffset: 9, revision: 4 }));
    assert.deepEqual(window.opening().producer.resume,
      { modelUid: 'u', acknowledgedOffset: 9, acknowledgedRevision: 4, historyId: 'h' });
  });

  it('sends examples that were not learned again', () => {
    const window = filledWindow();
    sent(window);
    window.answered(result(1, { examples: 10, acknowledgedOffset: 9 }));
    reopen(window, 10);
    assert.deepEqual(sent(window), [[10, 10, 0], [20, 10, 0], [30, 0, 1]]);
    window.answered(result(1, { examples: 10, acknowledgedOffset: 19 }));
    assert.equal(window.totals.examples, 20);
  });

  it('does not send learned examples again whose answer was lost', () => {
    const window = filledWindow();
    sent(window);
    reopen(window, 20);
    assert.deepEqual(sent(window), [[20, 10, 0], [30, 0, 1]]);
    assert.equal(window.totals.lostAnswers, 20);
  });

  it('sends a partly learned message whole with its offset', () => {
    const window = filledWindow();
    sent(window);
    reopen(window, 13);
    assert.deepEqual(sent(window)[0], [10, 10, 0]);
  });

  it('sends a pass mark again although its rows were learned', () => {
    const window = filledWindow();
    window.add(rows(1), 2);
    sent(window);
    reopen(window, 31);
    assert.deepEqual(sent(window).map(([, , mark]) => mark), [1, 2]);
    assert.equal(window.empty, false);
  });

  it('gets room by answers and learned examples', () => {
    const window = filledWindow();
    assert.equal(window.hasRoom, false);
    sent(window);
    window.answered(result(1, { acknowledgedOffset: 9 }));
    assert.equal(window.hasRoom, true);
    window.add(rows(10));
    assert.equal(window.hasRoom, false);
    reopen(window, 20);
    assert.equal(window.hasRoom, true);
  });

  it('rejects another model, a server that lost acknowledged examples, and answers out of order', () => {
    assert.throws(() => reopen(filledWindow(), 0, 'v'), /deleted and created again/);
    const window = filledWindow();
    assert.throws(() => window.answered(result(1)), /out of order/);
    sent(window);
    assert.throws(() => window.answered(result(2)), /out of order/);
    window.answered(result(1, { acknowledgedOffset: 9 }));
    assert.throws(() => reopen(window, 9), /acknowledged examples through 9 but now expects 9/);
  });

  it('of several models waits for the answers of all, and has totals and passes of each', () => {
    const window = new Window(['models/a', 'models/b'], 'p', 25);
    const { model, additionalModels } = window.opening();
    assert.deepEqual([model, additionalModels], ['models/a', ['models/b']]);
    window.opened({ modelUid: 'u', nextOffset: 0, passes: 0 }, [{ modelUid: 'v', nextOffset: 0, passes: 0 }]);
    window.add(rows(10), 1);
    sent(window);
    assert.equal(window.answered(result(1, { examples: 10, mistakes: 1, acknowledgedOffset: 9, completedPass: { number: 1, updates: 1 } })), false);
    assert.deepEqual([window.empty, window.passes], [false, 0]);
    assert.equal(window.answered(result(1, { modelNumber: 1, examples: 10, mistakes: 2, acknowledgedOffset: 9, completedPass: { number: 1, updates: 2 } })), true);
    assert.deepEqual([window.empty, window.passes], [true, 1]);
    assert.deepEqual(window.models.map(({ totals }) => totals.mistakes), [1, 2]);
    assert.deepEqual(window.lastPasses().map(({ updates }) => updates), [1, 2]);
  });

  it('of several models begins at the least position, and claims what each acknowledged', () => {
    const window = new Window(['models/a', 'models/b'], 'p', 25);
    assert.deepEqual(window.opening().producer, { id: 'p', resume: undefined, additionalResumes: [{}] });
    window.opened({ modelUid: 'u', nextOffset: 20, passes: 2 }, [{ modelUid: 'v', nextOffset: 5, passes: 0, revision: 3, historyId: 'h' }]);
    assert.deepEqual([window.nextOffset, window.passes], [5, 0]);
    const { resume, additionalResumes } = window.opening().producer;
    assert.deepEqual([resume.modelUid, resume.acknowledgedOffset], ['u', 19]);
    assert.deepEqual(additionalResumes, [{ modelUid: 'v', acknowledgedOffset: 4, acknowledgedRevision: 3, historyId: 'h' }]);
  });

  it('of several models loses only the answers that had not come', () => {
    const window = new Window(['models/a', 'models/b'], 'p', 25);
    const opened = (nextOffset) => window.opened({ modelUid: 'u', nextOffset, passes: 0 }, [{ modelUid: 'v', nextOffset, passes: 0 }]);
    window.opening();
    opened(0);
    window.add(rows(10));
    sent(window);
    window.answered(result(1, { examples: 10, acknowledgedOffset: 9 }));
    window.opening();
    opened(10);
    assert.equal(window.empty, true);
    assert.deepEqual(window.models.map(({ totals }) => [totals.examples, totals.lostAnswers]), [[10, 0], [0, 10]]);
    assert.throws(() => window.opened({ modelUid: 'u', nextOffset: 10, passes: 0 }), /opened 1 of 2 models/);
    assert.throws(() => window.answered(result(1, { modelNumber: 1 })), /out of order/);
  });

  it('ends with the reason of an error of a whole message', () => {
    const window = filledWindow();
    sent(window);
    assert.throws(() => window.answered(result(1, { error: { code: 11, message: 'a gap', details: [] } })), /OUT_OF_RANGE: a gap/);
  });
});

/** A failed call, with the server's google.rpc.Status; the server may ask to wait for retryAfter seconds. */
function failed(code, retryAfter) {
  const field = (number, bytes) => Buffer.concat([Buffer.from([8 * number + 2, bytes.length]), bytes]);
  const retryInfo = field(1, Buffer.from([8, retryAfter]));
  const any = Buffer.concat([field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')), field(2, retryInfo)]);
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.concat([Buffer.from([8, code]), retryAfter === undefined ? Buffer.alloc(0) : field(3, any)]));
  return { code, metadata };
}

describe('backoff', () => {
  it('doubles its waits up to the longest, and draws them from their upper half', () => {
    const drawn = [[], [], [], [], [], []];
    for (let i = 0; i < 200; ++i) {
      const backoff = new Backoff(60, 0.1, 1);
      for (const waits of drawn) waits.push(backoff.nextWait(failed(14)));
    }
    [100, 200, 400, 800, 1000, 1000].forEach((ceiling, i) => {
      const [least, most] = [Math.min(...drawn[i]), Math.max(...drawn[i])];
      assert.ok(least >= ceiling / 2 && most <= ceiling && most - least > ceiling / 4, `${least} to ${most} of ${ceiling}`);
    });
  });

  it('ends after its response timeout, which restarts with progress', () => {
    let now = 0;
    const clock = mock.method(performance, 'now', () => now);
    const backoff = new Backoff(10, 1, 1);
    now = 9_900;
    assert.equal(backoff.nextWait(failed(14)), undefined);
    backoff.progress();
    assert.notEqual(backoff.nextWait(failed(14)), undefined);
    clock.mock.restore();
  });

  it('reports a wait that lasts once, until there is progress', () => {
    let now = 0;
    const clock = mock.method(performance, 'now', () => now);
    const warned = mock.method(process, 'emitWarning', () => {});
    const backoff = new Backoff(60, 0.1, 1);
    for (const [time, notices] of [[2900, 0], [3000, 1], [50_000, 1]]) {
      now = time;
      backoff.nextWait(failed(14));
      assert.equal(warned.mock.callCount(), notices, time);
    }
    assert.match(warned.mock.calls[0].arguments[0], /^no answer for 3 s; trying for another 57 s \(giveUpAfter\): UNAVAILABLE: /);
    backoff.progress();
    for (const [time, notices] of [[51_000, 1], [53_000, 2]]) {
      now = time;
      backoff.nextWait(failed(14));
      assert.equal(warned.mock.callCount(), notices, time);
    }
    warned.mock.restore();
    clock.mock.restore();
  });

  it('retries UNAVAILABLE, calls that grpc-js ended without an answer of the server, and what is exhausted once the server says', () => {
    for (let code = 0; code <= 16; ++code) {
      assert.equal(isTransient({ code }), code === 14);
      assert.equal(isTransient(failed(code)), code === 14);
      assert.equal(isTransient(failed(code, 2)), [8, 14].includes(code));
      assert.equal(isTransient({ code, metadata: new grpc.Metadata() }), [1, 13, 14].includes(code));
    }
    assert.equal(new Backoff(10, 1, 1).nextWait(failed(8, 2)), 2000);
    assert.equal(new Backoff(2, 1, 1).nextWait(failed(8, 2)), undefined);
  });
});

describe('addresses', () => {
  it('have the port 7600 if none is given', () => {
    const meant = (server) => serversOf({ server });
    assert.deepEqual(meant('localhost'), ['localhost:7600']);
    assert.deepEqual(meant('a,b:1, c'), ['a:7600', 'b:1', 'c:7600']);
    assert.deepEqual(['h:7', '[::1]:7', 'unix:/s', 'ipv4:127.0.0.1:7,127.0.0.2:7'].map((server) => meant(server)[0]), ['h:7', '[::1]:7', 'unix:/s', 'ipv4:127.0.0.1:7,127.0.0.2:7']);
  });
});

describe('batches', () => {
  it('hold every row once', async () => {
    const all = [];
    for await (const batch of batches('abcdefg', 3)) all.push(batch.join(''));
    assert.deepEqual(all, ['abc', 'def', 'g']);
  });
});

/** The labels of a model; of a multiclass model if there are settings for its classes. */
function labels(labelNames = [], classes = null) {
  return new Labels({ labelNames, learner: { classes } });
}

describe('formats', () => {
  const read = async (chunks, parse) => {
    const all = [];
    for await (const row of readRows(Readable.from(chunks.map((chunk) => Buffer.from(chunk)), { objectMode: false }), 'f', parse)) all.push(row);
    return all;
  };

  const text = (lines, required = true) => read([lines], textParser(labels(['ham', 'spam']), required));
  const svmlight = (lines, required = true, indexBase = 1) => read([lines], svmlightParser(indexBase, labels(), required));

  it('read lower-case ASCII and non-ASCII bytes as words, wherever the chunks of a file end', async () => {
    const bytes = Buffer.from("ham\tGo, GO! Ünder\u00a0don't 4u\r\n\nspam\t!");
    for (let cut = 0; cut <= bytes.length; ++cut) {
      const [first, second] = await read([bytes.subarray(0, cut), bytes.subarray(cut)], textParser(labels(['ham', 'spam']), true));
      assert.deepEqual([...first.features].sort(), [['4u', 1], ["go", 2], ["Ünder\u00a0don't", 1]].sort());
      assert.deepEqual([first.label, second.label, second.features.size], [-1, 1, 0]);
    }
  });

  it('report a malformed line with its number', async () => {
    for (const [lines, said] of [['+1 1:x\n', /"1:x" is not a feature/], ['+1 1:1\n\n2 1:1\n', /f:3: label "2" is neither/],
      ['+1 0:1\n', /--index-base 0/], ['+1 1:0x10\n', /is not a feature/], ['+1 1:nan\n', /is not a feature/]]) {
      await assert.rejects(svmlight(lines), said);
    }
    await assert.rejects(text(Buffer.from('ham\t\xff\n', 'latin1')), /f:1: not valid UTF-8/);
    await assert.rejects(text('eggs\tgood\n'), /f:1: label "eggs" is not a label of the model: "ham", "spam", -1 or \+1$/);
  });

  it('read the largest uint32 as index and no larger number', async () => {
    for (const indexBase of [0, 1]) {
      const packed = pack(await svmlight('+1 000000000001:2 4294967295:1\n', true, indexBase));
      assert.deepEqual(packed.indices, [1 - indexBase, 4294967295 - indexBase]);
    }
    for (const beyond of ['4294967296', '4294967298', '18446744073709551617', '9'.repeat(5000)]) {
      await assert.rejects(svmlight(`+1 1:1\n+1 ${beyond}:1\n`), new RegExp(`f:2: "${beyond.slice(0, 20)}.*" is not a feature: expected index:value`));
    }
  });

  it('read values that are finite as float32', async () => {
    const [row] = await svmlight('+1 1:.5 2:5. 3:1e-400 4:3.4028235e38\n');
    assert.deepEqual([...row.features.values()], [0.5, 5, 0, 3.4028235e38]);
    for (const value of ['1e39', '-1e400', '1.2.3', '.', '', '1e', '1_0']) {
      await assert.rejects(svmlight(`+1 1:${value}\n`), ({ message }) => message.includes(`f:1: "1:${value}" is not a feature`), value);
    }
  });

  it('report an index that occurs twice', async () => {
    for (const line of ['-1 1:1 3:2 1:5\n', '-1 1:1 3:2 01:1\n']) await assert.rejects(svmlight(`+1 1:1\n${line}`), /f:2: index 0 occurs twice$/);
  });

  it('read lines without a label if labels are optional', async () => {
    const plain = (all) => all.map(({ features, label }) => [Object.fromEntries(features), label]);
    assert.deepEqual(plain(await text('good\nmore\tgood\n+1\tgood\n', false)), [[{ good: 1 }, undefined], [{ more: 1, good: 1 }, undefined], [{ good: 1 }, 1]]);
    assert.deepEqual(plain(await svmlight('2:1\n3 2:1\n-1.0 2:1\n-1\n', false)), [[{ 1: 1 }, undefined], [{ 1: 1 }, undefined], [{ 1: 1 }, -1], [{}, -1]]);
    await assert.rejects(svmlight('1 2:1\n2:1\n'), /f:2: no label before the first feature/);
    const mixed = pack(await text('good\nham\tgood\n', false));
    assert.deepEqual([mixed.rowEnds.length, mixed.labels, mixed.labelNames], [2, [], []]);
  });
});

describe('labels', () => {
  const refused = (made, label, said) => assert.throws(() => made.read(label), said, label);

  it('of two are names before they are numbers', () => {
    assert.deepEqual(['-1', '+1', '1', '1.0', '-10e-1'].map((label) => labels().read(label)), [-1, 1, 1, 1, -1]);
    assert.deepEqual(['ham', 'spam', '-1', '+1'].map((label) => labels(['ham', 'spam']).read(label)), [-1, 1, -1, 1]);
    assert.deepEqual(['1', '2'].map((label) => labels(['1', '2']).read(label)), [-1, 1]);
    refused(labels(['1', '2']), '-1', /label "-1" is not a label of the model: "1", "2"$/);
    for (const label of ['0', '2', 'one', '', '1 ', 'NaN', 'Infinity', '0x1', '1e400']) refused(labels(), label, { message: `label "${label}" is neither -1 nor +1` });
  });

  it('are classes in a multiclass model', () => {
    const colours = labels(['red', 'green', 'blue'], { maxClasses: 3 });
    assert.deepEqual(['red', 'green', 'blue', '0', '2.0'].map((label) => colours.read(label)), [0, 1, 2, 0, 2]);
    assert.deepEqual([0, 1, 2, -1].map((number) => colours.name(number)), ['red', 'green', 'blue', '-']);
    refused(colours, 'pink', /label "pink" is not a class of the model: its label names, or 0 to 2$/);
    const numbered = labels([], { maxClasses: 3 });
    assert.deepEqual(['0', '1', '2'].map((label) => numbered.name(numbered.read(label))), ['0', '1', '2']);
    for (const label of ['3', '-1', '1.5', '1e400', 'red']) refused(numbered, label, /is not a class of the model: 0 to 2$/);
    refused(labels(['7', '8'], { maxClasses: 2 }), '0', /is not a class of the model: its label names$/);
  });

  it('are names where classes are added by name, and have a number once the model knows them', () => {
    const made = labels(['red'], { maxClasses: 9, newClasses: 'NEW_CLASSES_NAMED' });
    assert.deepEqual(['red', 'new', '3'].map((label) => made.read(label)), ['red', 'new', '3']);
    assert.deepEqual(['red', 'new', 4].map((label) => made.number(label)), [0, undefined, 4]);
    assert.deepEqual([0, 4].map((number) => made.name(number)), ['red', '4']);
    refused(made, '', /the label is empty/);
  });

  it('of two without names are their sign', () => {
    assert.deepEqual([labels(), labels(['ham', 'spam'])].flatMap((made) => [-1, 1].map((number) => made.name(number))), ['-1', '+1', 'ham', 'spam']);
  });
});

describe('numbers of flags', () => {
  it('are whole and within their bounds', () => {
    const dimension = (text) => whole('dimension', text, 1, 2 ** 32 - 1);
    assert.deepEqual(['1', '4294967295'].map(dimension), [1, 4294967295]);
    for (const text of ['0', '-5', '4294967296', '4294967301', '18446744073709551621', '9'.repeat(5000), '1.5', 'NaN', 'x', '']) {
      assert.throws(() => dimension(text), UsageError, text);
    }
  });

  it('are seconds that a Duration holds', () => {
    const interval = (text) => seconds('interval', text, 0.05);
    assert.deepEqual(['0.05', '315576000000'].map(interval), [0.05, 315576000000]);
    for (const text of ['0.04', '-1', '315576000001', '1e300', 'NaN', 'Infinity', 'x', '']) assert.throws(() => interval(text), UsageError, text);
  });
});
