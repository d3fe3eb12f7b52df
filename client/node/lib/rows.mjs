// Labels of a model, and batches of rows. A row is {features: Map of names or indices to values, label: a number, a name,
// or undefined; weight, 1 if undefined}, with text or predictionId if these are in the place of features.

/** A malformed line or label; the message says where and why. */
export class BadLine extends Error {}

const NUMBER = /^([-+]?)(?=\.?\d)(\d*)\.?(\d*)(?:[eE]([-+]?\d{1,9}))?$/;

/** A key that equal numbers share and others do not: the digits without zeros at either end, and an exponent. undefined: the text is no number. */
function numberKey(text) {
  const [, sign, whole, fraction, exponent = 0] = NUMBER.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  return kept ? `${sign === '-' ? '-' : ''}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}` : '0';
}

/** Whether the text is a number. */
export const isNumber = (text) => NUMBER.test(text);

/** Whether the text is a number with more zeros than it needs before its digits, such as 007. */
const isCode = (text) => /^0\d/.test(text);

/**
 * Labels are numbers: -1 and +1, or for multiclass models the class from 0, in the order of the model's names. If the
 * model adds classes by name, examples are labelled by name.
 */
export class Labels {
  #multiclass;
  #newNames;
  #most;
  #names;
  #numbers;
  // The names that are numbers, by numberKey(). If there are any, numbers are names only, and equal numbers one name; but where
  // classes are added by name a code is a name of its own.
  #nameOf = new Map();

  constructor({ labelNames, learner }) {
    const classes = learner?.classes;
    this.#multiclass = Boolean(classes);
    this.#newNames = classes?.newClasses === 'NEW_CLASSES_NAMED';
    this.#most = classes?.maxClasses;
    this.#names = new Map(labelNames.map((name, i) => [this.#multiclass ? i : 2 * i - 1, name]));
    this.#numbers = new Map([...this.#names].map(([number, name]) => [name, number]));
    for (const name of labelNames) this.#note(name);
  }

  #note(name) {
    const key = this.#newNames && isCode(name) ? undefined : numberKey(name);
    if (key !== undefined && !this.#nameOf.has(key)) this.#nameOf.set(key, name);
  }

  /** The name that the text is, or the one that is an equal number. */
  #find(text) {
    if (this.#numbers.has(text)) return text;
    return this.#newNames && isCode(text) ? undefined : this.#nameOf.get(numberKey(text));
  }

