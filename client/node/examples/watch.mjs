#!/usr/bin/env node
import { common, connect, parse, reconnecting, run, seconds, sentence, whole } from './program.mjs';
import { Backoff, ModelService, readable, withRetries } from '../lib/rpc.mjs';

const USAGE = `Prints a line whenever the report of a model has changed, until interrupted or the model is deleted.

    watch.mjs spam --interval 0.5`;

const OPTIONS = {
  ...common,
  interval: { type: 'string', default: '1', help: 'shortest time in seconds between two lines, at least 0.05 (default: 1)' },
  count: { type: 'string', help: 'end after this many lines' },
};

async function main() {
  const { flags, positionals: [id] } = parse(USAGE, ['MODEL'], OPTIONS);
  const milliseconds = Math.round(1000 * seconds('interval', flags.interval, 0.05));
  const minInterval = { seconds: Math.floor(milliseconds / 1000), nanos: (milliseconds % 1000) * 1e6 };
  let left = flags.count === undefined ? Infinity : whole('count', flags.count);
  const stub = await connect(ModelService, flags);
  const backoff = new Backoff(flags.giveUpAfter);
  await withRetries(backoff, async () => {
    const call = readable(stub.watchModel({ name: `models/${id}`, minInterval }));
    for await (const { model } of call) {
      backoff.progress();
      console.log(sentence(model));
      if (--left === 0) break;
    }
    call.cancel();
  }, reconnecting);
  return 0;
}

run(main);
