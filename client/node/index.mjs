export { Client } from './lib/client.mjs';
export { PerceptrondError } from './lib/rpc.mjs';
