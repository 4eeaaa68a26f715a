import type { KubernetesObject } from '../../../resources/index.ts';
import {
  localSubjectAccessReview,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
} from '../authorization/access-reviews.ts';
import type { RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import type { Authorizer, ClusterState, UserInfo } from '../request.ts';
import type { Authenticator } from './authenticator.ts';
import { selfSubjectReview, tokenRequest, tokenReview } from './token-reviews.ts';

/** A question that is asked by creating an object, which is answered and not stored. */
export interface Question {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  /** Of a subresource: whose it is. */
  readonly name?: string | undefined;
  /** Who asks. */
  readonly user: UserInfo;
  readonly object: KubernetesObject;
}

export interface ReviewsOptions {
  readonly state: ClusterState;
  /** Who decides what is allowed. Default: `rbac`. */
  readonly authorizer?: Authorizer;
  /** Whose rules a SelfSubjectRulesReview lists. */
  readonly rbac: RbacAuthorizer;
  readonly authenticator: Authenticator;
}

type Answer = (question: Question) => KubernetesObject;

/** Answers reviews of access and identity, and requests for tokens. */
export class Reviews {
  /** By `resource.group`, with `/subresource`. */
  readonly #answers: ReadonlyMap<string, Answer>;

  constructor({ state, rbac, authorizer = rbac, authenticator }: ReviewsOptions) {
    this.#answers = new Map<string, Answer>([
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

  /** Whether objects of a resource are questions. */
  answers(type: { readonly group: string; readonly resource: string }, subresource?: string): boolean {
    return this.#answers.has(keyOf(type, subresource));
  }

  /**
   * The object with its `status`. Whether the user may ask at all is checked elsewhere.
   * @throws ApiError
   */
  answer(question: Question): KubernetesObject {
    const answer = this.#answers.get(keyOf(question, question.subresource));
    if (answer === undefined) {
      throw new TypeError(`${question.resource} are not reviews: ask answers() first`);
    }
    return answer(question);
  }
}

function keyOf({ group, resource }: { readonly group: string; readonly resource: string }, subresource = ''): string {
  return `${resource}.${group}${subresource === '' ? '' : `/${subresource}`}`;
}
