// `status.relatedObjects`: the objects that a policy evaluates.
import { compareStrings } from '../../go/index.ts';
import type { ResourceType } from '../../resources/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import { REASONS } from './compliance-reasons.ts';
import type { EvaluatedCompliance, ObjectResult } from './compliance-message.ts';

/** What is remembered of an object, mainly for pruning. */
export interface RelatedObjectProperties {
  /** Whether the policy created the object: only then `DeleteIfCreated` deletes it. */
  readonly createdByPolicy?: boolean;
  readonly uid?: string;
  /** Whether the policy deletes the object, which it did not create, to create it again. It is not the creator of the new one. */
  readonly recreating?: boolean;
  readonly diff?: string;
  /** Whether a difference was only apparent, as a dry run showed. */
  readonly matchesAfterDryRun?: boolean;
}

/** An entry of `status.relatedObjects`. */
export interface RelatedObjectEntry {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
  };
  readonly compliant: EvaluatedCompliance;
  /** One of REASONS. */
  readonly reason: string;
  readonly properties?: RelatedObjectProperties;
}

/** The name of the entry for all objects of a namespace, none of which the template matches. */
export const CONDENSED_NAME = '-';

/** The entries of one result. */
export function relatedObjects(
  type: ResourceType,
  result: ObjectResult,
  properties?: RelatedObjectProperties,
): readonly RelatedObjectEntry[] {
  const names = result.names.length === 0 ? [CONDENSED_NAME] : result.names;
  return names.map((name) => ({
    ...objectEntry({ type, namespace: result.namespace, name }),
    compliant: result.isCompliant ? 'Compliant' : 'NonCompliant',
    reason: result.reason,
    ...(properties === undefined ? {} : { properties }),
  }));
}

/**
 * The entries of a policy: each object once, sorted. Of two entries the later one counts if they disagree. Who created an
 * object is taken from the previous status, unless it is another object now.
 */
export function mergedRelatedObjects(
  entries: readonly RelatedObjectEntry[],
  previous: readonly RelatedObjectEntry[],
): readonly RelatedObjectEntry[] {
  const byKey = new Map<string, RelatedObjectEntry>();
  for (const entry of entries) {
    const known = byKey.get(relatedKey(entry));
    if (known === undefined || known.compliant !== entry.compliant) {
      byKey.set(relatedKey(entry), entry);
    }
  }
  const before = new Map(previous.map((entry) => [relatedKey(entry), entry]));
  return [...byKey]
    .map(([key, entry]) => withCreation(entry, before.get(key)))
    .sort((left, right) => compareStrings(sortKey(left), sortKey(right)));
}

/** The entry of a named object that is not as its template says. */
export function objectEntry({
  type,
  namespace,
  name,
}: {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
}): RelatedObjectEntry {
  const object = { apiVersion: apiVersionOf(type), kind: type.kind };
  const metadata = namespace === '' ? { name } : { name, namespace };
  return { object: { ...object, metadata }, compliant: 'NonCompliant', reason: REASONS.mismatch };
}

/** The identity of an object among related objects. */
export function relatedKey({ object }: StoredEntry): string {
  const { apiVersion = '', kind = '', metadata } = object ?? {};
  return JSON.stringify([apiVersion, kind, metadata?.namespace ?? '', metadata?.name ?? '']);
}

/** An entry as the schema of the kind allows it. */
interface StoredEntry {
  readonly object?: {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly metadata?: { readonly name?: string; readonly namespace?: string };
  };
}

/** Reasons of objects that are not there, or whose recreation has not ended. */
const UNFINISHED: ReadonlySet<string> = new Set([
  REASONS.readFailed,
  REASONS.notFound,
  REASONS.creationFailed,
  REASONS.updateFailed,
]);

function withCreation(entry: RelatedObjectEntry, before: RelatedObjectEntry | undefined): RelatedObjectEntry {
  const { properties } = entry;
  const known = before?.properties;
  if (known?.recreating === true && UNFINISHED.has(entry.reason)) {
    return { ...entry, properties: { ...properties, ...known } };
  }
  if (properties === undefined && known?.createdByPolicy === true && entry.reason === REASONS.readFailed) {
    // What cannot be read for a moment is still the policy's own.
    return { ...entry, properties: known };
  }
  const isSame = known?.uid !== undefined && known.uid === properties?.uid;
  return properties?.createdByPolicy === false && known?.createdByPolicy === true && isSame
    ? { ...entry, properties: { ...properties, createdByPolicy: true } }
    : entry;
}

function sortKey({ object: { kind, metadata } }: RelatedObjectEntry): string {
  return [kind, metadata.namespace ?? '', metadata.name].join('\u0000');
}
