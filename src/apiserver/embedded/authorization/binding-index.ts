import { quote } from '../../../go/index.ts';
import { isJsonObject, textOf } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { serviceAccountName } from '../request/identities.ts';
import type { UserInfo } from '../request/request.ts';

/** The `roleRef` of a binding. */
export interface RoleReference {
  /** `Role` or `ClusterRole`. A reference to another kind grants nothing. */
  readonly kind: string;
  readonly name: string;
}

/** A role that a binding grants to one of its subjects. */
export interface BoundRole {
  /** The reason of a decision: `RoleBinding "name/namespace" of Role "x" to User "y"`. */
  readonly description: string;
  readonly role: RoleReference;
}

interface IndexedGrant extends BoundRole {
  /** The positions of the binding and of the subject in it, because a decision names the first match as its reason. */
  readonly binding: number;
  readonly subject: number;
}

/** Indexes RoleBindings of a namespace, or ClusterRoleBindings, by subject. */
export class BindingIndex {
  readonly #bySubject = new Map<string, IndexedGrant[]>();

  constructor(bindings: Iterable<KubernetesObject>) {
    let position = 0;
    for (const binding of bindings) {
      this.#add(binding, position);
      position += 1;
    }
  }

  get isEmpty(): boolean {
    return this.#bySubject.size === 0;
  }

  /** The grants of a user, one per binding, in the order of bindings. */
  grantsFor(user: UserInfo): readonly BoundRole[] {
    const found = [...(this.#bySubject.get(userKey(user.username)) ?? [])];
    for (const group of user.groups) {
      found.push(...(this.#bySubject.get(groupKey(group)) ?? []));
    }
    if (found.length < 2) {
      return found;
    }
    found.sort((a, b) => a.binding - b.binding || a.subject - b.subject);
    return found.filter(({ binding }, index) => index === 0 || found[index - 1]?.binding !== binding);
  }

  #add(binding: KubernetesObject, position: number): void {
    const { roleRef, subjects, metadata } = binding;
    if (!isJsonObject(roleRef) || !Array.isArray(subjects)) {
      return;
    }
    const role = { kind: textOf(roleRef.kind), name: textOf(roleRef.name) };
    const { namespace, name = '' } = metadata;
    const source =
      namespace === undefined ? `ClusterRoleBinding ${quote(name)}` : `RoleBinding ${quote(`${name}/${namespace}`)}`;
    for (const [index, subject] of subjects.filter(isJsonObject).entries()) {
      const subjectNamespace = textOf(subject.namespace) || (namespace ?? '');
      const keyAndText = describeSubject(textOf(subject.kind), textOf(subject.name), subjectNamespace);
      if (keyAndText === undefined) {
        continue;
      }
      const description = `${source} of ${role.kind} ${quote(role.name)} to ${keyAndText.text}`;
      const grants = this.#bySubject.get(keyAndText.key) ?? [];
      grants.push({ description, role, binding: position, subject: index });
      this.#bySubject.set(keyAndText.key, grants);
    }
  }
}

function describeSubject(kind: string, name: string, namespace: string): { key: string; text: string } | undefined {
  switch (kind) {
    case 'User':
      return { key: userKey(name), text: `User ${quote(name)}` };
    case 'Group':
      return { key: groupKey(name), text: `Group ${quote(name)}` };
    case 'ServiceAccount':
      return namespace === ''
        ? undefined
        : {
            key: userKey(serviceAccountName(namespace, name)),
            text: `ServiceAccount ${quote(`${name}/${namespace}`)}`,
          };
    default:
      return undefined;
  }
}

const userKey = (name: string): string => `u:${name}`;
const groupKey = (name: string): string => `g:${name}`;
