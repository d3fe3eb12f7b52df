// Packed columns (ExampleColumns): the server parses them with a few memory copies.

/** Packs all rows into one message, with the names that occur in it. Labels are omitted unless all rows have one. */
export function pack(rows) {
  const whole = wholeColumn(rows);
  if (whole) return { ...whole, ...packLabels(rows.map(({ label }) => label)) };
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
  return { rowEnds, indices, values: values.every((value) => value === 1) ? [] : values, ...packLabels(rows.map(({ label }) => label)) };
}

/** Returns a NameColumn. */
export function nameColumn(names) {
  return { text: names.join(''), lengths: names.map((name) => Buffer.byteLength(name)) };
}

function packLabels(labels) {
  if (labels.some((label) => label === undefined)) return { labels: [], labelNames: [] };
  if (labels.every((label) => typeof label === 'number')) return { labels, labelNames: [] };
  // The message has the names of the labels, and for each row the position of its name.
  const labelNames = [...new Set(labels)];
  return { labels: labels.map((label) => labelNames.indexOf(label)), labelNames };
}
