// What the server says of an error: its code, the reason for programs, and the fields.

import grpc from '@grpc/grpc-js';
import { decode } from './protos.mjs';

/** An error that came within a stream's answers (google.rpc.Status), not as the call's own. */
export class StatusError extends Error {
  constructor(status) {
    super(describeStatus(status));
    this.code = status.code;
  }
}

/** The server answered what its contract rules out, or serves another model by now. */
export class ProtocolError extends Error {}

/** A line that is no example; the message says where and why. */
export class BadLine extends Error {}

/** Whether it came from gRPC: it has a code and, of a server's own errors, details. */
export function isCallError(error) {
  return typeof error.code === 'number' && error.metadata instanceof grpc.Metadata;
}

/** google.rpc.Status: what the server sent, or what gRPC itself says where no server answered. */
export function statusOf(error) {
  const [details] = error.metadata.get('grpc-status-details-bin');
  return details ? decode('google.rpc.Status', details) : { code: error.code, message: error.details, details: [] };
}

function detail(status, name) {
  const found = status.details.find((any) => any.type_url.endsWith(`/${name}`));
  return found && decode(name, found.value);
}

/** {reason, domain, metadata}: what programs compare, never the message. Undefined if it did not come from the server. */
export function errorInfo(status) {
  return detail(status, 'google.rpc.ErrorInfo');
}

/** In a line or two for people. */
export function describeStatus(status) {
  const info = errorInfo(status);
  const violations = (detail(status, 'google.rpc.BadRequest')?.fieldViolations ?? [])
    .filter(({ description }) => !status.message.includes(description))
    .map(({ field, description }) => `\n  ${field}: ${description}`);
  return `${grpc.status[status.code] ?? 'UNKNOWN'}${info ? ` (${info.reason})` : ''}: ${status.message}${violations.join('')}`;
}

export function describe(error) {
  return isCallError(error) ? describeStatus(statusOf(error)) : error.message;
}
