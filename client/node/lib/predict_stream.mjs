// Predictions on a stream that reconnects: several messages are on their way at once, and each name is sent once.
//
//   for await (const [rows, answer] of predict(stub, 'models/spam', batches)) console.log(answer.predictedLabels);

import { setTimeout as sleep } from 'node:timers/promises';
import { NAME_TABLE_SIZE, NameTable } from './name_table.mjs';
import { Backoff, ProtocolError, StatusError, isTransient, readable, reason } from './rpc.mjs';

/**
 * Yields rows with their answer (PredictResponse), in order: those of a batch, or of a part of one with many new names.
 * Rows with validation errors are in answer.rowErrors. No answer comes from an older revision than one before it.
 * Predicting changes nothing, so what is unanswered when a connection is lost is sent again. Throws a gRPC error,
 * ProtocolError, or StatusError if a message was refused.
 *
 * includePredictionIds: the answers have predictionIds; window: most unanswered messages; nameTableSize: most names in the stream's table, which sends each name once, or 0:
 * each message has its names; giveUpAfter: seconds without progress before giving up.
 */
export async function* predict(stub, model, batches,
  { window = 4, nameTableSize = NAME_TABLE_SIZE, includePredictionIds = false, giveUpAfter = 60, onReconnect = () => {} } = {}) {
  const backoff = new Backoff(giveUpAfter);
  const remaining = batches[Symbol.asyncIterator]();
  const unanswered = [];
  let minRevision = 0;
  let size = nameTableSize;
  for (;;) {
    try {
      for await (const [rows, answer] of connect(stub, { model, nameTableSize: size, includePredictionIds, minRevision }, window, unanswered, remaining)) {
        backoff.progress();
        minRevision = answer.revision;
        yield [rows, answer];
      }
      return;
    } catch (error) {
      if (size > 0 && reason(error) === 'UNSUPPORTED_FIELD') {
        // The server has no tables of names.
        size = 0;
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
 * Runs one connection: sends what was unanswered before, then the rest. When it is lost, `unanswered` has what is
 * unanswered then. `first` has the settings of its first message.
 */
async function* connect(stub, first, window, unanswered, remaining) {
  const take = async () => unanswered.shift() ?? (await remaining.next()).value;
  const sent = [];
  let names = new NameTable(0);
  const { includePredictionIds } = first;
  let { minRevision } = first;
  let rows = await take();
  if (rows === undefined) return;
  const call = readable(stub.predictStream());
  const write = (settings) => {
    const [columns, count] = names.pack(rows);
    sent.push(rows.slice(0, count));
    if (count < rows.length) unanswered.unshift(rows.slice(count));
    call.write({ ...settings, columns, minRevision, includePredictionIds });
  };
  try {
    // The first answer tells the size of the table; the message before it has its own names.
    write(first);
    let isFirst = true;
    for await (const answer of call) {
      if (answer.error) throw new StatusError(answer.error);
      if (isFirst) names = new NameTable(answer.nameTableSize);
      isFirst = false;
      minRevision = answer.revision;
      yield [sent.shift(), answer];
      while (sent.length < window && (rows = await take()) !== undefined) write({});
      if (sent.length === 0) return;
    }
    throw new ProtocolError('the server ended the stream before everything was answered');
  } finally {
    unanswered.unshift(...sent);
    call.cancel();
  }
}
