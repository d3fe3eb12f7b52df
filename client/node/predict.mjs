#!/usr/bin/env node
import { batches, pack } from './lib/columns.mjs';
import { common, connect, input, parse, rowsOf, run, whole } from './lib/program.mjs';
import { LearningService, ModelService } from './lib/protos.mjs';
import { unary } from './lib/retry.mjs';

const USAGE = `Predicts a file of examples, and says how many are wrong.

    predict.mjs spam test.tsv
    predict.mjs spam test.tsv --scores      also prints each label and score, tab-separated`;

const OPTIONS = { ...common, ...input, scores: { type: 'boolean', default: false, help: 'print the label and the score of every example' } };

/** A label's name, or -1 and +1 themselves where the model has no names; that of -1 comes first. */
function nameOf(label, [negative, positive]) {
  return (label < 0 ? negative : positive) ?? label;
}

function shown(label) {
  return label === 1 ? '+1' : String(label);
}

async function main() {
  const { flags, positionals: [id, file] } = parse(USAGE, ['MODEL', 'FILE'], OPTIONS);
  const batch = whole('batch', flags.batch);
  const readFile = rowsOf(file, flags);
  const [models, learning] = [connect(ModelService, flags), connect(LearningService, flags)];
  const { labelNames } = await unary(models, 'getModel', { name: `models/${id}` }, flags.patience);
  let [examples, wrong, revision] = [0, 0, 0];
  for await (const rows of batches(readFile(), batch)) {
    // Never from an older state than the answer before.
    const request = { model: `models/${id}`, columns: pack(rows), minRevision: revision };
    const answer = await unary(learning, 'predict', request, flags.patience);
    revision = answer.revision;
    examples += rows.length;
    rows.forEach(({ label }, i) => {
      const predicted = nameOf(answer.labels[i], labelNames);
      if (predicted !== label) wrong += 1;
      // Nine digits tell every float32 from its neighbours.
      if (flags.scores) console.log(`${shown(predicted)}\t${Number(answer.scores[i].toPrecision(9))}`);
    });
  }
  if (examples === 0) {
    console.log('nothing to predict: there are no examples in the file');
    return 0;
  }
  console.log(`${examples} predicted at revision ${revision}`);
  console.log(`wrong: ${wrong} of ${examples} (${(100 * wrong / examples).toFixed(2)}%)`);
  return 0;
}

run(main);
