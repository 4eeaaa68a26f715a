// Compares the template of an object with the live object: whether it matches, and what to write if not.
import { compareStrings, quote } from '../../go/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { CodedError, isJsonObject, own, setOwn, valueAt } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { checkNesting, ComparisonBudget, ComparisonError } from './comparison-budget.ts';
import type { ComparisonErrorCode } from './comparison-budget.ts';
import { equivalence } from './equivalent-objects.ts';
import { ListKeyError, ListKeys, NO_LIST_KEYS } from './list-keys.ts';
import type { ListKey } from './list-keys.ts';
import { mergeValues } from './merge-objects.ts';
import type { Merge, MergeContext } from './merge-objects.ts';
import { COMPARED_METADATA, compareMetadataField, metadataProblem } from './metadata-comparison.ts';
import type { FieldComparison } from './metadata-comparison.ts';
import { MAX_MISMATCH_PATHS, mismatchPaths } from './mismatch-paths.ts';
import type { ComparisonType } from './object-template.ts';
import { decodeData } from './secret-strings.ts';

export interface ComparisonOptions {
  readonly type: ComparisonType;
  /** Default: the type. */
  readonly metadataType?: ComparisonType;
  readonly listKeys?: readonly ListKey[];
  /** For templates without a name, which no dry run checks: absent values equal zero values. Default: false. */
  readonly zeroValueEqualsNil?: boolean;
}

export type ObjectComparison =
  | {
      readonly type: 'compared';
      /** Whether there is nothing to write. */
      readonly matches: boolean;
      /** Whether the status is as specified. A policy never writes it. */
      readonly statusMatches: boolean;
      /** Whether the object matches only if the API server treats absent values as zero values. A dry run can tell. */
      readonly isDoubtful: boolean;
      /** Where the object differs: `spec.replicas`, `metadata.labels.app`; the first {@link MAX_MISMATCH_PATHS}. */
      readonly mismatches: readonly string[];
      /** What to write. */
      readonly merged: KubernetesObject;
    }
  /** The template cannot be compared with the object: a violation, with the message of OCM. */
  | { readonly type: 'failed'; readonly code: ComparisonFailure; readonly message: string };

/** `incomparable`: the object differs in a way that no write can repair. With all others it is not known whether it differs. */
type ComparisonFailure = 'incomparable' | ComparisonErrorCode | ListKeyError['code'];

/** Fields that are never compared: a difference there would be another object. */
const IDENTITY_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind']);
/** Fields that `mustonlyhave` keeps. */
const KEPT_FIELDS: ReadonlySet<string> = new Set([...IDENTITY_FIELDS, 'metadata', 'status']);
/** Fields of ServiceAccounts that `mustonlyhave` keeps, because Kubernetes manages them. */
const SERVICE_ACCOUNT_FIELDS: ReadonlySet<string> = new Set(['secrets', 'imagePullSecrets']);
/** How often a template is merged again until nothing changes; lists of overlapping items need a second time. */
const MAX_MERGES = 4;

/** Compares a template, with its name, with the live object. Neither is changed. */
export function compareObject(
  desired: JsonObject,
  live: KubernetesObject,
  options: ComparisonOptions,
): ObjectComparison {
  // Objects of a cluster are JSON.
  const existing = live as JsonObject & KubernetesObject;
  try {
    checkNesting(desired);
    checkNesting(existing);
    return new Comparison(desired, existing, options).run();
  } catch (error) {
    if (error instanceof ComparisonError || error instanceof ListKeyError || error instanceof IncomparableError) {
      return { type: 'failed', code: error.code, message: error.message };
    }
    throw error;
  }
}

/** A field of the template does not fit that of the object. */
class IncomparableError extends CodedError<'incomparable'> {
  override readonly name = 'IncomparableError';
}

class Comparison {
  readonly #desired: JsonObject;
  readonly #live: JsonObject & KubernetesObject;
  readonly #options: ComparisonOptions;
  readonly #context: MergeContext;
  readonly #merged: JsonObject & KubernetesObject;
  readonly #mismatches: string[] = [];
  #statusMatches = true;
  #isDoubtful = false;

