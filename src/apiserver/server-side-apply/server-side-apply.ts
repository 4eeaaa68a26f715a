import { groupVersionOf, timeText } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import { checkTypes, fieldsOf, isSameJson, MergeError, mergeValues } from '../../resources/structured-merge/index.ts';
import type { FieldSet } from '../../resources/structured-merge/index.ts';
import { conflictsOf } from './apply-conflicts.ts';
import type { ApplyConflicts } from './apply-conflicts.ts';
import { fieldsOfLastApplied, syncLastApplied } from './last-applied.ts';
import { managerId, parseManagers } from './managed-fields.ts';
import type { Managers } from './managed-fields.ts';
import { comparable, kindOf, withManagers } from './merge-request.ts';
import type { ManagedWrite } from './merge-request.ts';
import { effectsOf, reconciled } from './ownership.ts';
import type { Conflict, Kind } from './ownership.ts';
import { pruneUnapplied } from './prune-unapplied.ts';
import { trackedFields } from './reset-fields.ts';
import { ownersAfter } from './track-update.ts';

/** A server-side apply. */
export interface ApplyRequest extends ManagedWrite {
  /** The current object; undefined when it is created. */
  readonly live: KubernetesObject | undefined;
  /** The applied configuration: with the `apiVersion` and `kind` of the request, without `managedFields`. */
  readonly applied: KubernetesObject;
  /** Whether to take over fields of other managers instead of reporting conflicts. */
  readonly force?: boolean;
}

/** The merged object with its managers, before defaults are set; or the conflicts (409). */
export type ApplyResult =
  | { readonly object: KubernetesObject; readonly conflicts?: undefined }
  | { readonly conflicts: ApplyConflicts; readonly object?: undefined };

/** The manager of all fields of an object that had no managers before an apply. */
const BEFORE_FIRST_APPLY = 'before-first-apply';

/** The manager of `kubectl apply --server-side`. It takes over the fields of client-side apply. */
const KUBECTL = 'kubectl';

/**
 * Applies a configuration as API servers do (KEP-555). It is merged into the object, and the managers are updated. Fields that
 * the manager does not apply any more are removed, unless another manager owns them. Returns the live object itself when
 * nothing changes. Throws MergeError.
 */
export function applyServerSide(request: ApplyRequest): ApplyResult {
  checkRequest(request);
  const { live, manager, force = false } = request;
  const apply = new Apply(request);
  let outcome = apply.run(force);
  if (outcome.conflicts.size > 0 && manager === KUBECTL) {
    outcome = apply.resolvedByLastApplied(outcome);
  }
  if (outcome.conflicts.size > 0) {
    return { conflicts: conflictsOf(outcome.conflicts) };
  }
  const object = withManagers(outcome.object, outcome.managers);
  const synced = manager === KUBECTL ? syncLastApplied(object, request.applied) : object;
  const isSame = live !== undefined && isSameJson(synced as JsonObject, live as JsonObject);
  return { object: isSame ? live : synced };
}

interface Outcome {
  readonly object: JsonObject;
  readonly managers: Managers;
  /** Empty when forced. */
  readonly conflicts: ReadonlyMap<string, Conflict>;
}

class Apply {
  readonly #request: ApplyRequest;
  readonly #kind: Kind;
  readonly #live: JsonObject;
  readonly #applied: JsonObject;
  readonly #managers: Managers;

  constructor(request: ApplyRequest) {
    this.#request = request;
    this.#kind = kindOf(request);
    const { definition, live } = request;
    this.#applied = request.applied as JsonObject;
    checked('patch object', request, () => checkTypes(this.#applied, this.#kind.type, false));
    this.#live = comparable(live, definition);
    checked('live object', request, () => checkTypes(this.#live, this.#kind.type, true));
    this.#managers = reconciled(this.#startingManagers(), this.#kind);
  }

  /** The managers before the apply. An object without managers gets {@link BEFORE_FIRST_APPLY}. */
  #startingManagers(): Managers {
    const managers = parsedManagers(this.#request.live);
    if (managers.size > 0) {
      return managers;
    }
    const empty = comparable(undefined, this.#request.definition);
    return ownersAfter({ ...this.#request, manager: BEFORE_FIRST_APPLY }, managers, empty, this.#live);
  }

  run(isForced: boolean): Outcome {
    const { live, manager, subresource = '', now } = this.#request;
    const { apiVersion, type, resetFields } = this.#kind;
    const self = { manager, operation: 'Apply', apiVersion, subresource } as const;
    const id = managerId(self);
    const before = this.#managers.get(id);
    const fields = fieldsOf(this.#applied, type).without(resetFields);
    const managers: Managers = new Map(this.#managers).set(id, { ...self, time: before?.time, fields });
    const merged = mergeValues(this.#live, this.#applied, type);
    const object = before === undefined ? merged : pruneUnapplied(merged, before, managers, this.#kind);
    const { conflicts, others } = effectsOf(this.#live, object, this.#kind, managers, id);
    const isChanged = live === undefined || !isSameJson(object, this.#live);
    const tracked = trackedFields(fields);
    if (!tracked.isEmpty) {
      // The time is that of the last change, so an apply that changes nothing does not set it.
      others.set(id, { ...self, time: isChanged ? timeText(now) : before?.time, fields: tracked });
    }
    return {
      object: isChanged ? object : (live as JsonObject),
      managers: others,
      conflicts: isForced ? new Map() : conflicts,
    };
  }

  /** Ignores conflicts about fields that client-side kubectl apply set. */
  resolvedByLastApplied(outcome: Outcome): Outcome {
    const allowed = fieldsOfLastApplied(this.#live, this.#kind);
    if (allowed === undefined) {
      return outcome;
    }
    const conflicts = new Map<string, Conflict>();
    for (const [id, { manager, fields }] of outcome.conflicts) {
      const left: FieldSet = fields.difference(allowed);
      if (!left.isEmpty) {
        conflicts.set(id, { manager, fields: left });
      }
    }
    return conflicts.size === 0 ? this.run(true) : { ...outcome, conflicts };
  }
}

function checkRequest({ applied, definition }: ApplyRequest): void {
  const { group, version } = groupVersionOf(typeof applied.apiVersion === 'string' ? applied.apiVersion : '');
  if (group !== definition.group || version !== definition.version || applied.kind !== definition.kind) {
    throw new MergeError('request-invalid', `invalid object type: ${typeDescription(group, version, applied.kind)}`);
  }
  const metadata = (applied.metadata ?? {}) as { readonly managedFields?: unknown };
  if (Object.hasOwn(metadata, 'managedFields') && metadata.managedFields !== null) {
    throw new MergeError('request-invalid', 'metadata.managedFields must be nil');
  }
}

function parsedManagers(live: KubernetesObject | undefined): Managers {
  try {
    return parseManagers(live?.metadata.managedFields);
  } catch (error) {
    throw error instanceof MergeError
      ? new MergeError('fields-malformed', `failed to decode managed fields: ${error.message}`, { cause: error })
      : error;
  }
}

function checked(what: string, { applied, live, definition }: ApplyRequest, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof MergeError)) {
      throw error;
    }
    const { namespace = '', name = '' } = (what === 'live object' ? live : applied)?.metadata ?? {};
    const type = typeDescription(definition.group, definition.version, definition.kind);
    const text = `failed to create typed ${what} (${namespace}/${name}; ${type}): ${error.message}`;
    throw new MergeError('type-mismatch', text, { cause: error });
  }
}

/** `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`: a kind in messages. */
function typeDescription(group: string, version: string, kind: unknown): string {
  return `${group}/${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}
