import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { ModuleCache, digestOf } from '../modules/index.ts';
import { DEFAULT_MAX_MODULE_BYTES } from '../modules/sources/index.ts';
import { createAuthority, issueCertificate, RequestRefusal } from '../https/index.ts';
import { ensureLocalCertificates } from './certificates/local-certificates.ts';
import type { LocalCertificates } from './certificates/local-certificates.ts';
import { createLog } from '../log/index.ts';
import { MAX_MODULES_IN_MEMORY } from './control-modules.ts';
import { ControlEndpoint, MAX_REPLICA_PREVALIDATIONS, MAX_STREAMS } from './control-endpoint.ts';
import type { ControlEndpointOptions } from './control-endpoint.ts';
import { CONTROL_NAME, CONTROL_PROTOCOL, MAX_MESSAGE_BYTES, MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { ExceptionUse, PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { UseSource } from './use-source.ts';
import { ControlCaller } from './testing/control-caller.ts';
import type { Caller } from './testing/control-caller.ts';
import { reportOf, TestReports } from './testing/test-reports.ts';

const MODULE = Buffer.concat([Buffer.from('\0asm\x01\0\0\0', 'latin1'), Buffer.alloc(300_000, 7)]);
const REQUEST = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: { module: 'builtin:cel' } };
const GOOD: PrevalidationResult = { ok: true, modules: [{ name: 'p', module: 'builtin:cel', digest: 'x' }] };

const TIME = '2026-01-01T00:00:00.000Z';

/** Uses of exceptions that a test sets. */
class TestUses implements UseSource {
  readonly #uses = new Map<string, ExceptionUse>();
  readonly #listeners = new Set<(uids: readonly string[]) => void>();

  get listeners(): number {
    return this.#listeners.size;
  }

  uses(): Iterable<ExceptionUse> {
    return this.#uses.values();
  }

  use(uid: string): ExceptionUse | undefined {
    return this.#uses.get(uid);
  }

  subscribe(listener: (uids: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(...uses: readonly ExceptionUse[]): void {
    uses.forEach((use) => this.#uses.set(use.uid, use));
    this.#listeners.forEach((listener) => listener(uses.map(({ uid }) => uid)));
  }
}

describe('the control port', () => {
  let folder: string;
  let pki: LocalCertificates;
  let caller: Caller;
  const stops: (() => Promise<void>)[] = [];
  const log = createLog({ level: 'silent' });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-control-'));
    pki = await ensureLocalCertificates(join(folder, 'pki'));
    caller = { certFile: pki.controlCertFile, keyFile: pki.controlKeyFile, caFile: pki.caFile };
  });
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });
  after(() => rmSync(folder, { recursive: true }));

  async function start(options: Partial<ControlEndpointOptions> = {}): Promise<{
    readonly endpoint: ControlEndpoint;
    readonly port: number;
    readonly caller: ControlCaller;
  }> {
    const endpoint = new ControlEndpoint({
      host: '127.0.0.1',
      port: 0,
      tls: { certFile: pki.controlCertFile, keyFile: pki.controlKeyFile, caFile: pki.caFile },
      replica: 'replica-a',
      policyServer: 'default',
      version: '1.2.3',
      reports: new TestReports(),
      prevalidate: async () => GOOD,
      readModule: async () => undefined,
      log,
      ...options,
    });
    const port = await endpoint.start();
    stops.push(() => endpoint.stop());
    return { endpoint, port, caller: new ControlCaller(port, caller) };
  }

  describe('streams', () => {
    it('begin with hello, then all reports, then changes', async () => {
      const reports = new TestReports();
      reports.set(reportOf('a'), reportOf('b'));
      const stream = await (await start({ reports })).caller.stream();
      const { instance, ...hello } = (await stream.next()) as { instance: string; type: string };
      assert.deepEqual(hello, { type: 'hello', protocol: CONTROL_PROTOCOL, replica: 'replica-a', version: '1.2.3' });
      assert.match(instance, /^[0-9a-f-]{36}$/);
      const first = await stream.report();
      assert.deepEqual(
        [first.revisions.map(({ policy }) => policy).toSorted(), first.gone, first.isComplete],
        [['a', 'b'], [], true],
      );

      reports.set(reportOf('c', { state: 'Loading' }));
      reports.set(reportOf('c', { state: 'Failed', reason: 'FetchFailed', message: 'no' }));
      reports.delete('a-1');
      const change = await stream.report();
      assert.deepEqual(change.revisions, [reportOf('c', { state: 'Failed', reason: 'FetchFailed', message: 'no' })]);
      assert.deepEqual([change.gone, change.isComplete], [['a-1'], false]);
      stream.close();
    });

    it('send the last changes before they end', async () => {
      const reports = new TestReports();
      const { endpoint, caller: controller } = await start({ reports });
      const stream = await controller.stream();
      await stream.next();
      await stream.report();
      reports.set(reportOf('late'));
      const stopped = endpoint.stop();
      assert.deepEqual((await stream.report()).revisions, [reportOf('late')]);
      await stopped;
    });

    it('report no revisions before the replica has read all', async () => {
      const reports = new TestReports({ isSynced: false });
      const stream = await (await start({ reports })).caller.stream();
      assert.equal((await stream.any())?.type, 'hello');
      reports.set(reportOf('a'));
      assert.equal((await stream.any())?.type, 'alive');
      reports.sync();
      assert.deepEqual((await stream.report()).isComplete, true);
      stream.close();
    });

    it('report that there are no revisions', async () => {
      const stream = await (await start()).caller.stream();
      await stream.next();
      assert.deepEqual(await stream.report(), { type: 'report', revisions: [], gone: [], isComplete: true });
      stream.close();
    });

    it('report uses of exceptions after all revisions, also none, and then those that change', async () => {
      const uses = new TestUses();
      const { caller: calls, endpoint } = await start({ uses });
      const stream = await calls.stream();
      await stream.next();
      assert.equal((await stream.report()).isComplete, true);
      assert.deepEqual(await stream.next(), { type: 'exceptions', uses: [] });
      uses.set({ uid: 'a', since: TIME, count: 1, last: TIME });
      assert.deepEqual(await stream.next(), { type: 'exceptions', uses: [uses.use('a')] });
      const second = await calls.stream();
      await second.next();
      await second.report();
      assert.deepEqual(await second.next(), { type: 'exceptions', uses: [uses.use('a')] });
      uses.set({ uid: 'b', since: TIME, count: 2, last: TIME });
      const stopped = endpoint.stop();
      assert.deepEqual(await stream.next(), { type: 'exceptions', uses: [uses.use('b')] });
      await Promise.all([stream.rest(), second.rest(), stopped]);
      assert.equal(uses.listeners, 0);
    });

    it('split the uses of many exceptions', async () => {
      const uses = new TestUses();
      const uid = (index: number): string => `${index}`.padStart(64, '0');
      const all = Array.from({ length: 2_500 }, (_, index) => ({
        uid: uid(index),
        since: TIME,
        count: 1e9,
        last: TIME,
      }));
      uses.set(...all);
      const stream = await (await start({ uses })).caller.stream();
      await stream.next();
      await stream.report();
      const received: unknown[] = [];
      for (const expected of [1_000, 1_000, 500]) {
        const message = await stream.next();
        assert.ok(message?.type === 'exceptions' && message.uses.length === expected);
        assert.ok(Buffer.byteLength(JSON.stringify(message)) <= MAX_MESSAGE_BYTES);
        received.push(...message.uses);
      }
      assert.deepEqual(received, all);
      stream.close();
    });

    it('split long reports into lines of bounded length, and cut messages', async () => {
      const reports = new TestReports();
      const message = '"é'.repeat(MAX_REPORT_TEXT);
      reports.set(...Array.from({ length: 300 }, (_, i) => reportOf(`p${i}`, { state: 'Failed', message })));
      const stream = await (await start({ reports })).caller.stream();
      await stream.next();
      const names = new Set<string>();
      for (let isComplete = false; !isComplete;) {
        const part = await stream.report();
        assert.ok(Buffer.byteLength(JSON.stringify(part)) <= MAX_MESSAGE_BYTES);
        for (const report of part.revisions) {
          names.add(report.name);
          assert.equal(report.message?.length, MAX_REPORT_TEXT);
        }
        isComplete = part.isComplete;
      }
      assert.equal(names.size, 300);
      stream.close();
    });

    it('report to all controllers, and end the oldest stream when there are too many', async () => {
      const reports = new TestReports();
      const { caller: calls } = await start({ reports });
      const streams = [];
      for (let i = 0; i <= MAX_STREAMS; i += 1) {
        const stream = await calls.stream();
        await stream.next();
        await stream.report();
        streams.push(stream);
      }
      assert.equal(reports.listeners, MAX_STREAMS);
      await streams[0]?.rest().catch(() => undefined);
      reports.set(reportOf('a'));
      for (const stream of streams.slice(1)) {
        assert.equal((await stream.report()).revisions[0]?.policy, 'a');
        stream.close();
      }
    });

    it('report the latest state to a slow controller instead of every change', async () => {
      const reports = new TestReports();
      const response = await (await start({ reports })).caller.open('/stream');
      response.pause();
      const message = 'x'.repeat(4000);
      const policies = 100;
      let sent = 0;
      for (let round = 0; round < 60; round += 1) {
        for (let i = 0; i < policies; i += 1) {
          reports.set(reportOf(`p${i}`, { state: 'Failed', message, revision: round + 1 }));
          sent += 1;
        }
        await sleep(1);
      }
      response.resume();
      let received = 0;
      const last = new Map<string, number>();
      let rest = '';
      for await (const chunk of response as AsyncIterable<Buffer>) {
        const lines = `${rest}${chunk.toString()}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const parsed = JSON.parse(line) as { revisions?: { name: string; revision: number }[] };
          for (const { name, revision } of parsed.revisions ?? []) {
            received += 1;
            last.set(name, revision);
          }
        }
        if (last.size === policies && [...last.values()].every((revision) => revision === 60)) {
          break;
        }
      }
      assert.ok(received < sent, `expected less than all ${sent} reports, got ${received}`);
    });

    it('are cut off when the controller does not read', async () => {
      const reports = new TestReports();
      const response = await (await start({ reports, stalledMs: 100 })).caller.open('/stream');
      response.pause();
      response.on('error', () => undefined);
      const message = 'x'.repeat(4000);
      while (reports.listeners > 0) {
        reports.set(...Array.from({ length: 200 }, (_, i) => reportOf(`p${i}`, { state: 'Failed', message })));
        await sleep(5);
      }
      response.destroy();
    });

    it('end when the replica stops, and release their resources', async () => {
      const reports = new TestReports();
      const { endpoint, caller: calls } = await start({ reports });
      const stream = await calls.stream();
      await stream.next();
      await endpoint.stop();
      await stream.rest();
      assert.ok(stream.response.complete);
      assert.equal(reports.listeners, 0);
      await assert.rejects(calls.open('/stream'), { code: 'ECONNREFUSED' });
    });
  });

  it('stops at once during a handshake', async () => {
    const { endpoint, port } = await start();
    const silent = connect(port, '127.0.0.1');
    await once(silent, 'connect');
    const closed = once(silent, 'close');
    // Reads, so that the end of the socket is noticed.
    silent.resume().on('error', () => undefined);
    const late = new AbortController();
    const outcome = await Promise.race([
      endpoint.stop().then(() => 'stopped'),
      sleep(2_000, 'late', { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    assert.equal(outcome, 'stopped', 'a handshake has 5 s');
    await closed;
  });

  describe('pre-validation', () => {
    it('answers with the result', async () => {
      const requests: PrevalidationRequest[] = [];
      const failed: PrevalidationResult = { ok: false, reason: 'FetchFailed', message: 'no', isTransient: true };
      const { caller: calls } = await start({
        prevalidate: async (request) => {
          requests.push(request);
          return requests.length === 1 ? GOOD : failed;
        },
      });
      const first = await calls.prevalidate({ ...REQUEST, status: {}, metadata: { name: 'p', uid: 'x' } });
      assert.deepEqual([first.status, JSON.parse(first.body.toString())], [200, GOOD]);
      const group = {
        kind: 'AdmissionPolicyGroup',
        metadata: { name: 'g', namespace: 'n' },
        spec: { policies: { a: { module: 'm' } } },
      };
      const second = await calls.prevalidate(group);
      assert.deepEqual([second.status, JSON.parse(second.body.toString())], [200, failed]);
      assert.deepEqual(requests, [REQUEST, group]);
    });

    it('rejects invalid requests with the expected shape', async () => {
      const { caller: calls } = await start();
      const cases: readonly (readonly [unknown, number, RegExp])[] = [
        ['', 400, /expected JSON/],
        ['{"kind":', 400, /expected JSON/],
        [Buffer.from([0xff, 0xfe]), 400, /UTF-8/],
        [`{"kind":${'['.repeat(200)}`, 400, /brackets/],
        ['[]', 422, /the body: expected a JSON object/],
        [{ ...REQUEST, kind: 'Pod' }, 422, /kind: expected one of/],
        [{ ...REQUEST, kind: 'constructor' }, 422, /kind: expected one of/],
        [{ ...REQUEST, metadata: {} }, 422, /metadata\.name/],
        [{ ...REQUEST, metadata: { name: 'x'.repeat(300) } }, 422, /metadata\.name/],
        [{ ...REQUEST, metadata: { name: 'p', namespace: 'n' } }, 422, /metadata\.namespace: expected none/],
        [{ ...REQUEST, kind: 'AdmissionPolicy' }, 422, /metadata\.namespace: expected one/],
        [{ ...REQUEST, spec: [] }, 422, /spec: expected a JSON object/],
        [{ ...REQUEST, spec: { module: 1 } }, 422, /spec\.module/],
        [{ ...REQUEST, kind: 'ClusterAdmissionPolicyGroup' }, 422, /spec\.policies/],
        [{ ...REQUEST, kind: 'ClusterAdmissionPolicyGroup', spec: { policies: { a: {} } } }, 422, /module/],
      ];
      for (const [body, status, message] of cases) {
        const answer = await calls.prevalidate(body);
        assert.equal(answer.status, status, `${String(body).slice(0, 40)}: ${answer.body.toString()}`);
        assert.match((JSON.parse(answer.body.toString()) as { message: string }).message, message);
      }
      const plain = await calls.prevalidate(REQUEST, { headers: { 'content-type': 'text/plain' } });
      assert.equal(plain.status, 415);
      const large = await calls
        .prevalidate(REQUEST, { headers: { 'content-length': 100_000_000 } })
        .catch(() => undefined);
      assert.ok(large === undefined || large.status === 413);
    });

    it('does not block other requests while it hangs, and is rejected above the limit', async () => {
      const ends: (() => void)[] = [];
      const reports = new TestReports();
      const { caller: calls } = await start({
        reports,
        prevalidate: async (request) => {
          if (request.metadata.name === 'hangs') {
            await new Promise<void>((resolve) => ends.push(resolve));
          }
          return GOOD;
        },
      });
      const hanging = { ...REQUEST, metadata: { name: 'hangs' } };
      const one = calls.prevalidate(hanging);
      while (ends.length < 1) {
        await sleep(2);
      }
      assert.equal((await calls.prevalidate(REQUEST)).status, 200);
      const stream = await calls.stream();
      assert.equal((await stream.next())?.type, 'hello');
      stream.close();

      const many = Array.from({ length: MAX_REPLICA_PREVALIDATIONS - 1 }, () => calls.prevalidate(hanging));
      while (ends.length < MAX_REPLICA_PREVALIDATIONS) {
        await sleep(5);
      }
      const refused = await calls.prevalidate(REQUEST);
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
      for (const end of ends) {
        end();
      }
      assert.ok((await Promise.all([one, ...many])).every(({ status }) => status === 200));
      assert.equal((await calls.prevalidate(REQUEST)).status, 200);
    });

    it('is aborted when the caller disconnects, and when the replica stops', async () => {
      const signals: AbortSignal[] = [];
      const { caller: calls, endpoint } = await start({
        prevalidate: async (_request, signal) => {
          signals.push(signal);
          await once(signal, 'abort');
          throw signal.reason;
        },
      });
      const leaving = new AbortController();
      const left = calls.prevalidate(REQUEST, { signal: leaving.signal });
      while (signals.length < 1) {
        await sleep(2);
      }
      leaving.abort();
      await assert.rejects(left, { name: 'AbortError' });
      while (signals[0]?.aborted !== true) {
        await sleep(2);
      }
      const answer = calls.prevalidate(REQUEST);
      while (signals.length < 2) {
        await sleep(2);
      }
      await endpoint.stop();
      assert.equal((await answer).status, 503);
    });

    it('hides details of internal errors', async () => {
      const failures: Error[] = [new TypeError('secret at /etc/x'), new RequestRefusal(409, 'conflict')];
      const { caller: calls } = await start({ prevalidate: () => Promise.reject(failures.shift() ?? new Error()) });
      const broken = await calls.prevalidate(REQUEST);
      assert.deepEqual(
        [broken.status, JSON.parse(broken.body.toString())],
        [500, { message: 'Something went wrong', status: 500 }],
      );
      const conflict = await calls.prevalidate(REQUEST);
      assert.deepEqual(
        [conflict.status, JSON.parse(conflict.body.toString())],
        [409, { message: 'conflict', status: 409 }],
      );
    });
  });

  describe('modules', () => {
    it('are sent by digest from the cache', async () => {
      const cache = new ModuleCache(join(folder, 'modules'), { maxModuleBytes: DEFAULT_MAX_MODULE_BYTES });
      const digest = digestOf(MODULE);
      await cache.write(digest, MODULE);
      let reads = 0;
      const { caller: calls } = await start({
        readModule: async (wanted) => {
          reads += 1;
          return await cache.read(wanted as typeof digest);
        },
      });
      const answers = await Promise.all(Array.from({ length: 10 }, () => calls.call(`/modules/${digest}`)));
      for (const { status, body } of answers) {
        assert.deepEqual([status, createHash('sha256').update(body).digest('hex')], [200, digest.slice(7)]);
      }
      assert.ok(reads <= 10);
      const other = `sha256:${'0'.repeat(64)}`;
      assert.equal((await calls.call(`/modules/${other}`)).status, 404);
      // The file no longer matches its digest.
      writeFileSync(join(folder, 'modules', 'sha256', `${digest.slice(7)}.wasm`), 'something else');
      assert.equal((await calls.call(`/modules/${digest}`)).status, 404);
    });

    it('are read once for parallel requests, within the memory limit', async () => {
      const reads = new Map<string, (bytes: Uint8Array) => void>();
      const { caller: calls } = await start({
        readModule: (digest) => new Promise((resolve) => reads.set(digest, resolve)),
      });
      const path = (i: number): string => `/modules/sha256:${String(i).repeat(64)}`;
      const answers = [0, 0, 1, 2, 3].map((i) => calls.call(path(i)));
      while (reads.size < MAX_MODULES_IN_MEMORY) {
        await sleep(2);
      }
      const refused = await calls.call(path(9));
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
      for (const end of reads.values()) {
        end(MODULE);
      }
      for (const { status, body } of await Promise.all(answers)) {
        assert.deepEqual([status, body.length], [200, MODULE.length]);
      }
      assert.equal(reads.size, MAX_MODULES_IN_MEMORY);
      const later = calls.call(path(9));
      while (!reads.has(path(9).slice('/modules/'.length))) {
        await sleep(2);
      }
      reads.get(path(9).slice('/modules/'.length))?.(MODULE);
      assert.equal((await later).status, 200);
    });

    it('are requested by digest only', async () => {
      const { caller: calls } = await start({ readModule: () => Promise.reject(new Error('read')) });
      for (const digest of [
        '',
        'x',
        '../../../etc/passwd',
        `sha256:${'A'.repeat(64)}`,
        `sha256:${'0'.repeat(65)}`,
        'sha256:..%2f..',
      ]) {
        assert.equal((await calls.call(`/modules/${digest}`)).status, 400, digest);
      }
    });
  });

  it('has no other paths and methods', async () => {
    const { caller: calls } = await start();
    assert.equal((await calls.call('/')).status, 404);
    assert.equal((await calls.call('/metrics')).status, 404);
    assert.equal((await calls.call('/stream', { method: 'POST' })).status, 405);
    assert.equal((await calls.call('/prevalidate')).status, 405);
    assert.equal((await calls.call('/modules/x', { method: 'DELETE' })).status, 405);
  });

  it('survives clients that do not speak HTTP or TLS, or stop halfway', async () => {
    const { port, caller: calls } = await start();
    const trusted = {
      host: '127.0.0.1',
      port,
      cert: readFileSync(pki.controlCertFile),
      key: readFileSync(pki.controlKeyFile),
      ca: readFileSync(pki.caFile),
      servername: CONTROL_NAME,
    };
    const garbage = randomBytes(50_000);
    const sockets = [
      ...[
        '\r\n\r\n',
        garbage,
        'GET /stream HTTP/1.1\r\n',
        'POST /prevalidate HTTP/1.1\r\ncontent-length: 9\r\n\r\n{',
      ].map((bytes) => {
        const socket = connectTls(trusted, () => socket.write(bytes));
        return socket;
      }),
      ...['', garbage, 'GET / HTTP/1.1\r\n\r\n'].map((bytes) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
        return socket;
      }),
    ];
    for (const socket of sockets) {
      socket.on('error', () => undefined).resume();
    }
    await sleep(50);
    assert.equal((await calls.call('/')).status, 404);
    for (const socket of sockets) {
      socket.destroy();
    }
    assert.equal((await calls.prevalidate(REQUEST)).status, 200);
  });

  describe('certificates', () => {
    it('of clients are required, from the CA, for client authentication, with the control name', async () => {
      let reads = 0;
      const { port } = await start({
        readModule: async () => {
          reads += 1;
          return undefined;
        },
      });
      const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
      const authority = await createAuthority({ commonName: 'Portcullis local CA', ...validity });
      const trusted = join(folder, 'other-ca.crt');
      const certificate = async (name: string, usages: ('serverAuth' | 'clientAuth')[]): Promise<Caller> => {
        const request = { commonName: 'x', usages, dnsNames: [name], ...validity };
        const { cert, key } = await issueCertificate(authority, request);
        const files = {
          certFile: join(folder, `${name}-${usages.length}.crt`),
          keyFile: join(folder, `${name}-${usages.length}.key`),
        };
        writeFileSync(files.certFile, cert);
        writeFileSync(files.keyFile, key);
        return { ...files, caFile: pki.caFile };
      };
      const path = `/modules/sha256:${'0'.repeat(64)}`;
      const refused = async (as: Caller, at = port): Promise<void> => {
        await assert.rejects(new ControlCaller(at, as).call(path), /ECONNRESET|alert|socket hang up|EPIPE/i);
      };
      await refused({ caFile: pki.caFile });
      // The certificate of the webhook.
      await refused({ certFile: pki.certFile, keyFile: pki.keyFile, caFile: pki.caFile });
      await refused(await certificate(CONTROL_NAME, ['serverAuth', 'clientAuth']));

      writeFileSync(trusted, authority.cert);
      const { port: second } = await start({
        tls: { certFile: pki.controlCertFile, keyFile: pki.controlKeyFile, caFile: trusted },
        readModule: async () => undefined,
      });
      await refused(await certificate('other.example', ['serverAuth', 'clientAuth']), second);
      await refused(await certificate('*.portcullis.dev', ['clientAuth']), second);
      assert.equal(reads, 0);
      const right = await certificate(CONTROL_NAME, ['clientAuth']);
      assert.equal((await new ControlCaller(second, right).call(path)).status, 404);
    });

    it('are reloaded, and connections end when their CA is removed', async () => {
      const served = join(folder, 'served');
      const tls = await ensureLocalCertificates(served);
      const renewed = await ensureLocalCertificates(join(folder, 'renewed'));
      const { port } = await start({
        tls: { certFile: tls.controlCertFile, keyFile: tls.controlKeyFile, caFile: tls.caFile },
      });
      const old = new ControlCaller(port, {
        certFile: tls.controlCertFile,
        keyFile: tls.controlKeyFile,
        caFile: tls.caFile,
      });
      const stream = await old.stream();
      await stream.next();
      const caFile = join(folder, 'served-ca.crt');
      copyFileSync(tls.caFile, caFile);
      const added = new ControlCaller(port, {
        certFile: renewed.controlCertFile,
        keyFile: renewed.controlKeyFile,
        caFile,
      });
      writeFileSync(tls.caFile, Buffer.concat([readFileSync(tls.caFile), readFileSync(renewed.caFile)]));
      while ((await added.call('/').catch(() => undefined)) === undefined) {
        await sleep(20);
      }
      assert.equal(stream.response.closed, false, 'another CA ends no connection');
      for (const [from, to] of [
        [renewed.controlKeyFile, tls.controlKeyFile],
        [renewed.controlCertFile, tls.controlCertFile],
        [renewed.caFile, tls.caFile],
      ] as const) {
        copyFileSync(from, to);
      }
      await stream.rest().catch(() => undefined);
      await assert.rejects(old.call('/'));
      const now = new ControlCaller(port, {
        certFile: renewed.controlCertFile,
        keyFile: renewed.controlKeyFile,
        caFile: renewed.caFile,
      });
      assert.equal((await now.call('/')).status, 404);
    });
  });
});
