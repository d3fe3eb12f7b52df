#!/usr/bin/env node
import { randomUUID } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import { Labels, batches } from '../lib/rows.mjs';
import { LearnStream } from '../lib/learn_stream.mjs';
import { GOES_ON, UsageError, batchOf, common, complain, connect, connectTo, input, parse, passSentence, reconnecting, rowsOf, run, sentence, whole } from './program.mjs';
import { LearningService, ModelService, unary } from '../lib/rpc.mjs';

const USAGE = `Learns a file of labelled examples exactly once, even if the server or this program is restarted.

    learn.mjs spam train.tsv --text --labels ham,spam --producer train.tsv --until-converged

A producer is the name of one sequence of examples: this file, pass after pass. The server stores the producer's
position, so the same command, run again after an interruption, continues there. Use another name for another job.`;

const MOST_UNTIL_CONVERGED = 1000;
const settings = {
  text: { type: 'boolean', default: false, help: 'create the model if it does not exist, for texts' },
  dimension: { type: 'string', help: 'create the model if it does not exist, for vectors of this dimension' },
  labels: { type: 'string', help: "names of the labels, that of -1 first: ham,spam" },
};
const OPTIONS = {
  ...common,
  ...input,
  ...settings,
  producer: { type: 'string', help: 'producer id: the name of this sequence of examples; required' },
  passes: { type: 'string', default: '1', help: 'number of passes over the file (default: 1)' },
  'until-converged': { type: 'boolean', default: false, help: `repeat passes until one has no update, at most ${MOST_UNTIL_CONVERGED}` },
  window: { type: 'string', default: '8192', help: 'most unanswered examples (default: 8192)' },
};

/** Creates the model if it does not exist and the flags describe it. */
async function ensureModel(stub, id, flags) {
  const dimension = flags.dimension === undefined ? undefined : whole('dimension', flags.dimension, 1, 2 ** 32 - 1);
  if (flags.text && dimension) throw new UsageError('--text or --dimension, not both');
  if (!flags.text && !dimension) return;
  const featureSpace = flags.text ? { text: {} } : { dense: { dimension } };
  const model = { featureSpace, labelNames: flags.labels ? flags.labels.split(',') : [] };
  try {
    // The request id makes the request safe to repeat after a lost answer.
    await unary(stub, 'createModel', { modelId: id, model, requestId: randomUUID() }, flags.giveUpAfter);
  } catch (error) {
    if (error.code !== grpc.status.ALREADY_EXISTS) throw error;
  }
}

/** Yields the rows from this index on. */
async function* from(first, rows) {
  let number = 0;
  for await (const row of rows) if (number++ >= first) yield row;
}

/** Yields the rows of each pass that a producer at this offset, with this many finished passes, has not sent yet. */
async function* passesLeft(readFile, most, nextOffset, passes) {
  if (most === 1) {
    // Sent while it is read: the input may be a pipe without end.
    if (passes === 0) yield from(nextOffset, readFile());
    return;
  }
  const rows = [];
  for await (const row of readFile()) rows.push(row);
  for (let number = passes; number < most; ++number) yield rows.slice(Math.max(nextOffset - number * rows.length, 0));
}

async function learn(stream, passes, batch, untilConverged) {
  for await (const rows of passes) {
    for await (const part of batches(rows, batch)) await stream.send(part);
    const summary = await stream.endPass();
    console.log(passSentence(summary));
    if (untilConverged && summary.converged) break;
  }
  return stream.finish();
}

async function main() {
  const { flags, positionals: [id, file] } = parse(USAGE, ['MODEL', 'FILE'], OPTIONS);
  if (!flags.producer) throw new UsageError('--producer is required: producer id: the name of this sequence of examples');
  const [batch, window, most] = [batchOf(flags), whole('window', flags.window),
    flags['until-converged'] ? MOST_UNTIL_CONVERGED : whole('passes', flags.passes)];
  const readFile = rowsOf(file, flags, { labelsRequired: true });
  const [models, learning] = await Promise.all([connect(ModelService, flags), connect(LearningService, flags)]);
  await ensureModel(models, id, flags);
  const stream = await LearnStream.open(learning, `models/${id}`, flags.producer,
    { window, giveUpAfter: flags.giveUpAfter, onReconnect: reconnecting,
      writerStub: (address) => connectTo(LearningService, flags, address) });
  const getModel = () => unary(models, 'getModel', { name: `models/${id}` }, flags.giveUpAfter);
  let totals;
  try {
    // Read after the stream is open, when the server is reachable.
    const labels = new Labels(await getModel());
    totals = await learn(stream, passesLeft(() => readFile(labels), most, stream.nextOffset, stream.passes), batch, flags['until-converged']);
  } catch (error) {
    await stream.cancel();
    throw error;
  }
  console.log(`${id} is at ${sentence(await getModel())}`);
  if (totals.rowErrors === 0) return 0;
  complain(`${totals.rowErrors} examples had validation errors; the first: ${totals.firstRowError}`);
  return 3;
}

run(main, GOES_ON);
