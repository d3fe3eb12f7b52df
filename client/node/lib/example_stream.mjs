// ExampleStream: a LearnStream that takes what users give, and throws what Client throws.

import { asLabelledRow } from './rows.mjs';
import { toError } from './rpc.mjs';

export class ExampleStream {
  #stream;
  #zeros;

  /** zeros: the ZeroLabels of its model. */
  constructor(stream, zeros) { [this.#stream, this.#zeros] = [stream, zeros]; }

  get nextOffset() { return this.#stream.nextOffset; }
  get passes() { return this.#stream.passes; }
  get totals() { return { ...this.#stream.totals }; }

  send(examples) {
    return this.#do(async () => {
      if (!examples?.[Symbol.iterator]) throw new RangeError('examples: expected an array of examples');
      const rows = Array.from(examples, (example, i) => asLabelledRow(example, this.nextOffset + i));
      await this.#zeros.read(rows);
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

  async #do(step) {
    try {
      return await step();
    } catch (error) {
      throw toError(error);
    }
  }
}
