// Whether a controller has done what the annotation says.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, isNotFound, listAll } from '../../cluster/index.ts';
import { isDisarmed, REASONS } from '../../lifecycle/index.ts';
import {
  type AdmissionPolicyObject,
  findCondition,
  POLICY_ENFORCED,
  POLICY_SERVER_LABEL,
} from '../../resources/index.ts';
import { WEBHOOK_CONFIGURATIONS } from '../../installation/index.ts';
import type { DisarmTarget } from './disarm-target.ts';
import { policiesOfServer } from './policies-of-server.ts';

/** Interval of looks at the cluster. Milliseconds. */
const LOOK_MS = 500;

/**
 * Waits until a controller has disarmed the target, or armed it again: its policies say so, and no webhook is left that calls it.
 * @returns false when that is not so at the end
 */
export async function isHandled(
  cluster: Cluster,
  target: DisarmTarget,
  isArmed: boolean,
  timeoutMs: number,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const policies = await policiesOf(cluster, target);
    const isSaid = policies.every((policy) => isSaidDisarmed(policy) !== isArmed);
    if (isSaid && (isArmed || !target.isServer || !(await isCalled(cluster, target.key.name)))) {
      return true;
    }
    if (performance.now() > deadline) {
      return false;
    }
    await sleep(LOOK_MS);
  }
}

async function policiesOf(
  cluster: Cluster,
  { type, key, isServer }: DisarmTarget,
): Promise<readonly AdmissionPolicyObject[]> {
  if (isServer) {
    return await policiesOfServer(cluster, key.name);
  }
  try {
    // Validated by the schema of the kind.
    return [(await cluster.get(type, key)) as AdmissionPolicyObject];
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}

function isSaidDisarmed({ status }: AdmissionPolicyObject): boolean {
  const enforced = findCondition(status?.conditions, POLICY_ENFORCED);
  return enforced?.status === 'False' && enforced.reason === REASONS.disarmed;
}

async function isCalled(cluster: Cluster, policyServer: string): Promise<boolean> {
  const labelSelector = `${POLICY_SERVER_LABEL}=${policyServer}`;
  const lists = await Promise.all(WEBHOOK_CONFIGURATIONS.map((type) => listAll(cluster, type, { labelSelector })));
  return lists.some(({ items }) => items.some((one) => !isDisarmed(one)));
}
