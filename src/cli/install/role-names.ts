import { InvalidArgumentError } from 'commander';

/** Names of RBAC objects are segments of a path, and may have colons. */
const ROLE_NAME = /^(?!\.{1,2}$)[^/%,\s]{1,200}$/;

/** Parses names of ClusterRoles that are separated by commas; empty for an empty text. */
export function roleNames(text: string): readonly string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  for (const name of names) {
    if (!ROLE_NAME.test(name)) {
      throw new InvalidArgumentError(
        `expected names of ClusterRoles, separated by commas, got ${JSON.stringify(name)}`,
      );
    }
  }
  return [...new Set(names)];
}
