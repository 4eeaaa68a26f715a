// `portcullis wait --for=jsonpath=…` beside kubectl's, on the same objects.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ADMIN_USER, EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import { CLUSTER_ADMISSION_POLICIES, customResourceDefinition, knownKind } from '../../src/resources/index.ts';
import { findBinary } from '../cluster/binaries.ts';
import { runClient } from '../cluster/client-command.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { portcullis } from './command.ts';

const KUBECTL = findBinary('kubectl');
const MESSAGE = 'pin the version of each image';
const AUDIT = {
  summary: '1',
  state: 'Complete',
  reason: 'Scanned',
  message: '1 of 2 objects would be rejected',
  findings: [{ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'a', message: MESSAGE }],
};
const CONDITION = {
  type: 'Ready',
  status: 'True',
  reason: 'R',
  message: 'a=b',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

type Outcome = 'met' | 'not met' | 'error';

/** What holds of the object, and what does not; `error`: is refused at once. Last, what kubectl says, where it differs. */
const GOALS: readonly (readonly [string, Outcome, Outcome?])[] = [
  [`{.status.audit.findings[0].message}=${MESSAGE}`, 'met'],
  [`{.status.audit.findings[-1].name}=a`, 'met'],
  [`{.status.audit.findings[0].message}="${MESSAGE}"`, 'met'],
  [`.status.audit.findings[0].message=${MESSAGE}`, 'met'],
  ['{.status.audit.findings[0].message}=pin', 'not met'],
  // The list may grow.
  ['{.status.audit.findings[1].message}=pin', 'not met', 'error'],
  ['{.status.conditions[?(@.type=="Ready")].status}=True', 'met'],
  ['{.status.conditions[?(@.type=="Ready")].status}=False', 'not met'],
  ['{.status.observedGeneration}=1', 'met'],
  ['{.status.audit.state}', 'met'],
  ['{.status.nothing}', 'not met'],
  ['{.status.audit.state}=', 'error'],
  ['{.status.audit}=x', 'error'],
  ['{.status.conditions[*].type}=Ready', 'error'],
  ['{.status.conditions[}=x', 'error'],
];

describe('portcullis wait --for=jsonpath', () => {
  let folder: string;
  let cluster: EmbeddedCluster;
  let gateway: Gateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-wait-'));
    const tls = await createLoopbackCertificate();
    cluster = await EmbeddedCluster.open({ tokens: [{ token: 'admin', user: ADMIN_USER }] });
    const { admin, authenticator } = cluster;
    const definitions = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    await admin.create(definitions, customResourceDefinition(CLUSTER_ADMISSION_POLICIES));
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    await admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'images' },
      spec: { module: 'builtin:cel', mutating: false, rules },
    } as object as never);
    const status = {
      observedGeneration: 1,
      audit: AUDIT,
      conditions: [CONDITION, { ...CONDITION, type: 'Other', status: 'False' }],
    };
    const patch = { type: 'merge', body: { status } } as const;
    await admin.patch(CLUSTER_ADMISSION_POLICIES, { name: 'images' }, patch, { subresource: 'status' });
    gateway = new Gateway({ cluster, authenticator, tls });
    const { url } = await gateway.start({ port: 0 });
    const text = kubeconfigText({ server: url, ca: tls.cert, token: 'admin', name: 'admin' });
    await writeFile(join(folder, 'kubeconfig'), text, { mode: 0o600 });
  });
  after(async () => {
    await gateway.stop();
    await cluster[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const outcomeOf = (code: number, stderr: string): Outcome =>
    code === 0 ? 'met' : stderr.includes('timed out') ? 'not met' : 'error';

  for (const [goal, expected, expectedOfKubectl = expected] of GOALS) {
    it(`${goal} is ${expected}, as of kubectl`, async () => {
      const kubeconfig = join(folder, 'kubeconfig');
      const timeout = expected === 'not met' ? '--timeout=1s' : '--timeout=30s';
      const args = ['wait', 'cap/images', `--for=jsonpath=${goal}`, timeout];
      const own = await portcullis([...args, '--kubeconfig', kubeconfig]);
      assert.equal(outcomeOf(own.code ?? -1, own.stderr), expected, own.stderr);
      if (KUBECTL !== undefined) {
        const other = await runClient(KUBECTL, args, { kubeconfig, folder });
        assert.equal(outcomeOf(other.code, other.stderr), expectedOfKubectl, other.stderr);
      }
    });
  }
});
