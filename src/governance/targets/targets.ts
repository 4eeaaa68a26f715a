// The clusters that Policies go to.
import type { ObjectKey, Policy } from '../../resources/index.ts';

/** A cluster that Policies go to. */
export interface Target {
  /** Its name, unique on the hub. */
  readonly name: string;
  /** The namespace of the hub with its copies of Policies. */
  readonly namespace: string;
}

/** Which clusters each Policy goes to, and when that changes. */
export interface Targets {
  /** The clusters that a Policy goes to, each once. */
  of(root: Policy): readonly Target[];
  /**
   * Whether Policies in a namespace are copies: it belongs to a cluster, which Policies may go to or not any more. Does not
   * change while there are Policies in it.
   */
  hasCopies(namespace: string): boolean;
  /**
   * Calls `listener` after the clusters of a Policy have changed for another reason than a change of the Policy.
   * @returns a function that unsubscribes
   */
  subscribe(listener: (root: ObjectKey) => void): () => void;
}
