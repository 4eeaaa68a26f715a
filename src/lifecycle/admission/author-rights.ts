// Rights of the authors of namespaced policies. Such a policy sees, rejects or changes what other users write in its namespace, and
// reads parameters there, so its author must be allowed to read or write the same: otherwise the policy would extend the
// author's rights.
import type { Logger } from 'pino';
import { ApiError, type Cluster, ClusterError, listAll, reviewAccess } from '../../cluster/index.ts';
import {
  forbidden,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  own,
  POLICY_REVISIONS,
  POLICY_UID_LABEL,
  textOf,
  textsOf,
} from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { Findings } from './findings.ts';
import { ALL, type MatchedResource, MAX_REVIEWED_RESOURCES, type AuthorRightsNeeded } from './needed-rights.ts';
import { objectAt, type OwnKindsReview } from './own-kinds-review.ts';
import type { ReadObject } from './parameter-objects.ts';
import type { ReviewBudget } from './review-budget.ts';
import type { ReviewCaller } from './review-callers.ts';
import { type RestoredRevision, rightsToRestore } from './restored-revisions.ts';

/** Access reviews of one policy at a time. */
const PARALLEL_REVIEWS = 8;
/** Time for all access reviews of one policy, half of the webhook's timeout. Milliseconds. */
const REVIEWS_MS = 5_000;

/** One right, as a SubjectAccessReview asks for it. */
interface NeededRight extends MatchedResource {
  readonly verbs: readonly string[];
  /** The object. Default: all of the resource. */
  readonly name?: string;
  readonly isClusterScoped?: boolean;
  /** Added to the message. */
  readonly hint?: string;
}

export interface AuthorRightsOptions {
  readonly cluster: Cluster;
  /** The namespace of the product, with the revisions. */
  readonly namespace: string;
  /** What access reviews may cost. */
  readonly budget: ReviewBudget;
  readonly log: Logger;
}

/** Checks the rights of authors with SubjectAccessReviews. */
export class AuthorRights {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #budget: ReviewBudget;
  readonly #log: Logger;

