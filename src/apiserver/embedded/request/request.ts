// Types that authentication, authorization and admission share.
import type { JsonObject, KubernetesObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';

/** The user of a request (`authentication.k8s.io/v1` UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The attributes of a request for authorization. It is for a resource, or for a non-resource path. */
export interface AccessAttributes {
  readonly user: UserInfo;
  /** `get`, `list`, `deletecollection`, `bind`, `escalate`, …; for non-resource paths the HTTP method in lower case. */
  readonly verb: string;
  readonly group?: string;
  readonly version?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** A non-resource path: `/version`. */
  readonly path?: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  /** The reason, for `kubectl auth can-i -v` and messages of 403. May be empty. */
  readonly reason: string;
}

/** Decides whether a request is allowed. */
export interface Authorizer {
  authorize(attributes: AccessAttributes): AccessDecision;
}

/** The attributes of a write for admission. */
export interface AdmissionAttributes {
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

/** Mutating and validating admission. Both throw ApiError to reject a request. */
export interface AdmissionChain {
  /** The mutated object, or the same one if nothing changed. Null for DELETE. */
  mutate(
    request: AdmissionAttributes,
    onWarning: (text: string) => void,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | null>;
  validate(request: AdmissionAttributes, onWarning: (text: string) => void, signal?: AbortSignal): Promise<void>;
}

/** Synchronous reads of the cluster's state, for authorization and admission. */
export interface ClusterState {
  get(
    type: { readonly group: string; readonly resource: string },
    namespace: string | undefined,
    name: string,
  ): KubernetesObject | undefined;
  list(type: { readonly group: string; readonly resource: string }, namespace?: string): Iterable<KubernetesObject>;
  /** Changes with every write of the resource, which invalidates caches. */
  revisionOf(type: { readonly group: string; readonly resource: string }): number;
}
