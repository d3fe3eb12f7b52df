// Flags, input, output, errors and exit codes of the example programs.
//
// 0 success; 1 failure; 2 invalid usage; 3 some examples had validation errors; 130 interrupted.

import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { BadLine } from '../lib/rows.mjs';
import { ConnectionError, connect as connectWith, connectTo as connectToWith } from '../lib/connection.mjs';
import { ProtocolError, StatusError, describe, isCallError } from '../lib/rpc.mjs';
import { readRows, svmlightParser, textParser } from './formats.mjs';

const name = path.basename(process.argv[1]);

/** Invalid usage. */
export class UsageError extends Error {}

// Flags of all programs, and flags of programs that read a file, for parseArgs, with their help.
export const common = {
  server: { type: 'string', default: process.env.PERCEPTROND_SERVER ?? '127.0.0.1:7600', help: "host:port, host:port,... of a fleet's servers, or unix:path (default: $PERCEPTROND_SERVER, else 127.0.0.1:7600)" },
  'tls-ca': { type: 'string', help: 'connect with TLS and trust these certificate authorities (PEM)' },
  'token-file': { type: 'string', default: process.env.PERCEPTRONCTL_TOKEN_FILE, help: 'send the token in this file with each call (default: $PERCEPTRONCTL_TOKEN_FILE)' },
  'give-up-after': { type: 'string', default: '60', help: 'seconds without progress before giving up (default: 60)' },
  help: { type: 'boolean', default: false, help: 'this text' },
};
export const input = {
  format: { type: 'string', default: 'text', help: 'of the file: text or svmlight (default: text)' },
  'index-base': { type: 'string', default: '1', help: "svmlight: index of the first feature, 0 or 1 (default: 1)" },
  batch: { type: 'string', default: '256', help: 'examples per message (default: 256)' },
};

/** Returns {flags, arguments}. usage: the lines of --help above the flags. */
export function parse(usage, argumentNames, options) {
  const { values, positionals } = parseArgs({ options, allowPositionals: true, strict: true });
  if (values.help) {
    const flags = Object.entries(options).map(([flag, { help }]) => `  --${flag.padEnd(16)} ${help}`);
    process.stdout.write(`usage: ${name} [flags] ${argumentNames.join(' ')}\n\n${usage}\n\n${flags.join('\n')}\n`);
    process.exit(0);
  }
  if (positionals.length !== argumentNames.length) throw new UsageError(`expected ${argumentNames.join(' and ')}; see --help`);
  const giveUpAfter = seconds('give-up-after', values['give-up-after'], 0);
  return { flags: { ...values, giveUpAfter }, positionals };
}

/** Parses the number of a flag. Bounds keep it within its proto type; protobufjs would send a different number. */
function number(flag, text, least, most, isRight, expected) {
  const value = text.trim() === '' ? NaN : Number(text);
  if (!(value >= least && value <= most && isRight(value))) throw new UsageError(`--${flag} ${text}: expected ${expected} from ${least} to ${most}`);
  return value;
}

export function whole(flag, text, least = 1, most = 1_000_000_000) {
  return number(flag, text, least, most, Number.isInteger, 'a whole number');
}

/** Seconds, at most the largest google.protobuf.Duration: 10,000 years. */
export function seconds(flag, text, least) {
  return number(flag, text, least, 315_576_000_000, Number.isFinite, 'seconds,');
}

/** Examples per message, at most the limit of the server. */
export function batchOf(flags) {
  return whole('batch', flags.batch, 1, 65536);
}

const settingsOf = (flags) => ({ server: flags.server, tlsCa: flags['tls-ca'], tokenFile: flags['token-file'] });
export const connect = (Service, flags) => connectWith(Service, settingsOf(flags));
export const connectTo = (Service, flags, address) => connectToWith(Service, settingsOf(flags), address);

/** Returns a function that reads the file from its start, given its Labels; "-" is standard input, read once. */
export function rowsOf(file, flags, { labelsRequired }) {
  if (!['text', 'svmlight'].includes(flags.format)) throw new UsageError(`--format ${flags.format}: expected text or svmlight`);
  const indexBase = whole('index-base', flags['index-base'], 0, 1);
  const parser = (labels) => (flags.format === 'text' ? textParser(labels, labelsRequired) : svmlightParser(indexBase, labels, labelsRequired));
  if (file !== '-' && !fs.existsSync(file)) throw new UsageError(`${file}: the file does not exist`);
  return (labels) => readRows(file === '-' ? process.stdin : fs.createReadStream(file), file, parser(labels));
}

/** Returns the state of the model as a line. */
export function sentence({ revision, report }) {
  const state = report.state.replace('CONVERGENCE_STATE_', '').toLowerCase();
  return `revision ${revision}: ${report.examples} examples, ${report.mistakes} mistakes, ${report.updates} updates, ${state}`;
}

export function passSentence({ number, examples, mistakes, updates, converged }) {
  return `pass ${number}: ${examples} examples, ${mistakes} mistakes, ${updates} updates${converged ? ', converged' : ''}`;
}

export function complain(text) {
  process.stderr.write(`${name}: ${text}\n`);
}

export function reconnecting(error) {
  complain(`the connection was lost; reconnecting: ${describe(error)}`);
}

/** Added to the message when learning is interrupted. */
export const GOES_ON = '; what was answered is learned, and the same command goes on from there';

/** Runs main() and exits with its code, or prints the error. */
export async function run(main, whenInterrupted = '') {
  process.on('SIGINT', () => {
    complain(`interrupted${whenInterrupted}`);
    process.exit(130);
  });
  try {
    process.exitCode = await main();
  } catch (error) {
    const usage = error instanceof UsageError || error instanceof ConnectionError || error.code?.toString().startsWith('ERR_PARSE_ARGS');
    const expected = usage || isCallError(error) || [BadLine, ProtocolError, StatusError].some((kind) => error instanceof kind) || error.syscall;
    // Unexpected errors are printed with their stack.
    complain(expected ? describe(error) : error.stack);
    process.exitCode = usage ? 2 : 1;
  }
}
