// Rights of the authors of namespaced policies. Such a policy sees, rejects or changes what other users write in its namespace, and
// reads parameters there, so its author must be allowed to read or write the same: otherwise the policy would extend the
// author's rights.
import type { Logger } from 'pino';
import { ApiError, type Cluster, ClusterError, reviewAccess } from '../../cluster/index.ts';
import {
  forbidden,
  groupVersionOf,
  isJsonObject,
  isPrivileged,
  type JsonObject,
  own,
  splitResource,
  textOf,
  textsOf,
} from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { Findings } from './findings.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';
import { parameterObjects, type ReadObject } from './parameter-objects.ts';

/** Resources that the rules of one policy may match: each takes one or two access reviews. */
export const MAX_REVIEWED_RESOURCES = 64;
/** Access reviews of one policy at a time. */
const PARALLEL_REVIEWS = 8;
/** Time for all access reviews of one policy, half of the webhook's timeout. Milliseconds. */
const REVIEWS_MS = 5_000;

const ALL = '*';

/** A resource that the rules of a policy match. `*` stands for all, so only users with a wildcard in their rights have it. */
interface MatchedResource {
  /** The field of the rule that names it. */
  readonly field: string;
  readonly group: string;
  readonly resource: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
}

/** Rights that the author of a policy needs in its namespace. */
export interface NeededRights {
  readonly verbs: readonly string[];
  /** At most {@link MAX_REVIEWED_RESOURCES}, and one more if there are more. */
  readonly resources: readonly MatchedResource[];
  readonly parameters: readonly ReadObject[];
}

/** One right, as a SubjectAccessReview asks for it. */
interface NeededRight extends MatchedResource {
  readonly verbs: readonly string[];
  /** The object. Default: all of the resource. */
  readonly name?: string;
  readonly isClusterScoped?: boolean;
  /** Added to the message. */
  readonly hint?: string;
}

/** The rights needed for the spec of a namespaced policy or group. */
export function neededRights(spec: JsonObject): NeededRights {
  const isMutating = own(spec, 'policies') === undefined && own(spec, 'mutating') !== false;
  const resources = new Map<string, MatchedResource>();
  for (const matched of matchedResources(spec)) {
    const { group, resource, subresource } = matched;
    const key = JSON.stringify([group, resource, subresource]);
    // Policies never see requests for privileged kinds.
    if (!resources.has(key) && !isPrivileged(matched, subresource)) {
      resources.set(key, matched);
    }
    if (resources.size > MAX_REVIEWED_RESOURCES) {
      break;
    }
  }
  return {
    verbs: isMutating ? ['create', 'update'] : ['get'],
    resources: [...resources.values()],
    parameters: parameterObjects(spec),
  };
}

function* matchedResources(spec: JsonObject): Generator<MatchedResource> {
  const rules = own(spec, 'rules');
  for (const [index, rule] of (Array.isArray(rules) ? rules : []).entries()) {
    const { apiGroups, resources } = isJsonObject(rule) ? rule : {};
    const names = [...new Set(textsOf(resources))];
    for (const group of new Set(textsOf(apiGroups))) {
      for (const name of names) {
        const field = `spec.rules[${index}].resources[${textsOf(resources).indexOf(name)}]`;
        const [resource, subresource] = splitResource(name);
        yield { field, group, resource, subresource };
        if (subresource === ALL) {
          // `pods/*` matches pods as well.
          yield { field, group, resource, subresource: '' };
        }
      }
    }
  }
}

/** Checks the rights of authors with SubjectAccessReviews. */
export class AuthorRights {
  readonly #cluster: Cluster;
  readonly #log: Logger;

  constructor({ cluster, log }: { readonly cluster: Cluster; readonly log: Logger }) {
    this.#cluster = cluster;
    this.#log = log;
  }

