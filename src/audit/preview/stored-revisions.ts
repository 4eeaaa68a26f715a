// Revisions of workloads that are stored for a rollback, as the workload that a rollback would make of them.
import { isEqual } from '../../engine/index.ts';
import { isJsonObject, type JsonObject, objectIn, own, textOf, valueAt } from '../../values/index.ts';

/** Where the revisions of a kind of workloads are. */
export interface RevisionKind {
  /** The resource of the workloads, in group `apps`. */
  readonly workloads: string;
  /** The resource of their revisions, in group `apps`. */
  readonly revisions: string;
  /** Keys from a revision to its template. */
  readonly path: readonly string[];
}

/** As `kubectl rollout undo` finds them (k8s.io/kubectl 0.34, pkg/polymorphichelpers/rollback.go). */
export const REVISION_KINDS: readonly RevisionKind[] = [
  { workloads: 'deployments', revisions: 'replicasets', path: ['spec', 'template'] },
  { workloads: 'statefulsets', revisions: 'controllerrevisions', path: ['data', 'spec', 'template'] },
  { workloads: 'daemonsets', revisions: 'controllerrevisions', path: ['data', 'spec', 'template'] },
];

/** The label that the controller of Deployments adds to templates, and a rollback removes. */
const HASH_LABEL = 'pod-template-hash';

/** The workload after a rollback to the revision; undefined for the revision that it has. */
export function rolledBack(workload: JsonObject, revision: JsonObject, { path }: RevisionKind): JsonObject | undefined {
  const stored = valueAt(revision, ...path);
  if (!isJsonObject(stored)) {
    return undefined;
  }
  const template = writtenTemplate(stored);
  const spec = objectIn(workload, 'spec');
  const current = own(spec, 'template');
  return isJsonObject(current) && isEqual(writtenTemplate(current), template)
    ? undefined
    : { ...workload, spec: { ...spec, template } };
}

/** A template without what controllers add. */
function writtenTemplate({ $patch: _patch, ...template }: JsonObject): JsonObject {
  const metadata = objectIn(template, 'metadata');
  const { [HASH_LABEL]: _hash, ...labels } = objectIn(metadata, 'labels');
  const { creationTimestamp: _created, labels: _labels, ...rest } = metadata;
  return { ...template, metadata: { ...rest, ...(Object.keys(labels).length === 0 ? {} : { labels }) } };
}

/** The number of a revision as users name it; undefined if it has none. */
export function revisionNumberOf(revision: JsonObject): string | undefined {
  const annotated = textOf(valueAt(revision, 'metadata', 'annotations', 'deployment.kubernetes.io/revision'));
  const number = own(revision, 'revision');
  return annotated !== '' ? annotated : typeof number === 'number' ? String(number) : undefined;
}
