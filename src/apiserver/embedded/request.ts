// Requests, as authentication, authorization and admission exchange them.
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** The user of a request (`authentication.k8s.io/v1` UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A request as authorizers see it: for a resource, or for another path. */
export interface AccessAttributes {
  readonly user: UserInfo;
  /** `get`, `list`, `deletecollection`, `bind`, `escalate`, …; for other paths the HTTP method in lower case. */
  readonly verb: string;
  readonly group?: string;
  readonly version?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** For requests without a resource: `/version`. */
  readonly path?: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  /** The reason that `kubectl auth can-i -v` and 403 answers show; may be empty. */
  readonly reason: string;
}

/** Decides who may do what. */
export interface Authorizer {
  authorize(attributes: AccessAttributes): AccessDecision;
}

/** A write, as admission sees it. */
export interface AdmissionRequest {
  readonly user: UserInfo;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** The requested kind and resource. */
  readonly definition: ResourceDefinition;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  /** Empty before a name is generated. */
  readonly name: string;
  /** Null for DELETE. */
  readonly object: KubernetesObject | null;
  /** Null for CREATE. */
  readonly oldObject: KubernetesObject | null;
  readonly dryRun: boolean;
  /** `CreateOptions`, `PatchOptions`, `DeleteOptions`, …, with `apiVersion` and `kind`. */
  readonly options: JsonObject;
}

/** Mutating and validating admission. Both throw ApiError to refuse. */
export interface Admission {
  /** The mutated object; the same one without a change. Null for DELETE. */
  mutate(
    request: AdmissionRequest,
    onWarning: (text: string) => void,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | null>;
  validate(request: AdmissionRequest, onWarning: (text: string) => void, signal?: AbortSignal): Promise<void>;
}

/** Synchronous reads of the cluster's state, for authorization and admission. */
export interface ClusterState {
  get(
    type: { readonly group: string; readonly resource: string },
    namespace: string | undefined,
    name: string,
  ): KubernetesObject | undefined;
  list(type: { readonly group: string; readonly resource: string }, namespace?: string): Iterable<KubernetesObject>;
  /** Changes with every write to the resource: for caches. */
  revisionOf(type: { readonly group: string; readonly resource: string }): number;
}
