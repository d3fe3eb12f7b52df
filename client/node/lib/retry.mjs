// Retries: which errors to retry, and how long to wait before.

import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';

/** Whether the same request may succeed later: the server is unreachable or shutting down. */
export function isTransient(error) {
  return error.code === grpc.status.UNAVAILABLE;
}

/**
 * Waits between attempts: doubled each time and drawn from the upper half, so that clients disconnected together do not
 * reconnect together.
 */
export class Backoff {
  #responseTimeout;
  #first;
  #longest;
  #giveUp;
  #ceiling;

  /** responseTimeout: seconds without progress before giving up; the other two: bounds of the waits in seconds. */
  constructor(responseTimeout = 60, first = 0.1, longest = 5) {
    [this.#responseTimeout, this.#first, this.#longest] = [responseTimeout, first, longest];
    this.progress();
  }

  /** Call after progress: restarts the timeout and the waits. */
  progress() {
    this.#giveUp = performance.now() + 1000 * this.#responseTimeout;
    this.#ceiling = this.#first;
  }

  /** Returns the milliseconds to wait; undefined: give up. */
  nextWait() {
    const wait = 1000 * this.#ceiling * (0.5 + Math.random() / 2);
    this.#ceiling = Math.min(2 * this.#ceiling, this.#longest);
    return performance.now() + wait < this.#giveUp ? wait : undefined;
  }
}

/** Calls, and retries transient errors, which go to onRetry; throws the final error. */
export async function withRetries(backoff, attempt, onRetry = () => {}) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const wait = isTransient(error) ? backoff.nextWait() : undefined;
      if (wait === undefined) throw error;
      onRetry(error);
      await sleep(wait);
    }
  }
}

/** A unary call that is safe to repeat, as a promise: unary(stub, 'getModel', {name}, 60). */
export function unary(stub, method, request, responseTimeout) {
  return withRetries(new Backoff(responseTimeout), () => new Promise((resolve, reject) => {
    stub[method](request, { deadline: Date.now() + 30_000 }, (error, answer) => (error ? reject(error) : resolve(answer)));
  }));
}
