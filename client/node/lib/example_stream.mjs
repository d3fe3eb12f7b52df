// ExampleStream: a LearnStream that takes what users give, and throws what Client throws.

import { asLabelledRow } from './rows.mjs';
import { toError } from './rpc.mjs';

export class ExampleStream {
  #stream;
  #labels;
  #last = Promise.resolve();

  /** labels: the LabelReader of its model. */
  constructor(stream, labels) { [this.#stream, this.#labels] = [stream, labels]; }

  get nextOffset() { return this.#stream.nextOffset; }
  get passes() { return this.#stream.passes; }
  get totals() { return { ...this.#stream.totals }; }

  send(examples) {
    return this.#do(async () => {
      if (!examples?.[Symbol.iterator]) throw new RangeError('examples: expected an array of examples');
      const rows = Array.from(examples, (example, i) => asLabelledRow(example, this.nextOffset + i));
      await this.#labels.read(rows, this.nextOffset);
      await this.#stream.send(rows);
    });
  }

  endPass() {
    return this.#do(() => this.#stream.endPass());
  }

  async finish() {
    await this.#do(() => this.#stream.finish());
    return this.totals;
  }

  cancel() {
    return this.#stream.cancel();
  }

  // Steps follow one another, also where one asks for the model's labels.
  #do(step) {
    const done = this.#last.then(step).catch((error) => { throw toError(error); });
    this.#last = done.catch(() => {});
    return done;
  }
}
