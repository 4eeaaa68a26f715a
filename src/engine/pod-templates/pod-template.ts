// The pod template of a workload, reviewed as the pods that its controller will create.
import { apiVersionOf, own, PODS, textOf, valueAt, type Workload, workloadOf } from '../../resources/index.ts';
import type { Review, ReviewTarget } from '../review/admission-review.ts';
import { isEqual } from '../verdict/json-patch.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import { type ObjectRequest, ObjectReview } from '../review/object-review.ts';

/** A pod template to check. */
export interface PodTemplate {
  /** The review of the workload. */
  readonly review: Review;
  /** The workload that contains the template. */
  readonly workload: JsonObject;
  /** Keys from the workload to the template. */
  readonly path: readonly string[];
  /** The review of a pod as the template's controller creates it. */
  readonly pod: Review;
}

const POD = { group: '', version: 'v1', kind: 'Pod' } as const;
const CREATE_OPTIONS: JsonObject = { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' };

/** The workload that a request writes; undefined for all other requests, its subresources and deletion included. */
export function writtenWorkload({ operation, resource, subresource }: ReviewTarget): Workload | undefined {
  const isWrite = (operation === 'CREATE' || operation === 'UPDATE') && subresource === '';
  return isWrite ? workloadOf(resource) : undefined;
}

/**
 * The pod template of a workload to check. Undefined when it is not an object, when an update does not change it, and when a
 * controller copied it from its own workload, whose author has heard of it. Whoever forges such an owner is not warned early;
 * the pods are checked in any case.
 */
export function podTemplateOf(review: Review, target: ReviewTarget): PodTemplate | undefined {
  const kind = writtenWorkload(target);
  const { object: workload } = review;
  if (kind === undefined || !isJsonObject(workload) || isCopied(workload, kind)) {
    return undefined;
  }
  const { path } = kind;
  const template = valueAt(workload, ...path);
  const isUnchanged = (): boolean => isEqual(template ?? null, valueAt(review.oldObject, ...path) ?? null);
  if (!isJsonObject(template) || (target.operation === 'UPDATE' && isUnchanged())) {
    return undefined;
  }
  const pod = podOf(template, workload, kind, target);
  return { review, workload, path, pod: new ObjectReview(podRequest(review, target, kind, pod)) };
}

/** Whether the controller of another workload created the object. */
function isCopied(workload: JsonObject, { group, createdBy }: Workload): boolean {
  const owners = valueAt(workload, 'metadata', 'ownerReferences');
  return (
    createdBy !== undefined &&
    Array.isArray(owners) &&
    owners.some(
      (owner) =>
        isJsonObject(owner) &&
        own(owner, 'controller') === true &&
        own(owner, 'kind') === createdBy &&
        textOf(own(owner, 'apiVersion')).startsWith(`${group}/`),
    )
  );
}

/** Fields of the template's metadata that controllers copy (k8s.io/kubernetes 1.34, GetPodFromTemplate). */
const COPIED_METADATA = ['labels', 'annotations', 'finalizers'] as const;

/** The pod. It has a name, since API servers generate names before they call validating webhooks: that of the workload. */
function podOf(
  template: JsonObject,
  workload: JsonObject,
  { podOwner, group }: Workload,
  { namespace, resource }: ReviewTarget,
): JsonObject {
  const metadata = valueAt(workload, 'metadata');
  const name = nameOf(workload);
  const spec = own(template, 'spec');
  const owner = {
    apiVersion: apiVersionOf({ group, version: resource.version }),
    kind: podOwner ?? '',
    name,
    uid: textOf(valueAt(metadata, 'uid')),
    controller: true,
    blockOwnerDeletion: true,
  };
  return {
    apiVersion: 'v1',
    kind: POD.kind,
    metadata: {
      name,
      generateName: `${name}-`,
      ...(namespace === '' ? {} : { namespace }),
      ...copiedMetadata(template),
      ...(podOwner === undefined ? {} : { ownerReferences: [owner] }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}

/** The name of a workload; while it has none, the prefix of the name that the API server generates. */
function nameOf(workload: JsonObject): string {
  const metadata = valueAt(workload, 'metadata');
  return textOf(valueAt(metadata, 'name')) || textOf(valueAt(metadata, 'generateName'));
}

/** The metadata that a pod has from its template. */
function copiedMetadata(template: JsonObject): JsonObject {
  const metadata = own(template, 'metadata');
  return isJsonObject(metadata) ? fieldsOf(metadata, COPIED_METADATA) : {};
}

function fieldsOf(object: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = own(object, field);
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

/** The request of the controller for a pod. */
function podRequest(review: Review, { namespace }: ReviewTarget, workload: Workload, pod: JsonObject): ObjectRequest {
  return {
    uid: review.uid,
    kind: POD,
    resource: PODS,
    requestKind: POD,
    requestResource: PODS,
    name: textOf(valueAt(pod, 'metadata', 'name')),
    ...(namespace === '' ? {} : { namespace }),
    operation: 'CREATE',
    userInfo: creatorOf(review, workload),
    object: pod,
    dryRun: review.requester()?.isDryRun === true,
    options: CREATE_OPTIONS,
  };
}

/** The user who creates the pods: a controller; for a PodTemplate, which has none, the user of the request. */
function creatorOf(review: Review, { podCreator }: Workload): JsonObject {
  return podCreator === undefined
    ? (review.userInfo() ?? {})
    : {
        username: `system:serviceaccount:kube-system:${podCreator}`,
        groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
      };
}

/** The workload with the template as policies changed its pod. Of the pod's metadata, what templates have counts. */
export function withPod({ workload, path }: Pick<PodTemplate, 'workload' | 'path'>, pod: JsonObject): JsonObject {
  const template = valueAt(workload, ...path);
  const before = isJsonObject(template) ? template : {};
  const old = own(before, 'metadata');
  const rest = isJsonObject(old)
    ? Object.entries(old).filter(([field]) => !COPIED_METADATA.some((copied) => copied === field))
    : [];
  const metadata = { ...Object.fromEntries(rest), ...copiedMetadata(pod) };
  const { spec: _, ...others } = before;
  const spec = own(pod, 'spec');
  const after = {
    ...others,
    ...(old === undefined && Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(spec === undefined ? {} : { spec }),
  };
  return replacedAt(workload, path, after);
}

function replacedAt(object: JsonObject, [key, ...rest]: readonly string[], value: JsonObject): JsonObject {
  if (key === undefined) {
    return value;
  }
  const child = own(object, key);
  return { ...object, [key]: replacedAt(isJsonObject(child) ? child : {}, rest, value) };
}
