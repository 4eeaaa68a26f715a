import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_STATUS_MANAGER,
  NETWORK_POLICY_STATUSES,
  type OwnKind,
} from '../../resources/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { AuditFinding } from '../finding.ts';
import { StatusFindings } from './status-findings.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const NAMESPACES = knownKind('v1', 'Namespace');
const KINDS: readonly OwnKind[] = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES, NETWORK_POLICY_STATUSES];

const template = (name: string, more: object = {}): KubernetesObject => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'ConfigurationPolicy',
  metadata: {
    name,
    namespace: 'default',
    annotations: { 'policy.open-cluster-management.io/categories': 'CM Configuration Management' },
    ownerReferences: [
      { apiVersion: 'policy.open-cluster-management.io/v1', kind: 'Policy', name: 'ops.brokers', uid: 'u' },
    ],
  },
  spec: { severity: 'High', remediationAction: 'inform', 'object-templates': [], ...more },
});

const related = (namespace: string, name: string, compliant: string) => ({
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } },
  compliant,
  reason: 'Resource not found but should exist',
  ...(compliant === 'Compliant' ? {} : { properties: { uid: `uid-${name}`, diff: '-a\n+b' } }),
});

/** What a test compares of a finding. */
const brief = ({ policy, rule, result, mode, object, message, severity }: AuditFinding): string =>
  [policy, rule, result, mode, object.kind, object.name, severity, message].join(' | ');

