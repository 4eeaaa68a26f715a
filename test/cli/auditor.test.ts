// `portcullis auditor` as a process: refused flags, what it finds, and how it ends.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ADMIN_USER, EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  OWN_KINDS,
  REPORT_FORMATS,
  reportDefinitions,
} from '../../src/resources/index.ts';
import { LEASES } from '../../src/runtime/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { REPORT_SELECTOR } from '../../src/audit/index.ts';
import { type Lease, LEASES as LEASE_KIND } from '../../src/runtime/index.ts';
import { portcullis } from './command.ts';
import { LoggingProcess } from './logging-process.ts';

const { reports: REPORTS } = REPORT_FORMATS.openreports;
const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
/** Several times that of the command. */
const PATIENCE = { timeoutMs: 60_000 };

describe('the command line of an auditor', () => {
  for (const { what, args, message } of [
    { what: 'no cluster', args: [], message: /no cluster is named/ },
    {
      what: 'no threads',
      args: ['--context', 'x', '--workers', '0'],
      message: /expected a whole number from 1, got 0/,
    },
    { what: 'a lease that is too short', args: ['--context', 'x', '--lease-duration', '1s'], message: /at least 3s/ },
  ]) {
    it(`refuses ${what}`, async () => {
      const { code, stderr } = await portcullis(['auditor', ...args]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    });
  }
});

describe('an auditor in a process of its own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-auditor-'));
  let cluster: EmbeddedCluster;
  let gateway: Gateway;
  before(async () => {
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    cluster = await EmbeddedCluster.open({ tokens: [{ token: 'admin', user: ADMIN_USER }] });
    const { admin } = cluster;
    for (const kind of OWN_KINDS) {
      await admin.create(CRDS, customResourceDefinition(kind));
    }
    for (const name of ['portcullis', 'shop']) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const { certFile, keyFile, caFile } = certificates;
    const read = (file: string): string => readFileSync(file, 'utf8');
    const tls = { cert: read(certFile), key: read(keyFile) };
    gateway = new Gateway({ cluster, authenticator: cluster.authenticator, tls });
    const { url } = await gateway.start({ port: 0 });
    await writeKubeconfig(join(folder, 'kubeconfig'), { server: url, ca: read(caFile), token: 'admin' });
  });
  after(async () => {
    await gateway.stop();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  const auditor = (kubeconfig: string, ...args: readonly string[]): LoggingProcess => {
    const flags = ['--operations-port', '0', '--policies-download-dir', join(folder, 'data'), ...args];
    return new LoggingProcess(['auditor', '--kubeconfig', join(folder, kubeconfig), ...flags]);
  };

  it('joins, logs what it finds, shows metrics, and ends cleanly', async () => {
    const { admin } = cluster;
    const spec = { containers: [{ name: 'main', image: 'web:latest' }] };
    await admin.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'web' }, spec });
    await admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'latest' },
      spec: {
        module: 'builtin:cel',
        settings: {
          validations: [{ expression: "object.spec.containers.all(c, !c.image.endsWith(':latest'))", message: 'no' }],
        },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }],
        mutating: false,
      },
    });
    await using auditing = auditor('kubeconfig');
    const { operations } = await auditing.says('auditor ready');
    await auditing.says('the auditors of this cluster have changed');
    const { policy, failed } = await auditing.says('audited');
    assert.deepEqual([policy, failed], ['cap/latest', 1]);
    assert.equal(await (await fetch(`${String(operations)}/readyz`)).text(), 'ok\n');
    await eventually(async () => {
      const page = await (await fetch(`${String(operations)}/metrics`)).text();
      assert.match(page, /^portcullis_audit_findings\{mode="protect",result="fail"\} 1$/m);
      assert.match(page, /^portcullis_audit_coverage\{state="Scanned"\} 1$/m);
      assert.match(
        page,
        /^portcullis_audit_last_complete_scan_timestamp_seconds\{policy="cap\/latest",group="",kind="Pod"\} 1\d{9}/m,
      );
      assert.match(page, /^portcullis_audit_evaluations_total 1$/m);
    }, PATIENCE);
    auditing.signal('SIGTERM');
    await auditing.says('stopped');
    assert.equal(await auditing.ended(), 0);
    const { items } = await admin.list(LEASES, { namespace: 'portcullis' });
    assert.deepEqual(
      items.map(({ spec }) => spec?.holderIdentity),
      [''],
    );
  });

  it('keeps findings as reports, which portcullis findings shows, and writes none after a restart', async () => {
    const { admin } = cluster;
    for (const definition of reportDefinitions()) {
      await admin.create(CRDS, definition);
    }
    const key = { namespace: 'shop', name: 'portcullis-1' };
    let written: string | undefined;
    for (const start of ['first', 'second']) {
      await using auditing = auditor('kubeconfig', '--no-leader-elect');
      await auditing.says('audited');
      // By which controllers know that it works.
      await eventually(async () => {
        const { items } = await admin.list<Lease>(LEASE_KIND, {
          namespace: 'portcullis',
          labelSelector: REPORT_SELECTOR,
        });
        assert.deepEqual(
          items.map(({ spec }) => spec?.holderIdentity !== '' && spec?.leaseDurationSeconds),
          [60],
        );
      }, PATIENCE);
      await eventually(async () => {
        const { metadata, results = [] } = await admin.get(REPORTS, key);
        assert.deepEqual(
          results.map(({ policy, result, message, resources }) => [policy, result, message, resources?.[0]?.name]),
          [['cap/latest', 'fail', 'no', 'web']],
        );
        assert.equal(metadata.resourceVersion, (written ??= metadata.resourceVersion), start);
      }, PATIENCE);
      if (start === 'second') {
        const { stdout } = await portcullis([
          'findings',
          'pod/web',
          '-n',
          'shop',
          '--kubeconfig',
          join(folder, 'kubeconfig'),
        ]);
        assert.match(stdout, /^cap\/latest +fail +Pod shop\/web +\d+[ms]+ +no$/m);
        assert.equal((await admin.get(REPORTS, key)).metadata.resourceVersion, written);
        await admin.delete(PODS, { namespace: 'shop', name: 'web' });
        await eventually(async () => {
          assert.deepEqual((await admin.list(REPORTS, { namespace: 'shop' })).items, []);
        }, PATIENCE);
      }
      auditing.signal('SIGTERM');
      await auditing.ended();
    }
  });

  it('waits for an unavailable API server, and can be stopped', async () => {
    const text = readFileSync(join(folder, 'kubeconfig'), 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1');
    writeFileSync(join(folder, 'nowhere'), text);
    await using waiting = auditor('nowhere', '--no-leader-elect');
    await waiting.says('the cluster cannot be followed, trying again');
    waiting.signal('SIGTERM');
    await waiting.says('stopped');
    assert.equal(await waiting.ended(), 0);
  });
});
