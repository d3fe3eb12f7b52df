// Models as files, in pieces: what History's exportModel() and importModel() write and read.

import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { Backoff, readable, toError, withRetries } from './rpc.mjs';

// Fits, with a name, into the smallest --max-message-bytes of a server.
const UPLOAD_BYTES = 60 * 1024;

/** The path of a file, which may be a URL; undefined for a stream. */
const pathOf = (file) => (file instanceof URL ? fileURLToPath(file) : typeof file === 'string' ? file : undefined);

const deadlineIn = (seconds) => ({ deadline: Date.now() + 1000 * seconds });

/** Runs an attempt, a file's again after a lost connection; what it throws becomes a PerceptrondError. */
async function repeated(path, giveUpAfter, attempt) {
  try {
    return await (path === undefined ? attempt() : withRetries(new Backoff(giveUpAfter), attempt));
  } catch (error) {
    throw toError(error);
  }
}

// ---- From the server ----

/** Writes a model to a path, where the file is once it is whole, or to a stream; resolves to its bytes. */
export async function writeModel(stub, request, file, { onProgress, timeout, giveUpAfter }) {
  const path = pathOf(file);
  if (path !== undefined && fs.existsSync(path)) throw new RangeError(`${path} exists: give the path of a new file`);
  const attempt = async (writable) => {
    let bytes = 0;
    const call = readable(stub.exportModel(request, deadlineIn(timeout)));
    try {
      await pipeline(call, async function* count(answers) {
        for await (const { piece } of answers) {
          bytes += piece.length;
          onProgress({ bytes, complete: false });
          yield piece;
        }
      }, writable);
    } finally {
      call.cancel();
    }
    return bytes;
  };
  const bytes = await repeated(path, giveUpAfter, () => (path === undefined ? attempt(file) : asNewFile(path, attempt)));
  onProgress({ bytes, total: bytes, complete: true });
  return bytes;
}

/** Has write() fill a stream, which gets this path at its end; nothing is left of it if that fails. */
async function asNewFile(path, write) {
  const partial = `${path}.part-${randomBytes(3).toString('hex')}`;
  try {
    const result = await write(fs.createWriteStream(partial, { flags: 'wx' }));
    await rename(partial, path);
    return result;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

// ---- To the server ----

async function* pieces(chunks) {
  for await (const chunk of chunks) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError(`the file has a ${typeof chunk}; expected bytes: read it without an encoding`);
    for (let begin = 0; begin < chunk.length; begin += UPLOAD_BYTES) yield chunk.subarray(begin, begin + UPLOAD_BYTES);
  }
}

/** Creates a model from a path or an iterable of bytes, and resolves to it. first: its name and the request's id. */
export async function readModel(stub, first, file, { onProgress, timeout, giveUpAfter }) {
  const path = pathOf(file);
  const total = path === undefined ? undefined : (await stat(path)).size;
  let bytes;
  const model = await repeated(path, giveUpAfter, () => {
    bytes = 0;
    return send(stub, first, path === undefined ? file : fs.createReadStream(path), timeout, (piece) => {
      bytes += piece.length;
      onProgress({ bytes, total, complete: false });
    });
  });
  onProgress({ bytes, total: bytes, complete: true });
  return model;
}

/** One attempt. What reading the file throws cancels the call. */
function send(stub, first, chunks, timeout, onPiece) {
  return new Promise((resolve, reject) => {
    let isEnded = false;
    let wake = () => {};
    const call = stub.importModel(deadlineIn(timeout), (error, model) => {
      isEnded = true;
      wake();
      if (error) reject(error);
      else resolve(model);
    });
    const sendAll = async () => {
      // The first message names the model, also of an empty file.
      call.write(first);
      for await (const piece of pieces(chunks)) {
        // The server may end the call early.
        if (isEnded) return;
        onPiece(piece);
        await new Promise((written) => {
          wake = written;
          call.write({ piece }, written);
        });
      }
      if (!isEnded) call.end();
    };
    sendAll().catch((error) => {
      reject(error);
      call.cancel();
    });
  });
}
