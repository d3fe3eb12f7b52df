// Weights, aliases, history, analyses and streams of examples by the Node package, against a real server.
//
//   PERCEPTROND=build/bin/perceptrond node --test node_management_test.mjs

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { mail, setUp, spam, tearDown } from './node_fixture.mjs';

const opposite = mail.map((row) => ({ ...row, label: row.label === 'spam' ? 'ham' : 'spam' }));

describe('the client', () => {
  let running;
  let perceptrond;
  let client;

  before(async () => {
    ({ perceptrond, running, client } = await setUp());
  });

  after(() => tearDown(client, running));

  const learned = async (model, rows = mail, settings = {}) => {
    await client.create(model, { ...spam, ...settings });
    await client.learn(model, rows, { passes: 3 });
  };

  const all = async (items) => {
    const found = [];
    for await (const item of items) found.push(item);
    return found;
  };

  it('returns the weights that predict, of all pages', async () => {
    await learned('named');
    const { vectors: [{ names, values, bias, indices }] } = await client.weights('named');
    const weights = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    assert.deepEqual([Object.keys(weights).sort(), indices], [['free', 'lunch', 'now'], []]);
    const { scores } = await client.predict('named', mail);
    assert.deepEqual(scores, [weights.free + 2 * weights.now + bias, weights.lunch + weights.now + bias, 2 * weights.free + bias]);
    await client.create('wide', { featureSpace: { dense: { dimension: 200_000 } } });
    await client.learn('wide', [{ features: new Map(Array.from({ length: 200_000 }, (_, i) => [i, 1 + i % 100])), label: 1 }]);
    const [wide] = (await client.weights('wide')).vectors;
    assert.equal(wide.values.length, 200_000);
    assert.ok(wide.indices.every((index, i) => index === i) && wide.values.every((value, i) => value === 1 + i % 100));
    await client.create('several', { featureSpace: { dense: { dimension: 3 } }, learner: { classes: { maxClasses: 3 } } });
    assert.equal((await client.weights('several')).vectors.length, 3);
    await client.create('voted', { ...spam, learner: { voted: {} } });
    await assert.rejects(client.weights('voted'), { code: 'FAILED_PRECONDITION', reason: 'NOT_LINEAR' });
  });

  it('returns the score of each class, if asked', async () => {
    await client.create('classes', { featureSpace: { dense: { dimension: 3 } }, labelNames: ['a', 'b', 'c'], learner: { logisticRegression: {}, classes: { maxClasses: 3 } } });
    const rows = ['a', 'b', 'c'].map((label, i) => ({ features: new Map([[i, 1]]), label }));
    await client.learn('classes', rows, { passes: 5 });
    const { labels, scores, classScores, probabilities } = await client.predict('classes', rows, { classScores: true, batch: 2 });
    assert.deepEqual([labels, classScores.map((row) => row.length), probabilities.length], [['a', 'b', 'c'], [3, 3, 3], 3]);
    assert.deepEqual(classScores.map((row) => Math.max(...row)), scores);
    assert.deepEqual((await client.predict('classes', rows)).classScores, []);
    const { vectors } = await client.weights('classes');
    classScores.forEach((row, i) => row.forEach((score, c) => assert.ok(Math.abs(score - vectors[c].values[i] - vectors[c].bias) < 1e-5)));
  });

  it('names a class that is added while predictions are made', async () => {
    await client.create('growing', { featureSpace: { named: {} }, learner: { logisticRegression: {}, classes: { maxClasses: 4, newClasses: 'NEW_CLASSES_NAMED' } } });
    await client.learn('growing', [{ features: { a: 1 }, label: 'old' }]);
    async function* rows() {
      yield { features: { a: 1 } };
      await client.learn('growing', [{ features: { b: 1 }, label: 'new' }, { features: { a: 1 }, label: 'old' }], { passes: 9 });
      yield { features: { b: 1 } };
    }
    assert.deepEqual((await client.predict('growing', rows(), { batch: 1 })).labels, ['old', 'new']);
  });

  it('predicts by no older state than was asked for', async () => {
    await learned('states');
    const { revision, scores } = await client.predict('states', mail);
    assert.deepEqual((await client.predict('states', mail, { minRevision: revision })).scores, scores);
    await assert.rejects(client.predict('states', mail, { minRevision: revision + 1 }), { code: 'ABORTED', reason: 'REVISION_TOO_OLD' });
  });

  it('learns an example by its weight', async () => {
    for (const [model, weight] of [['light', undefined], ['heavy', 3]]) {
      await client.create(model, spam);
      await client.learn(model, [{ ...mail[0], weight }, { ...mail[1], weight: 1 }]);
    }
    const [[light], [heavy]] = [(await client.weights('light')).vectors, (await client.weights('heavy')).vectors];
    const free = ({ names, values }) => values[names.indexOf('free')];
    assert.deepEqual([free(light), free(heavy)], [1, 3]);
    await client.create('texts', { featureSpace: { text: {} }, labelNames: ['ham', 'spam'] });
    await client.learn('texts', [{ text: 'free', label: 'spam', weight: 2 }]);
    assert.match((await client.learn('heavy', [{ ...mail[0], weight: -1 }])).totals.firstRowError, /^row 0: .*weight/);
  });

  it('sets, lists, moves and deletes aliases', async () => {
    for (const model of ['alias-a', 'alias-b']) await client.create(model, spam);
    const { aliases } = client;
    assert.equal((await aliases.set('x', 'alias-a', { description: 'for all' })).model, 'models/alias-a');
    assert.equal((await aliases.set('aliases/y', 'models/alias-b')).name, 'aliases/y');
    assert.deepEqual((await all(aliases.list())).map(({ name }) => name), ['aliases/x', 'aliases/y']);
    const { etag } = await aliases.get('x');
    const { model, previousModel, description } = await aliases.set('x', 'alias-b', { etag });
    assert.deepEqual([model, previousModel, description], ['models/alias-b', 'models/alias-a', 'for all']);
    await assert.rejects(aliases.set('x', 'alias-a', { etag }), { code: 'ABORTED', reason: 'ETAG_MISMATCH' });
    await assert.rejects(aliases.set('none', 'alias-a', { etag }), { reason: 'ALIAS_NOT_FOUND' });
    await assert.rejects(aliases.set('x', 'nothing'), { reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(client.delete('alias-b'), { reason: 'MODEL_IN_USE' });
    await aliases.delete('x');
    await aliases.delete('x', { missingOk: true });
    await assert.rejects(aliases.delete('x'), { code: 'NOT_FOUND', reason: 'ALIAS_NOT_FOUND' });
    await aliases.delete('y');
  });

  it('moves an alias to a challenger that errs less', async () => {
    await learned('champion');
    await client.create('challenger', spam);
    await client.learn('challenger', mail, { passes: 100 });
    const { aliases } = client;
    await aliases.set('contest', 'champion');
    assert.equal((await aliases.challenge('contest', 'challenger')).outcome, 'CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES');
    for (const error of ['window', 'progressive']) {
      const { outcome, alias } = await aliases.challenge('contest', 'challenger', { error, minExamples: 2, validateOnly: true });
      assert.deepEqual([outcome, alias.model], ['CHALLENGE_OUTCOME_CHALLENGER_WON', 'models/champion']);
    }
    assert.equal((await aliases.challenge('contest', 'challenger', { minExamples: 2 })).alias.model, 'models/challenger');
    await assert.rejects(aliases.challenge('contest', 'champion', { error: 'all' }), /^RangeError: error: "all": expected one of window, progressive/);
  });

  it('puts the labels of the model that answers to its predictions, which an alias may move to one with a lower revision', async () => {
    await learned('first', opposite);
    await client.learn('first', mail);
    await client.create('second', { ...spam, labelNames: ['bad', 'good'] });
    await client.learn('second', [{ features: { free: 1 }, label: 'good' }]);
    assert.ok((await client.get('second')).revision < (await client.get('first')).revision);
    const move = (model) => client.aliases.set('moved', model);
    const predict = (rows) => client.predict('aliases/moved', rows, { batch: 1 });
    await move('first');
    const { labels: [first], model: before } = await predict(mail);
    async function* rows() {
      for (let i = 0; i < 20; ++i) {
        if (i === 10) await move('second');
        yield mail[0];
      }
    }
    const { labels, model, revision } = await predict(rows());
    assert.deepEqual([before, model, revision], ['models/first', 'models/second', (await client.get('second')).revision]);
    // Messages that were sent before may be answered after it.
    const moved = labels.indexOf('good');
    assert.ok(moved > 0 && moved <= 10, moved);
    assert.deepEqual(labels, Array.from({ length: 20 }, (_, i) => (i < moved ? first : 'good')));
    await move('first');
    const models = [];
    for await (const [, answer] of client.predictStream('aliases/moved', [mail[0], mail[0]], { batch: 1, window: 1 })) {
      if (models.push(answer.model) === 1) await move('second');
    }
    assert.deepEqual(models, ['models/first', 'models/second']);
    // An older state of the same model is refused.
    await assert.rejects(client.predict('aliases/moved', mail, { minRevision: 100 }), { reason: 'REVISION_TOO_OLD' });
  });

  it('copies and renames models', async () => {
    await learned('original');
    const { history } = client;
    const copy = await history.copy('original', 'copy');
    assert.deepEqual([copy.name, copy.report.examples], ['models/copy', 9]);
    assert.deepEqual(await client.weights('copy'), await client.weights('original'));
    await assert.rejects(history.copy('original', 'copy'), { reason: 'MODEL_EXISTS' });
    await client.aliases.set('named', 'copy');
    assert.equal((await history.rename('copy', 'renamed')).name, 'models/renamed');
    assert.equal((await client.aliases.get('named')).model, 'models/renamed');
    await assert.rejects(history.rename('copy', 'other'), { reason: 'MODEL_NOT_FOUND' });
    await assert.rejects(history.rename('renamed', 'other', { etag: 'old' }), { reason: 'ETAG_MISMATCH' });
  });

  it('goes back to a snapshot or a revision', async () => {
    await learned('kept');
    const { history } = client;
    const [weights, { revision }] = [await client.weights('kept'), await client.get('kept')];
    assert.equal((await history.createSnapshot('kept', 'good')).revision, revision);
    await client.learn('kept', opposite, { passes: 2 });
    const worse = (await client.get('kept')).revision;
    assert.ok(worse > revision);
    await assert.rejects(history.rollBack('kept', { snapshot: 'good', expectedRevision: worse + 1 }), { reason: 'REVISION_MISMATCH' });
    assert.equal((await history.rollBack('kept', { snapshot: 'good', expectedRevision: worse })).revision, worse + 1);
    assert.deepEqual(await client.weights('kept'), weights);
    assert.equal((await history.rollBack('kept', { revision })).revision, worse + 2);
    assert.deepEqual((await history.listSnapshots('kept')).map(({ name }) => name), ['models/kept/snapshots/good']);
    await history.deleteSnapshot('kept', 'good');
    assert.deepEqual(await history.listSnapshots('kept'), []);
    await assert.rejects(history.deleteSnapshot('kept', 'good'), { reason: 'SNAPSHOT_NOT_FOUND' });
    for (const to of [{}, { snapshot: 'good', revision }]) await assert.rejects(history.rollBack('kept', to), /^RangeError: give a snapshot or a revision/);
  });

  it('analyzes stored examples', async () => {
    await learned('stored', [{ features: { a: 1 }, label: 'spam' }, { features: { b: 1 }, label: 'ham' }], { storedExamples: { maxSample: 10 } });
    const seen = [];
    const { separatorMargin } = await client.analyze('stored', { relativeGap: 1e-3, timeLimit: { seconds: 60 }, onProgress: (now) => seen.push(now.stage) });
    // The points (1, 0, 1) and (0, 1, 1), the last coordinate that of the bias.
    assert.ok(Math.abs(separatorMargin - Math.SQRT1_2) < 1e-3);
    const { revision } = await client.get('stored');
    await assert.rejects(client.analyze('stored', { replaceWeights: true, expectedRevision: revision + 1 }), { reason: 'REVISION_MISMATCH' });
    assert.equal((await client.analyze('stored', { replaceWeights: true, expectedRevision: revision })).newRevision, revision + 1);
    await client.create('unstored', spam);
    await assert.rejects(client.analyze('unstored'), { code: 'FAILED_PRECONDITION', reason: 'NOTHING_STORED' });
    await assert.rejects(client.analyze('stored', { relativGap: 1 }), /^RangeError: relativGap: there is no such setting; did you mean relativeGap/);
  });

  it('learns examples as they come, by several models, and goes on where the producer was', async () => {
    for (const model of ['come-a', 'come-b']) await client.create(model, spam);
    const both = ['come-a', 'models/come-b'];
    const stream = await client.learnStream(both, 'sensor');
    await stream.send(mail);
    await stream.send([mail[0], { ...mail[1], features: { lunch: NaN } }]);
    assert.deepEqual((await stream.endPass()).map(({ number, examples }) => [number, examples]), [[1, 4], [1, 4]]);
    const totals = await stream.finish();
    assert.deepEqual(totals.map(({ examples, rowErrors }) => [examples, rowErrors]), [[4, 1], [4, 1]]);
    assert.match(totals[1].firstRowError, /^models\/come-b: row 4: .*NON_FINITE_VALUE/);
    const again = await client.learnStream(both, 'sensor');
    assert.deepEqual([again.nextOffset, again.passes], [5, 1]);
    await assert.rejects(again.send([{}]), /^RangeError: row 5: expected features/);
    await assert.rejects(again.send([mail[0], { features: new Map([[3, 1]]), label: 'spam' }]), /^RangeError: row 6: the feature 3 is a number/);
    await again.cancel();
    assert.equal((await client.report('come-a')).examples, 4);
    await assert.rejects(client.learnStream('nothing', 'sensor'), { name: 'PerceptrondError', reason: 'MODEL_NOT_FOUND' });
  });

  it('takes labels as names or as numbers, and none to predict', async () => {
    await client.create('labelled', spam);
    const [first, second] = mail;
    await assert.rejects(client.learn('labelled', [first, { ...second, label: -1 }]), /^RangeError: row 1: the label is -1; expected a name, as the rows before it have/);
    await assert.rejects(client.learn('labelled', [{ ...first, label: 1 }, second]), /^RangeError: row 1: the label is "ham"; expected a number, as the rows before it have/);
    assert.equal((await client.learn('labelled', [{ ...first, label: 1 }, { ...second, label: -1 }])).totals.examples, 2);
    const [plain, { labels }] = [await client.predict('labelled', mail), await client.predict('labelled', [{ ...first, label: 1.5 }, { ...second, weight: null }, mail[2]])];
    assert.deepEqual(labels, plain.labels);
    for await (const [[{ label }]] of client.predictStream('labelled', [first])) assert.equal(label, 'spam');
  });

  it('refuses names that are none and lists that are none', async () => {
    for (const call of [() => client.get(), () => client.predict(3, mail), () => client.create(undefined, spam)]) await assert.rejects(async () => call(), /^RangeError: the model is (undefined|3); expected its name/);
    assert.throws(() => new perceptrond.Client(7600), /^RangeError: server 7600: expected host:port/);
    await assert.rejects(client.explain('named', mail[0]), /^RangeError: examples: expected an array/);
    assert.equal((await client.explain('named', mail.values())).explanations.length, 3);
    const stream = await client.learnStream('named', 'lists');
    await assert.rejects(stream.send(mail[0]), /^RangeError: examples: expected an array/);
    await stream.send(mail.values());
    assert.equal((await stream.finish())[0].examples, 3);
  });

  it('splits rows with long names into messages that the server takes', async () => {
    await client.create('long-names', spam);
    const rows = Array.from({ length: 1000 }, (_, i) => ({ label: 'ham', features: Object.fromEntries(Array.from({ length: 30 }, (__, k) => [`${'x'.repeat(790)}${i}-${k}`, 1])) }));
    assert.equal((await client.learn('long-names', rows)).totals.examples, 1000);
    assert.equal((await client.predict('long-names', rows)).labels.length, 1000);
  });

  it('refuses sizes out of range before anything is sent', async () => {
    for (const options of [{ batch: 0 }, { batch: 65_537 }, { batch: 1.5 }]) {
      for (const call of [() => client.learn('named', mail, options), () => client.predict('named', mail, options)]) await assert.rejects(call(), /^RangeError: batch: .* 1 to 65536/);
    }
    await assert.rejects(client.learn('named', mail, { window: 0 }), /^RangeError: window: 0: expected a whole number, at least 1/);
  });

  it('does not repeat a change that may have been made', async () => {
    const nowhere = new perceptrond.Client('127.0.0.1:1', { giveUpAfter: 600 });
    await assert.rejects(nowhere.history.rename('named', 'other'), { code: 'UNAVAILABLE' });
    nowhere.close();
  });
});
