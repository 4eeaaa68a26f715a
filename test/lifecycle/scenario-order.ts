// Scenario 11: a policy of a namespace and one of the cluster set the same annotation, and each reinvocation sets it again.
import assert from 'node:assert/strict';
import { ANNOTATIONS, type KubernetesObject, type ResourceType } from '../../src/resources/index.ts';
import { kind, type Policy, type RolloutLab } from './rollout-lab.ts';

const NAME = 'order';
const CONFIGURATIONS = kind('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration');

/** Appends its letter to the annotation `calls`, and sets the annotation `last`. */
function marks(letter: string, rest: Pick<Policy, 'kind' | 'metadata'>, isAlone: boolean): Policy {
  const expression = `[JSONPatch{op: 'add', path: '/metadata/annotations', value: {
    'calls': object.metadata.?annotations.?calls.orValue('') + '${letter}', 'last': '${letter}'}}]`;
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: rest.kind,
    metadata: { ...rest.metadata, annotations: isAlone ? { [ANNOTATIONS.webhook]: 'Own' } : {} },
    spec: {
      module: 'builtin:cel',
      mutating: true,
      settings: { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      ...(rest.kind === 'ClusterAdmissionPolicy' ? { namespaceSelector: { matchLabels: { scenario: NAME } } } : {}),
    },
  };
}

async function active(lab: RolloutLab, policy: Policy): Promise<void> {
  const { name, namespace } = policy.metadata;
  const key = { name: name ?? '', ...(namespace === undefined ? {} : { namespace }) };
  await lab.eventually(
    async () => {
      const type = kind(policy.apiVersion, policy.kind) as ResourceType<Policy>;
      assert.equal((await lab.cluster.get(type, key)).status?.phase, 'Active');
    },
    () => `${policy.kind} ${name} to be Active`,
  );
}

/** The annotations that a config map gets. */
async function created(lab: RolloutLab): Promise<Readonly<Record<string, string>> | undefined> {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'probe-', namespace: NAME } };
  const made = await lab.cluster.create<KubernetesObject>(kind('v1', 'ConfigMap'), map, { dryRun: true });
  return made.metadata.annotations;
}

/** With any combination of shared webhooks and webhooks of their own, the policy of the cluster is called last. */
export async function clusterHasLastWord(lab: RolloutLab): Promise<void> {
  await lab.namespace(NAME);
  for (const isTenantAlone of [false, true]) {
    for (const isClusterAlone of [false, true]) {
      // By name, id and age, the policy of the cluster comes first.
      const ofCluster = marks('c', { kind: 'ClusterAdmissionPolicy', metadata: { name: 'a' } }, isClusterAlone);
      const metadata = { name: 'z', namespace: NAME };
      const ofTenant = marks('t', { kind: 'AdmissionPolicy', metadata }, isTenantAlone);
      for (const policy of [ofCluster, ofTenant]) {
        await lab.create(policy);
        await active(lab, policy);
      }
      // API servers learn of a webhook a moment after it was written.
      await lab.eventually(
        async () => assert.deepEqual(new Set((await created(lab))?.['calls']), new Set('ct')),
        () => 'both policies to be called',
      );
      assert.deepEqual(
        await created(lab),
        { calls: 'tctc', last: 'c' },
        `own webhooks: tenant ${isTenantAlone}, cluster ${isClusterAlone}`,
      );
      for (const { apiVersion, kind: name, metadata: key } of [ofCluster, ofTenant]) {
        await lab.cluster.delete(kind(apiVersion, name), { ...key, name: key.name ?? '' });
      }
      await lab.eventually(
        async () => assert.deepEqual((await lab.cluster.list(CONFIGURATIONS)).items, []),
        () => 'the mutating webhooks to be removed',
      );
    }
  }
}
