// Rows as packed columns: what the server parses with a few memory copies, however many rows there are.

/** By their UTF-8 bytes, as the server asks; JavaScript's own order is by UTF-16 units, which is another one. */
function byBytes(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** ExampleColumns of all rows; their features all by name, or all by index. Labels are left out unless all rows have one. */
export function pack(rows) {
  const columns = { rowEnds: [], indices: [], values: [], labels: [], featureNames: [], labelNames: [] };
  const byName = rows.some(({ features }) => typeof features.keys().next().value === 'string');
  if (byName) columns.featureNames = [...new Set(rows.flatMap(({ features }) => [...features.keys()]))].sort(byBytes);
  const place = new Map(columns.featureNames.map((name, i) => [name, i]));
  for (const { features } of rows) {
    const indexed = [...features].map(([feature, value]) => [byName ? place.get(feature) : feature, value]);
    for (const [index, value] of indexed.sort(([a], [b]) => a - b)) {
      // protobufjs would send it as another one.
      if (index >>> 0 !== index) throw new RangeError(`index ${index} is none of 0 to 2^32 - 1`);
      columns.indices.push(index);
      columns.values.push(value);
    }
    columns.rowEnds.push(columns.indices.length);
  }
  packLabels(rows.map(({ label }) => label), columns);
  return columns;
}

function packLabels(labels, columns) {
  if (labels.some((label) => label === undefined)) return;
  if (labels.every((label) => typeof label === 'number')) {
    columns.labels = labels;
    return;
  }
  // The model knows what its labels' names mean: we send the names, and for each row which of them.
  columns.labelNames = [...new Set(labels)];
  columns.labels = labels.map((label) => columns.labelNames.indexOf(label));
}

/** The rows of an iterable, so many at a time. */
export async function* batches(rows, size) {
  let batch = [];
  for await (const row of rows) {
    batch.push(row);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
