// What the labels of a file mean to a model, and what the model's answers are called.

import { BadLine } from './errors.mjs';

const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;

/** NaN: it is none. */
export function numberOf(text) {
  return NUMBER.test(text) ? Number(text) : NaN;
}

/**
 * A label is a number to the server: -1 or +1, or of several classes the class's, from 0. The model's names stand for them in
 * that order. Where classes may come up by name, examples are labelled by name, and the server gives the numbers.
 */
export class Labels {
  #several;
  #newNames;
  #most;
  #names;
  #numbers;
  #namesAreNumbers;

  constructor({ labelNames, learner }) {
    const classes = learner?.classes;
    this.#several = Boolean(classes);
    this.#newNames = classes?.newClasses === 'NEW_CLASSES_NAMED';
    this.#most = classes?.maxClasses;
    this.#names = new Map(labelNames.map((name, i) => [this.#several ? i : 2 * i - 1, name]));
    this.#numbers = new Map([...this.#names].map(([number, name]) => [name, number]));
    // Then a number in a file is a name or nothing.
    this.#namesAreNumbers = labelNames.some((name) => !Number.isNaN(numberOf(name)));
  }

  /** The label that an example is sent with, a number or a name. Throws BadLine if the model has none that is called so. */
  read(text) {
    if (this.#newNames) {
      if (!text) throw new BadLine('the label is empty');
      return text;
    }
    if (this.#numbers.has(text)) return this.#numbers.get(text);
    const number = this.#namesAreNumbers ? NaN : numberOf(text);
    if (!this.#allows(number)) throw new BadLine(`label "${text.slice(0, 40)}" is ${this.#whatItIsNot()}`);
    return number;
  }

  #allows(number) {
    return this.#several ? Number.isInteger(number) && number >= 0 && number < this.#most : Math.abs(number) === 1;
  }

  #whatItIsNot() {
    const numbers = this.#namesAreNumbers ? [] : [this.#several ? `0 to ${this.#most - 1}` : '-1 or +1'];
    if (this.#several) return `none of the model's classes: ${[...(this.#names.size > 0 ? ['its label names'] : []), ...numbers].join(', or ')}`;
    const names = [...this.#numbers.keys()].map((name) => `"${name}"`);
    return names.length > 0 ? `none of the model's: ${[...names, ...numbers].join(', ')}` : 'neither -1 nor +1';
  }

  /** Undefined: a name that none of the model's classes had when this was made. */
  number(label) {
    return typeof label === 'number' ? label : this.#numbers.get(label);
  }

  /** What an answer is called: by its number where it has no name. "-": no class has come up yet. */
  name(number) {
    if (this.#several && number < 0) return '-';
    return this.#names.get(number) ?? (this.#several || number < 0 ? String(number) : `+${number}`);
  }
}
