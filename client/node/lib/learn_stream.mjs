// A learn stream that reconnects: each example is learned exactly once.
//
//   const stream = await LearnStream.open(stub, 'models/spam', 'mail-reader');
//   await stream.send(rows);
//   const summary = await stream.endPass();
//   await stream.finish();

import { setImmediate as turn } from 'node:timers/promises';
import { pack } from './columns.mjs';
import { NAME_TABLE_SIZE, NameTable } from './name_table.mjs';
import { positionOf } from './rows.mjs';
import { Backoff, ProtocolError, StatusError, describeStatus, readable, reason, withRetries } from './rpc.mjs';

/**
 * The unanswered messages of a stream, for exactly-once learning. It has no connection; LearnStream sends the messages.
 * The producer's examples are numbered from 0. After a lost connection the server returns the number it expects next:
 * messages below it were learned, the rest is sent again, and the server acknowledges duplicates without learning them.
 * Rows are packed when they are sent, because each connection has a table of names of its own.
 */
export class Window {
  #model;
  #producer;
  #capacity;
  #nameTableSize;
  #names = new NameTable(0);
  // {rows, firstOffset, completedPass}. Without an offset: after the message before it.
  #messages = [];
  #rows = 0;
  #sent = 0;
  #answered = 0;
  #uid;
  #ready = false;
  #acknowledged = -1;
  #revision = 0;
  #historyId = '';

  nextOffset = 0;
  passes = 0;
  lastPass;
  // Totals over all answers received. Lost answers are missing here but are in the model's report.
  totals = { examples: 0, mistakes: 0, updates: 0, duplicates: 0, rowErrors: 0, firstRowError: '', lostAnswers: 0 };
  // From an offset to the row of what the user gave, for errors.
  rowOf = (offset) => offset;

  /**
   * capacity: most unanswered examples; a message is accepted while there are fewer. nameTableSize: most names in a
   * stream's table; 0: each message has its names.
   */
  constructor(model, producer, capacity, nameTableSize = NAME_TABLE_SIZE) {
    [this.#model, this.#producer, this.#capacity, this.#nameTableSize] = [model, producer, capacity, nameTableSize];
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
      ? { modelUid: this.#uid, acknowledgedOffset: this.#acknowledged, acknowledgedRevision: this.#revision, historyId: this.#historyId } : undefined;
    return { model: this.#model, producer: { id: this.#producer, resume }, resultDetail: 'RESULT_DETAIL_UPDATES', nameTableSize: this.#nameTableSize };
  }

  /** Handles the first response (StreamOpened): the producer's position. */
  opened({ modelUid, nextOffset, passes, nameTableSize, revision = 0, historyId = '' }) {
    if (this.#uid === undefined) {
      [this.nextOffset, this.passes] = [nextOffset, passes];
    } else if (modelUid !== this.#uid) {
      throw new ProtocolError(`${this.#model} was deleted and created again while examples were being sent to it`);
    } else if (nextOffset <= this.#acknowledged) {
      throw new ProtocolError(`the server acknowledged examples through ${this.#acknowledged} but now expects ${nextOffset}`);
    }
    this.#uid = modelUid;
    this.#historyId = historyId;
    this.#revision = Math.max(this.#revision, revision);
    this.#names = new NameTable(nameTableSize);
    this.#settle(nextOffset);
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
    this.#rows -= message.rows.length;
    this.#acknowledged = Math.max(this.#acknowledged, result.acknowledgedOffset);
    this.#revision = Math.max(this.#revision, result.revision ?? 0);
    this.#count(message, result);
    return true;
  }

  // ----

  /** Packs the message, after splitting off the rows that the table of names has no room for. */
  #pack(message) {
    const { rows, firstOffset, completedPass } = message;
    const [columns, count] = this.#packed(rows, firstOffset);
    if (count < rows.length) {
      this.#messages.splice(this.#sent + 1, 0, { rows: rows.slice(count), firstOffset: firstOffset + count, completedPass });
      Object.assign(message, { rows: rows.slice(0, count), completedPass: 0 });
    }
    return columns;
  }

  #packed(rows, firstOffset) {
    try {
      return this.#names.pack(rows);
    } catch (error) {
      // The error of the first row that cannot be packed, with its position.
      rows.forEach((row, i) => {
        try {
          pack([row]);
        } catch (ofRow) {
          ofRow.message = `${positionOf(row, this.rowOf(firstOffset + i))}: ${ofRow.message}`;
          throw ofRow;
        }
      });
      throw error;
    }
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
    this.#acknowledged = Math.max(this.#acknowledged, nextOffset - 1);
  }

  #count({ rows, firstOffset }, result) {
    for (const name of ['examples', 'mistakes', 'updates', 'duplicates']) this.totals[name] += result[name];
    if (result.rowErrors.length > 0 && this.totals.rowErrors === 0) {
      const [{ row, status }] = result.rowErrors;
      this.totals.firstRowError = `${positionOf(rows[row], this.rowOf(firstOffset + row))}: ${describeStatus(status)}`;
    }
    this.totals.rowErrors += result.rowErrors.length;
    if (result.completedPass) {
      this.lastPass = result.completedPass;
      this.passes = Math.max(this.passes, result.completedPass.number);
    }
  }
}

