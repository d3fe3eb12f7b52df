// A program of a user of the Node package: what is right compiles, and each mistake is found.
import { Client, PerceptrondError, type Example, type WritableStream } from 'perceptrond';

declare const process: { stdin: AsyncIterable<Uint8Array>; stdout: WritableStream };

const client = new Client('127.0.0.1:7600', { giveUpAfter: 5, onReconnect: (error) => console.log(error.reason) });
const rows: Example[] = [{ features: { free: 1 }, label: 'spam' }, { features: new Map([[3, 0.5]]), label: -1 }];
await client.create('spam', { featureSpace: { named: {} }, labelNames: ['ham', 'spam'] }, { existOk: true });
const { lastPass, totals } = await client.learn('spam', rows, { untilConverged: true, onProgress: ({ sent }) => console.log(sent + 1) });
console.log(totals.updates, lastPass?.converged);
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
const stream = await client.learnStream('spam', 'sensor');
await stream.send(rows);
console.log((await stream.endPass()).converged, (await stream.finish()).updates);
console.log((await client.analyze('spam', { timeLimit: { seconds: 60 } })).separatorMargin);
// @ts-expect-error a snapshot or a revision
await client.history.rollBack('spam', {});
// @ts-expect-error no such error
await client.aliases.challenge('prod', 'spam-2', { error: 'all' });
// @ts-expect-error bytes
await client.history.importModel('spam', ['text']);
// @ts-expect-error one of them
await client.predict('spam', [{ text: 'free', features: { a: 1 } }]);
// @ts-expect-error one model
await client.learn(['spam', 'spam-2'], rows);
// @ts-expect-error a number
await client.learn('spam', rows, { passes: '2' });
// @ts-expect-error labels
(await client.predict('spam', rows)).label;
// @ts-expect-error no such state
(await client.report('spam')).state === 'CONVERGED';
