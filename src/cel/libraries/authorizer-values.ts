import type { CelValue } from '../model/value.ts';
import { EvaluationFailure } from '../model/value.ts';
import { errorText } from '../../values/index.ts';
import { LibraryValue } from '../model/library-value.ts';
import { fail } from './declare.ts';
import { isNamespaceName, isServiceAccountName } from './named-formats.ts';

/** The user of a request. */
export interface AuthorizationUser {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The argument of {@link CelAuthorizer.authorize}, as in a SubjectAccessReview. */
export type AuthorizationRequest =
  | { readonly kind: 'path'; readonly user: AuthorizationUser; readonly verb: string; readonly path: string }
  | ResourceAccess;

/** A check of a resource; properties that were not set are empty strings. */
export interface ResourceAccess {
  readonly kind: 'resource';
  readonly user: AuthorizationUser;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** As written in the policy, not parsed. */
  readonly fieldSelector: string;
  readonly labelSelector: string;
}

/** The result of {@link CelAuthorizer.authorize}. Access is allowed only if `isAllowed` is true, with or without `error`. */
export interface AuthorizationAnswer {
  readonly isAllowed: boolean;
  readonly reason: string;
  readonly error?: string;
}

/**
 * Authorizes requests synchronously; implemented by the host. A thrown error denies access, and becomes the answer's
 * error. A returned failure ends the evaluation. The host returns one for requests that it does not authorize, because an
 * expression could mistake an error for "not allowed".
 */
export interface CelAuthorizer {
  authorize(request: AuthorizationRequest): AuthorizationAnswer | EvaluationFailure;
}

/** API servers return an error for comparisons of these values, even with themselves. */
abstract class AuthorizationValue extends LibraryValue {
  protected override isComparableTo(): boolean {
    return false;
  }

  equals(other: CelValue): boolean {
    return other === this;
  }
}

/** The value of the variable `authorizer`: an authorizer and a user. */
export class AuthorizerValue extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.Authorizer';
  readonly #user: AuthorizationUser;
  readonly #authorizer: CelAuthorizer;

  constructor(user: AuthorizationUser, authorizer: CelAuthorizer) {
    super();
    this.#user = user;
    this.#authorizer = authorizer;
  }

  path(path: string): PathCheck | EvaluationFailure {
    return path.trim() === '' ? fail('path must not be empty') : new PathCheck(this, path);
  }

  group(group: string): GroupCheck {
    return new GroupCheck(this, group);
  }

  serviceAccount(namespace: string, name: string): AuthorizerValue | EvaluationFailure {
    if (!isServiceAccountName(name)) {
      return fail('Invalid service account name');
    }
    if (!isNamespaceName(namespace)) {
      return fail('Invalid service account namespace');
    }
    const user = {
      username: `system:serviceaccount:${namespace}:${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    };
    return new AuthorizerValue(user, this.#authorizer);
  }

  /** The value of `authorizer.requestResource`: a check of the request's resource. */
  requestResource(resource: Pick<ResourceAccess, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>) {
    return new ResourceCheck(this, { ...EMPTY_CHECK, ...resource });
  }

  check(check: Check): AuthorizationDecision | EvaluationFailure {
    try {
      const answer = this.#authorizer.authorize({ ...check, user: this.#user });
      return answer instanceof EvaluationFailure ? answer : new AuthorizationDecision(answer);
    } catch (error) {
      return new AuthorizationDecision({
        isAllowed: false,
        reason: '',
        error: errorText(error),
      });
    }
  }
}

type Check = AuthorizationRequest extends infer Request
  ? Request extends AuthorizationRequest
    ? Omit<Request, 'user'>
    : never
  : never;

/** `authorizer.path(…)`. */
export class PathCheck extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.PathCheck';
  readonly #authorizer: AuthorizerValue;
  readonly #path: string;

  constructor(authorizer: AuthorizerValue, path: string) {
    super();
    this.#authorizer = authorizer;
    this.#path = path;
  }

  check(verb: string): AuthorizationDecision | EvaluationFailure {
    return this.#authorizer.check({ kind: 'path', verb, path: this.#path });
  }
}

/** `authorizer.group(…)`. */
export class GroupCheck extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.GroupCheck';
  readonly #authorizer: AuthorizerValue;
  readonly #group: string;

  constructor(authorizer: AuthorizerValue, group: string) {
    super();
    this.#authorizer = authorizer;
    this.#group = group;
  }

  resource(resource: string): ResourceCheck | EvaluationFailure {
    return resource.trim() === ''
      ? fail('resource must not be empty')
      : new ResourceCheck(this.#authorizer, { ...EMPTY_CHECK, group: this.#group, resource });
  }
}

type CheckedResource = Omit<ResourceAccess, 'kind' | 'user' | 'verb'>;

const EMPTY_CHECK: CheckedResource = {
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  fieldSelector: '',
  labelSelector: '',
};

/** `authorizer.group(…).resource(…)`, with the properties set on it. */
export class ResourceCheck extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.ResourceCheck';
  readonly #authorizer: AuthorizerValue;
  readonly #resource: CheckedResource;

  constructor(authorizer: AuthorizerValue, resource: CheckedResource) {
    super();
    this.#authorizer = authorizer;
    this.#resource = resource;
  }

  with(property: 'subresource' | 'namespace' | 'name' | 'fieldSelector' | 'labelSelector', value: string) {
    return new ResourceCheck(this.#authorizer, { ...this.#resource, [property]: value });
  }

  check(verb: string): AuthorizationDecision | EvaluationFailure {
    return this.#authorizer.check({ kind: 'resource', verb, ...this.#resource });
  }
}

/** `….check(verb)`. */
export class AuthorizationDecision extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.Decision';
  readonly answer: AuthorizationAnswer;

  constructor(answer: AuthorizationAnswer) {
    super();
    this.answer = answer;
  }
}