  /** Why the user of a review may not write the policy; undefined if the user has the rights. Fails closed. */
  async refusal(review: OwnKindsReview, { verbs, resources, parameters }: NeededRights): Promise<ApiError | undefined> {
    const findings = new Findings();
    if (resources.length > MAX_REVIEWED_RESOURCES) {
      const detail = `the rights of the author are checked for each resource: expected at most ${MAX_REVIEWED_RESOURCES} resources in all rules, got more. Split the policy`;
      findings.reject('author-rights', { ...forbidden('spec.rules', detail), reason: 'FieldValueTooMany' });
      return refused(review, findings);
    }
    const signal = AbortSignal.timeout(REVIEWS_MS);
    try {
      const reads = await Promise.all(parameters.map((object) => this.#readRight(object, review, signal)));
      const rights: readonly NeededRight[] = [...resources.map((matched) => ({ ...matched, verbs })), ...reads];
      for (const { right, missing } of await this.#missing(review, rights, signal)) {
        findings.reject('author-rights', forbidden(right.field, missingText(review, right, missing)));
      }
    } catch (error) {
      const isLate = signal.aborted;
      if (!isLate && !(error instanceof ApiError || error instanceof ClusterError)) {
        throw error;
      }
      this.#log.warn({ user: review.username, error: errorText(error) }, 'rights of an author not checked');
      // Not the text of other errors, which names the address of the API server.
      const answer = error instanceof ApiError ? errorText(error) : 'the API server does not answer the controller';
      return unchecked(review, isLate ? `no answer within ${REVIEWS_MS / 1_000} s` : answer);
    }
    return findings.errors.length === 0 ? undefined : refused(review, findings);
  }

  /** The right to read an object with parameters. Of a kind that is not served, the name of the resource is not known. */
  async #readRight(
    { field, apiVersion, kind, name }: ReadObject,
    { namespace }: OwnKindsReview,
    signal: AbortSignal,
  ): Promise<NeededRight> {
    const { group } = groupVersionOf(apiVersion);
    const right = { field, verbs: ['get'], group, subresource: '', name: name ?? namespace };
    if (name === undefined) {
      return { ...right, resource: 'namespaces' };
    }
    const type = await this.#cluster.discovery.find(apiVersion, kind, { signal });
    return type === undefined
      ? { ...right, resource: ALL, hint: `the cluster does not serve ${apiVersion} ${kind}` }
      : { ...right, resource: type.resource, isClusterScoped: !type.namespaced };
  }

  /** The rights that the user lacks, with the verbs, in the order of `rights`. */
  async #missing(
    review: OwnKindsReview,
    rights: readonly NeededRight[],
    signal: AbortSignal,
  ): Promise<readonly { readonly right: NeededRight; readonly missing: readonly string[] }[]> {
    const needed = rights.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
    const denied = new Map<NeededRight, string[]>();
    await inParallel(needed, async ({ right, verb }) => {
      const { allowed } = await reviewAccess(this.#cluster, accessReviewSpec(review, right, verb), { signal });
      if (allowed !== true) {
        denied.set(right, [...(denied.get(right) ?? []), verb]);
      }
    });
    return rights.flatMap((right) => {
      const verbs = denied.get(right);
      return verbs === undefined ? [] : [{ right, missing: right.verbs.filter((verb) => verbs.includes(verb)) }];
    });
  }
}

/** The spec of a SubjectAccessReview for the user of an admission review. */
function accessReviewSpec(
  { userInfo, namespace }: OwnKindsReview,
  { group, resource, subresource, name, isClusterScoped }: NeededRight,
  verb: string,
): JsonObject {
  const { username, groups, uid, extra } = userInfo;
  return {
    user: textOf(username),
    groups: [...textsOf(groups)],
    ...(uid === undefined ? {} : { uid }),
    ...(isJsonObject(extra) ? { extra } : {}),
    resourceAttributes: {
      ...(isClusterScoped === true ? {} : { namespace }),
      verb,
      group,
      resource,
      ...(subresource === '' ? {} : { subresource }),
      ...(name === undefined ? {} : { name }),
    },
  };
}

/** Runs a task for each element, {@link PARALLEL_REVIEWS} at a time. Rejects with the first error. */
async function inParallel<T>(elements: readonly T[], task: (element: T) => Promise<void>): Promise<void> {
  const rest = elements.values();
  const worker = async (): Promise<void> => {
    for (const element of rest) {
      await task(element);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_REVIEWS }, worker));
}

function missingText({ username, namespace }: OwnKindsReview, right: NeededRight, missing: readonly string[]): string {
  const { name, isClusterScoped, hint } = right;
  const object = `${textOfResource(right)}${name === undefined ? '' : ` "${name}"`}`;
  const place = isClusterScoped === true ? 'in the cluster' : `in the namespace "${namespace}"`;
  return `user "${username}" may not ${missing.join(', ')} ${object} ${place}${hint === undefined ? '' : `: ${hint}`}`;
}

/** `deployments.apps/scale` */
function textOfResource({ group, resource, subresource }: MatchedResource): string {
  return `${resource}${group === '' ? '' : `.${group}`}${subresource === '' ? '' : `/${subresource}`}`;
}

function refused({ group, kind, name, username }: OwnKindsReview, { errors }: Findings): ApiError {
  const texts = errors.map(({ field, message }) => `${field}: ${message}`).join(', ');
  const text = `${kind}.${group} "${name}" is forbidden: user "${username}" lacks rights to what the policy matches or reads. Get these rights from an administrator, or remove the resources from the policy: ${texts}`;
  return new ApiError(403, 'Forbidden', text, { name, group, kind, causes: errors });
}

function unchecked({ group, kind, name, username }: OwnKindsReview, reason: string): ApiError {
  const text = `${kind}.${group} "${name}" was not accepted, because the rights of user "${username}" could not be checked: ${reason}. Try again [author-rights]`;
  return new ApiError(503, 'ServiceUnavailable', text, { name, group, kind });
}
