// Request options from queries and DeleteOptions bodies, validated as in API servers (meta.k8s.io/v1).
import { ApiError } from '../../cluster/index.ts';
import type { DeleteOptions, FieldValidation, ListOptions, WatchOptions, WriteOptions } from '../../cluster/index.ts';
import { forbidden, notSupported, required } from '../../resources/index.ts';
import type { FieldError, JsonObject, JsonValue } from '../../resources/index.ts';
import { fieldManagerErrors } from '../../resources/validation/index.ts';
import { managerOf } from '../server-side-apply/manager-name.ts';

type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions' | 'ListOptions';

/** The parsed fields of options; absent ones are not set. */
export type Parsed<T, K extends keyof T> = { readonly [P in K]?: Exclude<T[P], undefined> };

/** Options of a write. */
export interface ParsedWriteOptions extends Parsed<WriteOptions, 'dryRun' | 'fieldManager' | 'fieldValidation'> {
  /** For server-side apply. */
  readonly force?: boolean;
}

/** Longest delay of a timer of Node.js: 2³¹ - 1 ms, 24 days. */
const MAX_TIMEOUT_SECONDS = Math.trunc((2 ** 31 - 1) / 1000);

const FIELD_VALIDATIONS: readonly string[] = ['Ignore', 'Strict', 'Warn'] satisfies FieldValidation[];

/**
 * The options of a POST, PUT or PATCH.
 * @throws ApiError 422
 */
export function writeOptions(
  query: URLSearchParams,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  userAgent: string | undefined,
  patchType?: 'merge' | 'json' | 'strategic' | 'apply',
): ParsedWriteOptions {
  const errors: FieldError[] = [];
  const manager = query.get('fieldManager') ?? '';
  if (patchType === 'apply' && manager === '') {
    errors.push(required('fieldManager', 'is required for apply patch'));
  }
  const force = query.get('force');
  if (force !== null && kind === 'PatchOptions' && patchType !== 'apply') {
    errors.push(forbidden('force', 'may not be specified for non-apply patch'));
  }
  errors.push(...fieldManagerErrors(manager, 'fieldManager'), ...dryRunErrors(query.getAll('dryRun')));
  const validation = query.get('fieldValidation') ?? '';
  if (validation !== '' && !FIELD_VALIDATIONS.includes(validation)) {
    errors.push(notSupported('fieldValidation', validation, ['', ...FIELD_VALIDATIONS]));
  }
  refuse(kind, errors);
  return {
    ...(query.has('dryRun') ? { dryRun: true } : {}),
    fieldManager: managerOf(manager, userAgent) || 'unknown',
    ...(validation === '' ? {} : { fieldValidation: validation as FieldValidation }),
    ...(force === null ? {} : { force: isTrue(force) }),
  };
}

function dryRunErrors(values: readonly string[]): FieldError[] {
  return values.every((value) => value === 'All') ? [] : [notSupported('dryRun', values, ['All'])];
}

function refuse(kind: OptionsKind, errors: readonly FieldError[]): void {
  if (errors.length > 0) {
    throw ApiError.invalid({ group: 'meta.k8s.io', kind }, '', errors);
  }
}

/** The selectors of a list, a watch or a collection's deletion. */
export function selectorsOf(query: URLSearchParams): Parsed<ListOptions, 'labelSelector' | 'fieldSelector'> {
  const labelSelector = query.get('labelSelector') ?? '';
  const fieldSelector = query.get('fieldSelector') ?? '';
  return {
    ...(labelSelector === '' ? {} : { labelSelector }),
    ...(fieldSelector === '' ? {} : { fieldSelector }),
  };
}

/** Whether a GET is a watch. */
export function isWatchRequest(query: URLSearchParams): boolean {
  const watch = query.get('watch');
  return watch !== null && isTrue(watch);
}

type Match = Exclude<ListOptions['resourceVersionMatch'], undefined>;

/**
 * The options of a list.
 * @throws ApiError 400 or 422
 */
export function listOptions(
  query: URLSearchParams,
): Parsed<
  ListOptions,
  'labelSelector' | 'fieldSelector' | 'limit' | 'continue' | 'resourceVersion' | 'resourceVersionMatch'
