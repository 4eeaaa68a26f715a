// Scenario 10: a policy with its own webhook starts and stops mutating. During the rollout, validating and mutating
// webhooks call it, and replicas switch at different times.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../../src/cluster/index.ts';
import { ANNOTATIONS, type JsonObject, type KubernetesObject, policyId } from '../../src/resources/index.ts';
import { kind, type Policy, type RolloutLab } from './rollout-lab.ts';

const NAME = 'mutant';
/** Parallel streams of requests: API servers spread them over connections, and those over replicas. */
const WIDTH = 4;
/** Interval of requests in a stream. Milliseconds. */
const PAUSE_MS = 2;

/** Changes every object that it reviews, including its own changes. */
const MARKS = `[JSONPatch{op: 'add', path: '/metadata/annotations', value: {
  'marks': object.metadata.?annotations.?marks.orValue('') + 'x'}}]`;
const MUTATING: JsonObject = {
  mutating: true,
  settings: { validations: null, mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: MARKS } }] },
};
const VALIDATING: JsonObject = {
  mutating: false,
  settings: { validations: [{ expression: 'true' }], mutations: null },
};

const POLICY: Policy = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: NAME, annotations: { [ANNOTATIONS.webhook]: 'Own' } },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    failurePolicy: 'Fail',
    settings: { validations: [{ expression: 'true' }] },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    namespaceSelector: { matchLabels: { scenario: NAME } },
  },
};

/** The result for a config map: its marks, or the rejection. */
async function created(lab: RolloutLab): Promise<string> {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'probe-', namespace: NAME } };
  try {
    const { metadata } = await lab.cluster.create<KubernetesObject>(kind('v1', 'ConfigMap'), map, { dryRun: true });
    return metadata.annotations?.['marks'] ?? 'no marks';
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return `refused: ${error.message}`;
  }
}

/** The rules under which webhooks call the policy, by type of webhook. */
async function pathsAsked(lab: RolloutLab): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration']) {
    const { items } = await lab.cluster.list(kind('admissionregistration.k8s.io/v1', name));
    const webhooks = items.flatMap(
      (item) => (item as { webhooks?: { clientConfig: { url: string } }[] }).webhooks ?? [],
    );
    const paths = webhooks.map(({ clientConfig }) => new URL(clientConfig.url).pathname);
    found.push(...paths.filter((path) => path.endsWith(`.${policyId(POLICY)}`)));
  }
  return found;
}

/** No request fails, although both types of webhooks call the policy for a while. */
export async function mutatesAndCeasesTo(lab: RolloutLab): Promise<void> {
  await lab.namespace(NAME);
  await lab.create(POLICY);
  const isEverywhere = async (revision: number): Promise<void> => {
    await lab.reaches(
      NAME,
      'Active',
      ({ servingRevision, readyReplicas, totalReplicas }) =>
        servingRevision === revision && readyReplicas === totalReplicas,
    );
  };
  await isEverywhere(1);
  const seen: string[] = [];
  let isOver = false;
  const stream = async (): Promise<void> => {
    while (!isOver) {
      seen.push(await created(lab));
      await sleep(PAUSE_MS);
    }
  };
  const streams = Promise.all(Array.from({ length: WIDTH }, stream));
  try {
    for (const [revision, change, became, kindOfWebhook] of [
      [2, MUTATING, 'x', 'mutating'],
      [3, VALIDATING, 'no marks', 'validating'],
    ] as const) {
      await lab.change(NAME, change);
      await isEverywhere(revision);
      await lab.eventually(
        async () => assert.deepEqual(await pathsAsked(lab), [`/admit/${kindOfWebhook}.${policyId(POLICY)}`]),
        () => `its ${kindOfWebhook} webhook alone`,
      );
      const since = seen.length;
      await lab.eventually(
        () => Promise.resolve(assert.ok(seen.slice(since).includes(became))),
        () => `a config map with ${became}, last ${seen.at(-1)}`,
      );
    }
  } finally {
    isOver = true;
    await streams;
  }
  const failed = seen.filter((one) => !['x', 'no marks'].includes(one));
  assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${seen.length} requests`);
}
