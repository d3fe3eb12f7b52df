// perceptrond's protos, read when the program starts; no code is generated.

import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const directory = fileURLToPath(new URL('../../../proto', import.meta.url));
// 64-bit integers as numbers: counts and offsets are far below 2^53.
const definition = protoLoader.loadSync(
  ['perceptron/v1/model_service.proto', 'perceptron/v1/learning_service.proto',
    'perceptron/v1/prediction_service.proto', 'google/rpc/error_details.proto'],
  { includeDirs: [directory], longs: Number, enums: String, defaults: true, oneofs: true });

export const { ModelService, LearningService, PredictionService } = grpc.loadPackageDefinition(definition).perceptron.v1;

/** Decodes a message of this full name. */
export function decode(name, bytes) {
  return definition[name].deserialize(bytes);
}
