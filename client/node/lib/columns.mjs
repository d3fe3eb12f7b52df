// Packed columns (ExampleColumns): the server parses them with a few memory copies.

import { positionOf } from './rows.mjs';

/** Packs all rows into one message, with the names that occur in it. Labels are omitted unless all rows have one, weights if all are 1. */
export function pack(rows) {
  const whole = wholeColumn(rows);
  if (whole) return { ...whole, ...packTargets(rows) };
  if (!hasNames(rows)) return assemble(rows, number(rows, checked));
  const names = new Map();
  const numberOf = (name) => {
    const known = names.get(name);
    if (known !== undefined) return known;
    checkName(name);
    names.set(name, names.size);
    return names.size - 1;
  };
  return { ...assemble(rows, number(rows, numberOf)), featureNames: nameColumn([...names.keys()]) };
}

/** The column of rows that are texts or ids of predictions; undefined if all have features. */
function wholeColumn(rows) {
  for (const [field, column] of [['text', 'texts'], ['predictionId', 'predictionIds']]) {
    const values = rows.map((row) => row[field]);
    if (values.every((value) => value === undefined)) continue;
    if (values.includes(undefined)) throw new RangeError('examples have features, texts or predictionIds, all the same');
    for (const value of values) checkUnicode('text', value);
    return { [column]: values };
  }
  return undefined;
}

/** Packs rows; an error names the first that cannot be packed. numberOf: from the index of a row to its number in what a user gave. */
export function packNaming(rows, numberOf, packRows = pack) {
  try {
    return packRows(rows);
  } catch (error) {
    throw atItsRow(rows, error, numberOf);
  }
}

/** The bytes that a message takes, or a few less. */
export function leastBytes({ texts = [], indices = [], values = [], featureNames, streamNames }) {
  const named = (featureNames ?? streamNames)?.text ?? '';
  return [...texts, named].reduce((sum, text) => sum + Buffer.byteLength(text), 0) + 4 * (indices.length + values.length);
}

function atItsRow(rows, error, numberOf) {
  const named = (index, message) => `${positionOf(rows[index], numberOf(index))}: ${message}`;
  const mixed = findMixed(rows);
  if (mixed) return new RangeError(named(mixed.index, mixed.message));
  for (const [index, row] of rows.entries()) {
    try {
      pack([row]);
    } catch (ofRow) {
      ofRow.message = named(index, ofRow.message);
      return ofRow;
    }
  }
  const [{ label: first }] = rows;
  const other = rows.findIndex(({ label }) => typeof label !== typeof first);
  if (other > 0) return new RangeError(named(other, `the label is ${shown(rows[other].label)}; expected a ${typeof first === 'string' ? 'name' : 'number'}, as the rows before it have`));
  return error;
}

/** The first row that has another kind of input, or of features, than those before it: {index, message}. */
function findMixed(rows) {
  const inputOf = ({ text, predictionId }) => (text !== undefined ? 'a text' : predictionId !== undefined ? 'a predictionId' : 'features');
  let named;
  for (const [index, row] of rows.entries()) {
    if (inputOf(row) !== inputOf(rows[0])) return { index, message: `${inputOf(row)}; expected ${inputOf(rows[0])}, as the rows before it have` };
    for (const feature of row.features.keys()) {
      named ??= typeof feature === 'string';
      if ((typeof feature === 'string') !== named) {
        return { index, message: `the feature ${JSON.stringify(feature)} is a ${typeof feature}; expected ${named ? 'a name' : 'an index'}, as the features before it are` };
      }
    }
  }
  return undefined;
}

// ---- Parts, which name_table.mjs uses too ----

/** Whether the features of rows are names; if not, they are indices. */
export function hasNames(rows) {
  const first = rows.find(({ features }) => features.size > 0);
  return typeof first?.features.keys().next().value === 'string';
}

function checked(index) {
  // protobufjs would send a different index.
  if (typeof index !== 'number') throw new RangeError(`the index ${shown(index)} is a ${typeof index}; expected a number`);
  if (index >>> 0 !== index) throw new RangeError(`index ${index} is out of range; it must be 0 to 2^32 - 1`);
  return index;
}

