// An exception, from its creation to the answers of all replicas.
import assert from 'node:assert/strict';
import { POLICY_EXCEPTIONS, type PolicyException } from '../../src/resources/index.ts';
import { requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { enforced } from './scenario-updates.ts';

/** Requests to find both replicas behind the balancer. */
const REQUESTS = 12;
const KEY = { namespace: 'excepted', name: 'importer' };
const MS_PER_SECOND = 1_000;

export async function exceptsUntilTheSecond(lab: RolloutLab): Promise<void> {
  await enforced(lab, requiresLabel('excepted', await lab.module('excepted.wasm'), 'owner'), 'owner');
  const refusals = async (labels: Readonly<Record<string, string>>): Promise<readonly (string | undefined)[]> => {
    const all: (string | undefined)[] = [];
    for (let request = 0; request < REQUESTS; request += 1) {
      all.push(await lab.refusal('excepted', labels));
    }
    return all;
  };
  const importer = { app: 'importer' };
  assert.ok((await refusals(importer)).every((one) => one?.includes('owner')));

  const end = Math.ceil(Date.now() / MS_PER_SECOND) * MS_PER_SECOND + 12 * MS_PER_SECOND;
  const exception: PolicyException = {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyException',
    metadata: KEY,
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'excepted' }],
      objects: { kinds: [{ apiGroup: '', kind: 'ConfigMap' }], labelSelector: { matchLabels: importer } },
      reason: 'for a moment',
      expiresAt: `${new Date(end).toISOString().slice(0, -5)}Z`,
    },
  };
  await lab.cluster.create(POLICY_EXCEPTIONS, exception);
  await lab.eventually(
    async () => assert.deepEqual(new Set(await refusals(importer)), new Set([undefined])),
    () => 'all replicas to admit the object',
  );
  assert.ok(Date.now() < end, 'it is in force before its end');
  assert.ok(
    (await refusals({ app: 'web' })).every((one) => one?.includes('owner')),
    'of other labels',
  );

  await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
  assert.ok(
    (await refusals(importer)).every((one) => one?.includes('owner')),
    'from the second on',
  );
  await lab.eventually(
    async () => {
      const { status } = await lab.cluster.get(POLICY_EXCEPTIONS, KEY);
      assert.equal(status?.state, 'Expired');
    },
    () => 'the status to say so',
  );
}
