// Why an object is not as it should be, as data: a command prints it, a page draws it.
import type { Condition } from '../resources/index.ts';

/** Why an object is not as it should be, and what to do. */
export interface Explanation {
  /** `KIND/NAME -n NAMESPACE`, as commands take it; absent for governance policies. */
  readonly object?: string;
  /** `namespace/name` of a governance policy. */
  readonly policy?: string;
  /** `namespace/name` of a PolicySet. */
  readonly policySet?: string;
  /** The one template of the policy that is explained. */
  readonly template?: string;
  /** Of governance policies. Absent while it is not known. */
  readonly compliant?: string;
  /** Of other objects, in a few words: `Degraded`. `Unknown` where nothing says it. */
  readonly state?: string;
  /** The condition `Ready` of an admission policy: `since` is about it, because nobody records when a phase began. */
  readonly ready?: Condition['status'];
  /** When it entered the state: RFC 3339. Absent where nobody recorded it. */
  readonly since?: string;
  /** What is wrong, in sentences. */
  readonly because: readonly string[];
  /** What nothing else is the cause of: what a user can act on. */
  readonly rootCauses?: readonly RootCause[];
  /** The conditions that say so. */
  readonly evidence?: readonly Condition[];
  /** What could not be read, and what is not known therefore. */
  readonly unread?: readonly string[];
  /** What the user can do, in sentences. */
  readonly toDo: readonly string[];
}

export interface RootCause {
  /** A documented constant. */
  readonly reason: string;
  readonly message: string;
  readonly since?: string;
}

/** Words of the one who asks. */
export interface Asked {
  /** How commands in sentences begin: `portcullis`. */
  readonly program: string;
}
