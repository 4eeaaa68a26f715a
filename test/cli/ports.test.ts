// A census of ports: what processes of the product listen on, in every role, is what the table of SECURITY.md has, and keeps
// its limits.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PORT_LIMITS, type PortLimits } from '../../src/https/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { ROOT } from './command.ts';
import { LoggingProcess } from './logging-process.ts';
import { ManagedInstallation, OWN_ADDRESS } from './managed-installation.ts';
import { StartedPortcullis } from './started.ts';

/** The state of a socket that listens, in /proc/net/tcp: https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html */
const LISTENING = '0A';
/** What anybody may try on any port. */
const PATHS = ['/', '/livez', '/metrics'];
/** Larger than every limit of bodies. */
const HUGE_BYTES = 1024 ** 3;
/** A port that does not answer is not in the table. Milliseconds. */
const NO_ANSWER_MS = 15_000;
/** What a policy server says when it serves. */
const SERVES = 'policy server ready';
/** Connections beyond the limit. */
const MORE = 200;

/** A row of the table, with its limits as they are written. */
interface Row {
  readonly port: string;
  readonly limits: keyof typeof PORT_LIMITS;
  readonly roles: readonly string[];
  /** What anybody gets, as {@link answersOf} says it. */
  readonly answers: string;
  /** The largest body; undefined where none is read. */
  readonly bodyBytes: number | undefined;
}

function tableAfter(heading: string): readonly (readonly string[])[] {
  const [, text = ''] = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8').split(`### ${heading}\n`);
  return (text.split('\n#')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

const unquoted = (cell: string): string => cell.replaceAll('`', '');

function tableOfPorts(): readonly Row[] {
  const rows = tableAfter('Ports').filter((cells) => cells.length === 6);
  return rows.slice(1).map(([port = '', roles = '', limits = '', answers = '', body = '']) => ({
    port,
    roles: unquoted(roles).split(', '),
    limits: unquoted(limits) as Row['limits'],
    answers: unquoted(answers),
    bodyBytes: body === 'not read' ? undefined : Number.parseInt(body, 10) * 1024 ** 2,
  }));
}

/** What is read; nothing of a process that has ended meanwhile. */
function unlessEnded<Result>(read: () => readonly Result[]): readonly Result[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** The process and all that it started. */
function processesOf(pid: number): readonly number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) =>
      unlessEnded(() => {
        const [, fields = ''] = /^.*\) (.*)$/.exec(readFileSync(`/proc/${name}/stat`, 'utf8').trim()) ?? [];
        return [{ pid: Number(name), parent: Number(fields.split(' ')[1]) }];
      }),
    );
  const found = [pid];
  for (const one of found) {
    found.push(...parents.filter(({ parent }) => parent === one).map((child) => child.pid));
  }
  return found;
}

/** What a process listens on, and by which address others on this machine reach it. */
interface Listener {
  readonly host: string;
  readonly port: number;
}

/** An address of /proc/net/tcp: hexadecimal, with the bytes of this machine's order. */
function hostOf(address: string): string {
  const isOfAll = /^0+$/.test(address);
  return isOfAll || address.length > 8 ? '127.0.0.1' : Buffer.from(address, 'hex').toReversed().join('.');
}

