import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { readTexts } from './read-list.ts';

/** Linux capabilities of containers, by their names without `CAP_`. */
export interface CapabilityRule {
  /** May be added, those of `added` included. Undefined: any. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** Added to containers that do not drop them. */
  readonly added: readonly string[];
  /** Every container has to drop them. */
  readonly dropped: readonly string[];
}

const ANY_CAPABILITY = '*';

export function readCapabilityRule(fields: FieldReader): CapabilityRule {
  const allowed = readNames(fields, 'allowedCapabilities', true);
  const added = readNames(fields, 'defaultAddCapabilities', false);
  const dropped = readNames(fields, 'requiredDropCapabilities', false);
  for (const [key, names] of [
    ['allowedCapabilities', allowed],
    ['defaultAddCapabilities', added],
  ] as const) {
    for (const [index, name] of names.entries()) {
      if (dropped.includes(name)) {
        fields.fault(key, `expected no capability of requiredDropCapabilities, got ${name}`, index);
      }
    }
  }
  return {
    allowed: allowed.includes(ANY_CAPABILITY) ? undefined : new Set([...allowed, ...added]),
    added: [...new Set(added)],
    dropped: [...new Set(dropped)],
  };
}

function readNames(fields: FieldReader, key: string, acceptsAny: boolean): readonly string[] {
  const texts = readTexts(fields, key, (text) => {
    const isName = /^[A-Z][A-Z0-9_]*$/.test(text) && !text.startsWith('CAP_');
    return isName || (acceptsAny && text === ANY_CAPABILITY)
      ? undefined
      : `expected a capability such as NET_BIND_SERVICE, without CAP_, got ${describeValue(text)}`;
  });
  return texts ?? [];
}
