// A learn stream that outlives its connections: nothing is lost, nothing is learned twice.
//
//   const stream = await LearnStream.open(stub, 'models/spam', 'mail-reader');
//   await stream.send(columns);
//   const summary = await stream.endPass();
//   await stream.finish();

import { setImmediate as turn } from 'node:timers/promises';
import { ProtocolError } from './errors.mjs';
import { Backoff, withRetries } from './retry.mjs';
import { Window } from './window.mjs';

/** Every method throws what ended the stream: gRPC's errors, StatusError, ProtocolError. */
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
   * Opens the stream, and waits until the server has said where this producer stands.
   * window: examples that may be unanswered; patience: seconds without progress after which it gives up.
   */
  static async open(stub, model, producer, { window = 8192, patience = 60, onReconnect = () => {} } = {}) {
    const stream = new LearnStream();
    stream.#stub = stub;
    stream.#window = new Window(model, producer, window);
    stream.#backoff = new Backoff(patience);
    stream.#done = stream.#run(onReconnect);
    await stream.#until(() => stream.#window.ready);
    return stream;
  }

  get totals() { return this.#window.totals; }
  get nextOffset() { return this.#window.nextOffset; }
  get passes() { return this.#window.passes; }

  /** Sends rows with their labels; waits as long as too much is unanswered. */
  async send(columns, endOfPass = 0) {
    await this.#until(() => this.#window.hasRoom);
    this.#window.add(columns, endOfPass);
    this.#flush();
    // Answers are to be read while rows are made.
    await turn();
  }

  /** Marks the end of a pass over the data, and waits until all is answered: its PassSummary. */
  async endPass() {
    await this.send(undefined, this.#window.passes + 1);
    await this.#until(() => this.#window.empty);
    return this.#window.lastPass;
  }

  /** Waits until everything sent is answered, and ends the stream. */
  async finish() {
    await this.#until(() => this.#window.empty);
    this.#finishing = true;
    this.#flush();
    await this.#done;
    if (this.#ended) throw this.#ended;
    return this.totals;
  }

  /** Ends the stream as it is. What was not answered may have been learned; sent again, it counts once. */
  async cancel() {
    this.#ended ??= new Error('the stream was cancelled');
    this.#call?.cancel();
    await this.#done;
  }

  async #until(condition) {
    while (!this.#ended && !condition()) await new Promise((resolve) => this.#waiting.add(resolve));
    if (this.#ended) throw this.#ended;
  }

  /** Whoever waits looks again. */
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

  /** One connection, from its first message until it ends well or fails. */
  async #connect() {
    if (this.#ended) throw this.#ended;
    const call = this.#stub.learnStream();
    this.#call = call;
    call.write(this.#window.opening());
    try {
      for await (const response of call) this.#take(response);
      if (!this.#finishing) throw new ProtocolError('the server ended the stream before everything was sent');
    } finally {
      // What comes now is for the next one.
      this.#call = undefined;
      call.cancel();
    }
  }

  #take({ opened, results }) {
    if (opened) this.#window.opened(opened);
    for (const result of results) if (this.#window.answered(result)) this.#backoff.progress();
    this.#flush();
    this.#changed();
  }

  /** Hands over what may go; the window's capacity bounds what waits within gRPC. */
  #flush() {
    if (!this.#call) return;
    for (let request; (request = this.#window.nextToSend()) !== undefined;) this.#call.write(request);
    if (this.#finishing && this.#window.ready && !this.#call.writableEnded) this.#call.end();
  }
}
