// Window: the unanswered messages of a learn stream, for exactly-once learning.
//
// It has no connection; learn_stream.mjs sends the messages. The producer's examples are numbered from 0. After a lost
// connection the server returns the number it expects next: messages below it were learned, the rest is sent again, and
// the server acknowledges duplicates without learning them.

import { ProtocolError, StatusError, describeStatus } from './errors.mjs';

export class Window {
  #model;
  #producer;
  #capacity;
  #messages = [];
  #rows = 0;
  #sent = 0;
  #answered = 0;
  #uid;
  #ready = false;
  #acknowledged = -1;

  nextOffset = 0;
  passes = 0;
  lastPass;
  // Totals over all answers received. Lost answers are missing here but are in the model's report.
  totals = { examples: 0, mistakes: 0, updates: 0, duplicates: 0, rowErrors: 0, firstRowError: '', lostAnswers: 0 };

  /** capacity: most unanswered examples; a message is accepted while there are fewer. */
  constructor(model, producer, capacity) {
    [this.#model, this.#producer, this.#capacity] = [model, producer, capacity];
  }

  /** Whether the server has sent the producer's position. */
  get ready() { return this.#ready; }
  get empty() { return this.#messages.length === 0; }
  get hasRoom() { return this.#uid !== undefined && this.#rows < this.#capacity; }

  /** Numbers a message and keeps it until it is answered. */
  add(columns, completedPass = 0) {
    const rows = columns ? columns.rowEnds.length : 0;
    this.#messages.push({ rows, request: { columns, firstOffset: this.nextOffset, completedPass } });
    this.nextOffset += rows;
    this.#rows += rows;
  }

  // ---- Connections ----

  /** Returns the first message of a stream: the producer and what was acknowledged before. */
  opening() {
    this.#sent = this.#answered = 0;
    this.#ready = false;
    const resume = this.#uid !== undefined && this.#acknowledged >= 0
      ? { modelUid: this.#uid, acknowledgedOffset: this.#acknowledged } : undefined;
    return { model: this.#model, producer: { id: this.#producer, resume }, resultDetail: 'RESULT_DETAIL_UPDATES' };
  }

  /** Handles the first response (StreamOpened): the producer's position. */
  opened({ modelUid, nextOffset, passes }) {
    if (this.#uid === undefined) {
      [this.nextOffset, this.passes] = [nextOffset, passes];
    } else if (modelUid !== this.#uid) {
      throw new ProtocolError(`${this.#model} was deleted and created again while examples were being sent to it`);
    } else if (nextOffset <= this.#acknowledged) {
      throw new ProtocolError(`the server acknowledged examples through ${this.#acknowledged} but now expects ${nextOffset}`);
    }
    this.#uid = modelUid;
    this.#settle(nextOffset);
    this.#ready = true;
  }

  /** Returns the next request, or undefined. */
  nextToSend() {
    if (!this.#ready || this.#sent === this.#messages.length) return undefined;
    return this.#messages[this.#sent++].request;
  }

  /** Handles an answer (LearnResult); true if its message had rows or a mark. */
  answered(result) {
    if (result.messageNumber === 0) return false;
    if (result.error) throw new StatusError(result.error);
    if (result.messageNumber !== this.#answered + 1 || this.#sent === 0) {
      throw new ProtocolError(`the server answered message ${result.messageNumber} out of order`);
    }
    this.#answered += 1;
    this.#sent -= 1;
    const message = this.#messages.shift();
    this.#rows -= message.rows;
    this.#acknowledged = Math.max(this.#acknowledged, result.acknowledgedOffset);
    this.#count(message, result);
    return true;
  }

  // ----

  /** Drops messages whose rows are all below this offset: they were learned but their answers were lost. Marks stay. */
  #settle(nextOffset) {
    const kept = [];
    for (const message of this.#messages) {
      const { rows, request } = message;
      if (rows === 0 || request.firstOffset + rows > nextOffset) {
        kept.push(message);
        continue;
      }
      this.#rows -= rows;
      this.totals.lostAnswers += rows;
      if (request.completedPass > 0) kept.push({ rows: 0, request: { completedPass: request.completedPass } });
    }
    this.#messages = kept;
    this.#acknowledged = Math.max(this.#acknowledged, nextOffset - 1);
  }

  #count({ request }, result) {
    for (const name of ['examples', 'mistakes', 'updates', 'duplicates']) this.totals[name] += result[name];
    if (result.rowErrors.length > 0 && this.totals.rowErrors === 0) {
      const [{ row, status }] = result.rowErrors;
      this.totals.firstRowError = `example ${request.firstOffset + row}: ${describeStatus(status)}`;
    }
    this.totals.rowErrors += result.rowErrors.length;
    if (result.completedPass) {
      this.lastPass = result.completedPass;
      this.passes = Math.max(this.passes, result.completedPass.number);
    }
  }
}
