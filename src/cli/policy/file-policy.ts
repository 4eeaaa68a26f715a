// A policy of a file, as it is applied to a cluster or served from a policies file.
import type { JsonObject, PolicyDefinition, Review, ReviewExclusion } from '../../engine/index.ts';
import type { PlacedManifest } from './placed-manifests.ts';
import type { PolicyWarning } from './policy-warning.ts';
import type { PlaceOf } from './source-places.ts';

/** What keeps API servers from asking a policy about a request. */
type PolicyExclusion =
  | ReviewExclusion
  /** Of Kubernetes' own policies: matchConstraints, match conditions, or there is no binding for the request. */
  | 'binding'
  /** matchConstraints or match conditions in the settings of builtin:cel. */
  | 'settings';

/** What keeps API servers from asking. */
export interface PolicyMismatch {
  readonly isMatch: false;
  readonly excludedBy: PolicyExclusion;
  /** The part of the rules that is for other requests; the name of the match condition that is false; of others why. */
  readonly detail?: string;
}

/** Whether API servers ask a policy about a request. */
export type PolicyMatchResult =
  | {
      readonly isMatch: true;
      /** What only a cluster can check, and is taken to match. */
      readonly unchecked: readonly ('namespaceSelector' | 'authorizer')[];
    }
  | PolicyMismatch
  /** The match fails: API servers answer by the policy's failurePolicy. */
  | { readonly error: string };

/** An error at a field of a policy. */
export interface PolicyError {
  /** `spec.rules[0].resources`; `settings.…` in a policies file. */
  readonly field: string;
  /** With its place. */
  readonly text: string;
}

/** What a cluster says of a policy when it is applied. */
export interface PolicyFindings {
  /** Why it is refused. */
  readonly errors: readonly PolicyError[];
  readonly warnings: readonly PolicyWarning[];
}

/** A policy of a file. */
export interface FilePolicy {
  /** As users write it: `cap/pinned-images`, `ap/shop/pinned-images`, `vap/replica-limit`; the id in a policies file. */
  readonly name: string;
  /** Other names that users may write: the name alone, the kind with the name, the id on a policy server. */
  readonly aliases: readonly string[];
  /** Undefined: an entry of a policies file. */
  readonly kind?: string;
  /** The file as users name it. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Absolute folder of the file. */
  readonly folder: string;
  /** Manifests of policies as they are written: one, or all of Kubernetes' own that are evaluated together. */
  readonly placed?: readonly PlacedManifest[];
  /** Places of the fields of an entry of a policies file. */
  readonly placeOf?: PlaceOf;
  readonly definition: PolicyDefinition;
  /** Computed on first use, because expressions are compiled. */
  readonly findings: () => PolicyFindings;
  /** A manifest of one of our kinds, with defaults. */
  readonly manifest?: JsonObject;
  /** Of Kubernetes' own policies: the policy, its bindings, parameters and namespaces, which are its code. */
  readonly manifests?: readonly JsonObject[];
  /** The minor version of the API server with these manifests, 1.x. Default: the newest known. */
  readonly kubernetesVersion?: number;
  /** All objects of the cluster that parameters may be. Default: they are not known. */
  readonly objects?: readonly JsonObject[];
  /** Absent for entries of a policies file: they get whatever is sent to them. */
  readonly match?: (review: Review) => PolicyMatchResult;
}
