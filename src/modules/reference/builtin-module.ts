import { readFileSync } from 'node:fs';
import { ModuleError } from './errors.ts';
import { nearestKey, parseJson } from '../../values/index.ts';

/** Policies that are part of this product, named `builtin:NAME` in a policy. */
export const BUILTIN_MODULES = ['cel', 'network-policy-support', 'pod-profile', 'pod-security'] as const;

export type BuiltinName = (typeof BUILTIN_MODULES)[number];

const SCHEME = 'builtin:';

/** Characters of the beginning of a name that stand for it, at least, in hints. */
const MIN_BEGINNING = 4;

/** The version of this product, which builtin modules share. */
export const PRODUCT_VERSION = (
  parseJson(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** Whether a module reference names a builtin module, known or not. */
export function isBuiltin(reference: string): boolean {
  return reference.trim().startsWith(SCHEME);
}

/**
 * Reads `builtin:NAME`.
 * @throws ModuleError `reference-invalid` for a name that is not in {@link BUILTIN_MODULES}
 */
export function parseBuiltin(reference: string): BuiltinName {
  const text = reference.trim().slice(SCHEME.length);
  const name = BUILTIN_MODULES.find((known) => known === text);
  if (name === undefined) {
    const known = BUILTIN_MODULES.map((builtin) => SCHEME + builtin).join(' or ');
    const given = text.replace(/^\/+/, '').replace(/@.*$/s, '');
    const near =
      nearestKey(given, BUILTIN_MODULES) ??
      BUILTIN_MODULES.find((known) => given.length >= MIN_BEGINNING && known.startsWith(given));
    const hint = [
      text.includes('@') ? ': a builtin module has the version of the product and takes no digest' : '',
      near === undefined ? '' : `. Did you mean ${SCHEME}${near}?`,
    ].join('');
    throw new ModuleError(
      'reference-invalid',
      `unknown builtin module: expected ${known}, got ${SCHEME}${text.slice(0, 80)}${hint}`,
    );
  }
  return name;
}

/** `builtin:NAME@VERSION`, in place of a digest. */
export function builtinVersion(name: BuiltinName): string {
  return `${SCHEME}${name}@${PRODUCT_VERSION}`;
}
