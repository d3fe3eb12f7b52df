// The Node package: its parts that need no server, the package as npm packs it, and Client against a real server.
//
//   PERCEPTROND=build/bin/perceptrond PERCEPTRONCTL=build/bin/perceptronctl node --test node_client_test.mjs

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { PassThrough } from 'node:stream';
import { after, before, describe, it, mock } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const source = fileURLToPath(new URL('../../../client/node', import.meta.url));
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'perceptrond-node-'));
const grpc = createRequire(path.join(source, 'lib/'))('@grpc/grpc-js');
const load = (name) => import(pathToFileURL(path.join(source, 'lib', name)));
const { Client } = await load('client.mjs');
const { goesDirect, serversOf } = await load('connection.mjs');
const { Backoff, isTransient } = await load('rpc.mjs');
const { pack, packNaming } = await load('columns.mjs');
const { LabelReader } = await load('label_reader.mjs');
const { Labels, asRow } = await load('rows.mjs');
const { NameTable } = await load('name_table.mjs');

const mail = [{ features: { free: 1, now: 2 }, label: 'spam' }, { features: { lunch: 1, now: 1 }, label: 'ham' }, { features: new Map([['free', 2]]), label: 'spam' }];
const opposite = mail.map((row) => ({ ...row, label: row.label === 'spam' ? 'ham' : 'spam' }));
const spam = { featureSpace: { named: {} }, labelNames: ['ham', 'spam'] };

const casesOf = (name) => JSON.parse(fs.readFileSync(new URL(`../conformance/${name}`, import.meta.url), 'utf8'));

