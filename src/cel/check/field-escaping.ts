import { RESERVED_WORDS } from '../syntax/index.ts';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

const UNESCAPED: ReadonlyMap<string, string> = new Map(Array.from(ESCAPES, ([text, escape]) => [escape, text]));

/**
 * The spelling of a schema's property in expressions, by the rules of Kubernetes
 * (https://kubernetes.io/docs/reference/using-api/cel/#escaping): `foo-bar` is `foo__dash__bar`, a reserved word such
 * as `namespace` is `__namespace__`. Undefined if there is none.
 */
export function escapeField(name: string): string | undefined {
  if (!/^[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*$/u.test(name)) {
    return undefined;
  }
  if (RESERVED_WORDS.has(name)) {
    return `__${name}__`;
  }
  return name.replaceAll(/__|[./-]/gu, (text) => ESCAPES.get(text) ?? text);
}

/** The property name for a spelling in expressions; undefined if no property is spelled like this. */
export function unescapeField(escaped: string): string | undefined {
  const word = /^__([a-z]+)__$/u.exec(escaped)?.[1];
  if (word !== undefined && RESERVED_WORDS.has(word)) {
    return word;
  }
  let isValid = true;
  const name = escaped.replaceAll(/__[^_]+__/gu, (escape) => {
    const text = UNESCAPED.get(escape);
    isValid &&= text !== undefined;
    return text ?? '';
  });
  return isValid ? name : undefined;
}
