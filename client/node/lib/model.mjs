// Creates the model if it does not exist, and describes it.

import { randomUUID } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import { UsageError, whole } from './program.mjs';
import { unary } from './retry.mjs';

export const settings = {
  named: { type: 'boolean', default: false, help: 'create the model if it does not exist, with a weight for each feature name' },
  dimension: { type: 'string', help: 'create the model if it does not exist, for vectors of this dimension' },
  labels: { type: 'string', help: "names of the labels, that of -1 first: ham,spam" },
};

/** Creates the model if it does not exist and the flags describe it. */
export async function ensureModel(stub, id, flags) {
  const dimension = flags.dimension === undefined ? undefined : whole('dimension', flags.dimension, 1, 2 ** 32 - 1);
  if (flags.named && dimension) throw new UsageError('--named or --dimension, not both');
  if (!flags.named && !dimension) return;
  const featureSpace = flags.named ? { named: {} } : { dense: { dimension } };
  const model = { featureSpace, labelNames: flags.labels ? flags.labels.split(',') : [] };
  try {
    // The request id makes the request safe to repeat after a lost answer.
    await unary(stub, 'createModel', { modelId: id, model, requestId: randomUUID() }, flags.responseTimeout);
  } catch (error) {
    if (error.code !== grpc.status.ALREADY_EXISTS) throw error;
  }
}

/** Returns the state of the model as a line. */
export function sentence({ revision, report }) {
  const state = report.state.replace('CONVERGENCE_STATE_', '').toLowerCase();
  return `revision ${revision}: ${report.examples} examples, ${report.mistakes} mistakes, ${report.updates} updates, ${state}`;
}

export function passSentence({ number, examples, mistakes, updates, converged }) {
  return `pass ${number}: ${examples} examples, ${mistakes} mistakes, ${updates} updates${converged ? ', converged' : ''}`;
}
