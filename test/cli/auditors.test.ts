// Two `portcullis auditor` share a cluster, one is killed, and the other one takes its namespaces: no finding is lost or doubled.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
import { LoggingProcess } from './logging-process.ts';

const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const { reports: REPORTS, clusterReports: CLUSTER_REPORTS } = REPORT_FORMATS.openreports;
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const TEAMS = Array.from({ length: 12 }, (_, index) => `team-${index}`);
/** Several times that of the commands. */
const PATIENCE = { timeoutMs: 120_000 };

describe('two auditors', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-auditors-'));
  let cluster: EmbeddedCluster;
  let gateway: Gateway;
  before(async () => {
    const { certFile, keyFile, caFile } = await ensureLocalCertificates(join(folder, 'pki'));
    cluster = await EmbeddedCluster.open({ tokens: [{ token: 'admin', user: ADMIN_USER }] });
    for (const definition of [...OWN_KINDS.map(customResourceDefinition), ...reportDefinitions()]) {
      await cluster.admin.create(CRDS, definition);
    }
    for (const name of ['portcullis', ...TEAMS]) {
      await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
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

  const auditor = (name: string): LoggingProcess => {
    const flags = ['--policies-download-dir', join(folder, name), '--operations-port', '0'];
    return new LoggingProcess(['auditor', '--kubeconfig', join(folder, 'kubeconfig'), '--workers', '1', ...flags]);
  };

  async function createPods(name: string): Promise<void> {
    const spec = { containers: [{ name: 'main', image: 'web:latest' }] };
    for (const namespace of TEAMS) {
      await cluster.admin.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name }, spec });
    }
  }

  async function reported(): Promise<readonly string[]> {
    const { admin } = cluster;
    const reports = [...(await admin.list(REPORTS)).items, ...(await admin.list(CLUSTER_REPORTS)).items];
    return reports
      .flatMap(({ results = [] }) => results)
      .map(({ policy, resources: [one] = [] }) => `${policy} ${one?.namespace ?? ''}/${one?.name ?? ''}`)
      .toSorted();
  }

  async function status(): Promise<readonly unknown[]> {
    const policy = await cluster.admin.get(CLUSTER_ADMISSION_POLICIES, { name: 'latest' });
    const { state, counts, findings = [] } = policy.status?.audit ?? {};
    return [state, counts?.failed, new Set(findings.map(({ namespace }) => namespace)).size];
  }

  const foundBy = async (process: LoggingProcess): Promise<number> => Number((await process.says('audited'))['failed']);

  it('share namespaces, sum what they know, and one takes those of the other that is killed', async () => {
    const { admin } = cluster;
    const ones = TEAMS.map((namespace) => `cap/latest ${namespace}/one`).toSorted();
    const twos = TEAMS.map((namespace) => `cap/latest ${namespace}/two`);
    await using killed = auditor('first');
    await killed.says('auditor ready');
    await using other = auditor('second');
    // What is known from now on, none of them knows alone.
    await eventually(async () => {
      const { items } = await admin.list(LEASES, { namespace: 'portcullis' });
      assert.equal(items.filter(({ metadata }) => metadata.annotations?.['portcullis.dev/audit-summary']).length, 2);
    }, PATIENCE);
    await createPods('one');
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
    await eventually(async () => {
      assert.deepEqual(await reported(), ones);
      assert.deepEqual(await status(), ['Complete', TEAMS.length, 10]);
    }, PATIENCE);
    const share = await foundBy(other);
    assert.ok(share > 0 && share < TEAMS.length, `${share} findings`);
    killed.signal('SIGKILL');
    await killed.ended();
    await createPods('two');
    const lost = new Set<string>();
    await eventually(async () => {
      const found = await reported();
      ones.filter((finding) => !found.includes(finding)).forEach((finding) => lost.add(finding));
      assert.deepEqual(found, [...ones, ...twos].toSorted());
      assert.deepEqual(await status(), ['Complete', 2 * TEAMS.length, 10]);
    }, PATIENCE);
    assert.deepEqual([...lost], [], 'for a moment');
    await admin.delete(CLUSTER_ADMISSION_POLICIES, { name: 'latest' });
    await eventually(async () => assert.deepEqual(await reported(), []), PATIENCE);
  });
});
