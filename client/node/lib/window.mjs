// The unanswered messages of a learn stream, which LearnStream sends.

import { leastBytes, packNaming } from './columns.mjs';
import { NAME_TABLE_SIZE, NameTable } from './name_table.mjs';
import { positionOf } from './rows.mjs';
import { ProtocolError, StatusError, describeStatus, rowTooLarge } from './rpc.mjs';

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
  #ready = false;
  // Once a connection was opened, as the server names it.
  #model;
  // The first StreamOpened's; undefined before it.
  #uid;
  // Of a message, as the server accepts; 0: it does not say.
  #mostBytes = 0;
  #acknowledged = -1;
  // The largest received, and the epoch received with it.
  #revision = 0;
  #epoch = 0;
  // The latest PassSummary received.
  #lastPass;

  nextOffset = 0;
  passes = 0;
  // Totals over all answers received. Lost answers are missing here but are in the model's report.
  totals = { examples: 0, mistakes: 0, updates: 0, duplicates: 0, rowErrors: 0, firstRowError: '', lostAnswers: 0 };
  // The first row with an error: {position, status}.
  firstRefused;
  // From an offset to the row of what the user gave, for errors.
  rowOf = (offset) => offset;

  /**
   * capacity: most unanswered examples; a message is accepted while there are fewer; nameTableSize: most names in a
   * stream's table; 0: each message has its names.
   */
  constructor(model, producer, capacity, nameTableSize = NAME_TABLE_SIZE) {
    [this.#model, this.#producer, this.#capacity, this.#nameTableSize] = [model, producer, capacity, nameTableSize];
  }

  /** The last pass: its number alone, if the model had completed it before. */
  lastPass() {
    return this.#lastPass?.number === this.passes ? this.#lastPass : { number: this.passes, examples: 0, mistakes: 0, updates: 0, rowErrors: 0, converged: false };
  }

  /** Whether the server has sent the producer's position. */
  get ready() { return this.#ready; }
  get empty() { return this.#messages.length === 0; }
  get hasRoom() { return this.#uid !== undefined && this.#rows < this.#capacity; }

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
    const resume = this.#uid !== undefined && this.#acknowledged >= 0
      ? { modelUid: this.#uid, acknowledgedOffset: this.#acknowledged, acknowledgedRevision: this.#revision, acknowledgedEpoch: this.#epoch } : undefined;
    return { model: this.#model, producer: { id: this.#producer, resume }, resultDetail: 'RESULT_DETAIL_UPDATES', nameTableSize: this.#nameTableSize };
  }

  /** Handles the first response (StreamOpened): the producer's position. */
  opened({ model = '', modelUid, nextOffset, passes, revision, epoch, nameTableSize, maxMessageBytes = 0 }) {
    if (this.#uid === undefined) [this.nextOffset, this.passes] = [nextOffset, passes];
    else this.#checkSame(modelUid, nextOffset);
    this.#settle(nextOffset);
    // Later connections stay on the model of an alias.
    if (model !== '') this.#model = model;
    this.#uid = modelUid;
    this.#acknowledge(nextOffset - 1, revision, epoch);
    this.#names = new NameTable(nameTableSize);
    this.#mostBytes = maxMessageBytes;
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
    if (message.rows.length === 1 && this.#mostBytes > 0 && leastBytes(columns) > this.#mostBytes) {
      throw rowTooLarge(positionOf(message.rows[0], this.rowOf(message.firstOffset)), leastBytes(columns), this.#mostBytes);
    }
    this.#sent += 1;
    return { columns, firstOffset: message.firstOffset, completedPass: message.completedPass };
  }

  /** Handles an answer (LearnResult); true if it is of a message with rows or a mark. */
  answered(result) {
    if (result.messageNumber === 0) return false;
    if (result.error) throw new StatusError(result.error);
    if (result.messageNumber !== this.#answered + 1 || this.#sent === 0) {
      throw new ProtocolError(`the server answered message ${result.messageNumber} out of order`);
    }
    const message = this.#messages.shift();
    this.#count(message, result);
    this.#answered += 1;
    this.#sent -= 1;
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
    for (const message of this.#messages) {
      const { rows, firstOffset, completedPass } = message;
      if (rows.length === 0 || firstOffset + rows.length > nextOffset) {
        kept.push(message);
        continue;
      }
      this.#rows -= rows.length;
      this.totals.lostAnswers += rows.length;
      if (completedPass > 0) kept.push({ rows: [], completedPass });
    }
    this.#messages = kept;
  }

  /** Throws if a later connection opened another model, or one that lost what it acknowledged. */
  #checkSame(modelUid, nextOffset) {
    if (modelUid !== this.#uid) throw new ProtocolError(`${this.#model} was ${this.#model.startsWith('aliases/') ? 'moved' : 'deleted and created again'} while examples were being sent to it`);
    if (nextOffset <= this.#acknowledged) {
      throw new ProtocolError(`the server acknowledged examples through ${this.#acknowledged} but now expects ${nextOffset}`);
    }
  }

  #acknowledge(offset, revision = 0, epoch = 0) {
    this.#acknowledged = Math.max(this.#acknowledged, offset);
    if (revision > this.#revision || (revision === this.#revision && epoch > this.#epoch)) [this.#revision, this.#epoch] = [revision, epoch];
  }

  #count({ rows, firstOffset }, result) {
    const { totals } = this;
    this.#acknowledge(result.acknowledgedOffset, result.revision, result.epoch);
    for (const name of ['examples', 'mistakes', 'updates', 'duplicates']) totals[name] += result[name];
    if (result.rowErrors.length > 0 && totals.rowErrors === 0) {
      const [{ row, status }] = result.rowErrors;
      const position = positionOf(rows[row], this.rowOf(firstOffset + row));
      this.firstRefused = { position, status };
      totals.firstRowError = `${position}: ${describeStatus(status)}`;
    }
    totals.rowErrors += result.rowErrors.length;
    this.#lastPass = result.completedPass ?? this.#lastPass;
  }
}
