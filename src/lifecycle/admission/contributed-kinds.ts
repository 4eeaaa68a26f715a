// Kinds of other controllers of this process, which the webhook for our own kinds reviews by rules that they bring.
import type { FieldError, JsonObject, OwnKind } from '../../resources/index.ts';

export interface ContributedKinds {
  /** The first part of the name of their webhook: a DNS label. */
  readonly name: string;
  readonly kinds: readonly OwnKind[];
  /**
   * What is wrong with an object that is created, or whose spec changes. Other reviews wait meanwhile.
   * @param isNew whether the object is created
   */
  review(kind: OwnKind, object: JsonObject, isNew: boolean): ContributedFindings;
}

/** Each finding has the code of its rule. */
export interface ContributedFindings {
  readonly errors: readonly (FieldError & { readonly code: string })[];
  readonly warnings: readonly { readonly code: string; readonly field: string; readonly text: string }[];
}