function listenersOf(pid: number | undefined): readonly Listener[] {
  assert.ok(pid !== undefined);
  const inodes = new Set(
    processesOf(pid).flatMap((one) =>
      unlessEnded(() => readdirSync(`/proc/${one}/fd`)).flatMap((fd) =>
        unlessEnded(() => [/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${one}/fd/${fd}`))?.[1] ?? '']),
      ),
    ),
  );
  return ['tcp', 'tcp6'].flatMap((file) =>
    readFileSync(`/proc/${pid}/net/${file}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode = '']) => state === LISTENING && inodes.has(inode))
      .map(([, local = '']) => {
        const [address = '', port = ''] = local.split(':');
        return { host: hostOf(address), port: Number.parseInt(port, 16) };
      }),
  );
}

interface Asked extends Listener {
  readonly isSecure: boolean;
  readonly path?: string;
  readonly contentLength?: number;
  /** Whether as many bytes are sent; else one. */
  readonly isComplete?: boolean;
  /** The value of a header. */
  readonly header?: string;
}

/** The status of an answer, or why there is none. */
async function ask(asked: Asked): Promise<string> {
  return (await answerTo(asked)).status;
}

/** An answer, or why there is none, and how long the connection is kept for another request. */
function answerTo({ host, port, isSecure, path = '/', contentLength, isComplete = false, header = '' }: Asked) {
  const { promise, resolve } = Promise.withResolvers<{ readonly status: string; readonly keepAlive?: string }>();
  const options = {
    host,
    port,
    path,
    agent: false,
    rejectUnauthorized: false,
    ...(contentLength === undefined
      ? { headers: { connection: 'keep-alive', 'x-long': header } }
      : { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': contentLength } }),
  };
  const sent = (isSecure ? httpsRequest : httpRequest)(options, (response) => {
    const [, keepAlive] = /timeout=(\d+)/.exec(String(response.headers['keep-alive'])) ?? [];
    resolve({ status: String(response.statusCode), ...(keepAlive === undefined ? {} : { keepAlive }) });
    sent.destroy();
  });
  sent.on('error', ({ code = '' }: NodeJS.ErrnoException) => resolve({ status: code }));
  sent.setTimeout(NO_ANSWER_MS, () => {
    resolve({ status: 'no answer' });
    sent.destroy();
  });
  if (contentLength === undefined || isComplete) {
    sent.end(' '.repeat(contentLength ?? 0));
  } else {
    sent.flushHeaders();
    sent.write('{');
  }
  return promise;
}

/** What anybody gets: `http: / 404, /livez 200, /metrics 200`. */
async function answersOf(listener: Listener): Promise<string> {
  const isSecure = await isTls(listener);
  const statuses = await Promise.all(PATHS.map((path) => ask({ ...listener, isSecure, path })));
  if (statuses.every((status) => status.includes('CERTIFICATE_REQUIRED'))) {
    return 'https: certificate required';
  }
  return `${isSecure ? 'https' : 'http'}: ${PATHS.map((path, index) => `${path} ${statuses[index]}`).join(', ')}`;
}

async function isTls(listener: Listener): Promise<boolean> {
  return !/^\d+$/.test(await ask({ ...listener, isSecure: false }));
}

/** Opens connections that say nothing. */
async function silent({ host, port }: Listener, count: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, host).on('error', () => undefined));
  await Promise.all(sockets.map(async (socket) => (socket.connecting ? once(socket, 'connect') : undefined)));
  return sockets;
}

describe('the ports of the product', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-ports-'));
  /** The processes by role, and what they listen on with what anybody gets there. */
  const found = new Map<string, readonly (Listener & { readonly answers: string })[]>();
  let rows: readonly Row[] = [];
  let started: StartedPortcullis;
  let fromFile: StartedPortcullis;
  let managed: ManagedInstallation;
  const processes: LoggingProcess[] = [];

  async function run(role: string, message: string, process: LoggingProcess): Promise<void> {
    processes.push(process);
    await process.says(message);
    await note(role, process.pid);
  }

  async function note(role: string, pid: number | undefined): Promise<void> {
    const expected = rows.filter((row) => row.roles.includes(role)).length;
    // Some open after the process is ready.
    await eventually(async () => assert.ok(listenersOf(pid).length >= expected, `${role}: too few ports`));
    const listeners = listenersOf(pid);
    found.set(role, await Promise.all(listeners.map(async (one) => ({ ...one, answers: await answersOf(one) }))));
  }

  before(async () => {
    rows = tableOfPorts();
    started = await StartedPortcullis.start();
    await note('start', started.pid);
    const files = await ensureLocalCertificates(join(started.dataDir, 'pki'));
    const policies = join(folder, 'policies.yml');
    writeFileSync(policies, 'one:\n  module: builtin:cel\n  settings: {validations: [{expression: "true"}]}\n');
    fromFile = await StartedPortcullis.start('--policies', policies);
    await note('start --policies', fromFile.pid);
    const control = [
      ['--control-cert-file', files.controlCertFile],
      ['--control-key-file', files.controlKeyFile],
      ['--control-ca-file', files.caFile],
      ['--control-port', '0'],
      ['--control-addr', '127.0.0.1'],
    ].flat();
    const serve = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
    const tls = ['--cert-file', files.certFile, '--key-file', files.keyFile];
    const cluster = ['--kubeconfig', started.kubeconfig];
    const data = (name: string): readonly string[] => ['--policies-download-dir', join(folder, name)];
    const ofFile = [...serve, ...tls, ...data('file'), '--policies', policies];
    await run('serve', SERVES, new LoggingProcess(['serve', ...ofFile]));
    const replica = ['--policy-server', 'default', '--replica-name', 'two', ...control];
    const ofCluster = [...serve, ...tls, ...data('replica'), ...cluster, ...replica];
    await run('serve --policy-server', SERVES, new LoggingProcess(['serve', ...ofCluster]));
    const webhook = ['--webhook-port', '0', '--webhook-addr', '127.0.0.1', '--operations-port', '0'];
    const certificates = ['--webhook-cert-file', files.certFile, '--webhook-key-file', files.keyFile];
    const servers = ['--policy-server-url', 'https://127.0.0.1:1', '--policy-server-ca-file', files.caFile];
    const own = [...webhook, ...certificates, '--webhook-ca-file', files.caFile];
    const controller = ['controller', ...cluster, ...servers, ...own, ...control];
    await run('controller', 'controller ready', new LoggingProcess(controller));
    const auditing = ['auditor', ...cluster, ...data('auditor'), '--operations-port', '0'];
    await run('auditor', 'auditor ready', new LoggingProcess(auditing));
    managed = await ManagedInstallation.open('own');
    await managed.addPolicyServer();
    const managing = managed.controller({
      'webhook-port': 0,
      'webhook-addr': '127.0.0.1',
      'operations-port': 0,
      'policy-server-addr': OWN_ADDRESS,
    });
    await run('controller --manage-policy-servers', 'controller ready', managing);
    await run('pod of a PolicyServer', SERVES, await managed.pod(await managed.deployment()));
  });
  after(async () => {
    await Promise.all(processes.map((one) => one[Symbol.asyncDispose]()));
    await Promise.all([started, fromFile, managed].map((one) => one[Symbol.asyncDispose]()));
    rmSync(folder, { recursive: true });
  });

  it('are those of the table, in every role, and answer anybody what it says', () => {
    assert.ok(rows.length >= 5);
    const roles = new Set(rows.flatMap((row) => row.roles));
    assert.deepEqual([...roles].toSorted(), [...found.keys()].toSorted());
    for (const [role, listeners] of found) {
      const expected = rows.filter((row) => row.roles.includes(role)).map(({ answers }) => answers);
      assert.deepEqual(listeners.map(({ answers }) => answers).toSorted(), expected.toSorted(), role);
    }
  });

  it('have the limits of the table', () => {
    const [head = [], ...limits] = tableAfter('Ports').filter((cells) => cells.length === 8);
    assert.deepEqual(limits.map(([name = '']) => unquoted(name)).toSorted(), Object.keys(PORT_LIMITS).toSorted());
    assert.deepEqual(head.slice(1).length, 7);
    for (const [name = '', ...cells] of limits) {
      const of: PortLimits = PORT_LIMITS[unquoted(name) as Row['limits']];
      const seconds = (ms: number): string => (ms === 0 ? 'none' : `${ms / 1_000} s`);
      assert.deepEqual(cells, [
        of.connections.toLocaleString('en'),
        seconds(of.handshakeMs),
        seconds(of.headersMs),
        seconds(of.requestMs),
        seconds(of.keepAliveMs),
        seconds(of.silentMs),
        `${of.headerBytes / 1024} KiB`,
      ]);
    }
  });

  /** Every listener with its row. */
  const all = () =>
    [...found].flatMap(([role, listeners]) =>
      listeners.map((listener) => {
        const row = rows.find((one) => one.roles.includes(role) && one.answers === listener.answers);
        assert.ok(row, `${role} listens on ${listener.port}`);
        return { listener, row, of: PORT_LIMITS[row.limits], isSecure: row.answers.startsWith('https'), role };
      }),
    );
  /** Those that read requests of anybody. */
  const open = () => all().filter(({ row }) => !row.answers.includes('certificate'));

  it('keep nobody out for connections that say nothing', async () => {
    for (const { listener, row, of, role } of all()) {
      const sockets = await silent(listener, of.connections + MORE);
      assert.equal(await answersOf(listener), row.answers, `${role}: ${row.port}`);
      sockets.forEach((socket) => socket.destroy());
    }
  });

  it('close connections that send what is no handshake and no request', async () => {
    for (const { listener } of all()) {
      const [socket] = await silent(listener, 1);
      socket?.resume().write('x'.repeat(1_000));
      await once(socket ?? assert.fail(), 'close');
    }
  });

  it('close connections that send nothing', { timeout: 120_000 }, async () => {
    const sockets = await Promise.all(all().map(({ listener }) => silent(listener, 1)));
    await Promise.all(sockets.flat().map((socket) => once(socket.resume(), 'close')));
  });

  it('keep idle connections, and read headers, as the table says', async () => {
    for (const { listener, row, of, isSecure, role } of open()) {
      const { keepAlive } = await answerTo({ ...listener, isSecure });
      assert.equal(Number(keepAlive) * 1_000, of.keepAliveMs, `${role}: ${row.port}`);
      assert.equal(await ask({ ...listener, isSecure, header: 'x'.repeat(of.headerBytes) }), '431');
    }
  });

  it('refuse a body without end by its length, before they read it', async () => {
    for (const { listener, isSecure, role } of open()) {
      for (const path of [...PATHS, '/validate/one', '/validate-own-kinds', '/prove-caller', '/api/v1/namespaces']) {
        const status = await ask({ ...listener, isSecure, path, contentLength: HUGE_BYTES });
        assert.match(status, /^4\d\d$/, `${role}: POST ${path}`);
      }
    }
  });

  it('read bodies as large as the table says, and refuse a byte more', async () => {
    const asking = open().flatMap(({ listener, row, isSecure, role }) => {
      const path = row.port.includes('own kinds') ? '/validate-own-kinds' : '/validate/one';
      // Who needs a token is refused before the body.
      return row.bodyBytes === undefined || row.answers.includes('401')
        ? []
        : [{ asked: { ...listener, isSecure, path }, bytes: row.bodyBytes, port: `${role}: ${row.port}` }];
    });
    let count = 0;
    for (const { asked, bytes, port } of asking) {
      const refusal = await ask({ ...asked, contentLength: bytes + 1 });
      if (refusal === '404') {
        // It serves no such policy.
        continue;
      }
      count += 1;
      assert.equal(refusal, '413', port);
      const largest = await ask({ ...asked, contentLength: bytes, isComplete: true });
      assert.match(largest, /^(?:400|422|403)$/, `${port}: it was read, and is no review`);
    }
    assert.ok(count >= 4, `${count} ports read bodies of anybody`);
  });

  it('are created by one function', () => {
    const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.split('/').includes('testing'),
    );
    const creating = files.filter((file) =>
      /\bcreate(?:Secure)?Server\(|\bcreateSocket\(|\.listen\(|new (?:Secure)?Server\(|node:http2|node:dgram/.test(
        readFileSync(join(ROOT, 'src', file), 'utf8'),
      ),
    );
    // The last one is a socket in a folder of its user, which no network reaches.
    const expected = ['https/listen.ts', 'https/ports.ts', 'server/recording/requests-socket.ts'];
    assert.deepEqual(creating.toSorted(), expected);
  });
});
