// CertificatePolicies on an embedded cluster.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HOUR, NOW, pem, secret } from '../../src/governance/certificates/testing/certificate-scene.ts';
import type { Condition, JsonObject } from '../../src/resources/index.ts';
import { GovernanceLab, type LabObject } from './governance-lab.ts';

const POLICY = { kind: 'CertificatePolicy', name: 'local-cluster/expiry' };
/** Hours from the scene's time to the real time. */
const PRESENT = (Date.now() - NOW) / HOUR;

function policy(spec: JsonObject): JsonObject {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'CertificatePolicy',
    metadata: { name: 'expiry', namespace: 'local-cluster' },
    spec,
  };
}

const compliant = (object: LabObject | undefined): string | undefined => object?.status?.compliant;
const history = (object: LabObject | undefined): readonly string[] =>
  (object?.status?.history ?? []).map(({ message }) => message.trim());
const ready = (object: LabObject | undefined): Condition | undefined =>
  object?.status?.conditions?.find(({ type }) => type === 'Ready');

async function startLab(...parameters: Parameters<typeof GovernanceLab.start>): Promise<GovernanceLab> {
  const lab = await GovernanceLab.start(...parameters);
  await lab.namespace('local-cluster');
  return lab;
}

describe('a CertificatePolicy', () => {
  it('is evaluated again when Secrets, namespaces and its spec change', async () => {
    await using lab = await startLab();
    await lab.apply(policy({ namespaceSelector: { matchLabels: { web: 'yes' } }, minimumDuration: '300h' }));
    const none = await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
    assert.deepEqual(history(none), ['Compliant; No namespaces matched the namespace selector.']);

    await lab.apply(secret('web', await pem({ from: PRESENT - 2, until: PRESENT + 200 })));
    await lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels: { web: 'yes' } } });
    const expiring = await lab.sees(POLICY, (object) => compliant(object) === 'NonCompliant');
    assert.equal(history(expiring)[0], 'NonCompliant; 1 certificates expire in less than 300h0m0s: default:web');
    assert.equal(ready(expiring)?.reason, 'Evaluated');

    await lab.apply(secret('web', await pem({ from: PRESENT - 2, until: PRESENT + 400 })));
    const renewed = await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
    assert.equal(history(renewed).length, 3);

    await lab.apply(policy({ namespaceSelector: { matchLabels: { web: 'yes' } }, minimumDuration: '500h' }));
    const stricter = await lab.sees(POLICY, (object) => compliant(object) === 'NonCompliant');
    assert.equal(stricter.status?.observedGeneration, stricter.metadata.generation);
  });

  it('changes at the moment at which a certificate expires, without a change of an object', async () => {
    await using lab = await startLab();
    const untilHours = 1 + (Date.now() + 4_000 - NOW) / HOUR;
    await lab.apply(secret('web', await pem({ from: PRESENT - 2, until: untilHours })));
    await lab.apply(policy({ namespaceSelector: { include: ['default'] }, minimumDuration: '1h' }));
    await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
    const expiring = await lab.sees(POLICY, (object) => compliant(object) === 'NonCompliant');
    assert.deepEqual(history(expiring), [
      'NonCompliant; 1 certificates expire in less than 1h0m0s: default:web',
      'Compliant; All evaluated certificates are compliant',
    ]);
  });

  it('has no verdict while the governance account may not read Secrets, and says so', async () => {
    const user = { username: 'governance', groups: ['system:authenticated'] };
    await using lab = await startLab({ governed: (cluster) => cluster.as(user) });
    await lab.apply(policy({ namespaceSelector: { include: ['default'] } }));
    const forbidden = await lab.sees(POLICY, (object) => ready(object)?.reason === 'ObjectsUnreadable');
    assert.equal(compliant(forbidden), undefined);
    assert.match(ready(forbidden)?.message ?? '', /may not list and watch Secrets: grant it the right/);
    assert.match(history(forbidden)[0] ?? '', /^UnknownCompliancy; The governance account/);

    const rbac = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'secrets' };
    await lab.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'secrets' },
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'secrets' },
        roleRef: rbac,
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'governance' }],
      },
    );
    await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
  });

  it('is not evaluated while it is suspended', async () => {
    await using lab = await startLab();
    await lab.apply(policy({ namespaceSelector: { include: ['default'] } }));
    await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
    await lab.merge(POLICY, { metadata: { annotations: { 'portcullis.dev/suspended': 'it waits' } } });
    const suspended = await lab.sees(POLICY, (object) => ready(object)?.reason === 'Suspended');
    assert.deepEqual([compliant(suspended), ready(suspended)?.message], [undefined, 'it waits']);
    await lab.merge(POLICY, { metadata: { annotations: { 'portcullis.dev/suspended': null } } });
    await lab.sees(POLICY, (object) => compliant(object) === 'Compliant');
  });

  it('is not compliant with a selector that cannot be used', async () => {
    await using lab = await startLab();
    await lab.apply(policy({ namespaceSelector: { include: ['['] } }));
    const invalid = await lab.sees(POLICY, (object) => compliant(object) === 'NonCompliant');
    assert.equal(ready(invalid)?.reason, 'NamespaceSelectorInvalid');
    assert.match(history(invalid)[0] ?? '', /^NonCompliant; error parsing 'include' pattern '\['/);
  });

  it('is reported on the Policy that has it as a template', async () => {
    await using lab = await GovernanceLab.start();
    const definition = policy({
      namespaceSelector: { include: ['default'] },
      minimumDuration: '300h',
    });
    await lab.apply(secret('web', await pem({ from: PRESENT - 2, until: PRESENT + 200 })), {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      metadata: { name: 'certificates', namespace: 'policies' },
      spec: {
        disabled: false,
        'policy-templates': [{ objectDefinition: { ...definition, metadata: { name: 'expiry' } } }],
      },
    });
    const root = await lab.reaches('policies/certificates', 'NonCompliant');
    assert.match(root.status?.message ?? '', /^expiry: 1 certificates expire in less than 300h0m0s: default:web/);
  });
});
