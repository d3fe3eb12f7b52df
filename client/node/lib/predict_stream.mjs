// Predictions on a stream that reconnects: several messages are on their way at once, and each name is sent once.
//
//   for await (const [rows, answer] of predict(stub, 'models/spam', batches)) console.log(answer.predictedLabels);

import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';
import { leastBytes, packNaming } from './columns.mjs';
import { NAME_TABLE_SIZE, NameTable } from './name_table.mjs';
import { positionOf, toPredict } from './rows.mjs';
import { Backoff, ProtocolError, StatusError, isTransient, readable, reason, rowTooLarge } from './rpc.mjs';

/**
 * Yields rows with their answer (PredictResponse), in order: those of a batch, or of a part of one with many new names.
 * Rows with validation errors are in answer.rowErrors; answer.model is the model that answered, which an alias may change.
 * No answer comes from an older revision of a model than one before it.
 * Predicting changes nothing, so what is unanswered when a connection is lost is sent again. Throws a gRPC error,
 * ProtocolError, or StatusError if a message was refused.
 *
 * include: what the answers have, {includePredictionIds, includeClassScores}; minRevision: no answer is from an older state;
 * window: most unanswered messages; nameTableSize: most names in the stream's table, which sends each name once, or 0: each
 * message has its names; giveUpAfter: seconds without progress before giving up.
 */
export async function* predict(stub, model, batches,
  { window = 4, nameTableSize = NAME_TABLE_SIZE, include = {}, minRevision = 0, giveUpAfter = 60, onReconnect = () => {} } = {}) {
  const backoff = new Backoff(giveUpAfter);
  const rows = { remaining: batches[Symbol.asyncIterator](), unanswered: [], answered: 0 };
  let least = minRevision;
  let size = nameTableSize;
  let latest = '';
  let refusal;
  for (;;) {
    try {
      for await (const [answered, answer] of connect(stub, { model, nameTableSize: size }, include, least, window, rows)) {
        backoff.progress();
        answer.model ||= latest;
        if (refusal && answer.model === latest) throw refusal;
        [least, latest, refusal] = [answer.revision, answer.model, undefined];
        yield [answered, answer];
      }
      return;
    } catch (error) {
      if (size > 0 && reason(error) === 'UNSUPPORTED_FIELD') {
        // The server has no tables of names.
        size = 0;
        continue;
      }
      if (!refusal && least > minRevision && reason(error) === 'REVISION_TOO_OLD') {
        // The alias may name another model, whose revisions are its own.
        [least, refusal] = [minRevision, error];
        continue;
      }
      const wait = isTransient(error) ? backoff.nextWait(error) : undefined;
      if (wait === undefined) throw error;
      onReconnect(error);
      await sleep(wait);
    }
  }
}

/**
 * Runs one connection: sends the rows that were unanswered before, then those that remain. When it is lost, `unanswered` has
 * what is unanswered then; `answered` counts the others. `first` has the settings of the first message alone.
 */
async function* connect(stub, first, include, least, window, rows) {
  const take = async () => rows.unanswered.shift() ?? (await rows.remaining.next()).value;
  const sent = [];
  let names = new NameTable(0);
  let minRevision = least;
  let next = await take();
  if (next === undefined) return;
  let mostBytes = 0;
  // Of the last message; with one row it is not to be split.
  let tooLarge;
  const call = readable(stub.predictStream());
  const write = (settings) => {
    const begin = rows.answered + sent.reduce((sum, { length }) => sum + length, 0);
    const [columns, count] = packNaming(next.map(toPredict), (index) => begin + index, (chosen) => names.pack(chosen));
    sent.push(next.slice(0, count));
    const size = leastBytes(columns);
    tooLarge = count === 1 ? () => rowTooLarge(positionOf(next[0], begin), size, mostBytes) : undefined;
    if (mostBytes > 0 && size > mostBytes && tooLarge) throw tooLarge();
    if (count < next.length) rows.unanswered.unshift(next.slice(count));
    call.write({ ...settings, ...include, columns, minRevision });
  };
  let isFirst = true;
  try {
    // The first answer tells the size of the table and of messages; the message before it has its own names.
    write(first);
    for await (const answer of call) {
      if (answer.error) throw new StatusError(answer.error);
      if (isFirst) [names, mostBytes] = [new NameTable(answer.nameTableSize), answer.maxMessageBytes ?? 0];
      isFirst = false;
      minRevision = answer.revision;
      rows.answered += sent[0].length;
      yield [sent.shift(), answer];
      while (sent.length < window && (next = await take()) !== undefined) write({});
      if (sent.length === 0) return;
    }
    throw new ProtocolError('the server ended the stream before everything was answered');
  } catch (error) {
    // One that gRPC itself refuses has no reason.
    if (isFirst && tooLarge && error.code === grpc.status.RESOURCE_EXHAUSTED && ['', 'MESSAGE_TOO_LARGE'].includes(reason(error))) throw tooLarge();
    throw error;
  } finally {
    rows.unanswered.unshift(...sent);
    call.cancel();
  }
}
