// Error details of the server: code, reason and invalid fields.

import grpc from '@grpc/grpc-js';
import { decode } from './protos.mjs';

/** An error within an answer of a stream (google.rpc.Status). */
export class StatusError extends Error {
  constructor(status) {
    super(describeStatus(status));
    this.code = status.code;
  }
}

/** The server broke the protocol, or the model was replaced. */
export class ProtocolError extends Error {}

/** A malformed line; the message says where and why. */
export class BadLine extends Error {}

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

/** Returns the error as a line or two of text. */
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
