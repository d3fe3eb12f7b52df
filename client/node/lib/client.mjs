// Client: models, learning and predictions. ../index.d.ts is its documentation.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, connectTo, serversOf } from './connection.mjs';
import { packNaming } from './columns.mjs';
import { ExampleStream } from './example_stream.mjs';
import { LearnStream } from './learn_stream.mjs';
import { Aliases, History } from './management.mjs';
import { LabelReader } from './label_reader.mjs';
import { nameOf } from './names.mjs';
import { predict } from './predict_stream.mjs';
import { Labels, asLabelledRow, asRow, batches, positionOf, toPredict } from './rows.mjs';
import { checkFields, checkOptions } from './settings.mjs';
import { AnalysisService, Backoff, LearningService, ModelService, PerceptrondError, PredictionService, ProtocolError, isTransient, readable, toError, unary } from './rpc.mjs';

const MOST_UNTIL_CONVERGED = 1000;
const LEARN_OPTIONS = ['producer', 'passes', 'untilConverged', 'batch', 'window', 'onProgress'];
const PREDICT_OPTIONS = ['batch', 'ids', 'classScores', 'minRevision'];
// The rows of a message, and its class scores.
const MOST_ROWS = 65536;
const MOST_SCORES = 2 ** 20;

function checkBatch(batch) {
  if (!(Number.isInteger(batch) && batch >= 1 && batch <= MOST_ROWS)) throw new RangeError(`batch: ${batch}: expected a whole number, 1 to ${MOST_ROWS}`);
}

const sums = ({ examples, mistakes, updates }) => ({ examples, mistakes, updates });

/** What learn() resolves to. Warns of rows that were left out; throws PerceptrondError if all were. */
function outcome({ totals, firstRefused, passes }, lastPass) {
  if (totals.rowErrors > 0 && totals.examples + totals.duplicates + totals.lostAnswers === 0) {
    const { position, status } = firstRefused;
    throw new PerceptrondError({ ...status, message: `none of ${totals.rowErrors} examples was learned; the first, ${position}: ${status.message}` });
  }
  // What is learned of the others may be biased.
  if (totals.rowErrors > 0) process.emitWarning(`${totals.rowErrors} of ${totals.rowErrors + totals.examples} examples were not learned; the first, ${totals.firstRowError}`);
  return { totals, passes, lastPass };
}

