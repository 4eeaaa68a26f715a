import { InvalidArgumentError } from 'commander';
import { dnsLabelProblems } from '../names/index.ts';

/** Parses names that are separated by commas; empty for an empty text. */
export function namespaceNames(text: string): readonly string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  for (const name of names) {
    if (dnsLabelProblems(name).length > 0) {
      throw new InvalidArgumentError(`expected names of namespaces, separated by commas, got ${JSON.stringify(name)}`);
    }
  }
  return [...new Set(names)];
}

/** Parses the name of a namespace. */
export function namespaceName(text: string): string {
  const [problem] = dnsLabelProblems(text);
  if (problem !== undefined) {
    throw new InvalidArgumentError(`expected the name of a namespace: ${problem}`);
  }
  return text;
}
