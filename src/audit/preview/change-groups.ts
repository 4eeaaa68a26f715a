// The changes of a preview, grouped by what happens, why, and to whom.
import { compareStrings } from '../../go/index.ts';
import { apiVersionOf, type GroupVersionResource, type KubernetesObject, workloadOf } from '../../resources/index.ts';
import { type JsonObject, objectIn, textOf } from '../../values/index.ts';
import { auditedObject, type AuditedObject } from '../audit-result.ts';
import type { VerdictChange } from './change.ts';
import { guardOf } from './guarded-objects.ts';
import { controllerOf, type ObjectOwner, type ObjectOwners, type OwnerRef } from './object-owners.ts';
import type { SideVerdict } from './side-verdict.ts';

/**
 * What a change is about. `objects`: they exist. `nextPods`: pods that a workload makes from its template. `rollbacks`: a workload after a
 * rollback to a stored revision. `finalizers`: an update that removes the finalizers of an object. `requests`: they were recorded.
 */
export const SUBJECTS = ['objects', 'nextPods', 'rollbacks', 'finalizers', 'requests'] as const;
export type Subject = (typeof SUBJECTS)[number];

/** Objects to which the same happens for the same reason. */
export interface ChangeGroup {
  readonly change: Exclude<VerdictChange, 'stillRejected' | 'unchanged'>;
  readonly subject: Subject;
  readonly kind: string;
  readonly namespace?: string;
  /** The workload at the top. Absent: the objects belong to none. */
  readonly owner?: ObjectOwner;
  /** Why, of the example; of what is admitted, why it was rejected before. Others may have their own name in the place of its name. */
  readonly message?: string;
  /** The message of the old version, if that is what changed. */
  readonly oldMessage?: string;
  /** What the cluster needs the objects for, where they are rejected. */
  readonly guard?: string;
  readonly count: number;
  readonly example: ChangeExample;
}

export interface ChangeExample extends AuditedObject {
  /** The stored revision of a rollback. */
  readonly revision?: string;
  /** What is changed, as a JSON patch. */
  readonly patch?: string;
  /** Of a request. */
  readonly operation?: string;
}

export type ChangeCounts = Readonly<Record<Subject, Readonly<Partial<Record<VerdictChange, number>>>>>;

/** An object with the verdicts of both versions. */
export interface ComparedObject {
  readonly subject: Subject;
  readonly change: VerdictChange;
  readonly object: JsonObject;
  readonly resource: GroupVersionResource;
  readonly before: SideVerdict;
  readonly after: SideVerdict;
  readonly revision?: string;
  readonly operation?: string;
}

type MutableGroup = { -readonly [Key in keyof ChangeGroup]: ChangeGroup[Key] };
type MutableCounts = Record<Subject, Partial<Record<VerdictChange, number>>>;

/** A group, and the object that its objects belong to. */
interface OwnedGroup {
  readonly group: MutableGroup;
  readonly owner: OwnerRef | undefined;
}

/** Collects the changes of one pass over a kind. */
export class ChangeGroups {
  readonly counts: MutableCounts = noCounts();
  readonly #groups = new Map<string, OwnedGroup>();

  get groups(): Iterable<OwnedGroup> {
    return this.#groups.values();
  }

  add(compared: ComparedObject): void {
    const { subject, change, object, resource } = compared;
    this.addCount(subject, change, 1);
    if (change !== 'stillRejected' && change !== 'unchanged') {
      this.addGroup({ group: groupOf(compared, change), owner: ownerOf(object, resource) });
    }
  }

  addCount(subject: Subject, change: VerdictChange, count: number): void {
    const counts = this.counts[subject];
    counts[change] = (counts[change] ?? 0) + count;
  }

  addGroup({ group, owner }: OwnedGroup): void {
    const { change, subject, kind, namespace, message, oldMessage, guard } = group;
    const reasons = [message, oldMessage].map((text) => reasonOf(text, group.example.name));
    const { operation } = group.example;
    const key = JSON.stringify([change, subject, operation, kind, namespace, owner?.uid, ...reasons, guard]);
    const known = this.#groups.get(key);
    if (known === undefined) {
      this.#groups.set(key, { group: { ...group }, owner });
    } else {
      known.group.count += group.count;
      // Objects come in any order: the example is the same each time.
      if (isBefore(group.example, known.group.example)) {
        Object.assign(known.group, { ...group, count: known.group.count });
      }
    }
  }
}