  constructor({ cluster, namespace, budget, log }: AuthorRightsOptions) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#budget = budget;
    this.#log = log;
  }

  /**
   * Why the user of a review may not write the policy; undefined if the user has the rights. Fails closed. Only API servers are
   * told which rights are missing: other clients may name any user.
   *
   * @param declared rights for the spec, if it changes
   * @param restored revisions that the change restores
   * @throws RequestRefusal 429
   */
  async refusal(
    review: OwnKindsReview,
    declared: AuthorRightsNeeded | undefined,
    restored: readonly RestoredRevision[],
    caller: ReviewCaller,
  ): Promise<ApiError | undefined> {
    const error = await this.#refusal(review, declared, restored, caller);
    return error === undefined || caller.isApiServer ? error : withoutDetail(review, error);
  }

  async #refusal(
    review: OwnKindsReview,
    declared: AuthorRightsNeeded | undefined,
    restored: readonly RestoredRevision[],
    caller: ReviewCaller,
  ): Promise<ApiError | undefined> {
    const findings = new Findings();
    const signal = AbortSignal.timeout(REVIEWS_MS);
    try {
      const needed = [
        ...(declared === undefined ? [] : [declared]),
        ...(await this.#rightsToRestore(review, restored, signal)),
      ];
      const excess = needed.find(({ resources }) => resources.length > MAX_REVIEWED_RESOURCES);
      if (excess !== undefined) {
        const detail = `the rights of the author are checked for each resource: expected at most ${MAX_REVIEWED_RESOURCES} resources in all rules, got more. Split the policy`;
        const field = excess.at?.field ?? 'spec.rules';
        findings.reject('author-rights', { ...forbidden(field, detail), reason: 'FieldValueTooMany' });
        return policyRefusal(review, findings);
      }
      const rights = (await Promise.all(needed.map((one) => this.#rightsOf(one, review, signal)))).flat();
      const questions = questionsOf(review, rights);
      const { username } = review;
      this.#budget.takeOfAddress(caller, questions.size);
      if (!this.#budget.takeOfUser(caller, username, questions.size)) {
        return tooMany(review);
      }
      for (const { right, missing } of await this.#missing(rights, questions, signal)) {
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
    return findings.errors.length === 0 ? undefined : policyRefusal(review, findings);
  }

  /** Reads the revisions from the API server: a cache may lack the newest one. */
  async #rightsToRestore(
    { object = {} }: OwnKindsReview,
    restored: readonly RestoredRevision[],
    signal: AbortSignal,
  ): Promise<readonly AuthorRightsNeeded[]> {
    if (restored.length === 0) {
      return [];
    }
    const uid = textOf(own(objectAt(object, 'metadata') ?? {}, 'uid'));
    const labelSelector = `${POLICY_UID_LABEL}=${uid}`;
    const { items } = await listAll(this.#cluster, POLICY_REVISIONS, {
      namespace: this.#namespace,
      labelSelector,
      signal,
    });
    return restored.flatMap((one) => rightsToRestore(one, items, objectAt(object, 'spec') ?? {}));
  }

  async #rightsOf(
    { verbs, resources, parameters, at }: AuthorRightsNeeded,
    review: OwnKindsReview,
    signal: AbortSignal,
  ): Promise<readonly NeededRight[]> {
    const reads = await Promise.all(parameters.map((object) => this.#readRight(object, review, signal)));
    const rights: readonly NeededRight[] = [...resources.map((matched) => ({ ...matched, verbs })), ...reads];
    return at === undefined
      ? rights
      : rights.map(({ hint, ...right }) => ({
          ...right,
          field: at.field,
          hint: hint === undefined ? at.hint : `${at.hint}; ${hint}`,
        }));
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
    rights: readonly NeededRight[],
    questions: Questions,
    signal: AbortSignal,
  ): Promise<readonly { readonly right: NeededRight; readonly missing: readonly string[] }[]> {
    const denied = new Map<NeededRight, Set<string>>();
    await inParallel([...questions.values()], async ({ spec, asking }) => {
      const { allowed } = await reviewAccess(this.#cluster, spec, { signal });
      for (const { right, verb } of allowed === true ? [] : asking) {
        denied.set(right, (denied.get(right) ?? new Set()).add(verb));
      }
    });
    return rights.flatMap((right) => {
      const verbs = denied.get(right);
      return verbs === undefined ? [] : [{ right, missing: right.verbs.filter((verb) => verbs.has(verb)) }];
    });
  }
}

/** Distinct access reviews by their specs, each with the rights that need it. */
type Questions = ReadonlyMap<
  string,
  { readonly spec: JsonObject; readonly asking: { readonly right: NeededRight; readonly verb: string }[] }
>;

function questionsOf(review: OwnKindsReview, rights: readonly NeededRight[]): Questions {
  const questions = new Map<string, { spec: JsonObject; asking: { right: NeededRight; verb: string }[] }>();
  for (const right of rights) {
    for (const verb of right.verbs) {
      const spec = accessReviewSpec(review, right, verb);
      const key = JSON.stringify(spec);
      const question = questions.get(key) ?? { spec, asking: [] };
      questions.set(key, question);
      question.asking.push({ right, verb });
    }
  }
  return questions;
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

function policyRefusal({ group, kind, name, username }: OwnKindsReview, { errors }: Findings): ApiError {
  const texts = errors.map(({ field, message }) => `${field}: ${message}`).join(', ');
  const text = `${kind}.${group} "${name}" is forbidden: user "${username}" lacks rights to what the policy matches or reads. Get these rights from an administrator, or remove the resources from the policy: ${texts}`;
  return new ApiError(403, 'Forbidden', text, { name, group, kind, causes: errors });
}

function unchecked({ group, kind, name, username }: OwnKindsReview, reason: string): ApiError {
  const text = `${kind}.${group} "${name}" was not accepted, because the rights of user "${username}" could not be checked: ${reason}. Try again [author-rights]`;
  return new ApiError(503, 'ServiceUnavailable', text, { name, group, kind });
}

/** Says the same whatever right is missing, or could not be checked. */
function withoutDetail({ group, kind, name, username }: OwnKindsReview, { code, reason }: ApiError): ApiError {
  const text = `${kind}.${group} "${name}" was not accepted: user "${username}" lacks rights to what the policy matches or reads, or they could not be checked. Which ones is told to known API servers only: see --webhook-api-servers of the controller [author-rights]`;
  return new ApiError(code === 429 ? code : 403, code === 429 ? reason : 'Forbidden', text, { name, group, kind });
}

function tooMany({ group, kind, name, username }: OwnKindsReview): ApiError {
  const text = `${kind}.${group} "${name}" was not accepted, because user "${username}" writes more policies than their authors' rights can be checked for. Try again later [author-rights]`;
  return new ApiError(429, 'TooManyRequests', text, { name, group, kind, retryAfterSeconds: 1 });
}
