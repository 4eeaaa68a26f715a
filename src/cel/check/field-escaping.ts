import { RESERVED_WORDS } from '../syntax/index.ts';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

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
