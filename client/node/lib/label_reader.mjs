// Labels of a program: numbers and their texts, of which some are names, and 0 of models with two labels, which many programs use for -1.

import { Labels, isNumber, positionOf } from './rows.mjs';

const mayBeNumber = (label) => typeof label === 'number' || (typeof label === 'string' && isNumber(label));

/** Of one stream. */
export class LabelReader {
  #model;
  // Known once a number comes.
  #labels;
  // Whichever of 0 and -1 came first.
  #negative;
  #warned = false;

  /** model: resolves to the model that the stream teaches. */
  constructor(model) { this.#model = model; }

  /**
   * Makes the numbers among the labels of rows, also as texts, those to send: the names, where names are numbers; with two labels -1 of 0, with one
   * warning. first: the number of the first row. Throws RangeError for a number that no label is, and for 0 beside -1.
   */
  async read(rows, first) {
    if (!rows.some(({ label }) => mayBeNumber(label))) return;
    this.#labels ??= new Labels(await this.#model());
    for (const [i, row] of rows.entries()) {
      const given = row.label;
      if (!mayBeNumber(given)) continue;
      try {
        row.label = typeof given === 'number' ? this.#labels.readNumber(given) : this.#labels.readName(given);
      } catch (error) {
        throw new RangeError(`${positionOf(row, first + i)}: ${error.message}`);
      }
      if (row.label === -1) this.#checkNegative(given);
    }
  }

  #checkNegative(given) {
    this.#negative ??= given;
    if (given !== this.#negative) throw new RangeError('label 0 beside the label -1: if both mean -1, change one of them to the other');
    if (given === 0 && !this.#warned) process.emitWarning('label 0 is read as -1');
    this.#warned = true;
  }
}
