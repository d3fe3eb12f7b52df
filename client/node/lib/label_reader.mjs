// Label 0 of models with two labels, which many programs use for -1.

/** Of one stream. */
export class ZeroLabels {
  #model;
  // Whether 0 is a label of the model; known once one comes.
  #isClass;
  #first;
  #warned = false;

  /** model: resolves to the model that the stream teaches. */
  constructor(model) { this.#model = model; }

  /** Makes label 0 of rows -1, with one warning, if the model has two labels. Throws RangeError beside -1, and if "0" is a name. */
  async read(rows) {
    const found = rows.filter(({ label }) => label === 0 || label === -1);
    if (found.length === 0) return;
    this.#first ??= found[0].label;
    const other = found.find(({ label }) => label !== this.#first);
    if (this.#first === -1 && other === undefined) return;
    this.#isClass ??= isClass(await this.#model());
    if (this.#isClass) return;
    if (other !== undefined) throw new RangeError('label 0 beside the label -1: if both mean -1, change one of them to the other');
    if (!this.#warned) process.emitWarning('label 0 is read as -1');
    this.#warned = true;
    for (const row of found) row.label = -1;
  }
}

function isClass({ name, learner, labelNames = [] }) {
  if (learner?.classes) return true;
  if (labelNames.includes('0')) throw new RangeError(`label 0 of ${name}, whose labels are names: give "0"`);
  return false;
}
