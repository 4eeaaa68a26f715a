// Whether API servers ask a policy of a file about a request, and why not.
import { readReview, type Review, ReviewError } from '../../engine/index.ts';
import { DEFAULT_EXEMPT_NAMESPACES, groupResourceOf } from '../../resources/index.ts';
import type { FilePolicy, PolicyMatchResult, PolicyMismatch } from './file-policy.ts';
import type { PolicyRequest } from './policy-runner.ts';

/** A match, and its explanation for users. */
export interface RequestMatch {
  readonly result: PolicyMatchResult;
  /** Why the policy does not match: `no rule is for CREATE of pods`. Of an error: its text. */
  readonly reason?: string;
  /** What is taken to match, because only a cluster can check it. */
  readonly notes: readonly string[];
}

const MATCHES: RequestMatch = { result: { isMatch: true, unchecked: [] }, notes: [] };

/** Raw requests, malformed ones, and requests for entries of a policies file match: nothing else decides about them. */
export function matchRequest({ match, name, kind }: FilePolicy, { body, route }: PolicyRequest): RequestMatch {
  const review = match === undefined || route === 'validate_raw' ? undefined : reviewOf(body);
  if (match === undefined || review === undefined) {
    return MATCHES;
  }
  const result = match(review);
  if ('error' in result) {
    return { result, reason: result.error, notes: [] };
  }
  if (!result.isMatch) {
    return { result, reason: exclusionText(result, review, kind), notes: [] };
  }
  return { result, notes: result.unchecked.map((one) => `${name}: ${uncheckedText(one, review)}`) };
}

/** Undefined for a request that no policy server would read: evaluating it says why. */
function reviewOf(body: Uint8Array): Review | undefined {
  try {
    return readReview('validate', body);
  } catch (error) {
    if (error instanceof ReviewError) {
      return undefined;
    }
    throw error;
  }
}

function exclusionText(
  { excludedBy: exclusion, detail }: PolicyMismatch,
  review: Review,
  kind: string | undefined,
): string {
  const isOfCluster = kind?.startsWith('Cluster') === true;
  const what = requestText(review);
  const namespace = review.target?.namespace ?? '';
  switch (exclusion) {
    case 'rules':
      return `no rule is for ${what}${detail === undefined ? '' : ` (${detail})`}`;
    case 'version':
      return `no rule is for ${what} in version ${review.target?.resource.version ?? ''}; API servers convert such requests to a version that the rules name`;
    case 'namespace':
      return namespace === ''
        ? `it is for a namespace, not for ${what}`
        : `it is for another namespace than ${namespace}`;
    case 'namespaceSelector':
      if (isOfCluster && DEFAULT_EXEMPT_NAMESPACES.includes(namespace)) {
        return `the namespace ${namespace} is exempt from policies of the cluster`;
      }
      return namespace === ''
        ? 'its namespaceSelector does not select the namespace'
        : `its namespaceSelector does not select the namespace ${namespace}`;
    case 'objectSelector':
      return 'its objectSelector selects neither the object nor the old one';
    case 'matchConditions':
      return detail === undefined
        ? 'its matchConditions fail, which failurePolicy Ignore ignores'
        : `its matchCondition ${JSON.stringify(detail)} is false`;
    case 'exemption':
      return `${what} is exempt from policies of this kind`;
    case 'binding':
      return detail ?? `no binding and matchConstraints are for ${what}`;
    case 'settings':
      return `its settings: ${detail ?? ''}`;
    default:
      return exclusion satisfies never;
  }
}

/** `CREATE of deployments.apps` */
function requestText({ target }: Review): string {
  if (target === undefined) {
    return 'a raw request';
  }
  const { operation, resource, subresource } = target;
  const name = groupResourceOf(resource);
  return `${operation} of ${name}${subresource === '' ? '' : `/${subresource}`}`;
}

function uncheckedText(unchecked: 'namespaceSelector' | 'authorizer', { target }: Review): string {
  return unchecked === 'authorizer'
    ? 'its matchConditions with the authorizer are taken to be true'
    : `its namespaceSelector is taken to select the namespace ${target?.namespace ?? ''}, whose manifest is not given`;
}
