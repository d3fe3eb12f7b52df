// perceptrond's services, read from the protos when the program starts (no code is generated); the details of their
// errors; which errors to retry, and how long to wait before.

import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

// In the package they are beside this folder, in the repository in its root.
const [directory] = ['../proto', '../../../proto'].map((path) => fileURLToPath(new URL(path, import.meta.url))).filter((path) => fs.existsSync(path));
// 64-bit integers as numbers: counts and offsets are far below 2^53.
const definition = protoLoader.loadSync(
  [...['alias', 'analysis', 'history', 'learning', 'model', 'prediction'].map((service) => `perceptron/v1/${service}_service.proto`), 'google/rpc/error_details.proto'],
  { includeDirs: [directory], longs: Number, enums: String, defaults: true, oneofs: true });

export const { AliasService, AnalysisService, HistoryService, LearningService, ModelService, PredictionService } = grpc.loadPackageDefinition(definition).perceptron.v1;

/** The descriptor of a message or an enum of this full name; undefined if there is none. */
export function messageType(name) {
  return definition[name]?.type;
}

/** Decodes a message of this full name. */
export function decode(name, bytes) {
  return definition[name].deserialize(bytes);
}

// ---- Errors ----

/** An error within an answer of a stream (google.rpc.Status). */
export class StatusError extends Error {
  constructor(status) {
    super(describeStatus(status));
    this.code = status.code;
    this.status = status;
  }
}

// Words of messages below a call, and what to do.
const HINTS = [
  ['wrong version number', 'the server does not seem to use TLS: leave out tlsCa'],
  [/self.signed certificate|unable to (get|verify)/, "the server's certificate is not signed by an authority in tlsCa"],
  ["does not match certificate's altnames", "the server's certificate has another name: give that as the host"],
  ['Protocol error', 'a web server may answer there, as perceptrond\'s status page (port 7601): give the address of gRPC (port 7600)'],
  ['', 'is perceptrond running there? The first argument of Client or $PERCEPTROND_SERVER sets the address; with TLS give tlsCa'],
];

function hint({ code, message, details }) {
  if (code !== grpc.status.UNAVAILABLE || details.length > 0) return '';
  return `; ${HINTS.find(([words]) => message.search(words) >= 0)[1]}`;
}

/** What Client throws: code ("NOT_FOUND"), reason ("MODEL_NOT_FOUND"), violations ({field, description}). */
export class PerceptrondError extends Error {
  name = 'PerceptrondError';

  /** reason: of an error that is not the server's. */
  constructor(status, reason = errorInfo(status)?.reason ?? '') {
    super(describeStatus(status) + hint(status));
    this.code = grpc.status[status.code] ?? 'UNKNOWN';
    this.reason = reason;
    this.violations = (detail(status, 'google.rpc.BadRequest')?.fieldViolations ?? []).map(({ field, description }) => ({ field, description }));
  }
}

/** Of a message with one row, which is not to be split. most: of bytes; 0: the server has not said it. */
export function rowTooLarge(position, size, most = 0) {
  const message = `${position}: this row alone is too large: it takes ${size} bytes of a message, of which the server accepts ${most > 0 ? `at most ${most}` : 'less'} (its --max-message-bytes)`;
  return new PerceptrondError({ code: grpc.status.RESOURCE_EXHAUSTED, message, details: [] }, 'MESSAGE_TOO_LARGE');
}

/** Returns the PerceptrondError of an error of a call or a stream; other errors as they are. */
export function toError(error) {
  if (isCallError(error)) return new PerceptrondError(statusOf(error));
  if (error instanceof StatusError) return new PerceptrondError(error.status);
  if (error instanceof ProtocolError) return new PerceptrondError({ code: grpc.status.INTERNAL, message: error.message, details: [] });
  return error;
}

/** The server broke the protocol, or the model was replaced. */
export class ProtocolError extends Error {}

/** Whether the error is one of gRPC, with a code and perhaps details. */
export function isCallError(error) {
  return typeof error.code === 'number' && error.metadata instanceof grpc.Metadata;
}

/** Returns the google.rpc.Status of an error, or gRPC's own status if no server answered. */
export function statusOf(error) {
  const [details] = error.metadata.get('grpc-status-details-bin');
  return details ? decode('google.rpc.Status', details) : { code: error.code, message: error.details, details: [] };
}

function detail(status, name) {
  const found = status.details.find((any) => any.type_url.endsWith(`/${name}`));
  return found && decode(name, found.value);
}

/**
 * Returns the ErrorInfo {reason, domain, metadata}, or undefined without one. Programs compare its reason, not the
 * message.
 */
export function errorInfo(status) {
  return detail(status, 'google.rpc.ErrorInfo');
}

