import { isJsonObject } from '../json-text.ts';
import type { JsonObject } from '../json-text.ts';

/** A resource that is a pod, or holds a template of pods. */
export interface PodResource {
  readonly group: string;
  readonly resource: string;
  readonly kind: string;
  /** Where `metadata` and `spec` of the pod are in the object; empty for pods themselves. */
  readonly path: readonly string[];
  /** Whether an object without a template is one that makes no pods. */
  readonly isTemplateOptional: boolean;
}

const IN_SPEC = ['spec', 'template'];

/** The resources that upstream looks into. */
const POD_RESOURCES: readonly PodResource[] = [
  { group: '', resource: 'pods', kind: 'Pod', path: [] },
  { group: '', resource: 'podtemplates', kind: 'PodTemplate', path: ['template'] },
  {
    group: '',
    resource: 'replicationcontrollers',
    kind: 'ReplicationController',
    path: IN_SPEC,
    isTemplateOptional: true,
  },
  { group: 'apps', resource: 'daemonsets', kind: 'DaemonSet', path: IN_SPEC },
  { group: 'apps', resource: 'deployments', kind: 'Deployment', path: IN_SPEC },
  { group: 'apps', resource: 'replicasets', kind: 'ReplicaSet', path: IN_SPEC },
  { group: 'apps', resource: 'statefulsets', kind: 'StatefulSet', path: IN_SPEC },
  { group: 'batch', resource: 'cronjobs', kind: 'CronJob', path: ['spec', 'jobTemplate', ...IN_SPEC] },
  { group: 'batch', resource: 'jobs', kind: 'Job', path: IN_SPEC },
].map((resource) => ({ isTemplateOptional: false, ...resource }));

/** Subresources of pods that do not change what the standards look at. Any other is judged as the pod that it holds. */
const HARMLESS_POD_SUBRESOURCES: ReadonlySet<string> = new Set([
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
 * The resource that a request is about, when pods are in it. By `resource`; requests that were written by hand may have
 * only `kind`. Undefined for any other; null when the request has neither.
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

/** The path of the pod as the beginning of longer ones: `spec.template.`. */
export function pathPrefix({ path }: PodResource): string {
  return path.map((key) => `${key}.`).join('');
}

/** Whether a request for a subresource can change what the standards look at. */
export function isJudged(resource: PodResource, subresource: string): boolean {
  return isPod(resource) ? !HARMLESS_POD_SUBRESOURCES.has(subresource) : subresource === '';
}

/** The pod, or the template, in an object; undefined when there is none. */
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
