// A learn stream that reconnects: each example is learned exactly once.
//
//   const stream = await LearnStream.open(stub, 'models/spam', 'mail-reader');
//   await stream.send(columns);
//   const summary = await stream.endPass();
//   await stream.finish();

import { setImmediate as turn } from 'node:timers/promises';
import { ProtocolError } from './errors.mjs';
import { Backoff, withRetries } from './retry.mjs';
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
  #waiting = new Set();

  /**
   * Opens the stream and waits for the position of the producer.
   * window: most unanswered examples; responseTimeout: seconds without progress before giving up.
   */
  static async open(stub, model, producer, { window = 8192, responseTimeout = 60, onReconnect = () => {} } = {}) {
    const stream = new LearnStream();
    stream.#stub = stub;
    stream.#window = new Window(model, producer, window);
    stream.#backoff = new Backoff(responseTimeout);
    stream.#done = stream.#run(onReconnect);
    await stream.#until(() => stream.#window.ready);
    return stream;
  }

  get totals() { return this.#window.totals; }
  get nextOffset() { return this.#window.nextOffset; }
  get passes() { return this.#window.passes; }

  /** Sends rows with their labels; waits while the window is full. */
  async send(columns, completedPass = 0) {
    await this.#until(() => this.#window.hasRoom);
    this.#window.add(columns, completedPass);
    this.#flush();
    // Lets the event loop read answers between messages.
    await turn();
  }

  /** Marks the end of a pass over the data, waits for all answers and returns the PassSummary. */
  async endPass() {
    await this.send(undefined, this.#window.passes + 1);
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
    try {
      await withRetries(this.#backoff, () => this.#connect(), onReconnect);
    } catch (error) {
      this.#ended ??= error;
    }
    this.#changed();
  }

  /** Runs one connection until it ends or fails. */
  async #connect() {
    if (this.#ended) throw this.#ended;
    const call = this.#stub.learnStream();
    this.#call = call;
    call.write(this.#window.opening());
    try {
      for await (const response of call) this.#handle(response);
      if (!this.#finishing) throw new ProtocolError('the server ended the stream before everything was sent');
    } finally {
      // Later messages belong to the next connection.
      this.#call = undefined;
      call.cancel();
    }
  }

  #handle({ opened, results }) {
    if (opened) this.#window.opened(opened);
    for (const result of results) if (this.#window.answered(result)) this.#backoff.progress();
    this.#flush();
    this.#changed();
  }

  /** Sends the next messages; the capacity of the window bounds what gRPC queues. */
  #flush() {
    if (!this.#call) return;
    for (let request; (request = this.#window.nextToSend()) !== undefined;) this.#call.write(request);
    if (this.#finishing && this.#window.ready && !this.#call.writableEnded) this.#call.end();
  }
}
