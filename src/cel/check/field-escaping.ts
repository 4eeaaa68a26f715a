import { RESERVED_WORDS } from '../syntax/index.ts';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

const UNESCAPED: ReadonlyMap<string, string> = new Map(Array.from(ESCAPES, ([text, escape]) => [escape, text]));

/**
 * How expressions spell the name of a schema's property (Kubernetes' rules): `foo-bar` is `foo__dash__bar`, a reserved
 * word such as `namespace` is `__namespace__`. Undefined when it has no spelling.
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

/** The property's name that an expression spells; undefined when no property is spelled so. */
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
