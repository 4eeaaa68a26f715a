// What the parts of an embedded cluster tell each other about a request: who asks for what.
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** Who makes a request (`authentication.k8s.io/v1` UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What is asked for, as authorisers see it: a resource, or a path that is none. */
export interface AccessAttributes {
  readonly user: UserInfo;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `bind`, `escalate`, `impersonate`, …; for paths the HTTP method in lower case. */
  readonly verb: string;
  readonly group?: string;
  readonly version?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** Of requests that are for no resource: `/version`. */
  readonly path?: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  /** Why, as `kubectl auth can-i -v` and 403 answers show it; may be empty. */
  readonly reason: string;
}

/** Decides who may do what. */
export interface Authorizer {
  authorize(attributes: AccessAttributes): AccessDecision;
}

/** A write on its way into the store, as admission sees it. */
export interface AdmissionRequest {
  readonly user: UserInfo;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** The kind and resource as they were requested. */
  readonly definition: ResourceDefinition;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  /** Empty while a generated name is not made yet. */
  readonly name: string;
  /** Null for DELETE. */
  readonly object: KubernetesObject | null;
  /** Null for CREATE. */
  readonly oldObject: KubernetesObject | null;
  readonly dryRun: boolean;
  /** `CreateOptions`, `PatchOptions`, `DeleteOptions`, …, with `apiVersion` and `kind`. */
  readonly options: JsonObject;
}

/** Who may change and refuse writes. Both throw ApiError to refuse. */
export interface Admission {
  /** The object as it shall be; the same one when nothing changes it. Null for DELETE. */
  mutate(
    request: AdmissionRequest,
    onWarning: (text: string) => void,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | null>;
  validate(request: AdmissionRequest, onWarning: (text: string) => void, signal?: AbortSignal): Promise<void>;
}

/** What authorisation and admission read of the cluster, synchronously: its own state. */
export interface ClusterState {
  get(
    type: { readonly group: string; readonly resource: string },
    namespace: string | undefined,
    name: string,
  ): KubernetesObject | undefined;
  list(type: { readonly group: string; readonly resource: string }, namespace?: string): Iterable<KubernetesObject>;
  /** Changes whenever an object of that resource does: for caches of what was computed from them. */
  revisionOf(type: { readonly group: string; readonly resource: string }): number;
}