describe('findings in the statuses of a cluster', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let findings: StatusFindings;
  let ending: AbortController;
  let running: Promise<void>;
  let changes: (string | undefined)[];

  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    findings = new StatusFindings({ cluster: admin, log: pino({ level: 'silent' }), discoveryMs: 20 });
    changes = [];
    findings.onChange((namespace) => changes.push(namespace));
    ending = new AbortController();
    running = findings.start(ending.signal);
  });
  afterEach(async () => {
    ending.abort();
    await running;
    await embedded[Symbol.asyncDispose]();
  });

  const serve = async (): Promise<void> => {
    for (const kind of KINDS) {
      await admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
  };
  const withStatus = async (kind: OwnKind, object: KubernetesObject, status: JsonObject): Promise<string> => {
    const created = await admin.create<KubernetesObject>(kind, object);
    await writeStatus(kind, created, status);
    return created.metadata.uid ?? '';
  };
  const writeStatus = async (kind: OwnKind, { metadata }: KubernetesObject, status: JsonObject): Promise<void> => {
    const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    await admin.patch(kind, key, { type: 'merge', body: { status } }, { subresource: 'status' });
  };
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await sleep(5);
    }
  };

  it('are not known to be gone before the cluster has said which kinds it serves, and what there is of them', async () => {
    assert.equal(new StatusFindings({ cluster: admin, log: pino({ level: 'silent' }) }).knowsPolicy('any'), undefined);
    await until(() => findings.knowsPolicy('any') === false);
    await serve();
    const uid = await withStatus(CONFIGURATION_POLICIES, template('late'), {
      compliant: 'Compliant',
      observedGeneration: 1,
    });
    await until(() => findings.isSettled(uid));
    assert.equal(findings.knowsPolicy(uid), true);
    assert.ok(changes.includes(undefined), 'stored results may be out of date anywhere');
  });

  it('are those of objects that a template of a governance policy finds different, each in its namespace', async () => {
    await serve();
    const relatedObjects = [related('shop', 'one', 'NonCompliant'), related('shop', 'two', 'Compliant')];
    const uid = await withStatus(CONFIGURATION_POLICIES, template('config'), {
      compliant: 'NonCompliant',
      observedGeneration: 1,
      relatedObjects: [...relatedObjects, related('play', 'three', 'NonCompliant')],
    });
    await until(() => findings.of('shop').length > 0);
    assert.deepEqual(findings.of('shop').map(brief), [
      'policy/ops/brokers | config | fail | protect | ConfigMap | one | high | Resource not found but should exist\n-a\n+b',
    ]);
    assert.deepEqual([...findings.namespaces()].toSorted(), ['play', 'shop']);
    const [first] = findings.of('shop');
    assert.deepEqual(
      [first?.policyUid, first?.object.uid, first?.category],
      [uid, 'uid-one', 'CM Configuration Management'],
    );
  });

  it('of a status that is older than the spec are neither there nor settled', async () => {
    await serve();
    const uid = await withStatus(CONFIGURATION_POLICIES, template('config'), {
      compliant: 'NonCompliant',
      observedGeneration: 1,
      relatedObjects: [related('shop', 'one', 'NonCompliant')],
    });
    await until(() => findings.of('shop').length === 1);
    const key = { namespace: 'default', name: 'config' };
    await admin.patch(CONFIGURATION_POLICIES, key, { type: 'merge', body: { spec: { severity: 'low' } } });
    await until(() => findings.of('shop').length === 0);
    assert.deepEqual([findings.knowsPolicy(uid), findings.isSettled(uid)], [true, false]);
    await admin.delete(CONFIGURATION_POLICIES, key);
    await until(() => findings.knowsPolicy(uid) === false);
  });

  it('name the Secrets of certificates', async () => {
    await serve();
    await withStatus(
      CERTIFICATE_POLICIES,
      {
        apiVersion: 'policy.open-cluster-management.io/v1',
        kind: 'CertificatePolicy',
        metadata: { name: 'certs', namespace: 'default' },
        spec: { namespaceSelector: { include: ['shop'] } },
      },
      {
        compliant: 'NonCompliant',
        observedGeneration: 1,
        compliancyDetails: {
          shop: {
            nonCompliantCertificatesList: { web: { secretName: 'web-tls', expiration: '2026-12-01T00:00:00Z' } },
          },
        },
      },
    );
    await until(() => findings.of('shop').length > 0);
    assert.deepEqual(findings.of('shop').map(brief), [
      'certificatepolicy/default/certs | certs | fail | protect | Secret | web-tls |  | the certificate does not meet the policy; it expires 2026-12-01T00:00:00Z',
    ]);
  });

  it('are what providers do not support of a NetworkPolicy; what is not known is an error, and advice a warning', async () => {
    await serve();
    const owner = await admin.create<KubernetesObject>(knownKind('networking.k8s.io/v1', 'NetworkPolicy'), {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'egress', namespace: 'shop' },
      spec: { podSelector: {} },
    });
    const { uid = '' } = owner.metadata;
    const since = '2026-11-29T00:00:00Z';
    const feature = { reason: 'Any', message: 'ranges of ports have no effect', lastTransitionTime: since };
    await withStatus(
      NETWORK_POLICY_STATUSES,
      {
        apiVersion: 'portcullis.dev/v1',
        kind: 'NetworkPolicyStatus',
        metadata: {
          name: 'egress',
          namespace: 'shop',
          ownerReferences: [{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', name: 'egress', uid }],
        },
        spec: {},
      },
      {
        observedGeneration: 1,
        providers: [
          {
            controllerName: 'example.io/agent',
            name: 'agent',
            version: '1.2',
            features: [
              {
                ...feature,
                type: 'EndPort',
                status: 'False',
                effect: 'RuleDropped',
                paths: ['spec.egress[0].ports[0]'],
              },
              { ...feature, type: 'Sctp', status: 'Unknown', message: 'not examined' },
              { ...feature, type: 'Egress', status: 'True' },
            ],
            warnings: [{ type: 'PortCount', message: 'too many' }],
          },
          {
            controllerName: 'cilium.io/agent',
            name: 'cilium',
            version: 'v1.15.4',
            reporter: NETWORK_POLICY_STATUS_MANAGER,
            features: [{ ...feature, type: 'EndPort', status: 'False', message: 'Cilium 1.15.4 allows only port 3' }],
          },
        ],
        findings: [{ type: 'AllowsNothing', message: 'it allows nothing' }],
      },
    );
    await until(() => findings.of('shop').length > 0);
    assert.deepEqual(findings.of('shop').map(brief), [
      'netpol/support | agent/EndPort | fail | protect | NetworkPolicy | egress |  | agent 1.2: RuleDropped: ranges of ports have no effect (spec.egress[0].ports[0])',
      'netpol/support | agent/Sctp | error | protect | NetworkPolicy | egress |  | agent 1.2: not examined',
      'netpol/limits | agent/PortCount | fail | monitor | NetworkPolicy | egress |  | agent 1.2: too many',
      'netpol/support | cilium/EndPort | fail | protect | NetworkPolicy | egress |  | Cilium 1.15.4 allows only port 3',
      'netpol/advice | AllowsNothing | fail | monitor | NetworkPolicy | egress |  | it allows nothing',
    ]);
    assert.equal(findings.of('shop')[0]?.object.uid, uid);
  });
});
