import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type CertifiedKey, createAuthority, issueCertificate } from '../https/index.ts';
import { createLog } from '../log/index.ts';
import { ControlEndpoint } from './control-endpoint.ts';
import { CONTROLLER_CONTROL_NAME, policyServerControlName, policyServersOf } from './control-names.ts';
import type { ControlTls } from './control-tls.ts';
import { CopiesEndpoint } from './copies-endpoint.ts';
import type { CopiesReport } from './copies-report.ts';
import { CONTROL_NAME } from './replica-protocol.ts';
import { ControlCaller } from './testing/control-caller.ts';
import { TestReports } from './testing/test-reports.ts';

const MODULE = `/modules/sha256:${'0'.repeat(64)}`;
const log = createLog({ level: 'silent' });

describe('the names in certificates of control ports', () => {
  let folder: string;
  let authority: CertifiedKey;
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const path = (name: string): string => join(folder, name);

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-names-'));
    authority = await createAuthority({ commonName: 'test', ...validity });
    writeFileSync(path('ca.crt'), authority.cert);
    await issue('controller', [CONTROL_NAME, CONTROLLER_CONTROL_NAME]);
    await issue('nobody', [CONTROL_NAME]);
    await issue('shared', [CONTROL_NAME]);
    await issue('default', [CONTROL_NAME, policyServerControlName('default')]);
    await issue('other', [CONTROL_NAME, policyServerControlName('other.default')]);
  });
  after(() => rmSync(folder, { recursive: true }));

  async function issue(name: string, dnsNames: readonly string[]): Promise<CertifiedKey> {
    const usages = ['serverAuth', 'clientAuth'] as const;
    const issued = await issueCertificate(authority, { commonName: 'x', usages, dnsNames, ...validity });
    writeFileSync(path(`${name}.crt`), issued.cert);
    writeFileSync(path(`${name}.key`), issued.key);
    return issued;
  }

  const tlsOf = (name: string): ControlTls => ({
    certFile: path(`${name}.crt`),
    keyFile: path(`${name}.key`),
    caFile: path('ca.crt'),
  });
  const asks = async (port: number, name: string, asked: string): Promise<number> =>
    (await new ControlCaller(port, tlsOf(name)).call(asked)).status;

  it('say which PolicyServer a certificate belongs to', async () => {
    const names = async (...dnsNames: readonly string[]): Promise<readonly string[]> =>
      policyServersOf(new X509Certificate((await issue('any', dnsNames)).cert));
    assert.deepEqual(await names(CONTROL_NAME), []);
    assert.deepEqual(await names(CONTROL_NAME, policyServerControlName('a.b')), ['a.b']);
    assert.deepEqual(await names(`x.${CONTROL_NAME}`, `*.policy-server.${CONTROL_NAME}`), []);
    // An entry that looks like two is one.
    assert.deepEqual(await names(`x, DNS:a.policy-server.${CONTROL_NAME}`), []);
    assert.deepEqual(policyServersOf({ subjectAltName: undefined }), []);
  });

  /** The control port of a replica of the default PolicyServer. */
  function replicaWith(tls: ControlTls): ControlEndpoint {
    return new ControlEndpoint({
      host: '127.0.0.1',
      port: 0,
      tls,
      replica: 'r',
      policyServer: 'default',
      version: '0',
      reports: new TestReports(),
      prevalidate: () => Promise.resolve({ ok: true, modules: [] }),
      readModule: () => Promise.resolve(Buffer.from('module')),
      log,
    });
  }

  it('let replicas get modules of their own PolicyServer from each other, and nothing else', async () => {
    const endpoint = replicaWith(tlsOf('default'));
    const port = await endpoint.start();
    try {
      assert.deepEqual(
        [
          await asks(port, 'default', MODULE),
          await asks(port, 'other', MODULE),
          await asks(port, 'controller', MODULE),
        ],
        [200, 403, 200],
      );
      assert.equal(await asks(port, 'default', '/stream'), 403);
      const body = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: { module: 'm' } };
      assert.equal((await new ControlCaller(port, tlsOf('default')).prevalidate(body)).status, 403);
    } finally {
      await endpoint.stop();
    }
  });

  it('are required once the issuer names holders: certificates from before have no rights', async () => {
    const endpoint = replicaWith(tlsOf('default'));
    const port = await endpoint.start();
    try {
      for (const path of [MODULE, '/stream']) {
        assert.equal(await asks(port, 'nobody', path), 403, path);
      }
      const body = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: { module: 'm' } };
      assert.equal((await new ControlCaller(port, tlsOf('nobody')).prevalidate(body)).status, 403);
    } finally {
      await endpoint.stop();
    }
  });

  it('are not required where no certificate has any, until the own one is replaced', async () => {
    const endpoint = replicaWith(tlsOf('shared'));
    const port = await endpoint.start();
    try {
      const stream = await new ControlCaller(port, tlsOf('nobody')).stream();
      assert.equal(stream.response.statusCode, 200);
      assert.equal(await asks(port, 'nobody', MODULE), 200);
      await issue('shared', [CONTROL_NAME, policyServerControlName('default')]);
      // The stream ends, which was begun with the rights of before.
      await stream.rest().catch(() => undefined);
      assert.deepEqual([await asks(port, 'nobody', MODULE), await asks(port, 'controller', MODULE)], [403, 200]);
    } finally {
      await endpoint.stop();
    }
  });

  it('let replicas get the copies of their PolicyServer from controllers, and controllers only the report', async () => {
    const asked: string[] = [];
    let report: CopiesReport = { version: '1', copies: {}, refused: {} };
    const listeners = new Set<() => void>();
    const endpoint = new CopiesEndpoint({
      host: '127.0.0.1',
      port: 0,
      tls: tlsOf('controller'),
      source: {
        find: (policyServers) => {
          asked.push(...policyServers);
          return policyServers.includes('default')
            ? { size: 6, content: [Buffer.from('mod'), Buffer.from('ule')].values() as never }
            : undefined;
        },
        report: () => report,
        subscribe: (listener) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      log,
    });
    const port = await endpoint.start();
    try {
      const caller = new ControlCaller(port, tlsOf('default'));
      assert.equal(String((await caller.call(MODULE)).body), 'module');
      assert.deepEqual([await asks(port, 'other', MODULE), await asks(port, 'controller', MODULE)], [404, 403]);
      assert.deepEqual(asked, ['default', 'other.default']);
      assert.deepEqual(
        [
          await asks(port, 'default', '/copies'),
          await asks(port, 'default', '/stream'),
          await asks(port, 'default', '/'),
        ],
        [403, 404, 404],
      );
      assert.deepEqual([await asks(port, 'nobody', '/copies'), await asks(port, 'nobody', MODULE)], [403, 403]);
      const controller = new ControlCaller(port, tlsOf('controller'));
      assert.deepEqual(JSON.parse(String((await controller.call('/copies')).body)), report);
      // One that knows the report waits for the next one.
      const next = controller.call('/copies?after=1');
      while (listeners.size === 0) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      report = { version: '2', copies: { default: ['sha256:x'] }, refused: {} };
      listeners.forEach((listener) => listener());
      assert.deepEqual(JSON.parse(String((await next).body)), report);
    } finally {
      await endpoint.stop();
    }
  });
});
