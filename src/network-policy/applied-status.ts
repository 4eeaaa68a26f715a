import { createHash } from 'node:crypto';
import { isEqual, isJsonObject } from '../engine/index.ts';
import {
  type Condition,
  type FeatureEntry,
  NETWORK_POLICY_STATUS_MANAGER,
  type ProviderEntry,
} from '../resources/index.ts';
import { OUR_CONDITIONS, type StatusFields } from './status-terms.ts';

/** Whether a status has what is to be applied. Entries and conditions of others do not count, nor does the order of lists. */
export function isApplied(current: StatusFields | undefined, wanted: StatusFields): boolean {
  return current !== undefined && isSame(ourFields(current, wanted), ourFields(wanted, wanted));
}

/** A status without entries that name us as their reporter, for providers that we do not report. */
export function withoutForgedEntries(current: StatusFields, wanted: StatusFields): StatusFields {
  const names = new Set(wanted.providers?.map(({ controllerName }) => controllerName));
  const providers = (current.providers ?? []).filter(
    ({ controllerName, reporter }) => reporter !== NETWORK_POLICY_STATUS_MANAGER || names.has(controllerName),
  );
  return { ...current, providers };
}

/** Bytes of a digest: it tells a status from the one before, for each of thousands of policies. */
const DIGEST_LENGTH = 12;

/** A digest of what we apply, whatever the transition times, the entries of others and the order of lists. */
export function statusDigest(status: StatusFields): string {
  const text = JSON.stringify(ourFields(status, status), (key, value: unknown) =>
    key === 'lastTransitionTime' ? undefined : value,
  );
  return createHash('sha256').update(text).digest().subarray(0, DIGEST_LENGTH).toString('base64url');
}

/** The fields that we own, with lists by their keys. */
function ourFields(
  { observedGeneration, catalogue, summary, providers, findings, conditions }: StatusFields,
  wanted: StatusFields,
): Readonly<Record<string, unknown>> {
  const names = new Set(wanted.providers?.map(({ controllerName }) => controllerName));
  const ours = (providers ?? []).filter(
    ({ controllerName, reporter }) => reporter === NETWORK_POLICY_STATUS_MANAGER || names.has(controllerName),
  );
  return {
    observedGeneration,
    catalogue,
    summary,
    findings,
    conditions: ourConditions(conditions),
    providers: Object.fromEntries(ours.map((entry) => [entry.controllerName, comparable(entry)])),
  };
}

function comparable({ conditions, features, ...fields }: ProviderEntry): Readonly<Record<string, unknown>> {
  return { ...fields, conditions: ourConditions(conditions), features: byType(features ?? []) };
}

function ourConditions(conditions: readonly Condition[] | undefined): Readonly<Record<string, unknown>> {
  return byType((conditions ?? []).filter(({ type }) => OUR_CONDITIONS.includes(type)));
}

function byType(list: readonly (Condition | FeatureEntry)[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(list.map((one) => [one.type, one]));
}

/** Whether two values are the same JSON. */
export function isSame(one: unknown, other: unknown): boolean {
  return isJsonObject(one) && isJsonObject(other) && isEqual(one, other);
}
