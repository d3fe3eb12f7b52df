// The package that npm packs, installed beside its dependencies, and a server for it: what the tests of the Node package share. One folder a process.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const source = fileURLToPath(new URL('../../../client/node', import.meta.url));
export const work = fs.mkdtempSync(path.join(os.tmpdir(), 'perceptrond-node-'));
export const mail = [{ features: { free: 1, now: 2 }, label: 'spam' }, { features: { lunch: 1, now: 1 }, label: 'ham' }, { features: new Map([['free', 2]]), label: 'spam' }];
export const spam = { featureSpace: { named: {} }, labelNames: ['ham', 'spam'] };

/** Packs a copy, since packing writes beside the sources, and unpacks it into node_modules; returns the packed files. */
function install() {
  fs.mkdirSync(path.join(work, 'client'));
  fs.cpSync(source, path.join(work, 'client/node'), { recursive: true, filter: (from) => path.basename(from) !== 'node_modules' });
  fs.cpSync(path.join(source, '../../proto'), path.join(work, 'proto'), { recursive: true });
  const [{ filename, files }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', work], { cwd: path.join(work, 'client/node'), encoding: 'utf8' }));
  fs.mkdirSync(path.join(work, 'node_modules'));
  execFileSync('tar', ['-xzf', path.join(work, filename), '-C', path.join(work, 'node_modules')]);
  fs.renameSync(path.join(work, 'node_modules/package'), path.join(work, 'node_modules/perceptrond'));
  fs.symlinkSync(path.join(source, 'node_modules/@grpc'), path.join(work, 'node_modules/@grpc'));
  fs.rmSync(path.join(work, 'client'), { recursive: true });
  fs.rmSync(path.join(work, 'proto'), { recursive: true });
  return files.map((file) => file.path);
}

export async function startServer(address = '127.0.0.1:0') {
  const server = spawn(process.env.PERCEPTROND, ['--address', address, '--metrics-address', 'off', '--data-dir', path.join(work, 'store')], { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of readline.createInterface({ input: server.stderr })) {
    const serving = line.match(/ info serving .*address=(\S+)/);
    if (serving) {
      // Whatever else it writes must not fill the pipe.
      server.stderr.resume();
      return { server, address: serving[1] };
    }
  }
  throw new Error('the server did not start');
}

export async function stop(server) {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await ended;
}

/** The installed package, a server, and a client of it. */
export async function setUp() {
  const files = install();
  const perceptrond = await import(pathToFileURL(path.join(work, 'node_modules/perceptrond/index.mjs')));
  const running = await startServer();
  return { files, perceptrond, running, client: new perceptrond.Client(running.address) };
}

export async function tearDown(client, { server }) {
  client.close();
  await stop(server);
  fs.rmSync(work, { recursive: true });
}
