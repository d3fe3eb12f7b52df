// The Node client as window_test.py drives it: reads a job from each line of standard input, and prints its outcome as a line.

import readline from 'node:readline';
import { Client, PerceptrondError } from '../../../client/node/index.mjs';

function totals(stream) {
  if (!stream) return null;
  const { examples, mistakes, updates, duplicates, rowErrors, lostAnswers } = stream.totals;
  return [examples, mistakes, updates, duplicates, rowErrors, lostAnswers];
}

async function run({ server, model, producer, window, giveUpAfter, actions }) {
  let [stream, error, reconnects] = [undefined, null, 0];
  const passes = [];
  const client = new Client(server, { giveUpAfter, onReconnect: () => { reconnects += 1; } });
  try {
    stream = await client.learnStream(model, producer, { window });
    for (const action of actions) {
      if (action === 'mark') passes.push(await stream.endPass());
      else if (action === 'finish') await stream.finish();
      else await stream.send(action.map(({ label, features }) => ({ label, features: new Map(features) })));
    }
  } catch (failed) {
    if (!(failed instanceof PerceptrondError)) throw failed;
    error = [failed.code, failed.reason];
  }
  await stream?.cancel();
  client.close();
  return { error, reconnects, passes: passes.map(({ number, examples }) => [number, examples]),
    totals: totals(stream) };
}

for await (const line of readline.createInterface({ input: process.stdin })) console.log(JSON.stringify(await run(JSON.parse(line))));
