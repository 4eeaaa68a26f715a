import { WORKLOADS } from '../../resources/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';

/** A resource that is a pod, or contains a pod template. */
export interface PodResource {
  readonly group: string;
  readonly resource: string;
  readonly kind: string;
  /** Path of the pod's `metadata` and `spec` in the object; empty for pods themselves. */
  readonly path: readonly string[];
  /** Whether an object without a template is valid. */
  readonly isTemplateOptional: boolean;
}

/** The resources that Kubernetes' admission plugin checks. */
const POD_RESOURCES: readonly PodResource[] = [
  { group: '', resource: 'pods', kind: 'Pod', path: [], isTemplateOptional: false },
  ...WORKLOADS.map(({ group, resource, kind, path }) => ({
    group,
    resource,
    kind,
    path,
    isTemplateOptional: resource === 'replicationcontrollers',
  })),
];

/** Subresources of pods that do not change checked fields. Other subresources are checked as pods. */
const IGNORED_POD_SUBRESOURCES: ReadonlySet<string> = new Set([
  'exec',
  'attach',
  'binding',
  'eviction',
  'log',
  'portforward',
  'proxy',
  'status',
]);

/**
 * The resource of a request if it contains pods. Found by `resource`; hand-written requests may have only `kind`.
 * Undefined for other resources; null when the request has neither.
 */
export function podResourceOf(request: JsonObject): PodResource | undefined | null {
  const { resource, kind } = request;
  if (isJsonObject(resource) && typeof resource.resource === 'string') {
    return POD_RESOURCES.find((one) => one.group === (resource.group ?? '') && one.resource === resource.resource);
  }
  if (isJsonObject(kind)) {
    return POD_RESOURCES.find((one) => one.group === (kind.group ?? '') && one.kind === kind.kind);
  }
  return null;
}

export function isPod({ path }: PodResource): boolean {
  return path.length === 0;
}

/** The pod's path as a prefix: `spec.template.`. */
export function pathPrefix({ path }: PodResource): string {
  return path.map((key) => `${key}.`).join('');
}

/** Whether a request for a subresource can change checked fields. */
export function isChecked(resource: PodResource, subresource: string): boolean {
  return isPod(resource) ? !IGNORED_POD_SUBRESOURCES.has(subresource) : subresource === '';
}

/** The pod, or the pod template, in an object; undefined when it is missing. */
export function templateIn(object: unknown, { path }: PodResource): unknown {
  let value: unknown = object;
  for (const key of path) {
    if (!isJsonObject(value)) {
      return undefined;
    }
    value = value[key];
  }
  return value ?? undefined;
}
