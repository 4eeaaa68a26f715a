import type { Holder } from './pod.ts';

/** `"a", "b"`. Not escaped, as upstream. */
export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(', ');
}

export function plural(items: readonly unknown[], one: string, many: string): string {
  return items.length === 1 ? one : many;
}

/** `container "a"`, or `containers "a", "b"`. */
export function namedContainers(names: readonly string[]): string {
  return `${plural(names, 'container', 'containers')} ${quoted(names)}`;
}

/** `pod and containers "a", "b"`: whichever of them are among `holders`, and then `others`. */
export function settersOf(holders: readonly Holder[], others: readonly string[] = []): string {
  const names = containerNames(holders);
  const pod = holders.length > names.length ? ['pod'] : [];
  return [...pod, ...(names.length > 0 ? [namedContainers(names)] : []), ...others].join(' and ');
}

/** Names of the containers among `holders`, in their order. */
export function containerNames(holders: readonly Holder[]): readonly string[] {
  return holders.filter(({ isPod }) => !isPod).map(({ name }) => name);
}

/** Paths of one field of several holders. */
export function fieldsOf(holders: readonly Holder[], field: string): readonly string[] {
  return holders.map(({ path }) => `${path}.${field}`);
}

/** Each text once, in the order of their bytes, which is Go's. */
export function sortedSet(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)]
    .map((text) => ({ text, bytes: Buffer.from(text) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ text }) => text);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** A text as Go's %q writes it. */
export function goQuoted(text: string): string {
  return `"${text.toWellFormed().replaceAll(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, escaped)}"`;
}

function escaped(character: string): string {
  const known = ESCAPES[character];
  if (known !== undefined) {
    return known;
  }
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code < 0x20 || code === 0x7f) {
    return `\\x${digits.padStart(2, '0')}`;
  }
  return code < 0x10000 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
}