async function* asRows(examples, first = 0, read = asRow) {
  if (!examples?.[Symbol.iterator] && !examples?.[Symbol.asyncIterator]) throw new RangeError('examples: expected an array, or another iterable, of examples');
  let number = 0;
  for await (const example of examples) {
    if (number >= first) yield read(example, number);
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
  aliases;
  history;
  #settings;
  #giveUpAfter;
  #timeout;
  #onReconnect;
  #stubs = new Map();
  #producer = `node-${randomUUID()}`;
  // By the names of models: {used: numbers of producers that learn them now, group, generation}.
  #learning = new Map();

  constructor(server = process.env.PERCEPTROND_SERVER ?? '127.0.0.1:7600',
    { tlsCa, tokenFile = process.env.PERCEPTRONCTL_TOKEN_FILE, giveUpAfter = 60, timeout = 30, onReconnect = () => {} } = {}) {
    if (typeof server !== 'string') throw new RangeError(`server ${String(server)}: expected host:port of gRPC`);
    this.#settings = { server, tlsCa, tokenFile };
    serversOf(this.#settings);
    [this.#giveUpAfter, this.#timeout] = [giveUpAfter, timeout];
    this.#onReconnect = (error) => onReconnect(toError(error));
    const call = (...request) => this.#call(...request);
    this.aliases = new Aliases(call, (...request) => this.#pages(...request));
    this.history = new History(call, (Service) => this.#stub(Service), { timeout, giveUpAfter });
  }

  close() {
    for (const stub of this.#stubs.values()) stub.then((open) => open?.close(), () => {});
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
    for await (const { models } of this.#pages(ModelService, 'listModels', { pageSize: 1000 })) yield* models;
  }

  update(model, changes = {}) {
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

  async weights(model) {
    const vectors = [];
    for await (const page of this.#pages(ModelService, 'listWeights', { model: nameOf(model), pageSize: 65536 })) {
      while (vectors.length < page.vectors) vectors.push({ indices: [], names: [], values: [], bias: 0 });
      for (const [i, { indices, names, values, bias }] of (page.weights?.vectors ?? []).entries()) {
        const vector = vectors[page.firstVector + i];
        vector.indices.push(...indices);
        vector.names.push(...names);
        vector.values.push(...values);
        vector.bias ||= bias;
      }
    }
    return { vectors };
  }

  // ---- Learning ----

  async learn(model, examples, options = {}) {
    checkOptions(options, LEARN_OPTIONS);
    const { producer, passes, untilConverged = false, batch = 1000, window = 8192, onProgress = () => {} } = options;
    checkBatch(batch);
    const rows = Array.isArray(examples) ? examples.length : undefined;
    const most = passes ?? (untilConverged && rows !== undefined ? MOST_UNTIL_CONVERGED : 1);
    if (!(Number.isInteger(most) && most >= 1)) throw new RangeError(`passes: ${most}: expected a whole number, at least 1`);
    if (most > 1 && rows === undefined) throw new RangeError('an iterator can be read once: give an array, or passes: 1');
    const [name, done] = producer === undefined ? this.#lendProducer(nameOf(model)) : [producer, () => {}];
    let stream;
    try {
      stream = await this.#openStream(model, name, window);
      // A named producer has sent what is below its position; other examples are new.
      const [before, offset] = producer === undefined ? [stream.passes, 0] : [0, stream.nextOffset];
      const begin = producer === undefined ? stream.nextOffset : 0;
      stream.numberRows((number) => (rows > 0 ? (number - begin) % rows : number - begin));
      const labels = this.#labelReader(model);
      let lastPass;
      const converged = () => untilConverged && lastPass?.converged;
      for (let number = stream.passes; number - before < most && !converged(); ++number) {
        const first = Math.max(offset - (number - before) * (rows ?? 0), 0);
        let sent = rows === undefined ? first : Math.min(first, rows);
        for await (const part of batches(asRows(examples, first, asLabelledRow), batch)) {
          await labels.read(part, sent);
          await stream.send(part);
          sent += part.length;
          onProgress({ pass: number + 1, sent, rows, ...sums(stream.totals) });
        }
        lastPass = await stream.endPass();
        onProgress({ pass: number + 1, sent, rows, ...sums(stream.totals), lastPass });
      }
      await stream.finish();
      return outcome(stream, lastPass);
    } catch (error) {
      await stream?.cancel();
      throw toError(error);
    } finally {
      done();
    }
  }

  async learnStream(model, producer, options = {}) {
    checkOptions(options, ['window']);
    try {
      return new ExampleStream(await this.#openStream(model, producer, options.window ?? 8192), this.#labelReader(model));
    } catch (error) {
      throw toError(error);
    }
  }

  #labelReader(model) {
    return new LabelReader(() => this.get(model));
  }

  async #openStream(model, producer, window) {
    if (!(Number.isInteger(window) && window >= 1)) throw new RangeError(`window: ${window}: expected a whole number, at least 1`);
    return LearnStream.open(await this.#stub(LearningService), nameOf(model), producer, {
      window, giveUpAfter: this.#giveUpAfter, onReconnect: this.#onReconnect, writerStub: (address) => this.#writer(address) });
  }

  /** Returns a name that no open stream to this model has, and a function that gives it back. */
  #lendProducer(model) {
    if (!this.#learning.has(model)) this.#learning.set(model, { used: new Set(), group: this.#learning.size });
    const { used, group } = this.#learning.get(model);
    let number = 0;
    while (used.has(number)) ++number;
    used.add(number);
    // A model may be learned under its own name and by an alias at the same time.
    const ofAlias = model.startsWith('aliases/') ? `${group}-` : '';
    return [`${this.#producer}-${ofAlias}${number}`, () => used.delete(number)];
  }

  // ---- Predictions ----

  async predict(model, examples, options = {}) {
    checkOptions(options, PREDICT_OPTIONS);
    const { batch = 1000, ids = false, classScores = false, minRevision = 0 } = options;
    let found = await this.get(model);
    const classes = classScores ? found.learner?.classes?.maxClasses : undefined;
    let names = new Labels(found);
    const predictions = { labels: [], scores: [], probabilities: [], classScores: [], ids: [], revision: 0, model: found.name };
    const answers = this.predictStream(model, examples, { batch: classes ? Math.min(batch, Math.floor(MOST_SCORES / classes)) : batch, ids, classScores, minRevision });
    for await (const [rows, answer] of answers) {
      if (answer.rowErrors.length > 0) {
        const [{ row, status }] = answer.rowErrors;
        throw new PerceptrondError({ ...status, message: `${positionOf(rows[row], predictions.labels.length + row)}: ${status.message}` });
      }
      const isAnother = answer.model !== '' && answer.model !== found.name;
      if (isAnother || names.lacks(answer.predictedLabels)) {
        found = await this.#answering(model, answer.model || found.name);
        names = new Labels(found);
      }
      predictions.revision = predictions.labels.length > 0 && !isAnother ? Math.min(predictions.revision, answer.revision) : answer.revision;
      predictions.model = found.name;
      for (const label of answer.predictedLabels) predictions.labels.push(names.nameOrNumber(label));
      predictions.scores.push(...answer.scores);
      predictions.probabilities.push(...answer.probabilities);
      predictions.ids.push(...answer.predictionIds);
      const width = answer.classScores.length / answer.scores.length;
      for (let begin = 0; begin < answer.classScores.length; begin += width) predictions.classScores.push(answer.classScores.slice(begin, begin + width));
    }
    return predictions;
  }

  /** The model that answered. By the name that was asked for, if it still has that: the caller may have access to it alone. */
  async #answering(asked, name) {
    const now = await this.get(asked);
    return now.name === name ? now : this.get(name);
  }

  async* predictStream(model, examples, options = {}) {
    checkOptions(options, [...PREDICT_OPTIONS, 'window']);
    const { batch = 1000, window = 4, ids = false, classScores = false, minRevision = 0 } = options;
    checkBatch(batch);
    // A server of a fleet waits for this state here; on a stream it does not.
    if (minRevision > 0) await this.#call(PredictionService, 'predict', { model: nameOf(model), minRevision });
    const stub = await this.#stub(PredictionService);
    yield* converted(predict(stub, nameOf(model), batches(asRows(examples), batch), {
      window, include: { includePredictionIds: ids, includeClassScores: classScores }, minRevision, giveUpAfter: this.#giveUpAfter, onReconnect: this.#onReconnect }));
  }

  async explain(model, examples, { maxFeatures = 20 } = {}) {
    const rows = [];
    for await (const row of asRows(examples)) rows.push(row);
    return this.#call(PredictionService, 'explain', { model: nameOf(model), columns: packNaming(rows.map(toPredict), (index) => index), maxFeatures });
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
          // Stays on the model of an alias.
          request.name = now.name;
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

  async analyze(model, { onProgress = () => {}, ...settings } = {}) {
    checkFields(settings, 'perceptron.v1.AnalyzeRequest');
    const stub = await this.#stub(AnalysisService);
    const call = readable(stub.analyze({ ...settings, model: nameOf(model) }));
    try {
      for await (const { progress, result } of call) {
        if (result) return result;
        onProgress(progress);
      }
      throw new ProtocolError('the server ended the stream early');
    } catch (error) {
      throw toError(error);
    } finally {
      call.cancel();
    }
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

  async* #pages(Service, method, request) {
    let pageToken = '';
    do {
      const page = await this.#call(Service, method, { ...request, pageToken });
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  /** repeat: while it fails for a reason that may pass. timeout: the least that an attempt has, in seconds. */
  async #call(Service, method, request, { repeat = true, timeout = 0 } = {}) {
    try {
      return await unary(await this.#stub(Service), method, request, repeat ? this.#giveUpAfter : 0, Math.max(this.#timeout, timeout));
    } catch (error) {
      throw toError(error);
    }
  }
}