/** A message without the name of its object, by which messages of one reason differ. */
function reasonOf(message: string | undefined, name: string): string | undefined {
  return message?.replaceAll(WORDS, (word) => (word === name ? '' : word));
}

/** Names of objects, and other words. */
const WORDS = /[\w.-]+/g;

function isBefore(one: ChangeExample, other: ChangeExample): boolean {
  return compareStrings(exampleKey(one), exampleKey(other)) < 0;
}

function exampleKey({ name, revision = '' }: ChangeExample): string {
  return `${name}\n${revision}`;
}

/** All changes, with the workloads at the top as owners: guarded objects first, then by change, and the largest groups first. */
export function mergedChanges(
  parts: readonly ChangeGroups[],
  owners: ObjectOwners,
): { readonly counts: ChangeCounts; readonly groups: readonly ChangeGroup[] } {
  const all = new ChangeGroups();
  for (const { counts, groups } of parts) {
    for (const subject of SUBJECTS) {
      for (const [change, count] of Object.entries(counts[subject]) as [VerdictChange, number][]) {
        all.addCount(subject, change, count);
      }
    }
    for (const { group, owner } of groups) {
      all.addGroup({ group, owner: owner && owners.top(owner) });
    }
  }
  const groups = [...all.groups].map(({ group, owner }) =>
    owner === undefined ? group : { ...group, owner: { kind: owner.kind, name: owner.name } },
  );
  return { counts: all.counts, groups: groups.toSorted(compareGroups) };
}

function noCounts(): MutableCounts {
  return { objects: {}, nextPods: {}, rollbacks: {}, finalizers: {}, requests: {} };
}

/** The controller of an object; of a workload without one the workload. */
function ownerOf(object: JsonObject, resource: GroupVersionResource): OwnerRef | undefined {
  const metadata = objectIn(object, 'metadata');
  const itself = { kind: textOf(object['kind']), name: textOf(metadata['name']), uid: textOf(metadata['uid']) };
  return controllerOf(object) ?? (workloadOf(resource) === undefined ? undefined : itself);
}

function groupOf(compared: ComparedObject, change: ChangeGroup['change']): MutableGroup {
  const { subject, object, resource, before, after, revision, operation } = compared;
  const metadata = object['metadata'] as KubernetesObject['metadata'];
  const kind = textOf(object['kind']);
  const message = change === 'newlyAdmitted' || after.message === undefined ? before.message : after.message;
  const guard = change === 'newlyRejected' ? guardOf(object, resource) : undefined;
  return {
    change,
    subject,
    kind,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    ...(message === undefined ? {} : { message }),
    ...(change === 'messageChanged' && before.message !== undefined ? { oldMessage: before.message } : {}),
    ...(guard === undefined ? {} : { guard }),
    count: 1,
    example: {
      ...auditedObject({ metadata } as KubernetesObject, apiVersionOf(resource), kind),
      ...(revision === undefined ? {} : { revision }),
      ...(after.patch === undefined ? {} : { patch: after.patch }),
      ...(operation === undefined ? {} : { operation }),
    },
  };
}

/** In the order in which users have to know of them. */
const ORDER: readonly VerdictChange[] = [
  'newlyRejected',
  'newlyReported',
  'newlyMutated',
  'mutationChanged',
  'noLongerMutated',
  'messageChanged',
  'notEvaluable',
  'newlyAdmitted',
];

function compareGroups(one: ChangeGroup, other: ChangeGroup): number {
  return (
    Number(one.guard === undefined) - Number(other.guard === undefined) ||
    ORDER.indexOf(one.change) - ORDER.indexOf(other.change) ||
    SUBJECTS.indexOf(one.subject) - SUBJECTS.indexOf(other.subject) ||
    other.count - one.count ||
    compareStrings(textOfGroup(one), textOfGroup(other))
  );
}

function textOfGroup({ namespace = '', owner, kind, message = '' }: ChangeGroup): string {
  return [namespace, owner?.kind, owner?.name, kind, message].join('\n');
}
