// NameTable: the client's copy of the table of names of one stream (ExampleColumns.stream_names).
//
// A name is sent once, and then its number until the table, which holds the latest names, has lost it. The copy is of
// one stream: another one starts with an empty table.

import { assemble, checkName, hasNames, haveFeatures, nameColumn, number, pack } from './columns.mjs';

/** How many names a stream's table holds by default. */
export const NAME_TABLE_SIZE = 262144;

export class NameTable {
  #mostNew;
  #mostKept;
  #next = 0;
  // In the order of the numbers: a new name gets the next one, and goes to the end.
  #numbers = new Map();

  /** size: how many names the server's table holds; below 4: each message has its names. */
  constructor(size) {
    // A message appends at most a quarter. So names that three quarters of the table are newer than stay in it until the
    // message ends; older ones are removed here, and appended again.
    this.#mostNew = Math.floor(size / 4);
    this.#mostKept = size - this.#mostNew;
  }

  /**
   * Packs the first rows into one message. Returns it, and how many: fewer than all if the others have too many new
   * names. Messages must be sent in the order in which they are packed.
   */
  pack(rows) {
    if (!hasNames(rows) || !haveFeatures(rows) || this.#mostNew === 0 || this.#next + this.#mostNew >= 2 ** 32) return [pack(rows), rows.length];
    this.#removeOldest();
    const appended = [];
    // How many of them are of the rows that fit.
    let kept = 0;
    const numberOf = (name) => {
      const known = this.#numbers.get(name);
      if (known !== undefined) return known;
      checkName(name);
      appended.push(name);
      this.#numbers.set(name, this.#next);
      return this.#next++;
    };
    const fits = () => {
      if (appended.length > this.#mostNew) return false;
      kept = appended.length;
      return true;
    };
    const numbered = number(rows, numberOf, fits);
    for (const name of appended.splice(kept)) {
      this.#numbers.delete(name);
      this.#next -= 1;
    }
    const count = numbered.rowEnds.length;
    // One row may have too many new names.
    if (count === 0) return [pack(rows.slice(0, 1)), 1];
    // The column is present, though there may be no new name.
    return [{ ...assemble(rows.slice(0, count), numbered), streamNames: nameColumn(appended) }, count];
  }

  #removeOldest() {
    for (const name of this.#numbers.keys()) {
      if (this.#numbers.size <= this.#mostKept) break;
      this.#numbers.delete(name);
    }
  }
}
