#!/usr/bin/env node
import { batches, pack } from './lib/columns.mjs';
import { Labels } from './lib/labels.mjs';
import { LearnStream } from './lib/learn_stream.mjs';
import { ensureModel, passSentence, sentence, settings } from './lib/model.mjs';
import { GOES_ON, UsageError, batchOf, common, complain, connect, input, parse, reconnecting, rowsOf, run, whole } from './lib/program.mjs';
import { LearningService, ModelService } from './lib/protos.mjs';
import { unary } from './lib/retry.mjs';

const USAGE = `Learns a file of labelled examples, exactly once, whatever happens meanwhile to the server or to this program.

    learn.mjs spam train.tsv --named --labels ham,spam --producer train.tsv --until-converged

A producer names one sequence of examples: this file, pass after pass. The server remembers how far it has come, so the same
command, run again after it was interrupted, goes on where it was. Another job takes another name.`;

const MOST_UNTIL_CONVERGED = 1000;
const OPTIONS = {
  ...common,
  ...input,
  ...settings,
  producer: { type: 'string', help: 'what this sequence of examples is called; required' },
  passes: { type: 'string', default: '1', help: 'times the file is learned (default: 1)' },
  'until-converged': { type: 'boolean', default: false, help: `passes until one changes nothing, at most ${MOST_UNTIL_CONVERGED}` },
  window: { type: 'string', default: '8192', help: 'examples that may be unanswered (default: 8192)' },
};

/** The rows from this one on. */
async function* from(first, rows) {
  let number = 0;
  for await (const row of rows) if (number++ >= first) yield row;
}

/** The rows of each pass that a producer has not sent yet which stands at this offset and has ended so many passes. */
async function* passesLeft(readFile, most, nextOffset, passes) {
  if (most === 1) {
    // Sent as it is read: it may come from a pipe, and never end.
    if (passes === 0) yield from(nextOffset, readFile());
    return;
  }
  const rows = [];
  for await (const row of readFile()) rows.push(row);
  for (let number = passes; number < most; ++number) yield rows.slice(Math.max(nextOffset - number * rows.length, 0));
}

async function learn(stream, passes, batch, untilConverged) {
  for await (const rows of passes) {
    for await (const part of batches(rows, batch)) await stream.send(pack(part));
    const summary = await stream.endPass();
    console.log(passSentence(summary));
    if (untilConverged && summary.converged) break;
  }
  return stream.finish();
}

async function main() {
  const { flags, positionals: [id, file] } = parse(USAGE, ['MODEL', 'FILE'], OPTIONS);
  if (!flags.producer) throw new UsageError('--producer is required: what this sequence of examples is called');
  const [batch, window, most] = [batchOf(flags), whole('window', flags.window),
    flags['until-converged'] ? MOST_UNTIL_CONVERGED : whole('passes', flags.passes)];
  const readFile = rowsOf(file, flags, { labelsRequired: true });
  const [models, learning] = [connect(ModelService, flags), connect(LearningService, flags)];
  await ensureModel(models, id, flags);
  const stream = await LearnStream.open(learning, `models/${id}`, flags.producer, { window, patience: flags.patience, onReconnect: reconnecting });
  const getModel = () => unary(models, 'getModel', { name: `models/${id}` }, flags.patience);
  let totals;
  try {
    // Read once the stream is open, so that a server which is away has been waited for.
    const labels = new Labels(await getModel());
    totals = await learn(stream, passesLeft(() => readFile(labels), most, stream.nextOffset, stream.passes), batch, flags['until-converged']);
  } catch (error) {
    await stream.cancel();
    throw error;
  }
  console.log(`${id} is at ${sentence(await getModel())}`);
  if (totals.refused === 0) return 0;
  complain(`${totals.refused} examples were refused; the first was ${totals.firstRefusal}`);
  return 3;
}

run(main, GOES_ON);
