// Models as files by the Node package, against a real server and beside perceptronctl.
//
//   PERCEPTROND=build/bin/perceptrond PERCEPTRONCTL=build/bin/perceptronctl node --test node_files_test.mjs

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { after, afterEach, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { mail, setUp, spam, startServer, stop, tearDown, work } from './node_fixture.mjs';

// Weights of 8 MiB, more than is on its way at once: of two examples, since one may have 2^20 features.
const WIDE = 2 ** 21;

describe('files', () => {
  const folder = path.join(work, 'files');
  const file = path.join(folder, 'model');
  let running;
  let client;
  let history;

  before(async () => {
    ({ running, client } = await setUp());
    history = client.history;
    fs.mkdirSync(folder);
    await client.create('spam', spam);
    await client.learn('spam', mail, { passes: 3, producer: 'file' });
    await client.create('wide', { featureSpace: { dense: { dimension: WIDE } } });
    const half = (begin, label) => ({ features: new Map(Array.from({ length: WIDE / 2 }, (_, i) => [begin + i, 1 + i])), label });
    assert.equal((await client.learn('wide', [half(0, 1), half(WIDE / 2, -1)], { batch: 1 })).totals.updates, 2);
  });

  afterEach(async () => {
    await client.delete('made', { missingOk: true });
    for (const name of fs.readdirSync(folder)) fs.rmSync(path.join(folder, name));
  });

  after(() => tearDown(client, running));

  const perceptronctl = (...words) => execFileSync(process.env.PERCEPTRONCTL, ['--server', running.address, '--quiet', ...words]);

  const assertSame = async (made, model) => {
    assert.ok(JSON.stringify(await client.weights(made)) === JSON.stringify(await client.weights(model)), 'the weights differ');
    const [a, b] = [await client.report(made), await client.report(model)];
    assert.deepEqual([a.examples, a.mistakes, a.updates], [b.examples, b.mistakes, b.updates]);
  };

  const assertNothingIsLeft = async () => {
    assert.deepEqual(fs.readdirSync(folder), []);
    const names = [];
    for await (const { name } of client.list()) names.push(name);
    assert.deepEqual(names, ['models/spam', 'models/wide']);
  };

  /** A callback in the middle of whose transfer the server is killed. */
  const restartOnce = () => {
    let restarted;
    return [() => {
      restarted ??= stop(running.server).then(() => startServer(running.address)).then((now) => { running = now; });
    }, () => restarted];
  };

  it('are those of the command line', async () => {
    for (const model of ['spam', 'wide']) {
      const [ours, theirs] = [path.join(folder, `ours-${model}`), path.join(folder, `theirs-${model}`)];
      assert.equal(await history.exportModel(model, ours), fs.statSync(ours).size);
      perceptronctl('import', 'made', ours);
      await assertSame('made', model);
      await client.delete('made');
      perceptronctl('export', model, theirs);
      assert.equal(fs.statSync(ours).mode, fs.statSync(theirs).mode);
      assert.equal((await history.importModel('made', pathToFileURL(theirs))).name, 'models/made');
      await assertSame('made', model);
      await client.delete('made');
    }
  });

  it('have the positions of producers', async () => {
    await history.exportModel('spam', file);
    await history.importModel('made', file);
    assert.equal((await client.learn('made', mail, { passes: 3, producer: 'file' })).totals.examples, 0);
  });

  it('are written to and read from streams', async () => {
    const pipe = new PassThrough();
    const [size, made] = await Promise.all([history.exportModel('wide', pipe), history.importModel('made', pipe)]);
    assert.equal(made.name, 'models/made');
    await assertSame('made', 'wide');
    await client.delete('made');
    const written = fs.createWriteStream(file);
    await history.exportModel('wide', written);
    assert.ok(written.writableFinished);
    const whole = fs.readFileSync(file);
    assert.ok(Math.abs(whole.length - size) < 100);
    await history.importModel('made', [whole.subarray(0, 5), whole.subarray(5, 5), whole.subarray(5)]);
    await assertSame('made', 'wide');
  });

  it('do not replace others', async () => {
    fs.writeFileSync(file, 'kept');
    await assert.rejects(history.exportModel('spam', file), /^RangeError: .*model exists: give the path of a new file/);
    assert.equal(fs.readFileSync(file, 'utf8'), 'kept');
  });

  it('are not there after an error, and neither is a model', async () => {
    await assert.rejects(history.exportModel('nothing', file), { name: 'PerceptrondError', reason: 'MODEL_NOT_FOUND' });
    await assertNothingIsLeft();
    await history.exportModel('wide', file);
    const whole = fs.readFileSync(file);
    fs.rmSync(file);
    const damaged = Buffer.from(whole);
    damaged[whole.length >> 1] ^= 1;
    for (const wrong of [whole.subarray(0, -1), whole.subarray(0, 100), Buffer.alloc(0), damaged, Buffer.concat([whole, Buffer.from('x')])]) {
      await assert.rejects(history.importModel('made', [wrong]), { code: 'INVALID_ARGUMENT', reason: 'BAD_MODEL_FILE' });
      await assertNothingIsLeft();
    }
    await assert.rejects(history.importModel('spam', [whole]), { reason: 'MODEL_EXISTS' });
    await assert.rejects(history.importModel('made', path.join(folder, 'none')), { code: 'ENOENT' });
  });

  it('end with what the file or the callback throws', async () => {
    const fail = () => { throw new Error('mine'); };
    await assert.rejects(history.exportModel('wide', file, { onProgress: fail }), /^Error: mine/);
    await assert.rejects(history.importModel('made', [Buffer.alloc(10)], { onProgress: fail }), /^Error: mine/);
    await assert.rejects(history.importModel('made', Readable.from(['text'])), /^TypeError: the file has a string; expected bytes/);
    async function* broken() {
      yield Buffer.from('perceptrond');
      throw new Error('the disk failed');
    }
    await assert.rejects(history.importModel('made', broken()), /^Error: the disk failed/);
    const full = new Writable({ write: (piece, encoding, done) => done(new Error('the disk is full')) });
    await assert.rejects(history.exportModel('wide', full), /^Error: the disk is full/);
    await assertNothingIsLeft();
  });

  it('begin again when the server was killed', async () => {
    const [kill, restarted] = restartOnce();
    await history.exportModel('wide', file, { onProgress: kill });
    await restarted();
    const [killAgain, restartedAgain] = restartOnce();
    await history.importModel('made', file, { onProgress: killAgain });
    await restartedAgain();
    await assertSame('made', 'wide');
  });

  it('end with an error when the server was killed and they are streams', async () => {
    await history.exportModel('wide', file);
    const [kill, restarted] = restartOnce();
    await assert.rejects(history.importModel('made', fs.createReadStream(file), { onProgress: kill }), { code: 'UNAVAILABLE' });
    await restarted();
    const [killAgain, restartedAgain] = restartOnce();
    const slow = new PassThrough();
    const ended = once(slow, 'error');
    await assert.rejects(history.exportModel('wide', slow, { onProgress: killAgain }), { code: 'UNAVAILABLE' });
    await restartedAgain();
    await ended;
    fs.rmSync(file);
    await assertNothingIsLeft();
  });

  it('show how far they are', async () => {
    const seen = [];
    const size = await history.exportModel('wide', file, { onProgress: (now) => seen.push(now) });
    assert.ok(seen.length > 8);
    assert.deepEqual(seen.at(-1), { bytes: size, total: size, complete: true });
    assert.ok(seen.slice(0, -1).every(({ total, complete }, i) => total === undefined && !complete && (i === 0 || seen[i - 1].bytes < seen[i].bytes)));
    seen.length = 0;
    await history.importModel('made', file, { onProgress: (now) => seen.push(now) });
    assert.deepEqual(seen.at(-1), { bytes: size, total: size, complete: true });
    assert.ok(seen.slice(0, -1).every(({ total, complete }) => total === size && !complete));
  });
});
