import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import { isNumberTo, isWithin, rangesText, readRanges } from './number-range.ts';
import type { NumberRange } from './number-range.ts';

export type IdRuleName = 'MustRunAs' | 'MayRunAs' | 'MustRunAsNonRoot' | 'RunAsAny';

/** Which users or groups a pod may have. */
export interface IdRule {
  readonly rule: IdRuleName;
  /** At least one for MustRunAs and MayRunAs, none for the others. */
  readonly ranges: readonly NumberRange[];
}

/** API servers accept no larger user or group: the largest signed number of 32 bits. */
const MAX_ID = 2_147_483_647;

const ANY: IdRule = { rule: 'RunAsAny', ranges: [] };

/** The id for pods that set none. */
export function defaultId({ rule, ranges }: IdRule): number | undefined {
  return rule === 'MustRunAs' ? ranges[0]?.min : undefined;
}

/** Why the rule forbids an id, or its absence. */
export function idProblem({ rule, ranges }: IdRule, id: number | undefined): string | undefined {
  if (rule === 'RunAsAny') {
    return undefined;
  }
  if (rule === 'MustRunAsNonRoot') {
    return id === 0 ? 'expected another user than root, got 0' : undefined;
  }
  const isAllowed = id === undefined ? rule === 'MayRunAs' : isWithin(ranges, id);
  return isAllowed ? undefined : `expected ${rangesText(ranges)}, got ${describeValue(id)}`;
}

/**
 * A rule as in PodSecurityPolicy, `{rule, ranges}`; only the name of a rule without ranges; or an id, for MustRunAs with
 * this id alone. A rule without a fallback is required.
 */
export function readIdRule(
  fields: FieldReader,
  key: string,
  names: readonly IdRuleName[],
  fallback?: IdRuleName,
): IdRule {
  const value = fields.value(key) ?? fallback;
  if (isNumberTo(MAX_ID, value)) {
    return { rule: 'MustRunAs', ranges: [{ min: value, max: value }] };
  }
  if (isJsonObject(value)) {
    return readMapping(fields, key, names);
  }
  const rule = names.find((name) => name === value);
  if (rule === undefined) {
    fields.fault(key, `expected an id from 0 to ${MAX_ID}, or a rule: ${choices(names)}; got ${describeValue(value)}`);
  } else if (hasRanges(rule)) {
    fields.fault(key, `expected ranges: write {rule: ${rule}, ranges: [{min: 1000, max: 1000}]}`);
  }
  return rule === undefined ? ANY : { rule, ranges: [] };
}

function readMapping(fields: FieldReader, key: string, names: readonly IdRuleName[]): IdRule {
  const mapping = fields.inside(key);
  const ranges = mapping === undefined ? [] : readRanges(mapping, 'ranges', MAX_ID);
  const value = mapping?.value('rule');
  const rule = names.find((name) => name === value);
  mapping?.knownKeys(['rule', 'ranges']);
  if (rule === undefined) {
    mapping?.fault('rule', `expected ${choices(names)}, got ${describeValue(value)}`);
    return ANY;
  }
  if (hasRanges(rule) && ranges.length === 0) {
    mapping?.fault('ranges', `expected at least one range for ${rule}, got none`);
  } else if (!hasRanges(rule) && ranges.length > 0) {
    mapping?.fault('ranges', `expected no ranges for ${rule}, which does not use them`);
  }
  return { rule, ranges };
}

function hasRanges(rule: IdRuleName): boolean {
  return rule === 'MustRunAs' || rule === 'MayRunAs';
}

function choices(names: readonly string[]): string {
  return names.join(', ');
}
