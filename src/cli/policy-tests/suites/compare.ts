// Compares the response of a policy with the expectations of a test.
import {
  isEqual,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type PatchOperation,
  type Verdict,
} from '../../../engine/index.ts';
import { errorText, exactJson } from '../../../values/index.ts';
import { objectYaml } from './object-yaml.ts';
import { patched, patchOf } from './patched.ts';
import { type DiffLine, lineDiff } from './line-diff.ts';
import { describeMatcher, isMatch, type TextMatcher } from './text-matcher.ts';

/** A failed expectation. */
export interface Mismatch {
  /** Key of the expectation, or a path below it: `allowed`, `objectContains.spec.replicas`. */
  readonly field: string;
  readonly expected: string;
  readonly actual: string;
  /** For multi-line values. */
  readonly diff?: readonly DiffLine[];
}

/** The expectations of a verdict, with all files read. */
export interface VerdictExpectation {
  readonly allowed?: boolean;
  readonly message?: TextMatcher;
  readonly code?: number;
  readonly warnings?: readonly TextMatcher[];
  readonly auditAnnotations?: Readonly<Record<string, TextMatcher>>;
  readonly object?: JsonValue;
  readonly objectContains?: JsonValue;
  readonly patch?: readonly JsonValue[];
  readonly unchanged?: true;
}

const NOTHING = 'nothing';

/**
 * All failed expectations.
 * @param object of the request
 * @param withDefaults sets what API servers set in an object after a patch. Default: nothing
 */
export function compareVerdict(
  expect: VerdictExpectation,
  verdict: Verdict,
  object: JsonValue,
  withDefaults: (object: JsonValue) => JsonValue = (changed) => changed,
): readonly Mismatch[] {
  const { allowed, message, code, warnings, auditAnnotations } = verdict;
  const mismatches: Mismatch[] = [];
  if (expect.allowed !== undefined && expect.allowed !== allowed) {
    mismatches.push({ field: 'allowed', expected: String(expect.allowed), actual: String(allowed) });
  }
  if (expect.message !== undefined) {
    mismatches.push(...compareText('message', expect.message, message));
  } else if (mismatches.length > 0 && !allowed) {
    // The message says why the request was denied.
    mismatches.push({ field: 'message', expected: NOTHING, actual: message ?? NOTHING });
  }
  if (expect.code !== undefined && expect.code !== code) {
    mismatches.push({ field: 'code', expected: String(expect.code), actual: String(code ?? NOTHING) });
  }
  if (expect.warnings !== undefined) {
    mismatches.push(...compareWarnings(expect.warnings, warnings ?? []));
  }
  if (expect.auditAnnotations !== undefined) {
    mismatches.push(...compareAnnotations(expect.auditAnnotations, auditAnnotations ?? {}));
  }
  return [...mismatches, ...compareChange(expect, verdict, object, withDefaults)];
}

/** Compares a text with a matcher. */
export function compareText(field: string, matcher: TextMatcher, actual: string | undefined): readonly Mismatch[] {
  if (matcher.kind === 'all') {
    return matcher.matchers.flatMap((one) => compareText(field, one, actual));
  }
  return actual !== undefined && isMatch(matcher, actual)
    ? []
    : [{ field, expected: describeMatcher(matcher), actual: actual ?? NOTHING }];
}

function compareWarnings(expected: readonly TextMatcher[], actual: readonly string[]): readonly Mismatch[] {
  return Array.from({ length: Math.max(expected.length, actual.length) }, (_, index) => {
    const field = `warnings[${index}]`;
    const matcher = expected[index];
    return matcher === undefined
      ? [{ field, expected: NOTHING, actual: actual[index] ?? NOTHING }]
      : compareText(field, matcher, actual[index]);
  }).flat();
}

