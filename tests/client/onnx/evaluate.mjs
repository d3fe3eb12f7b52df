// Evaluates ONNX models: reads [{model, feeds: {name: {type, dims, data}}}] from standard input, and writes the labels of
// each, and its scores.
import fs from 'node:fs';
import * as ort from 'onnxruntime-web';

ort.env.logLevel = 'error';
ort.env.wasm.numThreads = 1;

function tensor({ type, dims, data }) {
  return new ort.Tensor(type, type === 'int64' ? BigInt64Array.from(data, BigInt) : data, dims);
}

const answers = [];
for (const { model, feeds } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const session = await ort.InferenceSession.create(fs.readFileSync(model), { executionProviders: ['wasm'] });
  const { label, scores } = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, tensor(feed)])));
  answers.push({ labels: Array.from(label.data, (one) => (typeof one === 'bigint' ? Number(one) : one)), scores: Array.from(scores.data) });
}
fs.writeFileSync(1, JSON.stringify(answers));
