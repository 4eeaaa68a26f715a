// The rights that governance policies need, and that the governance account does not have.
import { ApiError, type Cluster, reviewAccess } from '../../cluster/index.ts';
import { neededRights, rootOf } from '../../governance/index.ts';
import { GOVERNANCE_ACCOUNT } from '../../governance/access-rules/index.ts';
import {
  type ConfigurationPolicy,
  GOVERNANCE_LABELS,
  type JsonObject,
  type KubernetesObject,
} from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import { type Right, rightText } from './rights.ts';
import { resolveRights } from './resolve-rights.ts';

/** Access reviews of one run: more kinds than policies of a cluster are about, with seven verbs each. */
const MAX_REVIEWS = 1_000;
/** Reviews at once. */
const CONCURRENT_REVIEWS = 16;

/** A right that a policy needs. */
export interface PolicyRight {
  /** `namespace/name` of the Policy as its user wrote it, or of a template that belongs to none. */
  readonly policy: string;
  readonly right: Right;
  /** Whether the name of the resource is a guess, because the cluster does not serve the kind. */
  readonly isGuessed?: boolean;
}

/** The account with whose rights governance policies act. */
export function accountOf(productNamespace: string): string {
  return `system:serviceaccount:${productNamespace}:${GOVERNANCE_ACCOUNT}`;
}

/**
 * The objects whose needs are reviewed: the copies of Policies, whose templates include those that wait, and templates that
 * belong to no Policy.
 */
export function reviewedObjects(
  policies: readonly KubernetesObject[],
  templates: readonly ConfigurationPolicy[],
): readonly KubernetesObject[] {
  return [...policies.filter(isCopy), ...templates.filter((template) => ownerOf(template) === undefined)];
}

/**
 * The rights that the governance account lacks, by access reviews.
 * @throws ApiError when reviews are forbidden, ClusterError
 */
export async function deniedRights(
  cluster: Pick<Cluster, 'create' | 'discovery'>,
  account: string,
  objects: readonly KubernetesObject[],
): Promise<readonly PolicyRight[]> {
  const needed = (await Promise.all(objects.map(async (object) => await rightsOf(cluster, object)))).flat();
  const rights = [...new Map(needed.map(({ right }) => [rightText(right), right])).values()].slice(0, MAX_REVIEWS);
  const denied = new Set<string>();
  for (let first = 0; first < rights.length; first += CONCURRENT_REVIEWS) {
    const some = rights.slice(first, first + CONCURRENT_REVIEWS);
    const allowed = await Promise.all(some.map(async (right) => await isAllowed(cluster, account, right)));
    for (const right of some.filter((_, index) => allowed[index] !== true)) {
      denied.add(rightText(right));
    }
  }
  return needed.filter(({ right }) => denied.has(rightText(right)));
}

async function rightsOf(
  cluster: Pick<Cluster, 'discovery'>,
  object: KubernetesObject,
): Promise<readonly PolicyRight[]> {
  const { rights, guessed } = await resolveRights(neededRights(asJson(object)).rights, cluster.discovery);
  const guesses = new Set(guessed.map(({ group, resource }) => `${group}/${resource}`));
  return rights.map((right) => ({
    policy: policyOf(object),
    right,
    ...(guesses.has(`${right.group}/${right.resource}`) ? { isGuessed: true } : {}),
  }));
}

async function isAllowed(cluster: Pick<Cluster, 'create'>, account: string, right: Right): Promise<boolean> {
  const [, , namespace = ''] = account.split(':');
  const spec: JsonObject = {
    user: account,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    resourceAttributes: { ...right },
  };
  return (await reviewAccess(cluster, spec))['allowed'] === true;
}

/** What an API server says of a right that a user lacks. */
const FORBIDDEN =
  /User "([^"]{1,300})" cannot ([a-z]{1,30}) resource "([^"]{1,300})" in API group "([^"]{0,300})"(?: in the namespace "([^"]{1,100})")?/g;
const ACCOUNT = new RegExp(`^system:serviceaccount:[a-z0-9-]+:${GOVERNANCE_ACCOUNT}$`);
/** Characters of a status that are searched: statuses are bounded by the largest object. */
const MAX_STATUS = 2_000_000;

/** The rights of the account that the status of a policy says are missing now: also those that nobody can foresee. */
export function reportedRights(account: string, object: KubernetesObject): readonly PolicyRight[] {
  const messages = textsIn(object['status']).join('\n').slice(0, MAX_STATUS);
  return [...messages.matchAll(FORBIDDEN)]
    .filter(([, name]) => name === account)
    .map(([, , verb = '', resource = '', group = '', namespace]) => ({
      policy: policyOf(object),
      right: { verb, group, resource, ...(namespace === undefined ? {} : { namespace }) },
    }));
}

/** The governance account that the status of a policy says lacks rights. */
function forbiddenAccount(object: KubernetesObject): string | undefined {
  const messages = textsIn(object['status']).join('\n').slice(0, MAX_STATUS);
  return [...messages.matchAll(FORBIDDEN)].map(([, name = '']) => name).find((name) => ACCOUNT.test(name));
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

/** What the account lacks for a policy whose status says that it lacks a right: as far as the user may ask, all of it. */
export async function lackingRights(
  cluster: Pick<Cluster, 'create' | 'discovery'>,
  copy: KubernetesObject,
): Promise<readonly PolicyRight[]> {
  const account = forbiddenAccount(copy);
  if (account === undefined) {
    return [];
  }
  const reported = reportedRights(account, copy);
  try {
    return [...reported, ...(await deniedRights(cluster, account, [copy]))];
  } catch (error) {
    if (error instanceof ApiError) {
      return reported;
    }
    throw error;
  }
}

/** The texts of rights, each once, with a note for a guess. */
export function rightTexts(rights: readonly PolicyRight[]): readonly string[] {
  const texts = new Map<string, string>();
  for (const { right, isGuessed = false } of rights) {
    const text = rightText(right);
    texts.set(text, isGuessed ? `${text} (guessed: the kind is not served yet)` : text);
  }
  return [...texts.values()];
}

function isCopy({ metadata }: KubernetesObject): boolean {
  return metadata.labels?.[GOVERNANCE_LABELS.rootPolicy] !== undefined;
}

/** The copy that a template belongs to. */
function ownerOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.ownerReferences?.find(({ kind }) => kind === 'Policy')?.name;
}

function policyOf(object: KubernetesObject): string {
  const { namespace = '', name = '' } = object.metadata;
  const copy = isCopy(object) ? name : ownerOf(object);
  const root = copy === undefined ? undefined : rootOf(copy);
  return root === undefined ? `${namespace}/${name}` : `${root.namespace ?? ''}/${root.name}`;
}
