// Client: models, learning and predictions. ../index.d.ts is its documentation.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';
import { connect, connectTo } from './connection.mjs';
import { pack } from './columns.mjs';
import { LearnStream } from './learn_stream.mjs';
import { predict } from './predict_stream.mjs';
import { Labels, batches, positionOf } from './rows.mjs';
import { checkFields } from './settings.mjs';
import { Backoff, LearningService, ModelService, PerceptrondError, PredictionService, isTransient, readable, toError, unary } from './rpc.mjs';

const MOST_UNTIL_CONVERGED = 1000;

/** Of an alias, "aliases/prod", its own. */
const nameOf = (model) => (/^(models|aliases)\//.test(model) ? model : `models/${model}`);

/** As the streams take rows: features in a Map, which is empty beside a text or an id. */
function asRow({ features, text, predictionId, label, line }, number) {
  const given = [typeof features === 'object' && features, typeof text === 'string', typeof predictionId === 'string'];
  if (given.filter(Boolean).length !== 1) throw new RangeError(`${positionOf({ line }, number)}: expected features (an object or a Map), a text or a predictionId`);
  return { features: features instanceof Map ? features : new Map(Object.entries(features ?? {})), text, predictionId, label, line };
}

/** Of models that are to learn the same new examples: one that is ahead would take them for repeated. */
function checkPositions(models) {
  const positions = new Set(models.map(({ position: { nextOffset, passes } }) => `${nextOffset} ${passes}`));
  if (positions.size > 1) {
    throw new PerceptrondError({ code: grpc.status.FAILED_PRECONDITION, details: [],
      message: 'one of the models was created again, or an earlier call failed: nothing was sent; call again' }, 'POSITIONS_DIFFER');
  }
}

/** The outcome of each model, after `passes`; lastPasses: of the last one, if there is any. Warns of rows that were left out. */
function outcome(models, passes, lastPasses) {
  for (const { totals } of models) {
    if (totals.rowErrors === 0) continue;
    // What is learned of the others may be biased.
    process.emitWarning(`${totals.rowErrors} of ${totals.rowErrors + totals.examples} examples were not learned; the first, ${totals.firstRowError}`);
  }
  const [first, ...others] = models.map(({ totals }, i) => ({ totals, passes, lastPass: lastPasses?.[i], others: [] }));
  return { ...first, others };
}

async function* asRows(examples, first = 0) {
  let number = 0;
  for await (const example of examples) {
    if (number >= first) yield asRow(example, number);
    number += 1;
  }
}

/** Runs an asynchronous generator, whose errors become PerceptrondError. */
async function* converted(items) {
  try {
    yield* items;
  } catch (error) {
    throw toError(error);
  }
}

export class Client {
  #settings;
  #giveUpAfter;
  #onReconnect;
  #stubs = new Map();
  #producer = `node-${randomUUID()}`;
  // By the names of models: {used: numbers of producers that learn them now, group, generation}.
  #learning = new Map();

  constructor(server = process.env.PERCEPTROND_SERVER ?? '127.0.0.1:7600',
    { tlsCa, tokenFile = process.env.PERCEPTRONCTL_TOKEN_FILE, giveUpAfter = 60, onReconnect = () => {} } = {}) {
    this.#settings = { server, tlsCa, tokenFile };
    this.#giveUpAfter = giveUpAfter;
    this.#onReconnect = (error) => onReconnect(toError(error));
  }

  close() {
    for (const stub of this.#stubs.values()) stub.then((open) => open.close(), () => {});
    this.#stubs.clear();
  }

  // ---- Models ----

  async create(model, settings, { existOk = false } = {}) {
    checkFields(settings, 'perceptron.v1.Model');
    try {
      // The request id makes the request safe to repeat after a lost answer.
      return await this.#call(ModelService, 'createModel', { modelId: nameOf(model).replace(/^models\//, ''), model: settings, requestId: randomUUID() });
    } catch (error) {
      if (!existOk || error.code !== 'ALREADY_EXISTS') throw error;
      return this.get(model);
    }
  }

  get(model) {
    return this.#call(ModelService, 'getModel', { name: nameOf(model) });
  }

  async report(model) {
    return (await this.get(model)).report;
  }

  async* list() {
    let pageToken = '';
    do {
      const page = await this.#call(ModelService, 'listModels', { pageSize: 1000, pageToken });
      yield* page.models;
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  update(model, changes) {
    checkFields(changes, 'perceptron.v1.Model');
    const { etag, ...changed } = changes;
    const paths = Object.keys(changed).map((field) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
    if (paths.length === 0) throw new RangeError('nothing to change: give description, marginOfInterest or expireAfter');
    return this.#call(ModelService, 'updateModel', { model: { ...changed, name: nameOf(model), etag }, updateMask: { paths }, requestId: randomUUID() });
  }

  async delete(model, { missingOk = false } = {}) {
    await this.#call(ModelService, 'deleteModel', { name: nameOf(model), allowMissing: missingOk });
  }

  freeze(model, frozen = true) {
    return this.#call(ModelService, frozen ? 'freezeModel' : 'unfreezeModel', { name: nameOf(model), requestId: randomUUID() });
  }

  // ---- Learning ----

  async learn(model, examples, { producer, passes, untilConverged = false, batch = 1000, window = 8192, onProgress = () => {} } = {}) {
    const rows = Array.isArray(examples) ? examples.length : undefined;
    const most = passes ?? (untilConverged && rows !== undefined ? MOST_UNTIL_CONVERGED : 1);
    if (!(Number.isInteger(most) && most >= 1)) throw new RangeError(`passes: ${most}: expected a whole number, at least 1`);
    if (most > 1 && rows === undefined) throw new RangeError('an iterator can be read once: give an array, or passes: 1');
    const models = [model].flat().map(nameOf);
    if (models.length === 0) throw new RangeError('no model: name one or several');
    const [name, done] = producer === undefined ? this.#lendProducer(models) : [producer, () => {}];
    let stream;
    let complete = false;
    try {
      const stub = await this.#stub(LearningService);
      stream = await LearnStream.open(stub, models, name, {
        window, giveUpAfter: this.#giveUpAfter, onReconnect: this.#onReconnect, writerStub: (address) => this.#writer(address) });
      if (producer === undefined) checkPositions(stream.models);
      // A named producer has sent what is below its position; other examples are new.
      const [before, offset] = producer === undefined ? [stream.passes, 0] : [0, stream.nextOffset];
      const begin = producer === undefined ? stream.nextOffset : 0;
      stream.numberRows((number) => (rows > 0 ? (number - begin) % rows : number - begin));
      let lastPasses;
      const converged = () => untilConverged && lastPasses?.every((pass) => pass.converged);
      for (let number = stream.passes; number - before < most && !converged(); ++number) {
        const first = Math.max(offset - (number - before) * (rows ?? 0), 0);
        let sent = rows === undefined ? first : Math.min(first, rows);
        for await (const part of batches(asRows(examples, first), batch)) {
          await stream.send(part);
          sent += part.length;
          onProgress({ pass: number + 1, sent, rows });
        }
        await stream.endPass();
        lastPasses = stream.lastPasses();
        onProgress({ pass: number + 1, sent, rows, lastPass: lastPasses[0] });
      }
      await stream.finish();
      complete = true;
      return outcome(stream.models, stream.passes, lastPasses);
    } catch (error) {
      await stream?.cancel();
      throw toError(error);
    } finally {
      done(complete);
    }
  }

  /**
   * Returns a name that no open stream to these models has, and a function that gives it back, with whether all was learned.
   * Several models have names of their own, whose position is the same in all of them; after a failed call it may differ,
   * and they get new ones.
   */
  #lendProducer(models) {
    const key = models.join(' ');
    if (!this.#learning.has(key)) this.#learning.set(key, { used: new Set(), group: this.#learning.size, generation: 0 });
    const lent = this.#learning.get(key);
    let number = 0;
    while (lent.used.has(number)) ++number;
    lent.used.add(number);
    // A model may be learned under its own name and by an alias at the same time.
    const ofSeveral = models.length > 1 || models[0].startsWith('aliases/') ? `${lent.group}-${lent.generation}-` : '';
    return [`${this.#producer}-${ofSeveral}${number}`, (complete) => {
      lent.used.delete(number);
      if (!complete) lent.generation += 1;
    }];
  }

  // ---- Predictions ----

  async predict(model, examples, { batch = 1000, ids = false } = {}) {
    const names = new Labels(await this.get(model));
    const predictions = { labels: [], scores: [], probabilities: [], ids: [], revision: 0 };
    for await (const [rows, answer] of this.predictStream(model, examples, { batch, ids })) {
      if (answer.rowErrors.length > 0) {
        const [{ row, status }] = answer.rowErrors;
        throw new PerceptrondError({ ...status, message: `${positionOf(rows[row], predictions.labels.length + row)}: ${status.message}` });
      }
      predictions.revision = predictions.labels.length > 0 ? Math.min(predictions.revision, answer.revision) : answer.revision;
      for (const label of answer.predictedLabels) predictions.labels.push(names.nameOrNumber(label));
      predictions.scores.push(...answer.scores);
      predictions.probabilities.push(...answer.probabilities);
      predictions.ids.push(...answer.predictionIds);
    }
    return predictions;
  }

  async* predictStream(model, examples, { batch = 1000, window = 4, ids = false } = {}) {
    const stub = await this.#stub(PredictionService);
    yield* converted(predict(stub, nameOf(model), batches(asRows(examples), batch), { window, includePredictionIds: ids, giveUpAfter: this.#giveUpAfter, onReconnect: this.#onReconnect }));
  }

  explain(model, examples, { maxFeatures = 20 } = {}) {
    return this.#call(PredictionService, 'explain', { model: nameOf(model), columns: pack(examples.map(asRow)), maxFeatures });
  }

  // ---- Convergence ----

  async* watch(model, { interval = 1, timeout } = {}) {
    const milliseconds = Math.round(1000 * interval);
    const request = { name: nameOf(model), minInterval: { seconds: Math.floor(milliseconds / 1000), nanos: (milliseconds % 1000) * 1e6 } };
    const deadline = timeout === undefined ? undefined : Date.now() + 1000 * timeout;
    const stub = await this.#stub(ModelService);
    const backoff = new Backoff(this.#giveUpAfter);
    for (;;) {
      const call = readable(stub.watchModel(request, { deadline: deadline ?? Infinity }));
      try {
        for await (const { model: now } of call) {
          backoff.progress();
          yield now;
        }
        return;
      } catch (error) {
        const wait = isTransient(error) ? backoff.nextWait(error) : undefined;
        if (wait === undefined) throw toError(error);
        this.#onReconnect(error);
        await sleep(wait);
      } finally {
        call.cancel();
      }
    }
  }

  async waitUntilConverged(model, { timeout } = {}) {
    let state = 'unknown';
    try {
      for await (const now of this.watch(model, { interval: 0.05, timeout })) {
        if (now.report.state === 'CONVERGENCE_STATE_CONVERGED') return now;
        state = now.report.state.replace('CONVERGENCE_STATE_', '').toLowerCase();
      }
    } catch (error) {
      if (error.code !== 'DEADLINE_EXCEEDED') throw error;
    }
    throw new Error(`${model} has not converged within ${timeout} s: its state is ${state}`);
  }

  // ----

  #stub(Service) {
    if (!this.#stubs.has(Service)) this.#stubs.set(Service, connect(Service, this.#settings));
    return this.#stubs.get(Service);
  }

  /** The stub of the server that clients reach at this address, if it is one of this client's several. */
  #writer(address) {
    if (!this.#stubs.has(address)) this.#stubs.set(address, connectTo(LearningService, this.#settings, address));
    return this.#stubs.get(address);
  }

  async #call(Service, method, request) {
    try {
      return await unary(await this.#stub(Service), method, request, this.#giveUpAfter);
    } catch (error) {
      throw toError(error);
    }
  }
}