  constructor(desired: JsonObject, live: JsonObject & KubernetesObject, options: ComparisonOptions) {
    this.#desired = desired;
    this.#live = live;
    this.#options = options;
    this.#merged = { ...live };
    this.#context = {
      zeroValueEqualsNil: options.zeroValueEqualsNil ?? false,
      listKeys: ListKeys.of(options.listKeys ?? []),
      budget: new ComparisonBudget(),
    };
  }

  run(): ObjectComparison {
    for (const key of Object.keys(this.#desired).sort(compareStrings)) {
      this.#compare(key, this.#desired[key] ?? null);
    }
    if (this.#options.type === 'mustonlyhave') {
      this.#removeOthers();
    }
    return {
      type: 'compared',
      matches: this.#mismatches.length === 0,
      statusMatches: this.#statusMatches,
      isDoubtful: this.#isDoubtful,
      mismatches: this.#mismatches.slice(0, MAX_MISMATCH_PATHS),
      merged: this.#merged,
    };
  }

  #compare(key: string, desired: JsonValue): void {
    if (IDENTITY_FIELDS.has(key)) {
      return;
    }
    if (key === 'metadata') {
      this.#compareMetadata(desired);
    } else if (key === 'status') {
      const { result } = this.#compareField(key, desired);
      this.#statusMatches = result !== 'different';
    } else if (key === 'stringData' && this.#isSecret()) {
      this.#compareStringData(desired);
    } else {
      this.#apply(key, this.#compareField(key, desired));
    }
  }

  #compareField(key: string, desired: JsonValue): FieldComparison {
    const live = own(this.#live, key);
    if (live !== undefined && live !== null && isContainer(desired) && !isSameShape(desired, live)) {
      const reason = 'object type of template and existing do not match';
      throw new IncomparableError('incomparable', `Error merging changes into key ${quote(key)}: ${reason}`);
    }
    const context = { ...this.#context, listKeys: this.#context.listKeys.field(key) };
    const merge = this.#merge(desired, live, context);
    const result = equivalence(merge.value, live, context);
    const isDoubtful = live === undefined || merge.hasMissingKey || result === 'zero';
    const isChanged = result === 'different' && !this.#isVerbatim(desired);
    return { result, isDoubtful, merged: isChanged ? settled(desired, merge.value, context) : merge.value };
  }

  #merge(desired: JsonValue, live: JsonValue | undefined, context: MergeContext): Merge {
    return this.#isVerbatim(desired) ? { value: desired, hasMissingKey: false } : mergeValues(desired, live, context);
  }

  /** Whether the value of the template replaces the live one. */
  #isVerbatim(desired: JsonValue): boolean {
    return this.#options.type === 'mustonlyhave' && desired !== null;
  }

  #compareMetadata(desired: JsonValue): void {
    if (!isJsonObject(desired)) {
      return;
    }
    const problem = metadataProblem(desired);
    if (problem !== undefined) {
      throw new IncomparableError('incomparable', problem);
    }
    for (const field of COMPARED_METADATA) {
      const strings = own(desired, field);
      if (isJsonObject(strings)) {
        this.#compareStrings(field, strings);
      }
    }
  }

  #compareStrings(field: string, desired: JsonObject): void {
    const { apiVersion, kind, metadata } = this.#live;
    const live = valueAt(metadata, field);
    const comparison = compareMetadataField(desired, live, {
      ...this.#context,
      listKeys: NO_LIST_KEYS,
      type: this.#options.metadataType ?? this.#options.type,
      isNamespace: apiVersion === 'v1' && kind === 'Namespace',
    });
    this.#note(comparison, live, `metadata.${field}`);
    if (live !== undefined || comparison.result === 'different') {
      const others = own(this.#merged, 'metadata');
      setOwn(this.#merged, 'metadata', { ...(isJsonObject(others) ? others : {}), [field]: comparison.merged });
    }
  }

  /** A template's stringData is compared with the decoded data, and written as it is. */
  #compareStringData(desired: JsonValue): void {
    const decoded = decodeData(own(this.#live, 'data'), this.#live.metadata.name ?? '');
    if ('error' in decoded) {
      throw new IncomparableError('incomparable', decoded.error);
    }
    const merge = this.#merge(desired, decoded.strings, this.#context);
    const result = equivalence(merge.value, decoded.strings, this.#context);
    this.#note({ result, isDoubtful: false, merged: merge.value }, decoded.strings, 'stringData');
    if (result === 'different') {
      setOwn(this.#merged, 'stringData', desired);
    }
  }

  #apply(key: string, comparison: FieldComparison): void {
    this.#note(comparison, own(this.#live, key), key);
    setOwn(this.#merged, key, comparison.merged);
  }

  #note({ result, isDoubtful, merged }: FieldComparison, live: JsonValue | undefined, path: string): void {
    this.#isDoubtful ||= isDoubtful;
    if (result === 'different') {
      this.#mismatches.push(...mismatchPaths(merged, live, path, this.#context));
    }
  }

  #removeOthers(): void {
    for (const key of Object.keys(this.#live).sort(compareStrings)) {
      if (!Object.hasOwn(this.#desired, key) && !KEPT_FIELDS.has(key) && !this.#isManaged(key)) {
        delete this.#merged[key];
        this.#mismatches.push(key);
      }
    }
  }

  #isManaged(key: string): boolean {
    const { apiVersion, kind } = this.#live;
    if (apiVersion === 'v1' && kind === 'ServiceAccount') {
      return SERVICE_ACCOUNT_FIELDS.has(key);
    }
    // What API servers make of stringData is right as long as that is.
    return (
      key === 'data' && this.#isSecret() && isJsonObject(own(this.#desired, 'stringData')) && this.#hasStringData()
    );
  }

  #hasStringData(): boolean {
    return !this.#mismatches.some((path) => path.startsWith('stringData'));
  }

  #isSecret(): boolean {
    return this.#live.apiVersion === 'v1' && this.#live.kind === 'Secret';
  }
}

/** A merged value into which the template is merged until that changes nothing, so that one write is enough. */
function settled(desired: JsonValue, merged: JsonValue, context: MergeContext): JsonValue {
  let value = merged;
  for (let merges = 1; merges < MAX_MERGES; merges++) {
    const again = mergeValues(desired, value, context);
    if (equivalence(again.value, value, context) !== 'different') {
      break;
    }
    ({ value } = again);
  }
  return value;
}

function isContainer(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null;
}

function isSameShape(left: JsonValue, right: JsonValue): boolean {
  return isContainer(right) && Array.isArray(left) === Array.isArray(right);
}
