// YAML for people and programs: the same value when it is read, and nothing that turns the direction of text on a terminal.
import { randomUUID } from 'node:crypto';
import { CORE_SCHEMA, defineScalarTag, dump, NOT_RESOLVED, Schema } from 'js-yaml';
import { escapedControls, withoutControls } from '../values/index.ts';

/** Integers, with those that a number would round as bigints. */
const integerTag = defineScalarTag<number | bigint>('tag:yaml.org,2002:int', {
  implicit: true,
  resolve: (source) => (/^-?\d+$/.test(source) ? BigInt(source) : NOT_RESOLVED),
  identify: (value) => typeof value === 'bigint' || Number.isInteger(value),
  represent: String,
});
/** For values with integers that a number would round. */
const EXACT_SCHEMA = new Schema(CORE_SCHEMA.tags.map((tag) => (tag.tagName === integerTag.tagName ? integerTag : tag)));

/**
 * A value as YAML that ends in a newline. A bigint is written as a number. Texts with characters that change the direction of text
 * are quoted with escapes, which the writer has no option for: each is written as a mark that is replaced then.
 */
export function yamlText(value: unknown, { sortKeys = false }: { readonly sortKeys?: boolean } = {}): string {
  const mark = `text-${randomUUID()}`;
  const quoted: string[] = [];
  const marked = (text: string): string => {
    if (withoutControls(text) === text) {
      return text;
    }
    quoted.push(escapedControls(JSON.stringify(text)));
    return `${mark}-${quoted.length - 1}.`;
  };
  const text = dump(withTexts(value, marked), { schema: EXACT_SCHEMA, lineWidth: -1, noRefs: true, sortKeys });
  return quoted.length === 0
    ? text
    : text.replaceAll(new RegExp(`${mark}-(\\d+)\\.`, 'g'), (_, index: string) => quoted[Number(index)] ?? '');
}

/** The value with all texts replaced, keys included. */
function withTexts(value: unknown, replaced: (text: string) => string): unknown {
  if (typeof value === 'string') {
    return replaced(value);
  }
  if (Array.isArray(value)) {
    return value.map((item) => withTexts(item, replaced));
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [replaced(key), withTexts(item, replaced)]))
    : value;
}
