// Scenario 8: many policies at once, then none: the requests to the API server.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Policy, POLICIES, type RolloutLab } from './rollout-lab.ts';
import type { ApiRequest } from './rollout-lab-proxy.ts';

/** Limit of all writes for a policy until it is enforced. */
const MAX_WRITES_PER_POLICY = 8;
/** Limit of writes of webhook configurations for all policies together. */
const MAX_CONFIGURATION_WRITES = 10;

export interface ScaleFigures {
  readonly writesPerPolicy: number;
  /** Writes of webhook configurations among them, for all policies together. */
  readonly configurationWrites: number;
  readonly seconds: number;
  /** By the written resource. */
  readonly writes: Readonly<Record<string, number>>;
}

function celPolicy(name: string): Policy {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module: 'builtin:cel',
      settings: { validations: [{ expression: `object.metadata.name != '${name}'` }] },
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE'] }],
      namespaceSelector: { matchLabels: { scenario: 'none' } },
    },
  };
}

/** Applies many policies at once, and waits until replicas enforce all. */
export async function applyMany(lab: RolloutLab, count: number, prefix: string): Promise<ScaleFigures> {
  lab.proxy.requests = [];
  const began = performance.now();
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  for (let first = 0; first < count; first += 50) {
    await Promise.all(names.slice(first, first + 50).map((name) => lab.create(celPolicy(name))));
  }
  let active = 0;
  const deadline = performance.now() + SETTLING_MS + count * 100;
  while (active < count) {
    // Rarely: listing all policies is work for the measured API server.
    await sleep(POLL_MS);
    const { items } = await lab.cluster.list(POLICIES);
    const ours = items.filter(({ metadata }) => metadata.name?.startsWith(prefix) === true);
    active = ours.filter(({ status }) => status?.phase === 'Active').length;
    assert.ok(performance.now() < deadline, `${active} of ${count} policies are Active`);
  }
  const seconds = (performance.now() - began) / 1000;
  await quiet(lab);
  const written = lab.proxy.writes('controller');
  const writes: Record<string, number> = {};
  for (const request of written) {
    const sort = sortOf(request);
    writes[sort] = (writes[sort] ?? 0) + 1;
  }
  const configurationWrites = written.filter(({ path }) => path.includes('webhookconfigurations')).length;
  return { writesPerPolicy: written.length / count, configurationWrites, seconds, writes };
}

/** Interval of checks whether all are enforced. Milliseconds. */
const POLL_MS = 1_000;
/** Time limit besides a tenth of a second for each policy. Milliseconds. */
const SETTLING_MS = 30_000;
/** Longer than the interval of replica reports. Milliseconds. */
const QUIET_MS = 2_500;

/** Waits until controllers and replicas have not written for some time. */
export async function quiet(lab: RolloutLab): Promise<void> {
  for (let seen = -1; seen !== lab.proxy.writes('controller', 'replica').length;) {
    seen = lab.proxy.writes('controller', 'replica').length;
    await sleep(QUIET_MS);
  }
}

/** Requests by controllers and replicas while nothing changes. */
export async function idleRequests(lab: RolloutLab, seconds: number): Promise<readonly string[]> {
  lab.proxy.requests = [];
  await sleep(seconds * 1000);
  return lab.proxy.requests
    .filter(({ user }) => user === 'controller' || user === 'replica')
    .map(({ user, method, path }) => `${user} ${method} ${path}`);
}

function sortOf({ method, path, body }: ApiRequest): string {
  const { state, phase } = (body as { status?: { state?: string; phase?: string } } | undefined)?.status ?? {};
  const resource =
    /(policyrevisions|clusteradmissionpolicies|policyservers|policyserverreplicas|events|[a-z]+webhookconfigurations)/.exec(
      path,
    )?.[1];
  return [method, resource ?? path, state ?? phase ?? ''].join(' ').trim();
}

export async function manyPoliciesAtOnce(lab: RolloutLab, count: number): Promise<ScaleFigures> {
  const figures = await applyMany(lab, count, 'many');
  const idle = await idleRequests(lab, 3);
  assert.ok(
    figures.writesPerPolicy <= MAX_WRITES_PER_POLICY,
    `${figures.writesPerPolicy} writes per policy: ${JSON.stringify(figures.writes)}`,
  );
  assert.ok(
    figures.configurationWrites <= MAX_CONFIGURATION_WRITES,
    `webhook configurations were written ${figures.configurationWrites} times: ${JSON.stringify(figures.writes)}`,
  );
  // Leases are renewed, those of auditors and the index of schemas are read, at intervals, for any number of policies.
  const isSchemas = (request: string): boolean => request === 'controller GET /openapi/v3';
  const schemas = idle.filter(isSchemas);
  const beside = idle.filter((request) => !request.includes('/leases') && !isSchemas(request));
  assert.deepEqual(beside, [], `with ${count} policies`);
  assert.ok(schemas.length <= 1, schemas.join(', '));
  assert.ok(idle.length - schemas.length <= 2 * lab.replicas.length + 1, idle.join(', '));
  return figures;
}