/** A failed call, with the server's google.rpc.Status; the server may ask to wait for retryAfter seconds. */
function failed(code, retryAfter) {
  const field = (number, bytes) => Buffer.concat([Buffer.from([8 * number + 2, bytes.length]), bytes]);
  const retryInfo = field(1, Buffer.from([8, retryAfter]));
  const any = Buffer.concat([field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')), field(2, retryInfo)]);
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.concat([Buffer.from([8, code]), retryAfter === undefined ? Buffer.alloc(0) : field(3, any)]));
  return { code, metadata };
}

describe('parts', () => {
  it('wait twice as long each time, drawn from the upper half, until the time without progress is over', () => {
    let now = 0;
    const clock = mock.method(performance, 'now', () => now);
    for (let i = 0; i < 50; ++i) {
      const backoff = new Backoff(60, 0.1, 1);
      for (const ceiling of [100, 200, 400, 800, 1000, 1000]) {
        const wait = backoff.nextWait(failed(14));
        assert.ok(wait >= ceiling / 2 && wait <= ceiling, `${wait} of ${ceiling}`);
      }
    }
    const backoff = new Backoff(10, 1, 1);
    now = 9_900;
    assert.equal(backoff.nextWait(failed(4)), undefined);
    backoff.progress();
    assert.notEqual(backoff.nextWait(failed(4)), undefined);
    clock.mock.restore();
  });

  it('retry UNAVAILABLE, calls that grpc-js ended without an answer of the server, and what is exhausted once the server says', () => {
    for (let code = 0; code <= 16; ++code) {
      assert.equal(isTransient(failed(code)), code === 14);
      assert.equal(isTransient(failed(code, 2)), [8, 14].includes(code));
      assert.equal(isTransient({ code, metadata: new grpc.Metadata() }), [1, 13, 14].includes(code));
    }
    // HAProxy resets a stream that the server has ended early, with CANCEL.
    assert.ok(isTransient({ ...failed(14), code: 1 }));
    assert.equal(new Backoff(10, 1, 1).nextWait(failed(8, 2)), 2000);
    assert.equal(new Backoff(2, 1, 1).nextWait(failed(8, 2)), undefined);
  });

  it('read addresses as people write them, and refuse what is none', () => {
    const cases = casesOf('addresses.json');
    for (const [server, read] of Object.entries(cases.read)) assert.equal(serversOf({ server }).join(','), read);
    for (const server of cases.refused) assert.throws(() => serversOf({ server }), /^RangeError: server /, server);
  });

  it('call servers of this machine and of a fleet without a proxy', () => {
    const cases = casesOf('addresses.json');
    for (const server of cases.direct) assert.ok(goesDirect({ server }), server);
    for (const server of cases.through_a_proxy) assert.ok(!goesDirect({ server }), server);
  });

  it('name the proxy through which a server was not reached', async (test) => {
    const set = { http_proxy: 'http://127.0.0.1:9', https_proxy: '', grpc_proxy: '', no_proxy: '' };
    const before = Object.keys(set).map((name) => [name, process.env[name] ?? '']);
    test.after(() => Object.assign(process.env, Object.fromEntries(before)));
    Object.assign(process.env, set);
    const said = async (server) => {
      const client = new Client(server, { giveUpAfter: 0.1 });
      try {
        return await client.get('m').then(() => '', ({ message }) => message);
      } finally {
        client.close();
      }
    };
    assert.match(await said('192.0.2.2:1'), /^UNAVAILABLE: .*http_proxy is set, so/);
    assert.doesNotMatch(await said('LOCALHOST:9'), /proxy/);
  });

  it('read labels as the names or numbers that the model has', () => {
    for (const { names, classes, new: added, read } of casesOf('labels.json')) {
      const learner = classes && { classes: { maxClasses: classes, newClasses: added && 'NEW_CLASSES_NAMED' } };
      const labels = new Labels({ labelNames: names, learner });
      for (const [text, label] of read) {
        if (label === '!') assert.throws(() => labels.read(text), /label/, text);
        else assert.equal(String(labels.read(text)), label, `${text} among ${names}`);
      }
    }
  });

  it('read a label of a program as a name where names are numbers, also as a text', async () => {
    const [named, plain] = [['1', '2.0'], ['ham', 'spam']].map((labelNames) => new Labels({ labelNames }));
    assert.deepEqual([1, 2].map((number) => named.readNumber(number)), ['1', '2.0']);
    assert.deepEqual([1, -1, 0, 7].map((number) => plain.readNumber(number)), [1, -1, -1, 7]);
    for (const number of [0, -1, 3]) assert.throws(() => named.readNumber(number), /is not a label of the model: "1", "2.0"$/);
    assert.throws(() => new Labels({ labelNames: ['1', 'NaN'] }).readNumber(NaN), /is not a label/);
    const model = (labelNames, more) => ({ labelNames, learner: { classes: { maxClasses: 3, ...more } } });
    assert.deepEqual([0, 1, 2].map((number) => new Labels(model([])).readNumber(number)), [0, 1, 2]);
    assert.deepEqual([3, 1].map((number) => new Labels(model(['3', '1', '2'])).readNumber(number)), ['3', '1']);
    const sent = async (of, labels) => {
      const rows = labels.map((label) => ({ label }));
      await new LabelReader(async () => of).read(rows, 0);
      return rows.map(({ label }) => label);
    };
    assert.deepEqual(await sent(model(['tea', '2.0'], { newClasses: 'NEW_CLASSES_NAMED' }), ['2', 2, 'tea', 0, '0.0', '007', 'ale']), ['2.0', '2.0', 'tea', '0', '0', '007', 'ale']);
    assert.deepEqual(await sent({ labelNames: ['1', '2.0'] }, ['2', '1.0', '3']), ['2.0', '1', '3']);
  });

  it('refuse an example without one input, and one that is null', () => {
    assert.deepEqual(asRow({ text: 'a', label: 1 }, 0).text, 'a');
    const refused = [[{}, /^row 3: expected features/], [null, /^row 3: expected/], [{ features: { a: 1 }, text: 'a' }, /^row 3: expected/],
      [{ features: { a: 1 }, text: null }, /^row 3: text is null: leave out what is missing/], [{ features: null, text: 'a', line: 9 }, /^line 9: features is null/],
      [{ text: 'a', predictionId: null }, /predictionId is null/], [{ features: { a: 1 }, predictionId: 7 }, /predictionId is a number/]];
    for (const [example, said] of refused) assert.throws(() => asRow(example, 3), { name: 'RangeError', message: said });
  });

  it('refuse a finite number beyond float32, with its row and the limit', () => {
    for (const wrong of [1e39, -1e39]) {
      for (const row of [{ features: { a: wrong } }, { features: { a: 1 }, weight: wrong }]) {
        assert.throws(() => packNaming([{ features: { a: 1 } }, row].map(asRow), (index) => index), /^RangeError: row 1: the (value|weight).*1e\+39, is too large; numbers are from -3.4028235e38 to 3.4028235e38$/);
      }
    }
    // The largest as it is printed is rounded to the largest, and what is infinite is the server's to refuse.
    for (const kept of [3.4028235e38, -Infinity]) assert.deepEqual(pack([asRow({ features: { a: kept } })]).values, [kept]);
  });

  it('pack rows into columns, and refuse an index beyond uint32', () => {
    const row = (features, label = 1) => ({ features: new Map(features), label });
    const packed = pack([row([['b', 1], ['\u{1f600}', 3], ['a', 2]], 'x'), row([], 'y'), row([['c', 6], ['a', 5]], 'x')]);
    assert.deepEqual([packed.featureNames.text, packed.featureNames.lengths], ['b\u{1f600}ac', [1, 4, 1, 1]]);
    assert.deepEqual([packed.rowEnds, packed.indices, packed.values], [[3, 3, 5], [0, 1, 2, 2, 3], [1, 3, 2, 5, 6]]);
    assert.deepEqual(packed.labels.map((label) => packed.labelNames[label]), ['x', 'y', 'x']);
    assert.deepEqual(pack([row([[2 ** 32 - 1, 1]])]).indices, [2 ** 32 - 1]);
    for (const index of [2 ** 32, -1, 0.5, NaN]) assert.throws(() => pack([row([[index, 1]])]), RangeError);
    assert.deepEqual(new NameTable(8).pack([row([[3, 1]])]), [pack([row([[3, 1]])]), 1]);
  });
});

async function startServer() {
  const server = spawn(process.env.PERCEPTROND, ['--address', `unix:${work}/socket`, '--metrics-address', 'off', '--data-dir', path.join(work, 'store')], { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of readline.createInterface({ input: server.stderr })) {
    if (/ info serving /.test(line)) {
      // Whatever else it writes must not fill the pipe.
      server.stderr.resume();
      return server;
    }
  }
  throw new Error('the server did not start');
}

describe('the package', () => {
  const address = `unix:${work}/socket`;
  let [files, server, client, perceptrond] = [];

  const restart = async () => {
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
    server = await startServer();
  };

  const all = async (items) => {
    const found = [];
    for await (const item of items) found.push(item);
    return found;
  };

  const learned = async (model, rows = mail, settings = {}) => {
    await client.create(model, { ...spam, ...settings });
    return client.learn(model, rows, { untilConverged: true });
  };

  before(async () => {
    // A copy, since packing writes beside the sources.
    fs.mkdirSync(path.join(work, 'client'));
    fs.cpSync(source, path.join(work, 'client/node'), { recursive: true, filter: (from) => path.basename(from) !== 'node_modules' });
    fs.cpSync(path.join(source, '../../proto'), path.join(work, 'proto'), { recursive: true });
    const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', work], { cwd: path.join(work, 'client/node'), encoding: 'utf8' }));
    files = packed.files.map((file) => file.path);
    fs.mkdirSync(path.join(work, 'node_modules'));
    execFileSync('tar', ['-xzf', path.join(work, packed.filename), '-C', path.join(work, 'node_modules')]);
    fs.renameSync(path.join(work, 'node_modules/package'), path.join(work, 'node_modules/perceptrond'));
    fs.symlinkSync(path.join(source, 'node_modules/@grpc'), path.join(work, 'node_modules/@grpc'));
    perceptrond = await import(pathToFileURL(path.join(work, 'node_modules/perceptrond/index.mjs')));
    server = await startServer();
    client = new perceptrond.Client(address);
  });

  after(() => {
    client.close();
    server.kill('SIGKILL');
    fs.rmSync(work, { recursive: true });
  });

  it('has protos and types, and neither examples nor tests', () => {
    for (const file of ['index.mjs', 'index.d.ts', 'lib/client.mjs', 'proto/perceptron/v1/model.proto', 'proto/google/rpc/status.proto', 'README.md']) assert.ok(files.includes(file), file);
    assert.deepEqual(files.filter((file) => /^(examples|node_modules)|storage/.test(file)), []);
  });

  it('runs the program of the README', () => {
    const [, program] = fs.readFileSync(path.join(source, 'README.md'), 'utf8').match(/```js\n(.*?)```/s);
    fs.writeFileSync(path.join(work, 'readme.mjs'), program.replace('127.0.0.1:7600', address).replaceAll("'spam', ", "'readme', "));
    assert.equal(execFileSync(process.execPath, ['readme.mjs'], { cwd: work, encoding: 'utf8' }), "[ 'spam' ]\n");
  });

  it('creates, lists, changes, freezes and deletes models', async () => {
    assert.equal((await client.create('m', spam)).name, 'models/m');
    assert.equal((await client.create('m', { featureSpace: { dense: { dimension: 2 } } }, { existOk: true })).labelNames[1], 'spam');
    assert.ok((await all(client.list())).some(({ name }) => name === 'models/m'));
    const { etag, expireAfter } = await client.update('m', { description: 'mail', expireAfter: { seconds: 7200 } });
    assert.equal(expireAfter.seconds, 7200);
    const changed = await client.update('models/m', { expireAfter: undefined, marginOfInterest: 0.5, etag });
    assert.deepEqual([changed.expireAfter, changed.description, changed.marginOfInterest], [null, 'mail', 0.5]);
    await assert.rejects(client.update('m', { description: 'late', etag }), { code: 'ABORTED', reason: 'ETAG_MISMATCH' });
    assert.equal((await client.freeze('m')).state, 'MODEL_STATE_FROZEN');
    assert.equal((await client.freeze('m', false)).state, 'MODEL_STATE_ACTIVE');
    await client.delete('m');
    await client.delete('m', { missingOk: true });
  });

  it('throws errors with code, reason and violations, and refuses settings that the API does not have', async () => {
    assert.throws(() => new perceptrond.Client('http://127.0.0.1:7600'), /^RangeError: server "http:.*" is a URL; give host:port/);
    assert.throws(() => new perceptrond.Client('localhost:abc'), /^RangeError: server "localhost:abc" has the port "abc"/);
    await assert.rejects(client.get('nothing'), { name: 'PerceptrondError', code: 'NOT_FOUND', reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(client.learn('nothing', mail), { code: 'NOT_FOUND', reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(client.create('m', { featureSpace: { dense: { dimension: 0 } } }), (error) => error.violations[0].field === 'model.feature_space.dense.dimension');
    for (const [wrong, said] of [[{ learner: { arrow: {} } }, 'learner.arrow: there is no such setting; did you mean arow?'],
      [{ label_names: ['a', 'b'] }, 'label_names: there is no such setting; did you mean labelNames?'], [{ learner: 'auto' }, 'learner: "auto"; expected an object: { auto: {} }'],
      [{ learner: { perceptron: {}, tieRule: 'TIE_RULE_POSITIV' } }, 'learner.tieRule: "TIE_RULE_POSITIV" is no value of it; did you mean TIE_RULE_POSITIVE?'],
      [{ expireAfter: '30d' }, 'expireAfter: "30d"; expected an object with seconds, nanos']]) {
      await assert.rejects(client.create('wrong', { ...spam, ...wrong }), { name: 'RangeError', message: said });
    }
    await assert.rejects(client.learn('m', mail, { untilconverged: true }), /^RangeError: untilconverged: there is no such option; did you mean untilConverged\?/);
    for (const options of [{ batch: 65_537 }, { window: 0 }]) await assert.rejects(client.learn('m', mail, options), RangeError);
    await assert.rejects(client.learn('m', mail[Symbol.iterator](), { passes: 2 }), RangeError);
    const token = path.join(work, 'token');
    fs.writeFileSync(token, 'secret');
    await assert.rejects(new perceptrond.Client('192.0.2.1:7600', { tokenFile: token, giveUpAfter: 1 }).get('m'), /others could read the token/);
    fs.writeFileSync(token, 'a'.repeat(8193));
    const unread = new perceptrond.Client(address, { tokenFile: token });
    await assert.rejects(unread.get('m'), /token has more than 8192 bytes$/);
    unread.close();
    // A deadline that is still to come would keep the program.
    assert.deepEqual(process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout'), []);
    const nowhere = new perceptrond.Client(`unix:${work}/nobody`, { giveUpAfter: 600 });
    await assert.rejects(nowhere.history.rename('named', 'other'), { code: 'UNAVAILABLE' });
    nowhere.close();
  });

  it('learns until a pass changes nothing, predicts and explains', async () => {
    await client.create('spam', spam);
    const seen = [];
    const { lastPass, passes } = await client.learn('spam', mail, { untilConverged: true, batch: 2, onProgress: (now) => seen.push(now) });
    assert.deepEqual([lastPass.converged, passes], [true, lastPass.number]);
    assert.deepEqual(seen.slice(0, 2).map(({ pass, sent, rows }) => ({ pass, sent, rows })), [{ pass: 1, sent: 2, rows: 3 }, { pass: 1, sent: 3, rows: 3 }]);
    assert.equal((await client.waitUntilConverged('spam', { timeout: 3600 })).name, 'models/spam');
    const { labels, scores, revision } = await client.predict('spam', mail, { batch: 2 });
    assert.deepEqual([labels, revision], [['spam', 'ham', 'spam'], (await client.get('spam')).revision]);
    await assert.rejects(client.predict('spam', mail, { minRevision: revision + 1 }), { code: 'ABORTED', reason: 'REVISION_TOO_OLD' });
    const { explanations: [{ bias, contributions }] } = await client.explain('spam', mail.slice(0, 1));
    assert.equal(contributions.reduce((sum, { contribution }) => sum + contribution, bias), scores[0]);
    const [{ names, values, bias: own }] = (await client.weights('spam')).vectors;
    const weights = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    assert.equal(scores[0], weights.free + 2 * weights.now + own);
    const watch = client.watch('spam');
    assert.equal((await watch.next()).value.report.examples, 3 * passes);
    await watch.return();
    await client.create('idle', spam);
    // On a busy machine the time may be over before the state is known.
    let ended;
    for (let timeout = 0.2; ended === undefined || /its state is unknown/.test(ended.message); timeout *= 2) {
      ended = await client.waitUntilConverged('idle', { timeout }).catch((error) => error);
    }
    assert.match(ended.message, /its state is learning/);
  });

  it('name a row that is too large for a message', async () => {
    await client.create('long', { featureSpace: { text: {} }, labelNames: ['ham', 'spam'] });
    const long = { text: 'x '.repeat(12_500_000), label: 'spam' };
    const short = { text: 'a', label: 'ham' };
    for (const [rows, number] of [[[short, long, short], 1], [[long, short], 0]]) {
      const refused = { reason: 'MESSAGE_TOO_LARGE', message: new RegExp(`row ${number}: this row alone is too large: it takes 25`) };
      await assert.rejects(client.learn('long', rows), refused);
      await assert.rejects(client.predict('long', rows), refused);
    }
  });

  it('learns texts, weights, several classes, labels 0 and 1, and labels that come later', async () => {
    await client.create('texts', { featureSpace: { text: {} }, labelNames: ['ham', 'spam'] });
    await client.learn('texts', [{ text: 'WIN a free prize!', label: 'spam', weight: 2 }, { text: 'See you at home', label: 'ham' }], { passes: 3 });
    assert.deepEqual((await client.predict('texts', [{ text: 'a PRIZE' }, { text: 'at home' }])).labels, ['spam', 'ham']);
    await client.create('classes', { featureSpace: { dense: { dimension: 3 } }, learner: { logisticRegression: {}, classes: { maxClasses: 3 } } });
    const rows = [0, 1, 2].map((label) => ({ features: new Map([[label, 1]]), label }));
    await client.learn('classes', rows, { passes: 5 });
    const { labels, scores, classScores, probabilities } = await client.predict('classes', rows, { classScores: true, batch: 2 });
    assert.deepEqual([labels, classScores.map((row) => Math.max(...row)), probabilities.length], [[0, 1, 2], scores, 3]);
    await client.create('bits', { featureSpace: { named: {} } });
    const warned = once(process, 'warning');
    const bits = [{ features: { free: 1 }, label: 1 }, { features: { lunch: 1 }, label: 0 }];
    await client.learn('bits', bits, { untilConverged: true });
    assert.equal((await warned)[0].message, 'label 0 is read as -1');
    assert.deepEqual((await client.predict('bits', bits)).labels, [1, -1]);
    await assert.rejects(client.learn('bits', [...bits, { features: { a: 1 }, label: -1 }]), /^RangeError: label 0 beside the label -1/);
    await client.create('later', { ...spam, storedPredictions: { maxBytes: 2 ** 20 } });
    const { ids } = await client.predict('later', mail, { ids: true, batch: 2 });
    const late = ids.map((predictionId, i) => ({ predictionId, label: mail[i].label }));
    assert.equal((await client.learn('later', late)).totals.examples, 3);
    await assert.rejects(client.learn('later', late), { reason: 'UNKNOWN_PREDICTION', message: /: none of 3 examples was learned; the first, row 0: / });
  });

  it('learns the class whose name a number is', async () => {
    const rows = mail.map((row) => ({ ...row, label: row.label === 'spam' ? '2' : '1' }));
    for (const name of ['names', 'numbers', 'streamed']) await client.create(name, { ...spam, labelNames: ['2', '1'] });
    const numbers = rows.map((row) => ({ ...row, label: Number(row.label) }));
    await client.learn('names', rows);
    await client.learn('numbers', numbers);
    const stream = await client.learnStream('streamed', 'sensor');
    await stream.send(numbers);
    await stream.finish();
    for (const name of ['numbers', 'streamed']) assert.deepEqual(await client.weights(name), await client.weights('names'));
    await assert.rejects(client.learn('numbers', [...rows, { ...rows[0], label: -1 }]), /^RangeError: row 3: label -1 is not a label of the model: "2", "1"/);
  });

  it('names a row that cannot be sent or has an error by its position in what was given', async () => {
    await client.create('places', spam);
    const rows = [...mail.slice(0, 2), { features: { a: NaN }, label: 'spam' }];
    for (const options of [{ batch: 1 }, { batch: 2, passes: 2 }, { batch: 2, producer: 'file' }]) {
      assert.match((await client.learn('places', rows, options)).totals.firstRowError, /^row 2: .*NON_FINITE_VALUE/);
    }
    assert.match((await client.learn('places', rows.map((row, i) => ({ ...row, line: 10 + i })))).totals.firstRowError, /^line 12: /);
    await assert.rejects(client.predict('places', rows, { batch: 2 }), /NON_FINITE_VALUE\): row 2: /);
    for (const [wrong, said] of [[{ text: 'a' }, 'a text; expected features, as the rows before it have'], [{ features: { a: 1 }, label: undefined }, 'the label is missing'],
      [{ features: { a: 1 }, label: 1.5 }, 'the label is 1.5; expected a whole number or a name'], [{ features: { a: 1 }, label: -1 }, 'the label is -1; expected a name'],
      [{ features: { a: '1' } }, 'the value of "a" is "1"'], [{ features: { a: 1n } }, 'the value of "a" is 1n'], [{ features: { a: 1 }, weight: '2' }, 'the weight is "2"; expected a number'],
      [{ features: new Map([[7, 1]]) }, 'the feature 7 is a number; expected a name'], [{ features: { '': 1 } }, 'the name "" has 0 bytes; expected 1 to 1024'],
      [{ features: { 'a\ud83d': 1 } }, 'the name has half of a character at 1'], [{ features: [1, 2] }, 'features are a list']]) {
      await assert.rejects(client.learn('places', [...mail, { label: 'ham', ...wrong }]), new RegExp(`^RangeError: row 3: ${said}`));
    }
    await assert.rejects(client.predict('places', mail[0]), /^RangeError: examples: expected an array/);
  });

  it('takes examples without a producer for new ones, and goes on with a named one where it was, as streams do', async () => {
    await client.create('producers', spam);
    await Promise.all([1, 2, 3].map(() => client.learn('producers', mail)));
    for (const [passes, examples] of [[1, 12], [1, 12], [3, 18]]) {
      await client.learn('producers', mail, { producer: 'file', passes });
      assert.equal((await client.report('producers')).examples, examples);
    }
    const stream = await client.learnStream('producers', 'sensor');
    await stream.send(mail);
    await stream.endPass();
    assert.equal((await stream.finish()).examples, 3);
    const again = await client.learnStream('producers', 'sensor');
    assert.deepEqual([again.nextOffset, again.passes], [3, 1]);
    await assert.rejects(again.send([{}]), /^RangeError: row 3: expected features/);
    await again.cancel();
  });

  it('sets, moves, challenges and deletes aliases, which predictions follow', async () => {
    await learned('champion');
    await learned('challenger', opposite);
    const { aliases } = client;
    assert.equal((await aliases.set('prod', 'champion', { description: 'mail' })).model, 'models/champion');
    const predicted = [];
    for await (const [, { predictedLabels }] of client.predictStream('aliases/prod', [mail[0], mail[0]], { batch: 1, window: 1 })) {
      if (predicted.push(...predictedLabels) === 1) await aliases.set('prod', 'challenger');
    }
    assert.deepEqual(predicted, [1, -1]);
    const { etag, previousModel } = await aliases.get('prod');
    assert.equal(previousModel, 'models/champion');
    await assert.rejects(client.delete('challenger'), { reason: 'MODEL_IN_USE' });
    await assert.rejects(aliases.set('prod', 'champion', { etag: `${etag}x` }), { code: 'ABORTED', reason: 'ETAG_MISMATCH' });
    assert.equal((await aliases.challenge('prod', 'champion')).outcome, 'CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES');
    assert.deepEqual((await all(aliases.list())).map(({ name }) => name), ['aliases/prod']);
    await aliases.delete('prod');
    await assert.rejects(aliases.delete('prod'), { code: 'NOT_FOUND', reason: 'ALIAS_NOT_FOUND' });
  });

  it('copies, renames, keeps and restores models, and analyzes stored examples', async () => {
    const { history } = client;
    await learned('kept', mail, { storedExamples: { maxSample: 10 } });
    const [{ revision }, weights] = [await client.get('kept'), await client.weights('kept')];
    await history.copy('kept', 'copy');
    assert.equal((await history.rename('copy', 'renamed')).name, 'models/renamed');
    assert.equal((await history.createSnapshot('kept', 'good')).revision, revision);
    await client.learn('kept', opposite, { passes: 2 });
    const worse = (await client.get('kept')).revision;
    await assert.rejects(history.rollBack('kept', { snapshot: 'good', expectedRevision: worse + 1 }), { reason: 'REVISION_MISMATCH' });
    assert.equal((await history.rollBack('kept', { snapshot: 'good', expectedRevision: worse })).revision, worse + 1);
    assert.deepEqual(await client.weights('kept'), weights);
    await history.deleteSnapshot('kept', 'good');
    assert.deepEqual(await history.listSnapshots('kept'), []);
    const seen = [];
    assert.ok((await client.analyze('renamed', { timeLimit: { seconds: 60 }, onProgress: (now) => seen.push(now.stage) })).separatorMargin > 0);
    await client.create('unstored', spam);
    await assert.rejects(client.analyze('unstored'), { code: 'FAILED_PRECONDITION', reason: 'NOTHING_STORED' });
  });

  it('writes and reads the files of the command line, also while the server is killed, and leaves nothing of what fails', async () => {
    const { history } = client;
    const file = path.join(work, 'model');
    const ctl = (...words) => execFileSync(process.env.PERCEPTRONCTL, ['--server', address, '--quiet', ...words]);
    const size = 2 ** 16;
    await client.create('wide', { featureSpace: { dense: { dimension: size } } });
    await client.learn('wide', [{ features: new Map(Array.from({ length: size }, (_, i) => [i, 1 + i])), label: 1 }]);
    const assertSame = async () => {
      assert.ok(JSON.stringify(await client.weights('made')) === JSON.stringify(await client.weights('wide')), 'the weights differ');
      await client.delete('made');
    };
    const killOnce = () => {
      let restarted;
      return { onProgress: () => { restarted ??= restart(); }, done: () => restarted };
    };
    const exporting = killOnce();
    assert.equal(await history.exportModel('wide', file, exporting), fs.statSync(file).size);
    await exporting.done();
    ctl('import', 'made', file);
    await assertSame();
    await assert.rejects(history.exportModel('wide', file), /^RangeError: .*model exists: give the path of a new file/);
    fs.rmSync(file);
    ctl('export', 'wide', file);
    const importing = killOnce();
    await history.importModel('made', file, importing);
    await importing.done();
    await assertSame();
    const pipe = new PassThrough();
    await Promise.all([history.exportModel('wide', pipe), history.importModel('made', pipe)]);
    await assertSame();
    const whole = fs.readFileSync(file);
    for (const wrong of [whole.subarray(0, -1), Buffer.alloc(0), Buffer.concat([whole, Buffer.from('x')])]) await assert.rejects(history.importModel('made', [wrong]), { reason: 'BAD_MODEL_FILE' });
    await assert.rejects(client.get('made'), { reason: 'MODEL_NOT_FOUND' });
  });
});
