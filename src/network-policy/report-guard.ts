// Who writes what of a NetworkPolicyStatus, and of the status of a NetworkPolicyProvider, beside the controller.
import { ApiError } from '../cluster/index.ts';
import { isEqual } from '../engine/index.ts';
import type { GuardedWrite } from '../lifecycle/index.ts';
import {
  type FieldError,
  forbidden,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUS_MANAGER,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyProvider,
  own,
  type OwnKind,
  textOf,
  valueAt,
} from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';
import { objectIn } from '../values/index.ts';
import { reportersOf } from './reporters.ts';

/**
 * Refuses what is not a reporter's to write. The rights of RBAC end at the subresource, and field managers are names that every
 * client chooses.
 */
export class ReportGuard {
  /** The name of the webhook. */
  readonly name = 'network-policy-reports';
  readonly kinds: readonly OwnKind[] = [NETWORK_POLICY_STATUSES, NETWORK_POLICY_PROVIDERS];
  readonly #providers: Pick<ObjectCache<NetworkPolicyProvider>, 'list' | 'isSynced'>;

  constructor(providers: Pick<ObjectCache<NetworkPolicyProvider>, 'list' | 'isSynced'>) {
    this.#providers = providers;
  }

  refusal(write: GuardedWrite): ApiError | undefined {
    const { kind, name, username, isStatus, oldObject } = write;
    const isNew = oldObject === undefined;
    if (kind.kind === NETWORK_POLICY_PROVIDERS.kind) {
      return isStatus ? refused(write, heartbeatErrors(write)) : undefined;
    }
    if (!isStatus && !isNew) {
      return undefined;
    }
    if (!this.#providers.isSynced) {
      const text = `${kind.kind}.${kind.group} "${name}" is not written: it is not known yet who may write it. Try again`;
      return new ApiError(503, 'ServiceUnavailable', text, { retryAfterSeconds: 1 });
    }
    const names = [...reportersOf(this.#providers.list()).values()]
      .filter((reporter) => reporter.username === username)
      .map(({ controllerName }) => controllerName);
    return refused(write, isStatus ? reportErrors(write, names) : creationErrors(write, names));
  }
}

function refused({ kind, name, username }: GuardedWrite, errors: readonly FieldError[]): ApiError | undefined {
  if (errors.length === 0) {
    return undefined;
  }
  const texts = errors.map(({ field, message }) => `${field}: ${message}`).join(', ');
  const text = `${kind.kind}.${kind.group} "${name}" is not for user "${username}" to write like this: ${texts}`;
  const causes = errors.map(({ reason, field, message }) => ({ reason, message, field }));
  return new ApiError(403, 'Forbidden', text, { name, group: kind.group, kind: kind.kind, causes });
}

/** A heartbeat is all that a reporter writes of a NetworkPolicyProvider. */
function heartbeatErrors({ username, object, oldObject = {} }: GuardedWrite): readonly FieldError[] {
  const [before, after] = [oldObject, object].map((one) => objectIn(one, 'status'));
  const changed = changedFields(before ?? {}, after ?? {});
  const others = changed.filter((field) => field !== 'renewTime');
  const isReporter = textOf(valueAt(object, 'spec', 'reporter', 'username')) === username;
  return [
    ...others.map((field) => forbidden(`status.${field}`, 'only the controller writes it')),
    ...(changed.includes('renewTime') && !isReporter
      ? [forbidden('status.renewTime', 'only the user of spec.reporter.username writes it')]
      : []),
  ];
}

/** A reporter may create the object before the controller does. @param names the entries that the user may write */
function creationErrors({ name, object }: GuardedWrite, names: readonly string[]): readonly FieldError[] {
  const owners = valueAt(object, 'metadata', 'ownerReferences');
  const isForeign = (Array.isArray(owners) ? owners : []).some(
    (owner: JsonValue) => textOf(valueAt(owner, 'kind')) !== 'NetworkPolicy' || textOf(valueAt(owner, 'name')) !== name,
  );
  return [
    ...(names.length > 0 ? [] : [forbidden('metadata.name', `only the controller and reporters create it: ${HOW}`)]),
    ...(isForeign ? [forbidden('metadata.ownerReferences', 'its owner is the NetworkPolicy of the same name')] : []),
  ];
}

const HOW = 'a reporter is named in spec.reporter of a NetworkPolicyProvider';

/** A reporter writes its own entries. @param names their keys */
function reportErrors({ object, oldObject = {} }: GuardedWrite, names: readonly string[]): readonly FieldError[] {
  const [before, after] = [oldObject, object].map((one) => objectIn(one, 'status'));
  const fields = changedFields(before ?? {}, after ?? {}).filter((field) => field !== 'providers');
  const [old, now] = [before, after].map((status) => entriesOf(own(status ?? {}, 'providers')));
  const entries = changedFields(old ?? {}, now ?? {});
  return [
    ...fields.map((field) => forbidden(`status.${field}`, 'only the controller writes it')),
    ...entries.flatMap((name) => entryErrors(name, own(now ?? {}, name), names)),
  ];
}

function entryErrors(
  controllerName: string,
  entry: JsonValue | undefined,
  names: readonly string[],
): readonly FieldError[] {
  const field = `status.providers[${controllerName}]`;
  if (!names.includes(controllerName)) {
    const yours = names.length === 0 ? HOW : `yours is ${names.join(', ')}`;
    return [forbidden(field, `only its reporter writes it: ${yours}`)];
  }
  const reporter = textOf(valueAt(entry, 'reporter'));
  return entry !== undefined && (reporter === '' || reporter === NETWORK_POLICY_STATUS_MANAGER)
    ? [forbidden(`${field}.reporter`, `write a name of your own, got "${reporter}"`)]
    : [];
}

/** The entries by their keys. */
function entriesOf(providers: JsonValue | undefined): JsonObject {
  const entries = Array.isArray(providers) ? providers.filter((one) => isJsonObject(one)) : [];
  return Object.fromEntries(entries.map((entry) => [textOf(own(entry, 'controllerName')), entry]));
}

function changedFields(before: JsonObject, after: JsonObject): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !isSameValue(own(before, name), own(after, name)));
}

function isSameValue(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isEqual(one, other);
}
