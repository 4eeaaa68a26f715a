// `status.relatedObjects`: the objects that a policy evaluates.
import { compareStrings } from '../../go/index.ts';
import type { ResourceType } from '../../resources/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import { REASONS } from './compliance-reasons.ts';
import type { ComplianceState, ObjectResult } from './compliance-message.ts';

/** What is remembered of an object, mainly for pruning. */
export interface RelatedObjectProperties {
  /** Whether the policy created the object: only then `DeleteIfCreated` deletes it. */
  readonly createdByPolicy?: boolean;
  readonly uid?: string;
  readonly diff?: string;
  /** Whether a difference was only apparent, as a dry run showed. */
  readonly matchesAfterDryRun?: boolean;
}

/** An entry of `status.relatedObjects`. */
export interface RelatedObject {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
  };
  readonly compliant: ComplianceState;
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
): readonly RelatedObject[] {
  const names = result.names.length === 0 ? [CONDENSED_NAME] : result.names;
  return names.map((name) => ({
    object: {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: result.namespace === '' ? { name } : { name, namespace: result.namespace },
    },
    compliant: result.isCompliant ? 'Compliant' : 'NonCompliant',
    reason: result.reason,
    ...(properties === undefined ? {} : { properties }),
  }));
}

/**
 * The entries of a policy: each object once, sorted. Of two entries the later one counts if they disagree. Who created an
 * object is taken from the previous status, unless the policy has just created it.
 */
export function mergedRelatedObjects(
  entries: readonly RelatedObject[],
  previous: readonly RelatedObject[],
): readonly RelatedObject[] {
  const byKey = new Map<string, RelatedObject>();
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

/** The identity of an object among related objects. */
export function relatedKey({ object: { apiVersion, kind, metadata } }: RelatedObject): string {
  return JSON.stringify([apiVersion, kind, metadata.namespace ?? '', metadata.name]);
}

function withCreation(entry: RelatedObject, before: RelatedObject | undefined): RelatedObject {
  const { properties } = entry;
  const known = before?.properties;
  if (properties === undefined && known?.createdByPolicy === true && entry.reason === REASONS.readFailed) {
    // What cannot be read for a moment is still the policy's own.
    return { ...entry, properties: known };
  }
  if (properties?.createdByPolicy !== false || known?.createdByPolicy !== true) {
    return entry;
  }
  const uid = known.uid === undefined ? {} : { uid: known.uid };
  return { ...entry, properties: { ...properties, createdByPolicy: true, ...uid } };
}

function sortKey({ object: { kind, metadata } }: RelatedObject): string {
  return [kind, metadata.namespace ?? '', metadata.name].join('\u0000');
}
