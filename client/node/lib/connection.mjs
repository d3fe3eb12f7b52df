// Connections to a server, or to the servers of a fleet.
//
// Settings are {server, tlsCa, tokenFile}: host:port, host:port,... of a fleet's servers, or unix:path, with 7600 as default
// port; a file of certificate authorities; a file with a token.

import { lookup } from 'node:dns/promises';
import fs from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import grpc from '@grpc/grpc-js';

/** Settings that must not be used. */
export class ConnectionError extends RangeError {}

// Servers take no longer headers; and room for all authorities that systems trust, many times.
const [MOST_TOKEN_BYTES, MOST_PEM_BYTES] = [2 ** 13, 2 ** 22];

/** The whole file. Throws ConnectionError if it has more than this many bytes: a device has no end. */
function contentOf(file, most) {
  const descriptor = fs.openSync(file);
  try {
    const content = Buffer.alloc(most + 1);
    let size = 0;
    for (let got = 1; got > 0 && size <= most; size += got) got = fs.readSync(descriptor, content, size, content.length - size);
    if (size > most) throw new ConnectionError(`${file} has more than ${most} bytes`);
    return content.subarray(0, size);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** An interceptor that sends the token in the file, read for each call, so that a new one is used at once. */
function sendToken(file) {
  return (options, nextCall) => {
    // Before there is a call: one that is never started keeps the process until its deadline.
    const authorization = `Bearer ${contentOf(file, MOST_TOKEN_BYTES).toString().trim()}`;
    return new grpc.InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        metadata.set('authorization', authorization);
        next(metadata, listener);
      },
    });
  };
}

/** An interceptor that sends a W3C trace context, for the server's log. */
function sendTrace(traceparent) {
  return (options, nextCall) => new grpc.InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      metadata.set('traceparent', traceparent);
      next(metadata, listener);
    },
  });
}

/** The addresses of these servers, of one family; names that are not found are left out. */
async function numeric(servers) {
  const found = { 4: [], 6: [] };
  for (const server of servers) {
    const [, host, port] = server.match(/^\[?(.*?)\]?:(\d+)$/) ?? [];
    for (const { address, family } of await lookup(host ?? server, { all: true }).catch(() => [])) {
      found[family].push(family === 6 ? `[${address}]:${port}` : `${address}:${port}`);
    }
  }
  return found[4].length > 0 ? found[4] : found[6];
}

/** One address as it is; of several, gRPC uses the first that it can connect to, and another when that connection ends. */
async function target(servers) {
  const found = servers.length > 1 ? await numeric(servers) : [];
  return found.length > 0 ? `ipv${found[0].startsWith('[') ? 6 : 4}:${found.join(',')}` : servers[0];
}

const ACCEPTED = 'give HOST, HOST:PORT, unix:PATH, dns:///HOST:PORT or ipv4:ADDRESS:PORT,...';
const SCHEMES = ['dns', 'ipv4', 'ipv6', 'unix', 'unix-abstract', 'vsock', 'xds'];

const refused = (address, said) => new ConnectionError(`server ${JSON.stringify(address)} ${said}`);

/** An address as gRPC takes it: '::1' is '[::1]:7600'. Throws ConnectionError for what is no address, or one that gRPC would read as another. */
function readAddress(address) {
  if (/^(https?|grpcs?|tcp):\/\//.test(address)) throw refused(address, 'is a URL; give host:port of gRPC (perceptrond serves gRPC on port 7600, its web page on 7601)');
  if (isIPv6(address)) return `[${address}]:7600`;
  // gRPC's own default is port 443, and it takes a scheme for a host's name and the other way round.
  const [, host, port = '7600'] = address.match(/^(\[.*\]|[^:]*)(?::(.*))?$/) ?? ['', ''];
  const isHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : !SCHEMES.includes(host) && !/^\d*$|[\0-\x20\x7f*/\]]/.test(host);
  if (!isHost) throw refused(address, `has no host; ${ACCEPTED}`);
  if (!/^\d+$/.test(port) || Number(port) < 1 || Number(port) > 65535) throw refused(address, `has the port ${JSON.stringify(port)}; ports are 1 to 65535, 7600 by default`);
  return `${host}:${port}`;
}

