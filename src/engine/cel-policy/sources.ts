import type { JsonObject } from '../json-text.ts';
import type { LabelSelector } from './label-selector.ts';
import type { ParamKind } from './policy-spec.ts';

/** Where parameters come from. Both throw when they cannot know: the policy then fails as its failurePolicy says. */
export interface ParameterSource {
  /** Undefined when there is no such object. `namespace` is undefined for kinds of the whole cluster. */
  get(kind: ParamKind, name: string, namespace: string | undefined): JsonObject | undefined;
  /** All objects that a selector selects, in one namespace or, for kinds of the whole cluster, everywhere. */
  list(kind: ParamKind, namespace: string | undefined, selector: LabelSelector): readonly JsonObject[];
  /** Whether objects of the kind are in namespaces. */
  isNamespaced(kind: ParamKind): boolean;
}

/** Where namespaces come from: for `namespaceObject` and for `namespaceSelector`. */
export interface NamespaceSource {
  /** Undefined when there is no such namespace. Throws when it cannot know. */
  get(name: string): JsonObject | undefined;
}

/** Kinds of Kubernetes that are in no namespace, for sources that cannot ask an API server. */
const CLUSTER_KINDS = new Set([
  'v1/Namespace',
  'v1/Node',
  'v1/PersistentVolume',
  'apiextensions.k8s.io/v1/CustomResourceDefinition',
  'apiregistration.k8s.io/v1/APIService',
  'certificates.k8s.io/v1/CertificateSigningRequest',
  'flowcontrol.apiserver.k8s.io/v1/FlowSchema',
  'flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration',
  'networking.k8s.io/v1/IngressClass',
  'node.k8s.io/v1/RuntimeClass',
  'rbac.authorization.k8s.io/v1/ClusterRole',
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding',
  'scheduling.k8s.io/v1/PriorityClass',
  'storage.k8s.io/v1/CSIDriver',
  'storage.k8s.io/v1/CSINode',
  'storage.k8s.io/v1/StorageClass',
  'storage.k8s.io/v1/VolumeAttachment',
]);

/** Whether a kind is one of Kubernetes' own that are in no namespace. */
export function isKnownClusterKind({ apiVersion, kind }: ParamKind): boolean {
  return CLUSTER_KINDS.has(`${apiVersion}/${kind}`) || apiVersion.startsWith('admissionregistration.k8s.io/');
}
