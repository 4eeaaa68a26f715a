// An exception, from its creation to the answers of all replicas.
import assert from 'node:assert/strict';
import { POLICY_EXCEPTIONS, type PolicyException } from '../../src/resources/index.ts';
import { requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { enforced } from './scenario-updates.ts';

/** Requests to find both replicas behind the balancer. */
const REQUESTS = 12;
const IMPORTER = { app: 'importer' };
const KEY = { namespace: 'excepted', name: 'importer' };
const MS_PER_SECOND = 1_000;
/** Time from its creation to its end: enough for all replicas to know it, on a machine that does nothing else. Milliseconds. */
const QUICK_MS = 6_000;

export async function exceptsUntilTheSecond(lab: RolloutLab): Promise<void> {
  await enforced(lab, requiresLabel('excepted', await lab.module('excepted.wasm'), 'owner'), 'owner');
  const refusals = async (labels: Readonly<Record<string, string>>): Promise<readonly (string | undefined)[]> => {
    const all: (string | undefined)[] = [];
    for (let request = 0; request < REQUESTS; request += 1) {
      all.push(await lab.refusal('excepted', labels));
    }
    return all;
  };
  assert.ok((await refusals(IMPORTER)).every((one) => one?.includes('owner')));

  const admits = async (): Promise<boolean> => (await refusals(IMPORTER)).every((one) => one === undefined);
  const end = await inForce(lab, admits);
  assert.ok(
    (await refusals({ app: 'web' })).every((one) => one?.includes('owner')),
    'of other labels',
  );

  await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
  assert.ok(
    (await refusals(IMPORTER)).every((one) => one?.includes('owner')),
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

/** Has an exception in force on all replicas. Returns its end, which comes. An exception that ended before says nothing. */
async function inForce(lab: RolloutLab, admits: () => Promise<boolean>): Promise<number> {
  for (let forMs = QUICK_MS; ; forMs *= 2) {
    const end = Math.ceil((Date.now() + forMs) / MS_PER_SECOND) * MS_PER_SECOND;
    await lab.cluster.create(POLICY_EXCEPTIONS, importerUntil(end));
    const isIn = await lab.eventually(
      async () => {
        const isAdmitted = await admits();
        assert.ok(isAdmitted || Date.now() >= end);
        return isAdmitted && Date.now() < end;
      },
      () => 'all replicas to admit the object',
    );
    if (isIn) {
      return end;
    }
    await lab.cluster.delete(POLICY_EXCEPTIONS, KEY);
  }
}

function importerUntil(end: number): PolicyException {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyException',
    metadata: KEY,
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'excepted' }],
      objects: { kinds: [{ apiGroup: '', kind: 'ConfigMap' }], labelSelector: { matchLabels: IMPORTER } },
      reason: 'for a moment',
      expiresAt: `${new Date(end).toISOString().slice(0, -5)}Z`,
    },
  };
}
