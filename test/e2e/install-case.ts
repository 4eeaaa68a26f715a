// Shared by the tests of installations: the values of the chart, the guard policy, and steps under load.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../cluster/cluster.ts';
import type { RunningPod } from '../cluster/node/running-pod.ts';
import { CONTROLLER, type InstallLab, NAMESPACE } from './install-lab.ts';
import { GUARD, GUARDED, InstallLoad } from './install-load.ts';

/** Values with a short rotation of certificates. It is still much longer than certificates take to reach processes. */
export const VALUES = {
  certificates: { caOverlap: '8s' },
  // The example policies allow no more.
  policyServer: { limits: { cpu: '2', memory: '512Mi' } },
  controller: { resources: { limits: { memory: '512Mi' } } },
};

/** The API path of ConfigMaps in a namespace where the guard rejects them. */
export const CONFIG_MAPS = '/api/v1/namespaces/guarded/configmaps';
export const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'asked-' } };

/** Duration of the load after a step, because old connections and certificates are used for some time. Milliseconds. */
const LOAD_AFTER_MS = 500;

export const base64 = (data: string): string => Buffer.from(data).toString('base64');
/** Decodes a value of a Secret. */
export const text = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString();

/** Creates the guard, and waits until it rejects ConfigMaps. */
export async function guard(lab: InstallLab): Promise<void> {
  await lab.cluster.createNamespace('guarded', GUARDED);
  await lab.apply(GUARD);
  await lab.active('clusteradmissionpolicies', GUARD.metadata.name);
  await isGuarded(lab);
}

/** Waits until the guard rejects ConfigMaps. */
export async function isGuarded(lab: InstallLab): Promise<void> {
  await lab.eventually('the guard', async () => {
    assert.match(await lab.answer(CONFIG_MAPS, configMap), /refused by the guard/);
  });
}

/** Runs a step under load. No request may fail, and none may be admitted without a review. */
export async function unbroken(
  lab: InstallLab,
  test: TestContext,
  what: () => Promise<void>,
  options: { readonly perSecond?: number } = {},
): Promise<void> {
  await using load = await InstallLoad.start(lab, 'guarded', options);
  await what();
  await sleep(LOAD_AFTER_MS);
  const report = await load.end();
  test.diagnostic(JSON.stringify(report));
  assert.equal(report.failed, 0, report.reasons.join('\n'));
  assert.equal(report.unreviewed, 0);
  assert.ok(report.reviewed.direct > 0 && report.reviewed.throughApiServer > 0);
}

/** Names of the Pods of a Deployment of the product. */
export async function podNames(lab: InstallLab, name: string): Promise<readonly string[]> {
  const { items } = await lab.get<{ items: KubernetesObject[] }>(`/api/v1/namespaces/${NAMESPACE}/pods`);
  return items.map(({ metadata }) => metadata.name ?? '').filter((pod) => pod.startsWith(`${name}-`));
}

/** The Lease of the leader election. */
interface LeaderLease {
  readonly holderIdentity?: string;
  /** The time by the clock of the leader. */
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export async function leaseOfLeader(lab: InstallLab): Promise<LeaderLease> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${CONTROLLER}`;
  return (await lab.get<{ readonly spec: LeaderLease }>(path)).spec;
}

/** The identity of the leader; empty when there is none. */
export async function leaderIdentity(lab: InstallLab): Promise<string> {
  return (await leaseOfLeader(lab)).holderIdentity ?? '';
}

/** Whether the log says that this identity leads. A former leader also logs the identity of the new one, in other lines. */
function hasBecomeLeader(log: string, identity: string): boolean {
  return log.split('\n').some((line) => line.includes(identity) && line.includes('became the leader'));
}

/** The Pod of the leader. */
export async function leadingPod(lab: InstallLab): Promise<RunningPod> {
  const identity = await leaderIdentity(lab);
  const pod = lab.node.pods(NAMESPACE).find(({ log }) => identity !== '' && hasBecomeLeader(log, identity));
  assert.ok(pod, `no Pod has the identity ${identity}`);
  return pod;
}

export function scale(lab: InstallLab, name: string, replicas: number): Promise<string> {
  return lab.kubectl(['scale', `deployment/${name}`, `--replicas=${replicas}`, '-n', NAMESPACE]);
}

/** A Secret of the product. */
export function secret(
  lab: InstallLab,
  name: string,
): Promise<KubernetesObject & { readonly data: Readonly<Record<string, string>> }> {
  return lab.get(`/api/v1/namespaces/${NAMESPACE}/secrets/${name}`);
}
