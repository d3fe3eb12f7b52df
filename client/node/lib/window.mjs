// The unanswered messages of a learn stream, which LearnStream sends.

import { packNaming } from './columns.mjs';
import { NAME_TABLE_SIZE, NameTable } from './name_table.mjs';
import { positionOf } from './rows.mjs';
import { ProtocolError, StatusError, describeStatus } from './rpc.mjs';

/** What a model has of a stream. */
class LearningModel {
  #uid;
  #acknowledged = -1;
  #revision = 0;
  #historyId = '';

  name;
  // The latest PassSummary received.
  lastPass;
  // Totals over all answers received. Lost answers are missing here but are in the model's report.
  totals = { examples: 0, mistakes: 0, updates: 0, duplicates: 0, rowErrors: 0, firstRowError: '', lostAnswers: 0 };
  // The producer's position when the latest connection was opened.
  position;

  constructor(name) { this.name = name; }

  get isOpen() { return this.#uid !== undefined; }

  /** What was acknowledged (Producer.Resume); undefined if nothing was. */
  claim() {
    return this.isOpen && this.#acknowledged >= 0
      ? { modelUid: this.#uid, acknowledgedOffset: this.#acknowledged, acknowledgedRevision: this.#revision, historyId: this.#historyId } : undefined;
  }

  /** Throws if what a later connection opened (StreamOpened) is another model, or one that lost what it acknowledged. */
  checkSame({ modelUid, nextOffset }) {
    if (!this.isOpen) return;
    if (modelUid !== this.#uid) throw new ProtocolError(`${this.name} was ${this.name.startsWith('aliases/') ? 'moved' : 'deleted and created again'} while examples were being sent to it`);
    if (nextOffset <= this.#acknowledged) {
      throw new ProtocolError(`the server acknowledged examples through ${this.#acknowledged} but now expects ${nextOffset}`);
    }
  }

  open({ model = '', modelUid, nextOffset, passes, revision, historyId = '' }) {
    // Later connections stay on the model of an alias.
    if (model !== '') this.name = model;
    [this.#uid, this.#historyId, this.position] = [modelUid, historyId, { nextOffset, passes }];
    this.acknowledge(nextOffset - 1, revision);
  }

  acknowledge(offset, revision = 0) {
    this.#acknowledged = Math.max(this.#acknowledged, offset);
    this.#revision = Math.max(this.#revision, revision);
  }
}

/**
 * The unanswered messages of a stream, for exactly-once learning. It has no connection; LearnStream sends the messages.
 * The producer's examples are numbered from 0. After a lost connection the server returns the number it expects next:
 * messages below it were learned, the rest is sent again, and the server acknowledges duplicates without learning them.
 * Rows are packed when they are sent, because each connection has a table of names of its own.
 */
export class Window {
  #producer;
  #capacity;
  #nameTableSize;
  #names = new NameTable(0);
  // {rows, firstOffset, completedPass}. Without an offset: after the message before it.
  #messages = [];
  #rows = 0;
  #sent = 0;
  #answered = 0;
  // Models whose answer to the oldest message has come.
  #answering = 0;
  #ready = false;

  nextOffset = 0;
  // Those that all models have completed.
  passes = 0;
  // LearningModels, in the order of their names.
  models;
  // From an offset to the row of what the user gave, for errors.
  rowOf = (offset) => offset;

  /**
   * models: one name, or several of models that learn the same examples; capacity: most unanswered examples; a message
   * is accepted while there are fewer; nameTableSize: most names in a stream's table; 0: each message has its names.
   */
  constructor(models, producer, capacity, nameTableSize = NAME_TABLE_SIZE) {
    this.models = [models].flat().map((name) => new LearningModel(name));
    [this.#producer, this.#capacity, this.#nameTableSize] = [producer, capacity, nameTableSize];
  }

  /** Of the first model. */
  get totals() { return this.models[0].totals; }

  /** The last pass of each model: its number alone, if the model had completed it before. */
  lastPasses() {
    const known = { number: this.passes, examples: 0, mistakes: 0, updates: 0, rowErrors: 0, converged: false };
    return this.models.map(({ lastPass }) => (lastPass?.number === this.passes ? lastPass : known));
  }

  /** Whether the server has sent the producer's position. */
  get ready() { return this.#ready; }
  get empty() { return this.#messages.length === 0; }
  get hasRoom() { return this.models[0].isOpen && this.#rows < this.#capacity; }

  /** Numbers a message and keeps it until it is answered. Its rows must not change until then. */
  add(rows, completedPass = 0) {
    this.#messages.push({ rows, firstOffset: this.nextOffset, completedPass });
    this.nextOffset += rows.length;
    this.#rows += rows.length;
  }

  // ---- Connections ----

  /** Returns the first message of a stream: the producer and what was acknowledged before. */
  opening() {
    this.#sent = this.#answered = 0;
    this.#ready = false;
    const [resume, ...additionalResumes] = this.models.map((model) => model.claim());
    const [model, ...additionalModels] = this.models.map(({ name }) => name);
    return { model, additionalModels, producer: { id: this.#producer, resume, additionalResumes: additionalResumes.map((claim) => claim ?? {}) },
      resultDetail: 'RESULT_DETAIL_UPDATES', nameTableSize: this.#nameTableSize };
  }

  /** Handles the first response (StreamOpened, and those of the models after the first): the producer's position in each. */
  opened(first, others = []) {
    const positions = [first, ...others];
    if (positions.length !== this.models.length) {
      throw new ProtocolError(`the server opened ${positions.length} of ${this.models.length} models: use a newer server, or a stream for each model`);
    }
    const nextOffset = Math.min(...positions.map((position) => position.nextOffset));
    if (!this.models[0].isOpen) {
      [this.nextOffset, this.passes] = [nextOffset, Math.min(...positions.map(({ passes }) => passes))];
    }
    this.models.forEach((model, i) => model.checkSame(positions[i]));
    this.#settle(nextOffset);
    this.models.forEach((model, i) => model.open(positions[i]));
    this.#names = new NameTable(first.nameTableSize);
    this.#ready = true;
  }

  /** Whether the server refused the stream because it has no tables of names; the next one asks for none. */
  doWithoutTable(reasonOfError) {
    if (this.#nameTableSize === 0 || reasonOfError !== 'UNSUPPORTED_FIELD') return false;
    this.#nameTableSize = 0;
    return true;
  }

  /** Returns the next request, or undefined. */
  nextToSend() {
    if (!this.#ready || this.#sent === this.#messages.length) return undefined;
    const message = this.#messages[this.#sent];
    const columns = message.rows.length > 0 ? this.#pack(message) : undefined;
    this.#sent += 1;
    return { columns, firstOffset: message.firstOffset, completedPass: message.completedPass };
  }

  /** Handles an answer (LearnResult); true if a message with rows or a mark now has those of all models. */
  answered(result) {
    if (result.messageNumber === 0) return false;
    const { error, modelNumber = 0 } = result;
    if (error) throw new StatusError({ ...error, message: this.#placed(this.models[modelNumber], error.message) });
    if (result.messageNumber !== this.#answered + 1 || modelNumber !== this.#answering || this.#sent === 0) {
      throw new ProtocolError(`the server answered message ${result.messageNumber} out of order`);
    }
    const [message] = this.#messages;
    this.#count(this.models[this.#answering], message, result);
    this.#answering = (this.#answering + 1) % this.models.length;
    if (this.#answering > 0) return false;
    this.#answered += 1;
    this.#sent -= 1;
    this.#messages.shift();
    this.#rows -= message.rows.length;
    this.passes = Math.max(this.passes, message.completedPass);
    return true;
  }

  // ----

  /** Packs the message, after splitting off the rows that the table of names has no room for. */
  #pack(message) {
    const { rows, firstOffset, completedPass } = message;
    const [columns, count] = packNaming(rows, (index) => this.rowOf(firstOffset + index), (chosen) => this.#names.pack(chosen));
    if (count < rows.length) {
      this.#messages.splice(this.#sent + 1, 0, { rows: rows.slice(count), firstOffset: firstOffset + count, completedPass });
      Object.assign(message, { rows: rows.slice(0, count), completedPass: 0 });
    }
    return columns;
  }

  /** Drops messages whose rows are all below this offset: they were learned but their answers were lost. Marks stay. */
  #settle(nextOffset) {
    const kept = [];
    this.#messages.forEach((message, i) => {
      const { rows, firstOffset, completedPass } = message;
      if (rows.length === 0 || firstOffset + rows.length > nextOffset) {
        kept.push(message);
        return;
      }
      this.#rows -= rows.length;
      for (const model of this.models.slice(i === 0 ? this.#answering : 0)) model.totals.lostAnswers += rows.length;
      if (completedPass > 0) kept.push({ rows: [], completedPass });
    });
    this.#messages = kept;
    this.#answering = 0;
  }

  /** An error of a model, which is named if there are several. */
  #placed({ name }, message) {
    return this.models.length > 1 ? `${name}: ${message}` : message;
  }

  #count(model, { rows, firstOffset }, result) {
    const { totals } = model;
    model.acknowledge(result.acknowledgedOffset, result.revision);
    for (const name of ['examples', 'mistakes', 'updates', 'duplicates']) totals[name] += result[name];
    if (result.rowErrors.length > 0 && totals.rowErrors === 0) {
      const [{ row, status }] = result.rowErrors;
      totals.firstRowError = this.#placed(model, `${positionOf(rows[row], this.rowOf(firstOffset + row))}: ${describeStatus(status)}`);
    }
    totals.rowErrors += result.rowErrors.length;
    model.lastPass = result.completedPass ?? model.lastPass;
  }
}