  /** Returns the label to send, a number or a name. Throws BadLine if it is not a label of the model. */
  read(text) {
    if (this.#newNames) {
      if (!text) throw new BadLine('the label is empty');
      return this.readName(text);
    }
    const name = this.#find(text);
    if (name !== undefined) return this.#numbers.get(name);
    const number = isNumber(text) ? Number(text) : NaN;
    if (this.#nameOf.size > 0 || !this.#allows(number)) throw new BadLine(`label "${text.slice(0, 40)}" is ${this.#expectedLabels()}`);
    return number;
  }

  /** The same for a text of a program: its name. A text that is none is the server's to refuse. */
  readName(text) {
    const name = this.#find(text);
    if (name === undefined && this.#newNames && this.#nameOf.size < this.#most) this.#note(text);
    return name ?? text;
  }

  /** The same for a number of a program: its name, if it is one; with two labels -1 for 0. Other numbers are the server's to refuse. */
  readNumber(number) {
    if (this.#newNames && Number.isInteger(number)) return this.readName(String(number));
    const name = Number.isFinite(number) ? this.#find(String(number)) : undefined;
    if (name !== undefined) return name;
    if (this.#nameOf.size > 0) throw new BadLine(`label ${number} is ${this.#expectedLabels()}`);
    return number === 0 && !this.#multiclass ? -1 : number;
  }

  #allows(number) {
    return this.#multiclass ? Number.isInteger(number) && number >= 0 && number < this.#most : Math.abs(number) === 1;
  }

  #expectedLabels() {
    const numbers = this.#nameOf.size > 0 ? [] : [this.#multiclass ? `0 to ${this.#most - 1}` : '-1 or +1'];
    if (this.#multiclass) return `not a class of the model: ${[...(this.#names.size > 0 ? ['its label names'] : []), ...numbers].join(', or ')}`;
    const names = [...this.#numbers.keys()].map((name) => `"${name}"`);
    return names.length > 0 ? `not a label of the model: ${[...names, ...numbers].join(', ')}` : 'neither -1 nor +1';
  }

  /** Returns the number of a class, or undefined if its name was unknown when this object was made. */
  number(label) {
    return typeof label === 'number' ? label : this.#numbers.get(label);
  }

  /** Returns the name of a predicted label, else its number. "-": the model has no class yet. */
  name(number) {
    if (this.#multiclass && number < 0) return '-';
    return this.#names.get(number) ?? (this.#multiclass || number < 0 ? String(number) : `+${number}`);
  }

  /** Whether one of these predicted labels is a class that got its name after this object was made. */
  lacks(numbers) {
    return this.#newNames && numbers.some((number) => number >= 0 && !this.#names.has(number));
  }

  /** Returns the name of a predicted label, if the model has names, else its number. */
  nameOrNumber(number) {
    return this.#names.get(number) ?? number;
  }
}

/** Where a row is in what a user gave: the line of its file (row.line, from 1), or its number. */
export function positionOf(row, number) {
  return row?.line === undefined ? `row ${number}` : `line ${row.line}`;
}

/** As the streams take what a user gives: features in a Map, which is empty beside a text or an id. */
export function asRow(example, number) {
  const { features, text, predictionId, label, weight, line } = example ?? {};
  const given = [['features', features, 'object'], ['text', text, 'string'], ['predictionId', predictionId, 'string']].filter(([, value]) => value !== undefined);
  const [wrong, value] = given.find(([, of, type]) => of === null || typeof of !== type) ?? [];
  if (wrong || given.length !== 1) {
    const why = wrong ? `${wrong} is ${value === null ? 'null: leave out what is missing' : `a ${typeof value}`}; ` : '';
    throw new RangeError(`${positionOf({ line }, number)}: ${why}expected features (an object or a Map), a text or a predictionId`);
  }
  if (features?.[Symbol.iterator] && !(features instanceof Map)) {
    throw new RangeError(`${positionOf({ line }, number)}: features are a list; expected an object of names, or a Map of indices: new Map(values.entries())`);
  }
  return { features: features instanceof Map ? features : new Map(Object.entries(features ?? {})), text, predictionId, label, weight, line };
}

/** The same of an example to be learned. */
export function asLabelledRow(example, number) {
  const row = asRow(example, number);
  if (row.label === undefined) throw new RangeError(`${positionOf(row, number)}: the label is missing; leave such rows out`);
  return row;
}

/** The same without what is not predicted. */
export function toPredict(row) {
  return { ...row, label: undefined, weight: undefined };
}

// The characters of a message of texts, and the features of another with the characters of their names: so that it, with its
// n-grams, stays below the server's limits.
const MOST_TEXT = 2 ** 19;
const MOST_FEATURES = 2 ** 18;
const MOST_IN_NAMES = 2 ** 22;

/** A row's part of a message. */
function partOf({ text, features }) {
  if (text !== undefined) return text.length / MOST_TEXT;
  let characters = 0;
  for (const name of features?.keys() ?? []) {
    if (typeof name !== 'string') break;
    characters += name.length;
  }
  return Math.max((features?.size ?? 0) / MOST_FEATURES, characters / MOST_IN_NAMES);
}

/** Yields the rows of an iterable in batches of at most this many; long ones make smaller ones. */
export async function* batches(rows, size) {
  let batch = [];
  let part = 0;
  for await (const row of rows) {
    part += partOf(row);
    if (batch.length === size || (batch.length > 0 && part > 1)) {
      yield batch;
      batch = [];
      part = partOf(row);
    }
    batch.push(row);
  }
  if (batch.length > 0) yield batch;
}
