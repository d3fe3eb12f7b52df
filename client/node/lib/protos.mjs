// perceptrond's protos as this program knows them: read when it starts, nothing is generated.

import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const directory = fileURLToPath(new URL('../../../proto', import.meta.url));
// 64-bit numbers as numbers: counts and offsets stay far below 2^53.
const definition = protoLoader.loadSync(
  ['perceptron/v1/model_service.proto', 'perceptron/v1/learning_service.proto', 'google/rpc/error_details.proto'],
  { includeDirs: [directory], longs: Number, enums: String, defaults: true, oneofs: true });

export const { ModelService, LearningService } = grpc.loadPackageDefinition(definition).perceptron.v1;

/** The message of this full name, from its bytes. */
export function decode(name, bytes) {
  return definition[name].deserialize(bytes);
}
