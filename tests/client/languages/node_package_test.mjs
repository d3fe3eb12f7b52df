// The package that npm packs, installed beside its dependencies, against a real server; and its types.
//
//   PERCEPTROND=build/bin/perceptrond node --test node_package_test.mjs

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { mail, setUp, source, spam, startServer, stop, tearDown, work } from './node_fixture.mjs';

describe('the package', () => {
  let files;
  let running;
  let client;
  let perceptrond;

  before(async () => {
    ({ files, perceptrond, running, client } = await setUp());
  });

  after(() => tearDown(client, running));

  it('has protos and types, and neither examples nor tests', () => {
    for (const file of ['index.mjs', 'index.d.ts', 'lib/client.mjs', 'proto/perceptron/v1/model.proto', 'proto/google/rpc/status.proto', 'README.md']) assert.ok(files.includes(file), file);
    assert.deepEqual(files.filter((file) => /^(examples|node_modules)|storage/.test(file)), []);
    assert.ok(fs.existsSync(createRequire(path.join(work, 'user.mjs')).resolve('perceptrond/proto/perceptron/v1/backup_service.proto')));
  });

  it('is imported by CommonJS', () => {
    fs.writeFileSync(path.join(work, 'user.cjs'), "(async () => console.log(typeof (await import('perceptrond')).Client))();");
    assert.equal(execFileSync(process.execPath, [path.join(work, 'user.cjs')], { encoding: 'utf8' }), 'function\n');
  });

  it('creates, lists, freezes and deletes models', async () => {
    assert.equal((await client.create('m', spam)).name, 'models/m');
    assert.equal((await client.create('m', { featureSpace: { dense: { dimension: 2 } } }, { existOk: true })).labelNames[1], 'spam');
    const names = [];
    for await (const { name } of client.list()) names.push(name);
    assert.deepEqual(names, ['models/m']);
    assert.equal((await client.freeze('m')).state, 'MODEL_STATE_FROZEN');
    assert.equal((await client.freeze('models/m', false)).state, 'MODEL_STATE_ACTIVE');
    await client.delete('m');
    await client.delete('m', { missingOk: true });
  });

  it('refuses settings that the API does not have, and suggests others', async () => {
    for (const [wrong, said] of [[{ learner: { arrow: {} } }, 'learner.arrow: there is no such setting; did you mean arow?'],
      [{ learner: { arow: { regularisation: 3 } } }, 'learner.arow.regularisation: there is no such setting; did you mean regularization?'],
      [{ labelName: ['a', 'b'] }, 'labelName: there is no such setting; did you mean labelNames?'],
      [{ learner: { averagedPerceptron: {} } }, 'learner.averagedPerceptron: there is no such setting; did you mean averaged?'],
      [{ learner: { logistic: {} } }, 'learner.logistic: there is no such setting; did you mean logisticRegression?'],
      [{ label_names: ['a', 'b'] }, 'label_names: there is no such setting; did you mean labelNames?'],
      [{ featureSpace: { text: { maxWord: 2 } } }, 'featureSpace.text.maxWord: there is no such setting; did you mean maxWords?'],
      [{ featureSpace: { text: { value: 'VALUE_COUNTS' } } }, 'featureSpace.text.value: "VALUE_COUNTS" is no value of it; did you mean VALUE_COUNT?'],
      [{ learner: { perceptron: {}, tieRule: 'TIE_RULE_POSITIV' } }, 'learner.tieRule: "TIE_RULE_POSITIV" is no value of it; did you mean TIE_RULE_POSITIVE?'],
      [{ learner: { logisticRegression: { eta: 2 } } }, 'learner.logisticRegression.eta: there is no such setting; there are stepSize, updateThreshold, steps'],
      [{ learner: 'auto' }, 'learner: "auto"; expected an object: { auto: {} }'], [{ featureSpace: 'named' }, 'featureSpace: "named"; expected an object: { named: {} }'],
      [{ expireAfter: '30d' }, 'expireAfter: "30d"; expected an object with seconds, nanos'], [{ expireAfter: { days: 2 } }, 'expireAfter.days: there is no such setting; there are seconds, nanos']]) {
      await assert.rejects(client.create('wrong', { ...spam, ...wrong }), { name: 'RangeError', message: said });
    }
    // What get() returns is a model's settings as well.
    await client.create('like', { ...spam, learner: { logisticRegression: { steps: 'STEPS_ADAPTIVE' }, tieRule: 'TIE_RULE_POSITIVE' }, expireAfter: { seconds: 3600 } });
    const { featureSpace, labelNames, learner } = await client.get('like');
    assert.equal((await client.create('copied', { featureSpace, labelNames, learner })).learner.logisticRegression.steps, 'STEPS_ADAPTIVE');
  });

  it('changes what is given', async () => {
    await client.create('changed', { ...spam, expireAfter: { seconds: 3600 } });
    const { etag, expireAfter } = await client.update('changed', { description: 'mail', expireAfter: { seconds: 7200 } });
    assert.equal(expireAfter.seconds, 7200);
    const changed = await client.update('models/changed', { expireAfter: undefined, marginOfInterest: 0.5, etag });
    assert.deepEqual([changed.expireAfter, changed.description, changed.marginOfInterest], [null, 'mail', 0.5]);
    await assert.rejects(client.update('changed', { description: 'late', etag }), { code: 'ABORTED', reason: 'ETAG_MISMATCH' });
    assert.throws(() => client.update('changed', {}), /^RangeError: nothing to change/);
    assert.throws(() => client.update('changed', { desciption: 'mail' }), /did you mean description/);
  });

  it('reads, predicts and learns by an alias, which a stream of predictions follows', async () => {
    await client.create('champion', spam);
    await client.create('challenger', spam);
    await client.learn('champion', mail, { untilConverged: true });
    await client.learn('challenger', mail.map((row) => ({ ...row, label: row.label === 'spam' ? 'ham' : 'spam' })), { untilConverged: true });
    const move = (model) => client.aliases.set('prod', model);
    await move('champion');
    assert.equal((await client.get('aliases/prod')).name, 'models/champion');
    assert.deepEqual((await client.predict('aliases/prod', mail)).labels, ['spam', 'ham', 'spam']);
    assert.equal((await client.explain('aliases/prod', mail)).explanations.length, 3);
    const predicted = [];
    for await (const [, { predictedLabels }] of client.predictStream('aliases/prod', [mail[0], mail[0]], { batch: 1, window: 1 })) {
      if (predicted.push(...predictedLabels) === 1) await move('challenger');
    }
    assert.deepEqual(predicted, [1, -1]);
    const { examples } = await client.report('challenger');
    // A model by its name and by an alias at once.
    async function* slow() {
      yield mail[0];
      assert.equal((await client.learn('aliases/prod', mail)).totals.examples, 3);
      yield mail[1];
    }
    assert.equal((await client.learn('challenger', slow(), { batch: 1 })).totals.examples, 2);
    assert.equal((await client.report('challenger')).examples, examples + 5);
    await assert.rejects(client.create('aliases/prod', spam), { code: 'INVALID_ARGUMENT' });
  });

  it('throws errors with code, reason and violations', async () => {
    assert.throws(() => new perceptrond.Client('http://127.0.0.1:7600'), /^RangeError: server "http:.*" is a web address; give host:port/);
    await assert.rejects(client.get('nothing'), { name: 'PerceptrondError', code: 'NOT_FOUND', reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(client.learn('nothing', mail), { code: 'NOT_FOUND', reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(client.create('m', { featureSpace: { dense: { dimension: 0 } } }), (error) => error instanceof perceptrond.PerceptrondError
      && error.violations[0].field === 'model.feature_space.dense.dimension');
    await assert.rejects(client.learn('nothing', mail[Symbol.iterator](), { passes: 2 }), RangeError);
  });

  it('learns until a pass changes nothing, predicts and explains', async () => {
    await client.create('spam', spam);
    const seen = [];
    const { lastPass, passes } = await client.learn('spam', mail, { untilConverged: true, batch: 2, onProgress: (now) => seen.push(now) });
    assert.equal(lastPass.converged, true);
    assert.equal(passes, lastPass.number);
    assert.deepEqual(seen.slice(0, 2).map(({ pass, sent, rows }) => ({ pass, sent, rows })), [{ pass: 1, sent: 2, rows: 3 }, { pass: 1, sent: 3, rows: 3 }]);
    assert.equal(seen.at(-1).examples, 3 * passes);
    assert.equal((await client.waitUntilConverged('spam', { timeout: 30 })).name, 'models/spam');
    const { labels, scores, revision } = await client.predict('spam', mail, { batch: 2 });
    assert.deepEqual(labels, ['spam', 'ham', 'spam']);
    assert.equal(revision, (await client.get('spam')).revision);
    const { explanations: [{ bias, contributions }] } = await client.explain('spam', mail.slice(0, 1));
    assert.equal(contributions.reduce((sum, { contribution }) => sum + contribution, bias), scores[0]);
    await assert.rejects(client.predict('spam', [{ features: { a: NaN } }]), { reason: 'NON_FINITE_VALUE' });
  });

  it('names a row with an error by its position in what was given', async () => {
    await client.create('places', spam);
    const rows = [{ features: { a: 1 }, label: 'spam' }, { features: { b: 1 }, label: 'ham' }, { features: { a: NaN }, label: 'spam' }];
    for (const options of [{ batch: 1 }, { batch: 2, passes: 2 }, { batch: 2, producer: 'file' }]) {
      assert.match((await client.learn('places', rows, options)).totals.firstRowError, /^row 2: .*NON_FINITE_VALUE/);
    }
    const ofFile = rows.map((row, i) => ({ ...row, line: 10 + i }));
    assert.match((await client.learn('places', ofFile)).totals.firstRowError, /^line 12: /);
    await assert.rejects(client.predict('places', rows, { batch: 2 }), /NON_FINITE_VALUE\): row 2: /);
    await assert.rejects(client.predict('places', ofFile, { batch: 1 }), /line 12: /);
    await assert.rejects(client.learn('places', [{ features: new Map([[1, 1]]), label: 1 }, { features: new Map([[-1, 1]]), label: 1 }]), /^RangeError: row 1: index -1 is out of range/);
    await assert.rejects(client.predict('places', [{ features: new Map([[1n, 1]]) }]), /^RangeError: row 0: the index 1n is a bigint; expected a number/);
    const mixed = [...rows.slice(0, 2), { features: { c: 1 }, label: 'ham' }, { features: new Map([[7, 1]]), label: 'ham' }];
    for (const batch of [100, 2]) {
      for (const call of [() => client.learn('places', mixed, { batch }), () => client.predict('places', mixed, { batch }), () => client.explain('places', mixed)]) {
        await assert.rejects(call(), /^RangeError: row 3: the feature 7 is a number; expected a name, as the features before it are/);
      }
    }
    await assert.rejects(client.predict('places', [{ features: new Map([[7, 1]]) }, { features: { a: 1 }, line: 8 }]), /^RangeError: line 8: the feature "a" is a string; expected an index/);
  });

  it('learns and predicts texts, which the server splits', async () => {
    await client.create('texts', { featureSpace: { text: {} }, labelNames: ['ham', 'spam'] });
    const texts = [{ text: 'WIN a free prize!', label: 'spam' }, { text: 'See you at home', label: 'ham' }];
    // Longer together than a message of texts may be.
    const long = [0, 1, 2].map((i) => ({ text: `free ${'x'.repeat(300_000)} ${i}`, label: 'spam' }));
    assert.equal((await client.learn('texts', [...texts, ...long], { passes: 3 })).totals.examples, 15);
    assert.deepEqual((await client.predict('texts', [{ text: 'a PRIZE' }, { text: 'at home' }])).labels, ['spam', 'ham']);
    const { explanations: [{ contributions }] } = await client.explain('texts', [{ text: 'prize' }]);
    assert.equal(contributions.length, 1);
  });

  it('learns labels that come later by the ids of predictions, once', async () => {
    await client.create('later', { ...spam, storedPredictions: { maxBytes: 2 ** 20 } });
    const { ids } = await client.predict('later', mail, { ids: true, batch: 2 });
    assert.equal(new Set(ids).size, 3);
    const labels = ids.map((predictionId, i) => ({ predictionId, label: mail[i].label }));
    assert.equal((await client.learn('later', labels)).totals.examples, 3);
    const warned = once(process, 'warning');
    assert.match((await client.learn('later', labels)).totals.firstRowError, /^row 0: .*UNKNOWN_PREDICTION/);
    assert.match((await warned)[0].message, /^3 of 3 examples were not learned; the first, row 0: /);
  });

  it('refuses what is no example, and names its row', async () => {
    for (const wrong of [null, {}, { features: 'free' }, { features: null }, { text: 1 }, { text: 'a', features: { a: 1 } }]) {
      await assert.rejects(client.predict('spam', [mail[0], wrong]), /^RangeError: row 1: expected features/);
    }
    await assert.rejects(client.predict('spam', [mail[0], { features: [1, 2] }]), /^RangeError: row 1: features are a list; expected .* a Map of indices/);
    for (const list of [new Set(['a']), new Float32Array(2)]) await assert.rejects(client.predict('spam', [{ features: list }]), /^RangeError: row 0: features are a list/);
    for (const one of [mail[0], 3, undefined]) await assert.rejects(client.predict('spam', one), /^RangeError: examples: expected an array/);
  });

  it('refuses what it cannot send as it is, before the rows after it, and names its row', async () => {
    await client.create('exact', spam);
    await client.create('words', { featureSpace: { text: {} }, labelNames: ['ham', 'spam'] });
    for (const [wrong, said] of [[{ text: 'a' }, 'a text; expected features, as the rows before it have'], [{ features: { a: 1 }, label: undefined }, 'the label is missing'],
      [{ features: { a: 1 }, label: 1.5 }, 'the label is 1.5; expected a whole number or a name'], [{ features: { a: 1 }, label: 2 ** 32 + 1 }, 'the label is 4294967297'],
      [{ features: { a: 1 }, label: null }, 'the label is null'], [{ features: { a: 1 }, label: 1n }, 'the label is 1n; expected a whole number or a name'], [{ features: { a: null } }, 'the value of "a" is null; expected a number'],
      [{ features: { a: '1' } }, 'the value of "a" is "1"'], [{ features: { a: 1n } }, 'the value of "a" is 1n'], [{ features: { a: 1 }, weight: '2' }, 'the weight is "2"; expected a number'],
      [{ features: { '': 1 } }, 'the name "" has 0 bytes; expected 1 to 1024'], [{ features: { ['é'.repeat(600)]: 1 } }, 'the name ".*" has 1200 bytes; expected 1 to 1024: give a long text'],
      [{ features: { 'a\ud83d': 1 } }, 'the name has half of a character at 1']]) {
      for (const batch of [1, 100]) {
        if (batch === 1 && wrong.text) continue;
        await assert.rejects(client.learn('exact', [...mail, { label: 'ham', ...wrong }], { batch }), new RegExp(`^RangeError: row 3: ${said}`));
      }
    }
    const cut = [{ text: 'hi 😀', label: 'ham' }, { text: 'hi 😀'.slice(0, 4), label: 'ham' }];
    await assert.rejects(client.learn('words', cut), /^RangeError: row 1: the text has half of a character at 3/);
    await assert.rejects(client.predict('words', cut), /^RangeError: row 1: the text has half/);
    await assert.rejects(client.predict('spam', [...mail, { text: 'a' }], { batch: 3 }), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(client.predict('spam', [...mail, mail[0], { text: 'a' }], { batch: 3 }), /^RangeError: row 4: a text; expected features/);
  });

  it('splits what is more than a message may have', async () => {
    await client.create('wide', { featureSpace: { dense: { dimension: 2 ** 20 } } });
    const wide = Array.from({ length: 24 }, (_, i) => ({ features: new Map(Array.from({ length: 100_000 }, (__, index) => [10 * index + (i % 10), 0.5])), label: i % 2 === 0 ? 1 : -1 }));
    assert.equal((await client.learn('wide', wide)).totals.examples, 24);
    assert.equal((await client.predict('wide', wide)).labels.length, 24);
  });

  it('takes examples without a producer for new ones, and goes on with a named one where it was', async () => {
    await client.create('producers', spam);
    for (const passes of [1, 2]) assert.equal((await client.learn('producers', mail)).passes, passes);
    await Promise.all([1, 2, 3].map(() => client.learn('producers', mail)));
    for (const [passes, examples] of [[1, 18], [1, 18], [3, 24]]) {
      await client.learn('producers', mail, { producer: 'file', passes });
      assert.equal((await client.report('producers')).examples, examples);
    }
  });

  it('learns each example once though the server is killed', async () => {
    await client.create('killed', spam);
    async function* rows() {
      for (let i = 0; i < 2000; ++i) {
        if (i === 1000) {
          await stop(running.server);
          running = await startServer(running.address);
        }
        yield mail[i % 3];
      }
    }
    const lost = [];
    const careful = new perceptrond.Client(running.address, { onReconnect: (error) => lost.push(error.code) });
    const { lastPass } = await careful.learn('killed', rows(), { batch: 20, window: 100 });
    careful.close();
    assert.equal(lastPass.examples, 2000);
    assert.equal(lost[0], 'UNAVAILABLE');
  });

  /** Weights of a model, to be compared. */
  const explained = async (model) => (await client.explain(model, mail)).explanations;

  it('teaches several models from one stream what each learns alone', async () => {
    const rules = { perceptron: {}, passive: { learner: { passiveAggressive: {} } } };
    for (const [name, learner] of Object.entries(rules)) {
      for (const model of [`of-${name}`, `${name}-alone`]) await client.create(model, { ...spam, ...learner });
      await client.learn(`${name}-alone`, mail, { passes: 3 });
    }
    const both = ['of-perceptron', 'of-passive'];
    const { totals, lastPass, passes, others: [other] } = await client.learn(both, mail, { passes: 3, batch: 2 });
    assert.deepEqual([totals.examples, other.totals.examples, lastPass.number, other.lastPass.number, passes], [9, 9, 3, 3, 3]);
    for (const name of Object.keys(rules)) assert.deepEqual(await explained(`of-${name}`), await explained(`${name}-alone`));
    assert.equal(other.totals.updates, (await client.report('of-passive')).updates);
    assert.deepEqual((await client.learn('of-passive', mail)).others, []);
    // The next call is new to both.
    assert.equal((await client.learn(both, mail)).others[0].totals.examples, 3);
  });

  it('names the one of several models that has an error', async () => {
    await client.create('by-name', spam);
    for (const dimension of [2, 3]) await client.create(`of-${dimension}`, { featureSpace: { dense: { dimension } }, labelNames: ['ham', 'spam'] });
    const row = { features: new Map([[2, 1]]), label: 'spam' };
    const { totals, others: [other] } = await client.learn(['of-3', 'of-2'], [row]);
    assert.deepEqual([totals.firstRowError, other.totals.firstRowError.slice(0, 54)], ['', 'models/of-2: row 0: INVALID_ARGUMENT (INDEX_OUT_OF_RAN']);
    await assert.rejects(client.learn(['of-3', 'by-name'], [row]), /MALFORMED_COLUMNS\): models\/by-name: .*names, not indices/);
    await assert.rejects(client.learn('by-name', [row]), /MALFORMED_COLUMNS\): columns/);
  });

  it('goes on until the last of several models has converged', async () => {
    await client.create('converged', spam);
    await client.learn('converged', mail, { untilConverged: true });
    await client.create('slow', { ...spam, learner: { biasInput: 5 } });
    const { lastPass, others: [other] } = await client.learn(['converged', 'slow'], mail, { untilConverged: true });
    assert.deepEqual([lastPass.converged, other.lastPass.converged], [true, true]);
    assert.ok(lastPass.number > 1);
  });

  it('gives each of several models what it lacks of a producer', async () => {
    for (const model of ['ahead', 'new']) await client.create(model, spam);
    await client.learn('ahead', mail, { producer: 'file' });
    const { totals, others: [other] } = await client.learn(['ahead', 'new'], mail, { producer: 'file', batch: 2 });
    assert.deepEqual([totals.examples, totals.duplicates, other.totals.examples, other.totals.duplicates], [0, 3, 3, 0]);
    assert.deepEqual(await explained('ahead'), await explained('new'));
  });

  it('refuses several models of which one is missing, named twice or created again, and says which or what to do', async () => {
    for (const model of ['kept', 'again']) await client.create(model, spam);
    await assert.rejects(client.learn(['kept', 'nothing'], mail), ({ message, reason }) => message.includes('nothing') && reason === 'MODEL_NOT_FOUND');
    await assert.rejects(client.learn(['kept', 'kept'], mail), { reason: 'INVALID_FIELD' });
    await assert.rejects(client.learn([], mail), RangeError);
    await client.learn(['kept', 'again'], mail);
    await client.delete('again');
    await client.create('again', spam);
    await assert.rejects(client.learn(['kept', 'again'], mail), { code: 'FAILED_PRECONDITION', reason: 'POSITIONS_DIFFER' });
    await client.learn(['kept', 'again'], mail);
    assert.deepEqual([(await client.report('kept')).examples, (await client.report('again')).examples], [6, 3]);
  });

  it('teaches several models each example once though the server is killed', async () => {
    const both = ['first', 'second'];
    for (const model of both) await client.create(model, spam);
    async function* rows() {
      for (let i = 0; i < 300; ++i) {
        if (i === 150) {
          await stop(running.server);
          running = await startServer(running.address);
        }
        yield mail[i % 3];
      }
    }
    const { lastPass, others: [other] } = await client.learn(both, rows(), { batch: 10, window: 50 });
    assert.deepEqual([lastPass.examples, other.lastPass.examples], [300, 300]);
  });

  it('says what to do where no server or another one answers', async () => {
    const fails = async (server, options, said) => {
      const elsewhere = new perceptrond.Client(server, { giveUpAfter: 0.5, ...options });
      await assert.rejects(elsewhere.get('m'), (error) => error.code === 'UNAVAILABLE' && said.test(error.message) || assert.fail(error.message));
      elsewhere.close();
    };
    const nothing = net.createServer().listen(0, '127.0.0.1');
    await once(nothing, 'listening');
    const { port } = nothing.address();
    await new Promise((resolve) => nothing.close(resolve));
    await fails(`127.0.0.1:${port}`, {}, /is perceptrond running there\?/);
    const certificate = path.join(work, 'other.pem');
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ed25519', '-nodes', '-subj', '/CN=localhost', '-days', '1', '-out', certificate, '-keyout', path.join(work, 'other.key')], { stdio: 'ignore' });
    await fails(running.address, { tlsCa: certificate }, /leave out tlsCa/);
  });

  it('stops waiting for convergence when the time is over', async () => {
    await client.create('idle', spam);
    await assert.rejects(client.waitUntilConverged('idle', { timeout: 0.2 }), /idle has not converged within 0.2 s: its state is learning/);
  });

  it('runs the program of the README', async () => {
    const [, program] = fs.readFileSync(path.join(source, 'README.md'), 'utf8').match(/```js\n(.*?)```/s);
    fs.writeFileSync(path.join(work, 'readme.mjs'), program.replace('127.0.0.1:7600', running.address).replaceAll("'spam', ", "'readme', "));
    assert.equal(execFileSync(process.execPath, ['readme.mjs'], { cwd: work, encoding: 'utf8' }), "[ 'spam' ]\n");
  });

  it('has types that accept right programs and find mistakes', () => {
    fs.writeFileSync(path.join(work, 'user.mts'), `
import { Client, PerceptrondError, type Example, type WritableStream } from 'perceptrond';

declare const process: { stdin: AsyncIterable<Uint8Array>; stdout: WritableStream };

const client = new Client('127.0.0.1:7600', { giveUpAfter: 5, onReconnect: (error) => console.log(error.reason) });
const rows: Example[] = [{ features: { free: 1 }, label: 'spam' }, { features: new Map([[3, 0.5]]), label: -1 }];
await client.create('spam', { featureSpace: { named: {} }, labelNames: ['ham', 'spam'] }, { existOk: true });
const { lastPass, totals } = await client.learn('spam', rows, { untilConverged: true, onProgress: ({ sent }) => console.log(sent + 1) });
const { others: [other] } = await client.learn(['spam', 'texts'], rows);
console.log(other.totals.updates, other.lastPass?.converged);
const share: number = totals.mistakes / (lastPass?.examples ?? 1);
for await (const model of client.watch('spam', { interval: 0.1 })) console.log(model.report.state === 'CONVERGENCE_STATE_CONVERGED', share);
for await (const [batch, answer] of client.predictStream('spam', rows)) console.log(batch.length, answer.scores[0] * 2);
try { await client.get('spam'); } catch (error) { if (error instanceof PerceptrondError) console.log(error.violations[0]?.field); }
await client.learn('texts', [{ text: 'free', label: 'spam', weight: 2 }, { predictionId: (await client.predict('texts', [{ text: 'a' }], { ids: true })).ids[0], label: 'ham' }]);
const [{ values, bias }] = (await client.weights('spam')).vectors;
const { classScores, model } = await client.predict('spam', rows, { classScores: true, minRevision: 1 });
const bare: string = model.slice(7);
console.log(values[0] * bias, classScores[0].length, (await client.aliases.set('prod', 'spam', { description: 'mail' })).previousModel);
for await (const alias of client.aliases.list()) console.log(alias.model);
if ((await client.aliases.challenge('prod', 'spam-2', { error: 'window' })).outcome === 'CHALLENGE_OUTCOME_CHAMPION_WON') await client.history.rollBack('spam', { revision: 3 });
const size: number = await client.history.exportModel('spam', process.stdout, { onProgress: ({ bytes, total = 0 }) => console.log(bytes / total) });
await client.history.importModel('spam-3', new URL('file:///tmp/spam.model'));
await client.history.importModel('spam-4', [new Uint8Array(size)]);
await client.history.importModel('spam-5', process.stdin);
const stream = await client.learnStream(['spam', 'spam-2'], 'sensor');
await stream.send(rows);
console.log((await stream.endPass())[1].converged, (await stream.finish())[0].updates);
console.log((await client.analyze('spam', { timeLimit: { seconds: 60 } })).separatorMargin);
// @ts-expect-error a snapshot or a revision
await client.history.rollBack('spam', {});
// @ts-expect-error no such error
await client.aliases.challenge('prod', 'spam-2', { error: 'all' });
// @ts-expect-error bytes
await client.history.importModel('spam', ['text']);
// @ts-expect-error one of them
await client.predict('spam', [{ text: 'free', features: { a: 1 } }]);
// @ts-expect-error names of models
await client.learn([1], rows);
// @ts-expect-error a number
await client.learn('spam', rows, { passes: '2' });
// @ts-expect-error labels
(await client.predict('spam', rows)).label;
// @ts-expect-error no such state
(await client.report('spam')).state === 'CONVERGED';
`);
    const done = spawnSync(path.join(source, 'node_modules/.bin/tsc'), ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom', 'user.mts'], { cwd: work, encoding: 'utf8' });
    assert.equal(done.status, 0, done.stdout + done.stderr);
  });
});
