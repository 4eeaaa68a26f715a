import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError, type Cluster } from '../../../cluster/index.ts';
import { type ConfigurationPolicy, type KubernetesObject, knownKind } from '../../../resources/index.ts';
import { type ObjectPlan, REASONS, type ObjectTemplatePlan } from '../../configuration/index.ts';
import { creatorOf, withCreatedObjects } from './created-objects.ts';

const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
const POLICY = {
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'ConfigurationPolicy',
  metadata: { name: 'p', namespace: 'local-cluster', uid: 'policy-uid' },
  spec: { pruneObjectBehavior: 'DeleteIfCreated', remediationAction: 'enforce' },
} as ConfigurationPolicy;

const live = (uid: string, manager = creatorOf(POLICY)): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default', uid, managedFields: [{ manager }] },
});

function plans(object: KubernetesObject): readonly ObjectTemplatePlan[] {
  const plan = {
    type: CONFIG_MAPS,
    namespace: 'default',
    name: 'a',
    live: object,
    history: [{ namespace: 'default', names: ['a'], isCompliant: true, reason: REASONS.found }],
    properties: { createdByPolicy: false, uid: object.metadata.uid },
  } as Partial<ObjectPlan> as ObjectPlan;
  return [{ objects: [plan] } as Partial<ObjectTemplatePlan> as ObjectTemplatePlan];
}

async function created(
  get: () => KubernetesObject,
): Promise<readonly [createdByPolicy: boolean | undefined, unread: readonly string[], unproven: readonly string[]]> {
  const governed = { get: async () => get() } as unknown as Pick<Cluster, 'get'>;
  const {
    plans: known,
    unread,
    unproven,
  } = await withCreatedObjects(POLICY, plans(live('u1')), governed, new AbortController().signal);
  return [known[0]?.objects[0]?.properties?.createdByPolicy, unread, unproven];
}

const refuse = (code: number, reason: ConstructorParameters<typeof ApiError>[1]) => (): KubernetesObject => {
  throw new ApiError(code, reason, `configmaps "a": ${reason}`);
};

describe('an object that the status does not know', () => {
  it('is not proven to be of the policy whose mark it has, because anybody who may write it can set the mark', async () => {
    assert.deepEqual(await created(() => live('u1')), [undefined, [], ['ConfigMap default/a']]);
    assert.deepEqual(await created(() => live('u1', 'kubectl')), [false, [], []]);
    assert.deepEqual(await created(() => live('u2')), [false, [], []]);
    assert.deepEqual(await created(refuse(404, 'NotFound')), [false, [], []]);
  });

  it('has no known creator while it may not be read, so that the next pass looks again', async () => {
    const [isCreated, unread] = await created(refuse(403, 'Forbidden'));
    assert.equal(isCreated, undefined);
    assert.match(unread.join(), /configmaps "a": Forbidden/);
  });
});
