#!/usr/bin/env node
import { Labels, batches } from '../lib/rows.mjs';
import { predict } from '../lib/predict_stream.mjs';
import { batchOf, common, connect, input, parse, reconnecting, rowsOf, run } from './program.mjs';
import { ModelService, PredictionService, StatusError, unary } from '../lib/rpc.mjs';

const USAGE = `Predicts a file of examples and, if they have labels, counts the errors.

    predict.mjs spam test.tsv
    predict.mjs spam test.tsv --scores      also prints each label and score, tab-separated`;

const OPTIONS = { ...common, ...input, scores: { type: 'boolean', default: false, help: 'print the label and the score of every example' } };

async function main() {
  const { flags, positionals: [id, file] } = parse(USAGE, ['MODEL', 'FILE'], OPTIONS);
  const batch = batchOf(flags);
  const readFile = rowsOf(file, flags, { labelsRequired: false });
  const [models, predictions] = await Promise.all([connect(ModelService, flags), connect(PredictionService, flags)]);
  const model = await unary(models, 'getModel', { name: `models/${id}` }, flags.giveUpAfter);
  const labels = new Labels(model);
  // A score of 0 counts as when it is learned; with several classes it is a score like any other.
  const tieRule = model.learner.tieRule;
  const zeroIsTie = !model.learner.classes && tieRule !== 'TIE_RULE_POSITIVE';
  let [examples, labelled, wrong, revision] = [0, 0, 0, 0];
  const settings = { giveUpAfter: flags.giveUpAfter, onReconnect: reconnecting };
  for await (const [rows, answer] of predict(predictions, `models/${id}`, batches(readFile(labels), batch), settings)) {
    if (answer.rowErrors.length > 0) throw new StatusError(answer.rowErrors[0].status);
    revision = answer.revision;
    examples += rows.length;
    rows.forEach(({ label }, i) => {
      if (label !== undefined) {
        labelled += 1;
        const tie = zeroIsTie && answer.scores[i] === 0;
        if (tie ? tieRule !== 'TIE_RULE_CORRECT' : labels.number(label) !== answer.predictedLabels[i]) wrong += 1;
      }
      // Nine digits identify every float32.
      if (flags.scores) console.log(`${labels.name(answer.predictedLabels[i])}\t${Number(answer.scores[i].toPrecision(9))}`);
    });
  }
  if (examples === 0) {
    console.log('nothing to predict: there are no examples in the file');
    return 0;
  }
  console.log(`${examples} predicted at revision ${revision}`);
  if (labelled > 0) console.log(`errors: ${wrong} of ${labelled} (${(100 * wrong / labelled).toFixed(2)} %)`);
  return 0;
}

run(main);
