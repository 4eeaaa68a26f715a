import type { KubernetesObject } from '../../../resources/index.ts';
import {
  localSubjectAccessReview,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
} from '../authorization/access-reviews.ts';
import type { RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import type { Authorizer, ClusterState, UserInfo } from '../request/request.ts';
import type { Authenticator } from './authenticator.ts';
import { selfSubjectReview, tokenRequest, tokenReview } from './token-reviews.ts';

/** A create request whose object is completed and returned instead of stored, such as a SubjectAccessReview. */
export interface ReviewRequest {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  /** The parent's name, for subresources. */
  readonly name?: string | undefined;
  /** The user of the request. */
  readonly user: UserInfo;
  readonly object: KubernetesObject;
}

export interface ReviewsOptions {
  readonly state: ClusterState;
  /** The authorizer of access reviews. Default: `rbac`. */
  readonly authorizer?: Authorizer;
  /** Lists rules for SelfSubjectRulesReviews. */
  readonly rbac: RbacAuthorizer;
  readonly authenticator: Authenticator;
}

type ReviewHandler = (request: ReviewRequest) => KubernetesObject;

/** Completes access reviews, token reviews and token requests. */
export class Reviews {
  /** By `resource.group`; for subresources `resource.group/subresource`. */
  readonly #handlers: ReadonlyMap<string, ReviewHandler>;

  constructor({ state, rbac, authorizer = rbac, authenticator }: ReviewsOptions) {
    this.#handlers = new Map<string, ReviewHandler>([
      [
        'selfsubjectaccessreviews.authorization.k8s.io',
        ({ object, user }) => selfSubjectAccessReview(object, user, authorizer),
      ],
      ['subjectaccessreviews.authorization.k8s.io', ({ object }) => subjectAccessReview(object, authorizer)],
      [
        'localsubjectaccessreviews.authorization.k8s.io',
        ({ object, namespace = '' }) => localSubjectAccessReview(object, namespace, authorizer),
      ],
      [
        'selfsubjectrulesreviews.authorization.k8s.io',
        ({ object, user }) => selfSubjectRulesReview(object, user, rbac),
      ],
      [
        'selfsubjectreviews.authentication.k8s.io',
        ({ object, user }) => selfSubjectReview(object, user, authenticator.now()),
      ],
      ['tokenreviews.authentication.k8s.io', ({ object }) => tokenReview(object, authenticator)],
      [
        'serviceaccounts./token',
        ({ object, namespace = '', name = '' }) => tokenRequest({ object, namespace, name }, state, authenticator),
      ],
    ]);
  }

  /** Whether create requests for a resource are handled here. */
  handles(type: { readonly group: string; readonly resource: string }, subresource?: string): boolean {
    return this.#handlers.has(keyOf(type, subresource));
  }

  /**
   * Returns the object with its `status`. The caller must have authorized the request.
   * @throws ApiError
   */
  handle(request: ReviewRequest): KubernetesObject {
    const handle = this.#handlers.get(keyOf(request, request.subresource));
    if (handle === undefined) {
      throw new TypeError(`${request.resource} are not reviews: call handles() first`);
    }
    return handle(request);
  }
}

function keyOf({ group, resource }: { readonly group: string; readonly resource: string }, subresource = ''): string {
  return `${resource}.${group}${subresource === '' ? '' : `/${subresource}`}`;
}
