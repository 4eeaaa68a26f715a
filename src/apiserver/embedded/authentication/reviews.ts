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

/** A create request whose object is answered and not stored, such as a SubjectAccessReview. */
export interface Question {
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
  /** The authorizer. Default: `rbac`. */
  readonly authorizer?: Authorizer;
  /** The source of a SelfSubjectRulesReview's rules. */
  readonly rbac: RbacAuthorizer;
  readonly authenticator: Authenticator;
}

type Answer = (question: Question) => KubernetesObject;

/** Answers access reviews, token reviews and token requests. */
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

  /** Whether a resource is answered here. */
  answers(type: { readonly group: string; readonly resource: string }, subresource?: string): boolean {
    return this.#answers.has(keyOf(type, subresource));
  }

  /**
   * The object with its `status`. The caller has authorized the request.
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
