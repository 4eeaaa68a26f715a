// The rights that ConfigurationPolicies need, and that the governance account does not have.
import { type KubernetesCluster, reviewAccess } from '../../../cluster/index.ts';
import { GOVERNANCE_ACCOUNT } from '../../../governance/index.ts';
import {
  type ConfigurationPolicy,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  type KubernetesObject,
  own,
  textOf,
  valueAt,
} from '../../../resources/index.ts';
import { type Right, rightText } from '../rights.ts';

/** Access reviews of one run: more kinds than policies of a cluster are about, with seven verbs each. */
const MAX_REVIEWS = 1_000;
/** Reviews at once. */
const CONCURRENT_REVIEWS = 16;
/** What every policy needs: kinds are watched in all namespaces. */
const READ = ['list', 'watch'];
/** What a policy that enforces needs besides. It reads what it has created, to know that it was itself. */
const WRITES: Readonly<Record<string, readonly string[]>> = {
  musthave: ['get', 'create', 'update'],
  mustonlyhave: ['get', 'create', 'update'],
  mustnothave: ['delete'],
};

/** A right that a policy needs. */
export interface PolicyRight {
  /** `namespace/name` of the ConfigurationPolicy. */
  readonly policy: string;
  readonly right: Right;
}

/** A right to a kind that may not be served. */
interface NeededRight {
  readonly apiVersion: string;
  readonly kind: string;
  readonly verb: string;
  readonly namespace?: string;
}

/** The rights that a ConfigurationPolicy needs to objects whose kinds it names without templates. */
export function neededRights({ spec }: ConfigurationPolicy): readonly NeededRight[] {
  const isEnforced = spec.remediationAction?.toLowerCase() === 'enforce';
  return (spec['object-templates'] ?? []).flatMap(({ complianceType, objectDefinition, recreateOption }) => {
    const { apiVersion, kind, namespace } = definitionOf(objectDefinition);
    if (apiVersion === '' || kind === '' || isTemplate(apiVersion) || isTemplate(kind)) {
      return [];
    }
    const isDeleted = [recreateOption, spec.pruneObjectBehavior].some((one) => one !== undefined && one !== 'None');
    const writes = new Set([...(WRITES[complianceType.toLowerCase()] ?? []), ...(isDeleted ? ['delete'] : [])]);
    return [
      ...READ.map((verb) => ({ apiVersion, kind, verb })),
      ...(isEnforced ? [...writes] : []).map((verb) => ({
        apiVersion,
        kind,
        verb,
        ...(namespace === '' || isTemplate(namespace) ? {} : { namespace }),
      })),
    ];
  });
}

function definitionOf(value: unknown): Readonly<Record<'apiVersion' | 'kind' | 'namespace', string>> {
  const definition = isJsonObject(value) ? value : {};
  return {
    apiVersion: textOf(own(definition, 'apiVersion')),
    kind: textOf(own(definition, 'kind')),
    namespace: textOf(valueAt(definition, 'metadata', 'namespace')),
  };
}

function isTemplate(text: string): boolean {
  return text.includes('{{');
}

/**
 * The rights that the governance account lacks, by access reviews.
 * @throws ApiError when reviews are forbidden, ClusterError
 */
export async function deniedRights(
  cluster: KubernetesCluster,
  productNamespace: string,
  policies: readonly ConfigurationPolicy[],
): Promise<readonly PolicyRight[]> {
  const needed = (await Promise.all(policies.map(async (policy) => await servedRights(cluster, policy)))).flat();
  const rights = [...new Map(needed.map(({ right }) => [rightText(right), right])).values()].slice(0, MAX_REVIEWS);
  const denied = new Set<string>();
  for (let first = 0; first < rights.length; first += CONCURRENT_REVIEWS) {
    const some = rights.slice(first, first + CONCURRENT_REVIEWS);
    const allowed = await Promise.all(some.map(async (right) => await isAllowed(cluster, productNamespace, right)));
    for (const right of some.filter((_, index) => allowed[index] !== true)) {
      denied.add(rightText(right));
    }
  }
  return needed.filter(({ right }) => denied.has(rightText(right)));
}

/** Rights to kinds that the cluster serves. */
async function servedRights(cluster: KubernetesCluster, policy: ConfigurationPolicy): Promise<readonly PolicyRight[]> {
  const rights = await Promise.all(
    neededRights(policy).map(async ({ apiVersion, kind, verb, namespace }): Promise<readonly PolicyRight[]> => {
      const type = await cluster.discovery.find(apiVersion, kind);
      if (type === undefined) {
        return [];
      }
      const { group } = groupVersionOf(apiVersion);
      const where = type.namespaced && namespace !== undefined ? { namespace } : {};
      return [{ policy: nameOf(policy), right: { verb, group, resource: type.resource, ...where } }];
    }),
  );
  return rights.flat();
}

async function isAllowed(cluster: KubernetesCluster, productNamespace: string, right: Right): Promise<boolean> {
  const spec: JsonObject = {
    user: `system:serviceaccount:${productNamespace}:${GOVERNANCE_ACCOUNT}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${productNamespace}`, 'system:authenticated'],
    resourceAttributes: { ...right },
  };
  return (await reviewAccess(cluster, spec))['allowed'] === true;
}

/** What an API server says of a right that a user lacks. */
const FORBIDDEN =
  /User "([^"]{1,300})" cannot ([a-z]{1,30}) resource "([^"]{1,300})" in API group "([^"]{0,300})"(?: in the namespace "([^"]{1,100})")?/g;
/** Characters of a status that are searched: statuses are bounded by the largest object. */
const MAX_STATUS = 2_000_000;

/** The rights that the status of a policy says are missing now: also those that templates and dependencies need. */
export function reportedRights(productNamespace: string, object: KubernetesObject): readonly PolicyRight[] {
  const user = `system:serviceaccount:${productNamespace}:${GOVERNANCE_ACCOUNT}`;
  const messages = textsIn(object['status']).join('\n').slice(0, MAX_STATUS);
  return [...messages.matchAll(FORBIDDEN)]
    .filter(([, name]) => name === user)
    .map(([, , verb = '', resource = '', group = '', namespace]) => ({
      policy: nameOf(object),
      right: { verb, group, resource, ...(namespace === undefined ? {} : { namespace }) },
    }));
}

/**
 * All current texts in a status of a cluster, whose nesting the API server limits. The first message of a history is the
 * current one.
 */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    return [value];
  }
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, part]: [string, unknown]) =>
        textsIn(name === 'history' && Array.isArray(part) ? part.slice(0, 1) : part),
      )
    : [];
}

function nameOf({ metadata }: KubernetesObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}