> {
  const limit = integer(query, 'limit') ?? 0;
  const resourceVersion = query.get('resourceVersion') ?? '';
  const token = query.get('continue') ?? '';
  const match = matchOf(query);
  if (query.has('sendInitialEvents')) {
    refuse('ListOptions', [forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list')]);
  }
  if (match !== undefined && token !== '') {
    refuse('ListOptions', [
      forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
    ]);
  }
  return {
    ...selectorsOf(query),
    ...(limit > 0 ? { limit } : {}),
    ...(token === '' ? {} : { continue: token }),
    ...(resourceVersion === '' ? {} : { resourceVersion }),
    ...(match === undefined ? {} : { resourceVersionMatch: match }),
  };
}

/**
 * The options of a watch.
 * @throws ApiError 400 or 422
 */
export function watchOptions(
  query: URLSearchParams,
): Parsed<
  WatchOptions,
  'labelSelector' | 'fieldSelector' | 'resourceVersion' | 'allowBookmarks' | 'sendInitialEvents' | 'timeoutSeconds'
> {
  const timeoutSeconds = Math.min(integer(query, 'timeoutSeconds') ?? 0, MAX_TIMEOUT_SECONDS);
  const resourceVersion = query.get('resourceVersion') ?? '';
  const bookmarks = query.get('allowWatchBookmarks');
  const initial = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch') ?? '';
  if (initial !== null && match !== 'NotOlderThan') {
    refuse('ListOptions', [
      forbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    ]);
  }
  if (initial === null && match !== '') {
    refuse('ListOptions', [
      forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    ]);
  }
  return {
    ...selectorsOf(query),
    ...(resourceVersion === '' ? {} : { resourceVersion }),
    ...(bookmarks === null ? {} : { allowBookmarks: isTrue(bookmarks) }),
    ...(initial === null ? {} : { sendInitialEvents: isTrue(initial) }),
    ...(timeoutSeconds > 0 ? { timeoutSeconds } : {}),
  };
}

function matchOf(query: URLSearchParams): Match | undefined {
  const match = query.get('resourceVersionMatch') ?? '';
  if (match === '') {
    return undefined;
  }
  if ((query.get('resourceVersion') ?? '') === '') {
    const message = 'resourceVersionMatch is forbidden unless resourceVersion is provided';
    refuse('ListOptions', [forbidden('resourceVersionMatch', message)]);
  }
  if (match !== 'Exact' && match !== 'NotOlderThan') {
    refuse('ListOptions', [notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', ''])]);
    return undefined;
  }
  return match;
}

/** Parses a boolean of a query as API servers do: everything except `false` and `0` is true. */
function isTrue(text: string): boolean {
  return text.toLowerCase() !== 'false' && text !== '0';
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') {
    return undefined;
  }
  const value = Number(text);
  if (!/^[+-]?\d{1,15}$/.test(text) || !Number.isSafeInteger(value)) {
    throw ApiError.badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  return value;
}

const PROPAGATION_POLICIES = ['Foreground', 'Background', 'Orphan'] as const;

/** Options of a deletion. */
export type ParsedDeleteOptions = Parsed<
  DeleteOptions,
  'dryRun' | 'gracePeriodSeconds' | 'propagationPolicy' | 'preconditions'
>;

/**
 * The options of a DELETE: from the body if there is one, else from the query.
 * @throws ApiError 400 or 422
 */
export function deleteOptions(query: URLSearchParams, body: JsonObject | undefined): ParsedDeleteOptions {
  if (body === undefined) {
    const orphan = query.get('orphanDependents');
    return checkedDeleteOptions({
      gracePeriodSeconds: integer(query, 'gracePeriodSeconds'),
      propagationPolicy: query.get('propagationPolicy') ?? undefined,
      orphanDependents: orphan === null ? undefined : isTrue(orphan),
      dryRun: query.getAll('dryRun'),
      preconditions: undefined,
    });
  }
  const {
    kind = 'DeleteOptions',
    gracePeriodSeconds,
    propagationPolicy,
    orphanDependents,
    dryRun,
    preconditions,
  } = body;
  if (kind !== 'DeleteOptions') {
    throw ApiError.badRequest(`decoded object cannot be converted to DeleteOptions: got ${JSON.stringify(kind)}`);
  }
  return checkedDeleteOptions({
    gracePeriodSeconds: typed(gracePeriodSeconds, 'number', 'gracePeriodSeconds'),
    propagationPolicy: typed(propagationPolicy, 'string', 'propagationPolicy'),
    orphanDependents: typed(orphanDependents, 'boolean', 'orphanDependents'),
    dryRun: stringList(dryRun, 'dryRun'),
    preconditions: typed(preconditions, 'object', 'preconditions'),
  });
}

function checkedDeleteOptions(options: {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly dryRun: readonly string[];
  readonly preconditions: JsonObject | undefined;
}): ParsedDeleteOptions {
  const { gracePeriodSeconds, orphanDependents, dryRun, preconditions } = options;
  const errors = dryRunErrors(dryRun);
  const policy = PROPAGATION_POLICIES.find((known) => known === options.propagationPolicy);
  if (options.propagationPolicy !== undefined && policy === undefined) {
    errors.push(notSupported('propagationPolicy', options.propagationPolicy, [...PROPAGATION_POLICIES, 'nil']));
  }
  if (policy !== undefined && orphanDependents !== undefined) {
    const message = 'Invalid value: orphanDependents and deletionPropagation cannot be both set';
    errors.push({ reason: 'FieldValueInvalid', field: 'propagationPolicy', message });
  }
  refuse('DeleteOptions', errors);
  const uid = typed(preconditions?.['uid'], 'string', 'preconditions.uid');
  const resourceVersion = typed(preconditions?.['resourceVersion'], 'string', 'preconditions.resourceVersion');
  const propagationPolicy = policy ?? (orphanDependents === true ? 'Orphan' : undefined);
  return {
    ...(dryRun.length > 0 ? { dryRun: true } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(uid === undefined && resourceVersion === undefined
      ? {}
      : {
          preconditions: {
            ...(uid === undefined ? {} : { uid }),
            ...(resourceVersion === undefined ? {} : { resourceVersion }),
          },
        }),
  };
}

interface TypeNames {
  readonly number: number;
  readonly string: string;
  readonly boolean: boolean;
  readonly object: JsonObject;
}

function typed<K extends keyof TypeNames>(value: unknown, type: K, field: string): TypeNames[K] | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  if (typeof value !== type || Array.isArray(value)) {
    throw wrongType(value, `${type === 'object' ? 'an' : 'a'} ${type}`, field);
  }
  return value as TypeNames[K];
}

function stringList(value: JsonValue | undefined, field: string): readonly string[] {
  const list = value ?? [];
  if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) {
    // If a malformed `dryRun` were ignored, the object would be deleted.
    throw wrongType(list, 'a list of strings', field);
  }
  return list;
}

function wrongType(value: unknown, expected: string, field: string): ApiError {
  return ApiError.badRequest(
    `DeleteOptions.${field}: expected ${expected}, got ${JSON.stringify(value)?.slice(0, 100)}`,
  );
}