/** Every method throws the error that ended the stream: a gRPC error, StatusError or ProtocolError. */
export class LearnStream {
  #stub;
  #window;
  #backoff;
  #call;
  #ended;
  #done;
  #finishing = false;
  #finished = false;
  // The stub of the model's writer, if the stream goes there; how to get it; and the address that was named last, until it
  // is reached.
  #writer;
  #writerStub;
  #unreached;
  // The connection ends once what was sent is answered, and another one follows.
  #moving = false;
  #waiting = new Set();

  /**
   * Opens the stream and waits for the position of the producer.
   * window: most unanswered examples; nameTableSize: most names in the stream's table, which sends each name once, or
   * 0: each message has its names; giveUpAfter: seconds without progress before giving up; writerStub: resolves to the
   * stub of the server that clients reach at an address, or to undefined if that is none of the program's several.
   */
  static async open(stub, model, producer,
    { window = 8192, nameTableSize = NAME_TABLE_SIZE, giveUpAfter = 60, onReconnect = () => {}, writerStub = async () => undefined } = {}) {
    const stream = new LearnStream();
    stream.#stub = stub;
    stream.#writerStub = writerStub;
    stream.#window = new Window(model, producer, window, nameTableSize);
    stream.#backoff = new Backoff(giveUpAfter);
    stream.#done = stream.#run(onReconnect);
    await stream.#until(() => stream.#window.ready);
    return stream;
  }

  /** Errors name the row rowOf(offset) instead of the offset. */
  numberRows(rowOf) { this.#window.rowOf = rowOf; }
  get totals() { return this.#window.totals; }
  get nextOffset() { return this.#window.nextOffset; }
  get passes() { return this.#window.passes; }

  /** Sends rows with their labels, which must not change until they are answered; waits while the window is full. */
  async send(rows, completedPass = 0) {
    await this.#until(() => this.#window.hasRoom);
    this.#window.add(rows, completedPass);
    this.#flush();
    // Lets the event loop read answers between messages.
    await turn();
  }

  /** Marks the end of a pass over the data, waits for all answers and returns the PassSummary. */
  async endPass() {
    await this.send([], this.#window.passes + 1);
    await this.#until(() => this.#window.empty);
    return this.#window.lastPass;
  }

  /** Waits for all answers and ends the stream. */
  async finish() {
    await this.#until(() => this.#window.empty);
    this.#finishing = true;
    this.#flush();
    await this.#done;
    if (this.#ended) throw this.#ended;
    return this.totals;
  }

  /** Cancels the stream. Unanswered examples may have been learned; sent again, they count once. */
  async cancel() {
    this.#ended ??= new Error('the stream was cancelled');
    this.#call?.cancel();
    await this.#done;
  }

  async #until(condition) {
    while (!this.#ended && !condition()) await new Promise((resolve) => this.#waiting.add(resolve));
    if (this.#ended) throw this.#ended;
  }

  /** Wakes up all waiting calls. */
  #changed() {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  async #run(onReconnect) {
    const reconnecting = (error) => {
      // Any server will do.
      this.#writer = undefined;
      onReconnect(error);
    };
    try {
      while (!this.#finished) await withRetries(this.#backoff, () => this.#connectWithTable(), reconnecting);
    } catch (error) {
      this.#ended ??= error;
    }
    this.#changed();
  }

  async #connectWithTable() {
    try {
      await this.#connect();
    } catch (error) {
      // By cancel().
      if (this.#ended) throw this.#ended;
      if (!this.#window.doWithoutTable(reason(error))) throw error;
      await this.#connect();
    }
  }

  /** Runs one connection until it ends or fails. */
  async #connect() {
    if (this.#ended) throw this.#ended;
    this.#moving = false;
    const call = readable((this.#writer ?? this.#stub).learnStream());
    this.#call = call;
    call.write(this.#window.opening());
    try {
      for await (const response of call) this.#handle(response);
      if (!this.#finishing && !this.#moving) throw new ProtocolError('the server ended the stream before everything was sent');
    } finally {
      // Later messages belong to the next connection.
      this.#finished = this.#finishing;
      this.#call = undefined;
      call.cancel();
    }
  }

  #handle({ opened, results, writerAddress }) {
    if (opened) this.#window.opened(opened);
    if (opened && this.#writer) this.#unreached = undefined;
    for (const result of results) if (this.#window.answered(result)) this.#backoff.progress();
    if (writerAddress) this.#prefer(writerAddress, this.#call);
    this.#flush();
    this.#changed();
  }

  /**
   * Goes on at the model's writer once what was sent is answered, if the program knows that server. Not if it was named
   * last and could not be reached.
   */
  async #prefer(address, call) {
    if (address === this.#unreached) return;
    this.#unreached = address;
    // It may read files.
    const stub = await this.#writerStub(address).catch(() => undefined);
    if (!stub || !call || call !== this.#call) return;
    [this.#writer, this.#moving] = [stub, true];
    this.#flush();
  }

  /** Sends the next messages; the capacity of the window bounds what gRPC queues. */
  #flush() {
    if (!this.#call) return;
    if (this.#moving) {
      if (!this.#call.writableEnded) this.#call.end();
      return;
    }
    for (let request; (request = this.#window.nextToSend()) !== undefined;) this.#call.write(request);
    if (this.#finishing && this.#window.ready && !this.#call.writableEnded) this.#call.end();
  }
}
