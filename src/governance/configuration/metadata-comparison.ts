// Compares labels and annotations, the only metadata that a policy compares and writes.
import { quote, typeOf, valueText } from '../../go/index.ts';
import { LAST_APPLIED_ANNOTATION } from '../../resources/index.ts';
import { isJsonObject, own, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { equivalence } from './equivalent-objects.ts';
import type { Equivalence } from './equivalent-objects.ts';
import { mergeMaps } from './merge-objects.ts';
import type { MergeContext } from './merge-objects.ts';
import type { ComparisonType } from './object-template.ts';

/** Prefix of annotations that OpenShift sets on namespaces. */
const SECURITY_CONTEXT_PREFIX = 'openshift.io/sa.scc.';

export interface MetadataContext extends MergeContext {
  readonly type: ComparisonType;
  /** Whether the object is a Namespace, whose security context annotations are kept. */
  readonly isNamespace: boolean;
}

export interface FieldComparison {
  readonly result: Equivalence;
  /** Whether only a dry run can tell whether the object matches. */
  readonly isDoubtful: boolean;
  /** What to write. */
  readonly merged: JsonValue;
}

/** The fields of metadata that are compared, with what an invalid value is called in messages. */
const COMPARED = { annotations: 'annotation', labels: 'label' } as const;
type ComparedField = keyof typeof COMPARED;
export const COMPARED_METADATA: readonly ComparedField[] = ['annotations', 'labels'];

/** What is wrong with the labels or annotations of a template. */
export function metadataProblem(desired: JsonObject): string | undefined {
  for (const field of COMPARED_METADATA) {
    const problem = stringsProblem(own(desired, field));
    if (problem !== undefined) {
      return `invalid ${COMPARED[field]}, error: ${problem}`;
    }
  }
  return undefined;
}

/** Compares the labels or the annotations of a template, which must be strings, with those of the live object. */
export function compareMetadataField(
  desired: JsonObject,
  live: JsonValue | undefined,
  context: MetadataContext,
): FieldComparison {
  const existing = isJsonObject(live) ? live : {};
  const [wanted, comparable] = [withoutLastApplied(desired), withoutLastApplied(existing)];
  const merge =
    context.type === 'musthave'
      ? mergeMaps(wanted, comparable, context)
      : { value: withKept(wanted, comparable, context), hasMissingKey: false };
  // An absent map differs from an empty one until a dry run has shown that it does not.
  const result = isJsonObject(live) ? equivalence(merge.value, comparable, context) : 'different';
  const isAbsentEnough = context.zeroValueEqualsNil && Object.keys(wanted).length === 0;
  return {
    result: isAbsentEnough && !isJsonObject(live) ? 'equal' : result,
    isDoubtful: merge.hasMissingKey || result === 'zero',
    merged: withLastApplied(merge.value, existing),
  };
}

function stringsProblem(strings: JsonValue | undefined): string | undefined {
  if (strings === undefined || strings === null) {
    return undefined;
  }
  if (!isJsonObject(strings)) {
    return `${valueText(strings)} is of the type ${typeOf(strings)}, expected map[string]interface {}`;
  }
  const [invalid] = Object.entries(strings)
    .filter(([, value]) => typeof value !== 'string')
    .sort(([left], [right]) => (left < right ? -1 : 1));
  if (invalid === undefined) {
    return undefined;
  }
  const [key, value] = invalid;
  const text = `${valueText(value)} is of the type ${typeOf(value)}, expected string`;
  return `contains non-string value in the map under key ${quote(key)}: ${text}`;
}

/** The annotation of client-side apply is never compared, because every apply changes it. */
function withoutLastApplied(strings: JsonObject): JsonObject {
  if (!Object.hasOwn(strings, LAST_APPLIED_ANNOTATION)) {
    return strings;
  }
  const { [LAST_APPLIED_ANNOTATION]: _lastApplied, ...others } = strings;
  return others;
}

function withLastApplied(merged: JsonObject, existing: JsonObject): JsonObject {
  const lastApplied = own(existing, LAST_APPLIED_ANNOTATION);
  return lastApplied === undefined ? merged : { ...merged, [LAST_APPLIED_ANNOTATION]: lastApplied };
}

/** The template's strings, and those of the live object that even `mustonlyhave` keeps. */
function withKept(desired: JsonObject, live: JsonObject, { isNamespace }: MetadataContext): JsonObject {
  const kept = Object.entries(live).filter(([key]) => isNamespace && key.startsWith(SECURITY_CONTEXT_PREFIX));
  const merged: JsonObject = { ...desired };
  for (const [key, value] of kept) {
    if (!Object.hasOwn(desired, key)) {
      setOwn(merged, key, value);
    }
  }
  return merged;
}
