// What a learn stream must remember to lose nothing and learn nothing twice: messages that are not answered yet.
//
// Pure bookkeeping, without a connection: learn_stream.mjs moves the messages. The producer's examples are numbered from 0.
// After a connection broke the server says which number it expects next; what lies below is settled, the rest is sent
// again, and numbers the server knows already it only acknowledges.

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
  // What the answers that came add up to. Answers lost with a connection are missing here; the model's report has all.
  totals = { examples: 0, mistakes: 0, updates: 0, duplicates: 0, refused: 0, firstRefusal: '', settledUnseen: 0 };

  /** Capacity: examples that may be unanswered; a message is let in as long as there are fewer. */
  constructor(model, producer, capacity) {
    [this.#model, this.#producer, this.#capacity] = [model, producer, capacity];
  }

  /** The server has said where to go on. */
  get ready() { return this.#ready; }
  get empty() { return this.#messages.length === 0; }
  get hasRoom() { return this.#uid !== undefined && this.#rows < this.#capacity; }

  /** Numbers a message; it stays here until it is answered. */
  add(columns, endOfPass = 0) {
    const rows = columns ? columns.rowEnds.length : 0;
    this.#messages.push({ rows, request: { columns, firstOffset: this.nextOffset, endOfPass } });
    this.nextOffset += rows;
    this.#rows += rows;
  }

  // ---- One connection after another ----

  /** A new stream's first message: who sends, and what was acknowledged before. */
  opening() {
    this.#sent = this.#answered = 0;
    this.#ready = false;
    const resume = this.#uid !== undefined && this.#acknowledged >= 0
      ? { modelUid: this.#uid, acknowledgedThrough: this.#acknowledged } : undefined;
    return { model: this.#model, producer: { id: this.#producer, resume }, answerDetail: 'ANSWER_DETAIL_UPDATES' };
  }

  /** The server's first answer (StreamOpened): where it stands. */
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

  /** The next request, or undefined if there is none now. */
  nextToSend() {
    if (!this.#ready || this.#sent === this.#messages.length) return undefined;
    return this.#messages[this.#sent++].request;
  }

  /** Takes an answer (LearnResult); true if it is that of a message with something in it. */
  answered(result) {
    if (result.messageNumber === 0) return false;
    if (result.error) throw new StatusError(result.error);
    if (result.messageNumber !== this.#answered + 1 || this.#sent === 0) {
      throw new ProtocolError(`the server answered message ${result.messageNumber} out of turn`);
    }
    this.#answered += 1;
    this.#sent -= 1;
    const message = this.#messages.shift();
    this.#rows -= message.rows;
    this.#acknowledged = Math.max(this.#acknowledged, result.acknowledgedThrough);
    this.#count(message, result);
    return true;
  }

  // ----

  /** Rows below it are durable, though their answer was lost. The mark of a pass still wants its answer. */
  #settle(nextOffset) {
    const kept = [];
    for (const message of this.#messages) {
      const { rows, request } = message;
      if (rows === 0 || request.firstOffset + rows > nextOffset) {
        kept.push(message);
        continue;
      }
      this.#rows -= rows;
      this.totals.settledUnseen += rows;
      if (request.endOfPass > 0) kept.push({ rows: 0, request: { endOfPass: request.endOfPass } });
    }
    this.#messages = kept;
    this.#acknowledged = Math.max(this.#acknowledged, nextOffset - 1);
  }

  #count({ request }, result) {
    for (const name of ['examples', 'mistakes', 'updates', 'duplicates']) this.totals[name] += result[name];
    if (result.errors.length > 0 && this.totals.refused === 0) {
      const [{ row, status }] = result.errors;
      this.totals.firstRefusal = `example ${request.firstOffset + row}: ${describeStatus(status)}`;
    }
    this.totals.refused += result.errors.length;
    if (result.pass) {
      this.lastPass = result.pass;
      this.passes = Math.max(this.passes, result.pass.number);
    }
  }
}
