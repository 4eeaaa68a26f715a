import type { CelValue } from '../value.ts';
import type { EvaluationFailure } from '../value.ts';
import { errorText } from '../../values/index.ts';
import { fail, LibraryValue } from './declare.ts';
import { isNamespaceName, isServiceAccountName } from './named-formats.ts';

/** Who asks for something, as requests name users. */
export interface AuthorizationUser {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What an {@link Authorizer} is asked, in the terms of a SubjectAccessReview. */
export type AuthorizationRequest =
  | { readonly kind: 'path'; readonly user: AuthorizationUser; readonly verb: string; readonly path: string }
  | ResourceRequest;

/** A question about a resource; what was not named is an empty string. */
export interface ResourceRequest {
  readonly kind: 'resource';
  readonly user: AuthorizationUser;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** As written in the policy; not parsed here. */
  readonly fieldSelector: string;
  readonly labelSelector: string;
}

/** An {@link Authorizer}'s answer. Only `isAllowed` allows, whatever the error. */
export interface AuthorizationAnswer {
  readonly isAllowed: boolean;
  readonly reason: string;
  readonly error?: string;
}

/** Says who may do what. Given by the host; synchronous; a thrown error is the answer's error and does not allow. */
export interface Authorizer {
  authorize(request: AuthorizationRequest): AuthorizationAnswer;
}

/** API servers refuse to compare these values, even with themselves. */
abstract class AuthorizationValue extends LibraryValue {
  protected override isComparableTo(): boolean {
    return false;
  }

  equals(other: CelValue): boolean {
    return other === this;
  }
}

/** What the variable `authorizer` is: an authorizer and the user it is asked about. */
export class AuthorizerValue extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.Authorizer';
  readonly #user: AuthorizationUser;
  readonly #authorizer: Authorizer;

  constructor(user: AuthorizationUser, authorizer: Authorizer) {
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

  /** What `authorizer.requestResource` is: a check of the resource that a request is for. */
  requestResource(resource: Pick<ResourceRequest, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>) {
    return new ResourceCheck(this, { ...EMPTY_CHECK, ...resource });
  }

  check(question: Question): Decision {
    try {
      return new Decision(this.#authorizer.authorize({ ...question, user: this.#user }));
    } catch (error) {
      return new Decision({
        isAllowed: false,
        reason: '',
        error: errorText(error),
      });
    }
  }
}

type Question = AuthorizationRequest extends infer Request
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

  check(verb: string): Decision {
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

type CheckedResource = Omit<ResourceRequest, 'kind' | 'user' | 'verb'>;

const EMPTY_CHECK: CheckedResource = {
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  fieldSelector: '',
  labelSelector: '',
};

/** `authorizer.group(…).resource(…)`, and what narrows it. */
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

  check(verb: string): Decision {
    return this.#authorizer.check({ kind: 'resource', verb, ...this.#resource });
  }
}

/** `….check(verb)`. */
export class Decision extends AuthorizationValue {
  readonly typeName = 'kubernetes.authorization.Decision';
  readonly answer: AuthorizationAnswer;

  constructor(answer: AuthorizationAnswer) {
    super();
    this.answer = answer;
  }
}
