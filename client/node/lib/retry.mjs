// When to try again, and how long to wait before.

import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';

/** The same may succeed later without anybody's help: the server is away, or stopping. */
export function isTransient(error) {
  return error.code === grpc.status.UNAVAILABLE;
}

/**
 * The waits between attempts: twice as long each time, each drawn from half to the whole of that, so that clients which
 * were cut off together do not come back together.
 */
export class Backoff {
  #patience;
  #first;
  #longest;
  #giveUp;
  #ceiling;

  /** Seconds: patience, after which it gives up; the first and the longest wait. */
  constructor(patience = 60, first = 0.1, longest = 5) {
    [this.#patience, this.#first, this.#longest] = [patience, first, longest];
    this.progress();
  }

  /** Something was achieved: patience and waits begin anew. */
  progress() {
    this.#giveUp = performance.now() + 1000 * this.#patience;
    this.#ceiling = this.#first;
  }

  /** Milliseconds to wait; undefined: it is time to give up. */
  nextWait() {
    const wait = 1000 * this.#ceiling * (0.5 + Math.random() / 2);
    this.#ceiling = Math.min(2 * this.#ceiling, this.#longest);
    return performance.now() + wait < this.#giveUp ? wait : undefined;
  }
}

/** Calls, and calls again while the server is away; throws the error that is final. onRetry hears of the others. */
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

/** A unary call that may be repeated, as a promise: unary(stub, 'getModel', {name}, 60). */
export function unary(stub, method, request, patience) {
  return withRetries(new Backoff(patience), () => new Promise((resolve, reject) => {
    stub[method](request, { deadline: Date.now() + 30_000 }, (error, answer) => (error ? reject(error) : resolve(answer)));
  }));
}