/** The addresses of these settings' servers, as gRPC takes them; its own list (ipv4:) is one. Throws ConnectionError. */
export function serversOf({ server }) {
  const given = server.trim();
  if (given.startsWith('unix:')) {
    // Behind "//" gRPC expects an empty authority.
    if (!/^unix:(\/\/\/|(?!\/\/)).+$/.test(given) || given.includes(',')) throw refused(server, 'has not one path of a socket, without a comma; give unix:PATH');
    return [given];
  }
  const [, scheme = '', listed] = given.match(/^(dns:\/\/\/|ipv4:)?(.*)$/s);
  const addresses = listed.split(',').map((address) => address.trim()).filter(Boolean).map(readAddress);
  if (addresses.length === 0 || (scheme === 'dns:///' && addresses.length > 1)) throw refused(server, `is no address; ${ACCEPTED}`);
  if (scheme === 'ipv4:' && !addresses.every((address) => isIPv4(hostOf(address)))) throw refused(server, 'has a name behind ipv4:, which is for numeric addresses, as ipv4:127.0.0.1:7600');
  return scheme ? [`${scheme}${addresses.join(',')}`] : addresses;
}

/** The host of an address that was read. */
function hostOf(server) {
  return server.replace(/^(dns:\/\/\/|ipv4:)/, '').replace(/:\d+$/, '');
}

/** Whether the address is one of this machine for certain. */
function isLocal(server) {
  if (server.startsWith('unix:')) return true;
  // As resolvers read it: 127.1 is 127.0.0.1.
  const url = `http://${hostOf(server).replace(/\.$/, '')}`;
  try {
    return /^(localhost|127\.[\d.]+|\[::1\]|\[::ffff:7f..:[\da-f]+\])$/.test(new URL(url).hostname);
  } catch {
    return false;
  }
}

/** Whether these settings' servers are called without a proxy: those of this machine, and of a fleet. */
export function goesDirect(settings) {
  const [server] = serversOf(settings);
  // Debian's /etc/hosts has these names. A token is not sent to them: elsewhere a resolver would be asked for them.
  return settings.server.includes(',') || isLocal(server) || /^ip6-(localhost|loopback)$/i.test(hostOf(server));
}

/** What to say of a server that was not reached through the proxy that the environment names; undefined: there is none. */
function proxyHint(settings) {
  // gRPC's order.
  const variable = ['grpc_proxy', 'https_proxy', 'http_proxy'].find((name) => process.env[name]);
  if (variable === undefined || goesDirect(settings)) return undefined;
  return `${variable} is set, so the server is called through a proxy, unless no_proxy has its host`;
}

/** An interceptor that adds this hint to the messages of calls that reached no server. */
function sayOfProxy(hint) {
  return (options, nextCall) => new grpc.InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      next(metadata, {
        onReceiveStatus(status, pass) {
          const isReached = status.code !== grpc.status.UNAVAILABLE || status.metadata.get('grpc-status-details-bin').length > 0;
          // grpc-js ends its own messages so, without an error and a note.
          pass(isReached ? status : { ...status, details: `${status.details.replace(/( Last error: undefined\.?)? Resolution note: $/, '')}; ${hint}` });
        },
      });
    },
  });
}

/** Returns a client of this service at that one of several servers which has this address; undefined if none has. */
export async function connectTo(Service, settings, address) {
  const known = await numeric(serversOf(settings));
  const one = known.length > 1 ? (await numeric([address])).find((found) => known.includes(found)) : undefined;
  return one && connect(Service, settings, [one]);
}

/** Returns a client of this service. */
export async function connect(Service, settings, servers = serversOf(settings)) {
  const { tlsCa: tls, tokenFile: token } = settings;
  if (token && !tls && !servers.every(isLocal)) {
    throw new ConnectionError('a token file: others could read the token on its way to another machine; trust a certificate authority for TLS');
  }
  const trace = process.env.TRACEPARENT ?? '';
  const hint = proxyHint(settings);
  const interceptors = [
    ...(token ? [sendToken(token)] : []),
    // Other characters no header may hold.
    ...(/^[!-~]+$/.test(trace) ? [sendTrace(trace)] : []),
    ...(hint ? [sayOfProxy(hint)] : []),
  ];
  const credentials = tls ? grpc.credentials.createSsl(contentOf(tls, MOST_PEM_BYTES)) : grpc.credentials.createInsecure();
  return new Service(await target(servers), credentials, {
    // With several servers their certificates are for the first one's name.
    ...(tls && serversOf(settings).length > 1 ? { 'grpc.ssl_target_name_override': hostOf(serversOf(settings)[0]).replace(/^\[|\]$/g, '') } : {}),
    'grpc.enable_http_proxy': goesDirect(settings) ? 0 : 1,
    // Reconnect quickly; the default backoff of gRPC grows to two minutes.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    // A call that waits notices within 15 s that its server's machine is lost, or that the server has stopped.
    'grpc.keepalive_time_ms': 10000,
    'grpc.keepalive_timeout_ms': 5000,
    // Answers may be long: the server limits requests.
    'grpc.max_receive_message_length': -1,
    interceptors,
  });
}
