// Evaluates policies by the controllers of governance, in a temporary cluster in memory.
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../../cluster/index.ts';
import { GovernanceControllers } from '../../../governance/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../../governance/settings/index.ts';
import type { Logger } from '../../../log/index.ts';
import {
  customResourceDefinition,
  GOVERNANCE_KINDS,
  type JsonObject,
  type KubernetesObject,
  type Labels,
  MANAGED_BY,
  POLICY_SETS,
  type ResourceType,
} from '../../../resources/index.ts';
import { SharedCaches } from '../../../runtime/index.ts';
import { errorText } from '../../../values/index.ts';
import { CliError } from '../../errors.ts';
import { manyLines, oneLine } from '../../table.ts';
import { splitCluster } from './split-cluster.ts';

/** How long, and how often, nothing may happen before the result is final: longer than all delays of the controllers. */
const QUIET_CHECKS = 25;
const CHECK_INTERVAL_MS = 5;
/** Longest time of a dry run, which may read a slow cluster. Milliseconds. */
const MAX_DURATION_MS = 120_000;

export interface EvaluationOptions {
  readonly policies: readonly KubernetesObject[];
  /** What the policies are about. */
  readonly cluster: Cluster;
  readonly clusterName: string;
  readonly fullDiffs: boolean;
  readonly log: Logger;
}

/** An object with a status, as the controllers left it. */
export type EvaluatedObject = KubernetesObject & { readonly status?: JsonObject };

/** The policies and the objects of their templates, after the evaluation. */
export interface EvaluatedPolicies {
  /** In the order of the options. */
  readonly policies: readonly EvaluatedObject[];
  /** The object of a name in the namespace of the cluster. */
  readonly find: (kind: string, name: string) => EvaluatedObject | undefined;
}

/** @throws CliError when a policy is invalid, or the evaluation takes too long */
export async function evaluatePolicies(options: EvaluationOptions): Promise<EvaluatedPolicies> {
  const { policies, cluster, clusterName, fullDiffs, log } = options;
  await using embedded = await EmbeddedCluster.open();
  await install(embedded.admin, policies, clusterName);
  const own = splitCluster({ own: embedded.admin, rest: cluster, clusterName });
  const caches = new SharedCaches({ cluster: own, log });
  const controllers = new GovernanceControllers({
    cluster: own,
    governed: cluster,
    caches,
    // The user of the command decides which policies are governed.
    settings: { ...DEFAULT_GOVERNANCE_SETTINGS, clusterName, namespaces: undefined, exemptNamespaces: [] },
    events: { event: () => undefined },
    log,
    fullDiffs,
  });
  const stop = new AbortController();
  const running = [caches, controllers].map((runnable) => runnable.start(stop.signal));
  try {
    await Promise.race([settled(embedded, controllers), ...running]);
    return await results(embedded.admin, policies, clusterName);
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
}

/** Creates the kinds of policies, their namespaces, and the policies. */
async function install(admin: Cluster, policies: readonly KubernetesObject[], clusterName: string): Promise<void> {
  const definitions = GOVERNANCE_KINDS.map((kind) => customResourceDefinition(kind));
  const names = new Set(policies.map(({ metadata }) => metadata.namespace ?? ''));
  const namespaces = [...names].filter((name) => name !== clusterName).map((name) => namespaceObject(name));
  for (const object of [...definitions, namespaceObject(clusterName, MANAGED_BY), ...namespaces]) {
    await admin.create(await typeOf(admin, object), object).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') {
        throw error;
      }
    });
  }
  for (const policy of policies) {
    try {
      await admin.create(await typeOf(admin, policy), policy, { fieldValidation: 'Strict' });
    } catch (error) {
      const name = oneLine(`${policy.kind} ${policy.metadata.name ?? ''}`);
      throw new CliError(`${name} cannot be tried: ${manyLines(errorText(error))}`, { cause: error });
    }
  }
}

/** Waits until the controllers have nothing left to do, and every status is that of the present generation. */
async function settled(embedded: EmbeddedCluster, controllers: GovernanceControllers): Promise<void> {
  const deadline = performance.now() + MAX_DURATION_MS;
  await Promise.race([controllers.ready, sleep(MAX_DURATION_MS, undefined, { ref: false })]);
  let quiet = 0;
  let revision = -1;
  while (quiet < QUIET_CHECKS) {
    await sleep(CHECK_INTERVAL_MS);
    const isQuiet = controllers.isIdle && embedded.revision === revision;
    quiet = isQuiet ? quiet + 1 : 0;
    revision = embedded.revision;
    if (quiet === QUIET_CHECKS && !(await isEvaluated(embedded.admin))) {
      // A read has failed, and is tried again.
      quiet = 0;
    }
    if (performance.now() > deadline) {
      throw new CliError(`the policies are not evaluated after ${MAX_DURATION_MS / 1000} s`, {
        hint: '--log shows what they wait for.',
      });
    }
  }
}

/** Whether all policies have a status about their present spec. */
async function isEvaluated(admin: Cluster): Promise<boolean> {
  const lists = await Promise.all(GOVERNANCE_KINDS.map((kind) => admin.list<Observed>(kind as ResourceType<Observed>)));
  return lists
    .flatMap(({ items }) => items)
    .filter(({ kind }) => kind !== POLICY_SETS.kind)
    .every(({ metadata, status }) => status?.observedGeneration === metadata.generation);
}

type Observed = KubernetesObject & { readonly status?: { readonly observedGeneration?: number } };

async function results(
  admin: Cluster,
  policies: readonly KubernetesObject[],
  clusterName: string,
): Promise<EvaluatedPolicies> {
  const lists = await Promise.all(
    GOVERNANCE_KINDS.map((kind) => admin.list<EvaluatedObject>(kind as ResourceType<EvaluatedObject>)),
  );
  const objects = new Map(lists.flatMap(({ items }) => items).map((object) => [idOf(object), object]));
  return {
    policies: policies.flatMap((policy) => objects.get(idOf(policy)) ?? []),
    find: (kind, name) => objects.get(`${kind} ${clusterName}/${name}`),
  };
}

function idOf({ kind, metadata: { namespace = '', name = '' } }: KubernetesObject): string {
  return `${kind} ${namespace}/${name}`;
}

function namespaceObject(name: string, labels: Labels = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

async function typeOf(admin: Cluster, { apiVersion, kind }: KubernetesObject): Promise<ResourceType> {
  const type = await admin.discovery.find(apiVersion, kind);
  if (type === undefined) {
    throw new CliError(`a dry run has no kind ${oneLine(`${kind} in ${apiVersion}`)}`);
  }
  return type;
}
