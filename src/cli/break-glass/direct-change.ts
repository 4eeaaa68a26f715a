// Changes webhook configurations in place of a controller that does not run.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Cluster, listAll } from '../../cluster/index.ts';
import {
  armedConfiguration,
  disarmedConfiguration,
  matchOf,
  OWN_KINDS_CONFIGURATION,
  REASONS,
  reducedConfiguration,
  wantsOwnWebhook,
  type WebhookConfiguration,
} from '../../lifecycle/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  findCondition,
  POLICY_ENFORCED,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  type PolicyMatch,
  type PolicyRevision,
  servesInsteadOf,
  snapshotOf,
} from '../../resources/index.ts';
import { configurationName, WEBHOOK_CONFIGURATIONS } from '../../installation/index.ts';
import { policiesOfServer } from './policies-of-server.ts';

type Change = (
  configuration: WebhookConfiguration,
) => WebhookConfiguration | undefined | Promise<WebhookConfiguration | undefined>;

/** Tries of a change that another writer overtakes. */
const MAX_TRIES = 5;

/** Disarms all webhooks of a PolicyServer, or arms them again. @returns the names of the configurations that changed */
export async function changeServer(
  cluster: Cluster,
  policyServer: string,
  isArmed: boolean,
): Promise<readonly string[]> {
  return await changeConfigurations(cluster, policyServer, isArmed ? armedConfiguration : disarmedConfiguration);
}

/** Takes the requests of one policy out of the webhooks, or puts them back. @returns the names of the configurations that changed */
export async function changePolicy(
  cluster: Cluster,
  policy: AdmissionPolicyObject,
  isArmed: boolean,
  productNamespace: string,
): Promise<readonly string[]> {
  const server = policy.spec.policyServer ?? 'default';
  return await changeConfigurations(cluster, server, async (configuration) => {
    // Read anew for each try: another command may disarm or arm other policies of the webhook meanwhile.
    const match = await matchesOf(cluster, productNamespace);
    const armed = (await policiesOfServer(cluster, server))
      .filter(isEnforced)
      .filter(({ metadata }) =>
        metadata.uid === policy.metadata.uid ? isArmed : metadata.annotations?.[ANNOTATIONS.disarmed] === undefined,
      );
    return reducedConfiguration(configuration, match(policy), armed.map(match));
  });
}

/** Calls `work`, and again with the webhook for our own kinds disarmed if that refuses it because no controller answers. */
export async function despiteOwnKinds<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUnanswered(error)) {
      throw error;
    }
  }
  await changeOwnKinds(cluster, disarmedConfiguration);
  try {
    return await untilCalledNoMore(work);
  } finally {
    await changeOwnKinds(cluster, armedConfiguration);
  }
}

/** API servers use a changed configuration within a second or two. Milliseconds. */
const CONFIGURATION_DELAYS_MS = [200, 400, 800, 1_600, 3_200, 6_400];

async function untilCalledNoMore<T>(work: () => Promise<T>): Promise<T> {
  for (const delay of CONFIGURATION_DELAYS_MS) {
    await sleep(delay);
    try {
      return await work();
    } catch (error) {
      if (!isUnanswered(error)) {
        throw error;
      }
    }
  }
  return await work();
}

/** Whether an API server could not call the webhook for our own kinds. */
function isUnanswered(error: unknown): boolean {
  return error instanceof ApiError && /failed calling webhook "[^"]*own-kinds\.portcullis\.dev"/.test(error.message);
}

async function changeOwnKinds(cluster: Cluster, change: Change): Promise<void> {
  for (const type of WEBHOOK_CONFIGURATIONS) {
    for (const { metadata } of (await listAll(cluster, type, {})).items) {
      if (metadata.name === OWN_KINDS_CONFIGURATION) {
        await changeOne(cluster, type, metadata.name, change);
      }
    }
  }
}

async function changeConfigurations(
  cluster: Cluster,
  policyServer: string,
  change: Change,
): Promise<readonly string[]> {
  const labelSelector = `${POLICY_SERVER_LABEL}=${policyServer}`;
  const changed: string[] = [];
  for (const type of WEBHOOK_CONFIGURATIONS) {
    for (const { metadata } of (await listAll(cluster, type, { labelSelector })).items) {
      const written = await changeOne(cluster, type, metadata.name ?? '', change);
      changed.push(...(written === undefined ? [] : [configurationName(written)]));
    }
  }
  return changed;
}

/** @returns the configuration as it was written; undefined if there was nothing to change */
async function changeOne(
  cluster: Cluster,
  type: (typeof WEBHOOK_CONFIGURATIONS)[number],
  name: string,
  change: Change,
): Promise<WebhookConfiguration | undefined> {
  for (let tries = 1; ; tries += 1) {
    const wanted = await change(await cluster.get(type, { name }));
    if (wanted === undefined) {
      return undefined;
    }
    try {
      return await cluster.update(type, wanted);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 409) || tries === MAX_TRIES) {
        throw error;
      }
    }
  }
}

/** The requests of policies: by the revision that serves; without one, by the spec. */
async function matchesOf(cluster: Cluster, namespace: string): Promise<(policy: AdmissionPolicyObject) => PolicyMatch> {
  const { items } = await listAll(cluster, POLICY_REVISIONS, { namespace });
  const serving = new Map<string, PolicyRevision>();
  for (const revision of items) {
    const uid = revision.spec.policy.uid;
    const known = serving.get(uid);
    const isLater = known === undefined || servesInsteadOf(turnOf(revision), turnOf(known));
    if (revision.status?.state === 'Serving' && isLater) {
      serving.set(uid, revision);
    }
  }
  return (policy) => {
    const revision = serving.get(policy.metadata.uid ?? '');
    return revision === undefined
      ? matchOf(policy, policy.spec, wantsOwnWebhook(policy.metadata.annotations), namespace)
      : matchOf(policy, snapshotOf(revision), revision.spec.ownWebhook ?? false, namespace);
  };
}

function turnOf({ spec, status }: PolicyRevision): { readonly order: number; readonly number: number } {
  return { order: status?.order ?? 0, number: spec.revision };
}

/** Whether webhooks were for the policy when its status was written: others must not widen them. */
function isEnforced({ status }: AdmissionPolicyObject): boolean {
  const enforced = findCondition(status?.conditions, POLICY_ENFORCED);
  return enforced !== undefined && (enforced.status !== 'False' || enforced.reason === REASONS.disarmed);
}