// Bytes of a name, as the server has it.
const MOST_NAME = 1024;

/** Throws RangeError for half of a surrogate pair, as a text that was cut within an emoji has: protobufjs would send what is no UTF-8. */
function checkUnicode(what, text) {
  const lone = text.search(/\p{Surrogate}/u);
  if (lone >= 0) throw new RangeError(`the ${what} has half of a character at ${lone}; cut texts between characters: [...text].slice(0, 100).join('')`);
}

/** Throws RangeError for a name that no model takes. */
export function checkName(name) {
  const bytes = Buffer.byteLength(name);
  if (bytes < 1 || bytes > MOST_NAME) {
    throw new RangeError(`the name ${JSON.stringify(name.slice(0, 40))} has ${bytes} bytes; expected 1 to ${MOST_NAME}${bytes > 0 ? ': give a long text to a model of texts' : ''}`);
  }
  checkUnicode('name', name);
}

function checkValue(feature, value) {
  if (typeof value !== 'number') throw new RangeError(`the value of ${JSON.stringify(feature)} is ${shown(value)}; expected a number`);
  checkFloat32(`value of ${JSON.stringify(feature)}`, value);
  return value;
}

/** Throws RangeError for a finite number beyond float32; what is infinite or NaN is the server's to refuse. */
function checkFloat32(what, number) {
  if (Number.isFinite(number) && !Number.isFinite(Math.fround(number))) {
    throw new RangeError(`the ${what}, ${number}, is too large; numbers are from -3.4028235e38 to 3.4028235e38`);
  }
}

const shown = (value) => (typeof value === 'bigint' ? `${value}n` : JSON.stringify(value) ?? String(value));

/** Whether all rows have features, and not a text or an id. */
export function haveFeatures(rows) {
  return rows.every(({ text, predictionId }) => text === undefined && predictionId === undefined);
}

/**
 * Numbers the features of rows, ascending within each row, up to the first row after which fits() is false. Returns
 * {rowEnds, indices, values}.
 */
export function number(rows, numberOf, fits = () => true) {
  const [rowEnds, indices, values] = [[], [], []];
  for (const { features } of rows) {
    const numbered = [];
    for (const [feature, value] of features) numbered.push([numberOf(feature), checkValue(feature, value)]);
    if (!fits()) break;
    for (const [index, value] of numbered.sort(([a], [b]) => a - b)) {
      indices.push(index);
      values.push(value);
    }
    rowEnds.push(indices.length);
  }
  return { rowEnds, indices, values };
}

/** Returns a message of these rows without the names that the numbers are of. */
export function assemble(rows, { rowEnds, indices, values }) {
  // Absent values are 1.
  return { rowEnds, indices, values: values.every((value) => value === 1) ? [] : values, ...packTargets(rows) };
}

/** Returns a NameColumn. */
export function nameColumn(names) {
  return { text: names.join(''), lengths: names.map((name) => Buffer.byteLength(name)) };
}

/** Labels and weights of rows. */
function packTargets(rows) {
  const weights = rows.map(({ weight = 1 }) => {
    if (typeof weight !== 'number') throw new RangeError(`the weight is ${shown(weight)}; expected a number`);
    checkFloat32('weight', weight);
    return weight;
  });
  return { ...packLabels(rows.map(({ label }) => label)), weights: weights.every((weight) => weight === 1) ? [] : weights };
}

function packLabels(labels) {
  // protobufjs would send another number.
  const wrong = labels.find((label) => label !== undefined && typeof label !== 'string' && !(Number.isInteger(label) && label === (label | 0)));
  if (wrong !== undefined) throw new RangeError(`the label is ${shown(wrong)}; expected a whole number or a name`);
  if (labels.some((label) => label === undefined)) return { labels: [], labelNames: [] };
  if (labels.every((label) => typeof label === 'number')) return { labels, labelNames: [] };
  if (labels.some((label) => typeof label === 'number')) throw new RangeError('labels are numbers or names, all the same');
  // The message has the names of the labels, and for each row the position of its name.
  const labelNames = [...new Set(labels)];
  return { labels: labels.map((label) => labelNames.indexOf(label)), labelNames };
}
