// Labels 0 and 1, options that do not exist, and aliases that move while their stream has no connection: learning by the Node package, against a
// real server.
//
//   PERCEPTROND=... node --test node_learning_test.mjs

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { mail, setUp, spam, startServer, stop, tearDown } from './node_fixture.mjs';

let client;
let running;
before(async () => { ({ client, running } = await setUp()); });
after(() => tearDown(client, running));

const bits = [{ features: { free: 1 }, label: 1 }, { features: { lunch: 1 }, label: 0 }];
const named = { featureSpace: { named: {} } };

describe('Labels 0 and 1 of two', () => {
  it('are read as -1 and 1, with one warning', async () => {
    await client.create('bits', named);
    const warned = once(process, 'warning');
    const { totals, lastPass } = await client.learn('bits', bits, { untilConverged: true });
    assert.equal((await warned)[0].message, 'label 0 is read as -1');
    assert.deepEqual([totals.rowErrors, lastPass.converged], [0, true]);
    assert.deepEqual((await client.predict('bits', bits)).labels, [1, -1]);
    assert.equal(bits[1].label, 0, 'what the user gave stays');
  });

  it('are read so from streams of examples', async () => {
    await client.create('streamed', named);
    const stream = await client.learnStream('streamed', 'p');
    for (let i = 0; i < 3; ++i) await stream.send(bits);
    assert.equal((await stream.finish())[0].rowErrors, 0);
    assert.deepEqual((await client.predict('streamed', bits)).labels, [1, -1]);
  });

  it('are refused beside -1, and where names have a 0', async () => {
    await client.create('mixed', named);
    await assert.rejects(client.learn('mixed', [...bits, { features: { a: 1 }, label: -1 }]), /^RangeError: label 0 beside the label -1/);
    await client.create('digits', { ...named, labelNames: ['0', '1'] });
    await assert.rejects(client.learn('digits', bits), /^RangeError: label 0 of models\/digits, whose labels are names: give "0"/);
  });

  it('are classes of a model of several', async () => {
    await client.create('classes', { ...named, learner: { classes: { maxClasses: 3 } } });
    const rows = [...bits, { features: { late: 1 }, label: 2 }];
    assert.equal((await client.learn('classes', rows, { untilConverged: true })).totals.rowErrors, 0);
    assert.deepEqual((await client.predict('classes', rows)).labels, [1, 0, 2]);
  });
});

describe('Options', () => {
  it('that do not exist are refused', async () => {
    await assert.rejects(client.learn('bits', bits, { untilconverged: true }), /^RangeError: untilconverged: there is no such option; did you mean untilConverged\?/);
    await assert.rejects(client.predict('bits', bits, { revision: 1 }), /^RangeError: revision: there is no such option/);
    await assert.rejects(client.learnStream('bits', 'p', { batch: 1 }), /^RangeError: batch: there is no such option/);
  });
});

describe('A stream to an alias and a watch', () => {
  it('stay on their model when the alias has moved and the server was killed', async () => {
    for (const model of ['old', 'new']) await client.create(model, spam);
    await client.aliases.set('prod', 'old');
    const stream = await client.learnStream('aliases/prod', 'p');
    await stream.send(mail);
    await stream.endPass();
    const watch = client.watch('aliases/prod');
    assert.equal((await watch.next()).value.name, 'models/old');
    await client.aliases.set('prod', 'new');
    await stop(running.server);
    running = await startServer(running.address);
    assert.equal((await watch.next()).value.name, 'models/old');
    await watch.return();
    await stream.send(mail);
    await stream.finish();
    assert.deepEqual([(await client.report('old')).examples, (await client.report('new')).examples], [2 * mail.length, 0]);
  });
});
