// Aliases and History of a Client. ../index.d.ts is their documentation.

import { randomUUID } from 'node:crypto';
import { nameOf } from './names.mjs';
import { AliasService, HistoryService } from './rpc.mjs';
import { readModel, writeModel } from './transfers.mjs';

// Seconds for calls whose time grows with the model.
const PATIENT = 900;

const ERRORS = { window: 'COMPARED_ERROR_WINDOW', progressive: 'COMPARED_ERROR_PROGRESSIVE' };

const aliasName = (alias) => (alias.startsWith('aliases/') ? alias : `aliases/${alias}`);

export class Aliases {
  #call;
  #pages;

  /** call: makes a call of a service's method; pages: yields its pages. */
  constructor(call, pages) {
    this.#call = (method, request, options) => call(AliasService, method, request, options);
    this.#pages = pages;
  }

  get(alias) {
    return this.#call('getAlias', { name: aliasName(alias) });
  }

  async* list() {
    for await (const { aliases } of this.#pages(AliasService, 'listAliases', { pageSize: 1000 })) yield* aliases;
  }

  set(alias, model, { description, etag = '' } = {}) {
    const paths = description === undefined ? ['model'] : ['model', 'description'];
    return this.#call('updateAlias', { alias: { name: aliasName(alias), model: nameOf(model), description, etag }, updateMask: { paths }, allowMissing: !etag }, { repeat: !etag });
  }

  async delete(alias, { missingOk = false, etag = '' } = {}) {
    await this.#call('deleteAlias', { name: aliasName(alias), etag, allowMissing: missingOk });
  }

  async challenge(alias, challenger, { error = 'window', margin = 0, minExamples = 100, etag = '', validateOnly = false } = {}) {
    if (!Object.hasOwn(ERRORS, error)) throw new RangeError(`error: ${JSON.stringify(error)}: expected one of ${Object.keys(ERRORS).join(', ')}`);
    return this.#call('challengeAlias', { name: aliasName(alias), challenger: nameOf(challenger), error: ERRORS[error], margin, minExamples, etag, validateOnly }, { repeat: false });
  }
}

export class History {
  #call;
  #stub;
  #waits;

  /** call: makes a call of a service's method; stub: resolves to the service's; waits: {timeout, giveUpAfter} in seconds. */
  constructor(call, stub, { timeout, giveUpAfter }) {
    this.#call = (method, request, options) => call(HistoryService, method, request, { timeout: PATIENT, ...options });
    [this.#stub, this.#waits] = [stub, { timeout: Math.max(timeout, PATIENT), giveUpAfter }];
  }

  copy(model, newName) {
    return this.#call('copyModel', { name: nameOf(model), newName: nameOf(newName), requestId: randomUUID() });
  }

  rename(model, newName, { etag = '' } = {}) {
    return this.#call('renameModel', { name: nameOf(model), newName: nameOf(newName), etag }, { repeat: false });
  }

  async exportModel(model, file, { onProgress = () => {} } = {}) {
    return writeModel(await this.#stub(HistoryService), { name: nameOf(model) }, file, { onProgress, ...this.#waits });
  }

  async importModel(model, file, { onProgress = () => {} } = {}) {
    // The request id makes it safe to send the file again after a lost answer.
    const first = { newName: nameOf(model), requestId: randomUUID() };
    return readModel(await this.#stub(HistoryService), first, file, { onProgress, ...this.#waits });
  }

  createSnapshot(model, snapshot) {
    return this.#call('createSnapshot', { model: nameOf(model), snapshotId: snapshot }, { repeat: false });
  }

  async listSnapshots(model) {
    return (await this.#call('listSnapshots', { model: nameOf(model) })).snapshots;
  }

  async deleteSnapshot(model, snapshot) {
    await this.#call('deleteSnapshot', { model: nameOf(model), snapshotId: snapshot }, { repeat: false });
  }

  async rollBack(model, { snapshot, revision, expectedRevision } = {}) {
    if ((snapshot === undefined) === (revision === undefined)) throw new RangeError('give a snapshot or a revision');
    return this.#call('rollBackModel', { model: nameOf(model), snapshotId: snapshot, revision, expectedRevision }, { repeat: false });
  }
}
