// What cases of installations share: the values that they install with, the guard, and doing something under load.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../cluster/cluster.ts';
import type { RunningPod } from '../cluster/node/running-pod.ts';
import { CONTROLLER, type InstallLab, NAMESPACE } from './install-lab.ts';
import { GUARD, GUARDED, InstallLoad } from './install-load.ts';

/** A rotation within a test; what brings certificates to processes is done long before. */
export const VALUES = {
  certificates: { caOverlap: '8s' },
  // No more than the example policies allow.
  policyServer: { limits: { cpu: '2', memory: '512Mi' } },
};

/** The config maps of a namespace that the guard refuses. */
export const CONFIG_MAPS = '/api/v1/namespaces/guarded/configmaps';
export const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'asked-' } };

/** Load that goes on for a while after what happens, because connections and certificates last. Milliseconds. */
const AFTERWARDS_MS = 500;

export const base64 = (data: string): string => Buffer.from(data).toString('base64');
/** A value of a Secret. */
export const text = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString();

/** Waits until the guard holds, which refuses every config map of a namespace. */
export async function guard(lab: InstallLab): Promise<void> {
  await lab.cluster.createNamespace('guarded', GUARDED);
  await lab.apply(GUARD);
  await lab.active('clusteradmissionpolicies', GUARD.metadata.name);
  await isGuarded(lab);
}

/** Waits until the guard holds again. */
export async function isGuarded(lab: InstallLab): Promise<void> {
  await lab.eventually('the guard', async () => {
    assert.match(await lab.answer(CONFIG_MAPS, configMap), /refused by the guard/);
  });
}

/** Does something under load: nothing may fail, nothing be let through that should not have been. */
export async function unbroken(
  lab: InstallLab,
  test: TestContext,
  what: () => Promise<void>,
  options: { readonly perSecond?: number } = {},
): Promise<void> {
  await using load = await InstallLoad.start(lab, 'guarded', options);
  await what();
  await sleep(AFTERWARDS_MS);
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

/** What controllers elect their leader by. */
interface LeaderLease {
  readonly holderIdentity?: string;
  /** By the clock of the one that leads. */
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export async function leaseOfLeader(lab: InstallLab): Promise<LeaderLease> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${CONTROLLER}`;
  return (await lab.get<{ readonly spec: LeaderLease }>(path)).spec;
}

/** The identity of the controller that leads; empty: none does. */
export async function leaderIdentity(lab: InstallLab): Promise<string> {
  return (await leaseOfLeader(lab)).holderIdentity ?? '';
}

/** One that led before names the new one in its log, too, in other lines. */
function hasBecomeLeader(log: string, identity: string): boolean {
  return log.split('\n').some((line) => line.includes(identity) && line.includes('became the leader'));
}

/** The Pod of the controller that leads. */
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
