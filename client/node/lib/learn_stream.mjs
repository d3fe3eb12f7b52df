// A learn stream that reconnects: each example is learned exactly once.
//
//   const stream = await LearnStream.open(stub, 'models/spam', 'mail-reader');
//   await stream.send(rows);
//   const summary = await stream.endPass();
//   await stream.finish();

import { setImmediate as turn } from 'node:timers/promises';
import { NAME_TABLE_SIZE } from './name_table.mjs';
import { Backoff, ProtocolError, readable, reason, withRetries } from './rpc.mjs';
import { Window } from './window.mjs';

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
   * window: most unanswered examples; nameTableSize: most names in the stream's table, which sends each name once, or 0: each message has its names; giveUpAfter: seconds without progress before giving up; writerStub: resolves to the
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
  get firstRefused() { return this.#window.firstRefused; }
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

  /** Marks the end of a pass over the data, waits for all answers and returns its PassSummary. */
  async endPass() {
    await this.send([], this.#window.passes + 1);
    await this.#until(() => this.#window.empty);
    return this.#window.lastPass();
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
