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
  if (index >>> 0 !== index) throw new RangeError(`index ${index} is out of range; it must be 0 to 2^32 - 1`);
  return index;
}

/**
 * Numbers the features of rows, ascending within each row, up to the first row after which fits() is false. Returns
 * {rowEnds, indices, values}.
 */
export function number(rows, numberOf, fits = () => true) {
  const [rowEnds, indices, values] = [[], [], []];
  for (const { features } of rows) {
    const numbered = [];
    for (const [feature, value] of features) numbered.push([numberOf(feature), value]);
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
  const weights = rows.map(({ weight = 1 }) => weight);
  return { ...packLabels(rows.map(({ label }) => label)), weights: weights.every((weight) => weight === 1) ? [] : weights };
}

function packLabels(labels) {
  if (labels.some((label) => label === undefined)) return { labels: [], labelNames: [] };
  if (labels.every((label) => typeof label === 'number')) return { labels, labelNames: [] };
  // The message has the names of the labels, and for each row the position of its name.
  const labelNames = [...new Set(labels)];
  return { labels: labels.map((label) => labelNames.indexOf(label)), labelNames };
}