/** "MODEL_NOT_FOUND", ...; empty if the error is not the server's. */
export function reason(error) {
  const status = error instanceof StatusError ? error.status : isCallError(error) && statusOf(error);
  return (status && errorInfo(status)?.reason) || '';
}

/** Returns the error as a line or two of text. */
export function describeStatus(status) {
  const info = errorInfo(status);
  const violations = (detail(status, 'google.rpc.BadRequest')?.fieldViolations ?? [])
    .filter(({ description }) => !status.message.includes(description))
    .map(({ field, description }) => `\n  ${field}: ${description}`);
  // grpc-js ends its own messages so, without a note.
  const message = status.message.replace(/ Resolution note: $/, '');
  return `${grpc.status[status.code] ?? 'UNKNOWN'}${info ? ` (${info.reason})` : ''}: ${message}${violations.join('')}`;
}

export function describe(error) {
  return isCallError(error) ? describeStatus(statusOf(error)) : error.message;
}

// ---- Retries ----

// Milliseconds: a longer wait for a server is reported.
const NOTICE_AFTER = 3000;

/** Whether the same request may succeed later: the server is unreachable or shutting down, or says when to try again. */
export function isTransient(error) {
  // A proxy that ends the connection after the server's answer leaves CANCELLED in the place of its code.
  const { code } = isCallError(error) ? statusOf(error) : error;
  return code === grpc.status.UNAVAILABLE || isOfConnection(error)
    || (code === grpc.status.RESOURCE_EXHAUSTED && retryDelay(error) !== undefined);
}

/** The milliseconds that the server asks to wait; undefined if it does not say. */
function retryDelay(error) {
  const delay = isCallError(error) && detail(statusOf(error), 'google.rpc.RetryInfo')?.retryDelay;
  return delay ? 1000 * delay.seconds + delay.nanos / 1e6 : undefined;
}

/** grpc-js also ends calls so whose server exits while it drains. The server's own errors have details. */
function isOfConnection(error) {
  return isCallError(error) && [grpc.status.CANCELLED, grpc.status.INTERNAL].includes(error.code)
    && error.metadata.get('grpc-status-details-bin').length === 0;
}

/**
 * Waits between attempts: doubled each time and drawn from the upper half, so that clients disconnected together do not
 * reconnect together.
 */
export class Backoff {
  #giveUpAfter;
  #first;
  #longest;
  #deadline;
  #ceiling;
  #since;
  #noticed;

  /** giveUpAfter: seconds without progress before giving up; the other two: bounds of the waits in seconds. */
  constructor(giveUpAfter = 60, first = 0.1, longest = 5) {
    [this.#giveUpAfter, this.#first, this.#longest] = [giveUpAfter, first, longest];
    this.progress();
  }

  /** Call after progress: restarts the timeout and the waits. */
  progress() {
    this.#since = performance.now();
    this.#deadline = this.#since + 1000 * this.#giveUpAfter;
    this.#ceiling = this.#first;
    this.#noticed = false;
  }

  /** Returns the milliseconds to wait after this error, at least as long as the server asks; undefined: give up. Warns once of a wait that lasts. */
  nextWait(error) {
    const wait = Math.max(1000 * this.#ceiling * (0.5 + Math.random() / 2), retryDelay(error) ?? 0);
    this.#ceiling = Math.min(2 * this.#ceiling, this.#longest);
    const now = performance.now();
    if (now + wait >= this.#deadline) return undefined;
    if (!this.#noticed && now - this.#since >= NOTICE_AFTER && isTransient(error)) {
      this.#noticed = true;
      const seconds = [now - this.#since, this.#deadline - now].map((time) => Math.round(time / 1000));
      process.emitWarning(`no answer for ${seconds[0]} s; trying for another ${seconds[1]} s (giveUpAfter): ${describe(error)}`);
    }
    return wait;
  }
}

/** Calls, and retries transient errors, which go to onRetry; throws the final error. */
export async function withRetries(backoff, attempt, onRetry = () => {}) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const wait = isTransient(error) ? backoff.nextWait(error) : undefined;
      if (wait === undefined) throw error;
      onRetry(error);
      await sleep(wait);
    }
  }
}

/** A call to be read by for await: its error ends the loop, and is no uncaught one once the loop was left. */
export function readable(call) {
  call.on('error', () => {});
  return call;
}

/** A unary call as a promise, which is repeated for giveUpAfter seconds: unary(stub, 'getModel', {name}, 60). timeout: of one attempt. */
export function unary(stub, method, request, giveUpAfter, timeout = 30) {
  return withRetries(new Backoff(giveUpAfter), () => new Promise((resolve, reject) => {
    stub[method](request, { deadline: Date.now() + 1000 * timeout }, (error, answer) => (error ? reject(error) : resolve(answer)));
  }));
}