function compareAnnotations(
  expected: Readonly<Record<string, TextMatcher>>,
  actual: Readonly<Record<string, string>>,
): readonly Mismatch[] {
  const missing = Object.entries(expected).flatMap(([key, matcher]) =>
    compareText(`auditAnnotations[${key}]`, matcher, Object.hasOwn(actual, key) ? actual[key] : undefined),
  );
  const unexpected = Object.entries(actual)
    .filter(([key]) => !Object.hasOwn(expected, key))
    .map(([key, text]) => ({ field: `auditAnnotations[${key}]`, expected: NOTHING, actual: text }));
  return [...missing, ...unexpected];
}

function compareChange(
  expect: VerdictExpectation,
  verdict: Verdict,
  object: JsonValue,
  withDefaults: (object: JsonValue) => JsonValue,
): readonly Mismatch[] {
  const { unchanged, patch: expectedPatch, object: expectedObject, objectContains } = expect;
  if (
    unchanged === undefined &&
    expectedPatch === undefined &&
    expectedObject === undefined &&
    objectContains === undefined
  ) {
    return [];
  }
  let patch: readonly PatchOperation[];
  let changed: JsonValue;
  try {
    patch = patchOf(verdict);
    changed = withDefaults(patched(object, patch));
  } catch (error) {
    return [{ field: 'patch', expected: 'a patch that an API server can apply', actual: errorText(error) }];
  }
  return [
    ...(unchanged === undefined ? [] : compareValue('unchanged', object, changed)),
    ...(expectedPatch === undefined ? [] : compareValue('patch', [...expectedPatch], [...patch] as JsonValue[])),
    ...(expectedObject === undefined ? [] : compareValue('object', expectedObject, changed)),
    ...(objectContains === undefined ? [] : compareSubset('objectContains', objectContains, changed)),
  ];
}

/** Deep equality; the order of keys is ignored. */
function compareValue(field: string, expected: JsonValue, actual: JsonValue): readonly Mismatch[] {
  if (isEqual(expected, actual)) {
    return [];
  }
  const [left, right] = [objectYaml(expected), objectYaml(actual)];
  return [{ field, expected: left, actual: right, diff: lineDiff(left, right) }];
}

/**
 * The keys of an expected mapping must match, and the elements of a list one by one. Null means absent.
 */
function compareSubset(path: string, expected: JsonValue, actual: JsonValue | undefined): readonly Mismatch[] {
  if (expected === null || actual === undefined) {
    return (expected === null && (actual ?? null) === null) || actual === expected
      ? []
      : [{ field: path, expected: short(expected), actual: short(actual) }];
  }
  if (isJsonObject(expected) && isJsonObject(actual)) {
    return Object.entries(expected).flatMap(([key, value]) =>
      compareSubset(joined(path, key), value, Object.hasOwn(actual, key) ? actual[key] : undefined),
    );
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((value, index) => compareSubset(`${path}[${index}]`, value, actual[index]));
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    return compareValue(path, expected, actual);
  }
  return isEqual(expected, actual) ? [] : [{ field: path, expected: short(expected), actual: short(actual) }];
}

function joined(path: string, key: string): string {
  return /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

function short(value: JsonValue | undefined): string {
  if (value === undefined || value === null) {
    return NOTHING;
  }
  return typeof value === 'string' ? value : exactJson(value);
}

/** Adds the namespace that API servers fill in before policies see the object. */
export function withDefaultNamespace(expected: JsonValue, actual: JsonValue): JsonValue {
  const [expectedMetadata, actualMetadata] = [metadataOf(expected), metadataOf(actual)];
  if (expectedMetadata === undefined || actualMetadata === undefined || !isJsonObject(expected)) {
    return expected;
  }
  const { namespace } = actualMetadata;
  return namespace === undefined || Object.hasOwn(expectedMetadata, 'namespace')
    ? expected
    : { ...expected, metadata: { ...expectedMetadata, namespace } };
}

function metadataOf(value: JsonValue): JsonObject | undefined {
  return isJsonObject(value) && isJsonObject(value['metadata']) ? value['metadata'] : undefined;
}
