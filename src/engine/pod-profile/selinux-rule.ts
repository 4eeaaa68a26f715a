import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';

const PARTS = ['user', 'role', 'type', 'level'] as const;
type Part = (typeof PARTS)[number];

/** SELinux options that every container must have; a missing part is the empty text. */
export type SelinuxOptions = Readonly<Record<Part, string>>;

/** SELinux options in a security context. */
export type SelinuxField = { readonly [Name in Part]?: string | null };

/** The first part that differs from what the settings require, and why; undefined options are wrong as a whole. */
export function selinuxProblem(
  required: SelinuxOptions | undefined,
  options: SelinuxField | undefined,
): { readonly part: Part | undefined; readonly problem: string } | undefined {
  if (required === undefined) {
    return undefined;
  }
  if (options === undefined) {
    return { part: undefined, problem: 'expected the options of the profile, got nothing' };
  }
  const part = PARTS.find((one) => comparable(one, required[one]) !== comparable(one, options[one] ?? ''));
  return part === undefined
    ? undefined
    : { part, problem: `expected ${describeValue(required[part])}, got ${describeValue(options[part])}` };
}

/** Categories of a level have no order: `s0:c2,c1` is `s0:c1,c2`. */
function comparable(part: Part, text: string): string {
  const colon = text.indexOf(':');
  return part !== 'level' || colon === -1
    ? text
    : `${text.slice(0, colon)}:${text
        .slice(colon + 1)
        .split(',')
        .toSorted()
        .join(',')}`;
}

/** A rule as in PodSecurityPolicy, `{rule, seLinuxOptions}`, or `RunAsAny`. Undefined for RunAsAny. */
export function readSelinux(fields: FieldReader): SelinuxOptions | undefined {
  const value = fields.value('seLinux');
  const mapping = isJsonObject(value) ? fields.inside('seLinux') : undefined;
  const rule = mapping === undefined ? value : mapping.value('rule');
  mapping?.knownKeys(['rule', 'seLinuxOptions']);
  if (rule === 'MustRunAs' && mapping !== undefined) {
    return readOptions(mapping);
  }
  if (rule !== 'RunAsAny') {
    const got = describeValue(rule);
    fields.fault('seLinux', `expected RunAsAny, or {rule: MustRunAs, seLinuxOptions: {…}}, got ${got}`);
  } else if (mapping?.has('seLinuxOptions') === true) {
    mapping.fault('seLinuxOptions', 'expected no options for RunAsAny, which does not use them');
  }
  return undefined;
}

function readOptions(mapping: FieldReader): SelinuxOptions {
  const options = mapping.inside('seLinuxOptions');
  if (options === undefined) {
    mapping.fault('seLinuxOptions', 'expected options for MustRunAs, got nothing');
  }
  options?.knownKeys(PARTS);
  const part = (name: Part): string => options?.text(name) ?? '';
  return { user: part('user'), role: part('role'), type: part('type'), level: part('level') };
}
