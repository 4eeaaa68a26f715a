import { isNetworkPolicy, type NetworkPolicy } from '../../engine/network-policy/index.ts';
import { parseYaml, YamlPositions } from '../../values/yaml/index.ts';
import { readText } from '../document.ts';
import { itemsOf } from '../list-items.ts';
import { LineNumbers } from '../line-numbers.ts';
import type { ProblemPlace } from '../problems/problem.ts';

/** A file and its policies, in their order. */
export interface PolicyFile {
  /** `-` for standard input. */
  readonly path: string;
  readonly policies: readonly NetworkPolicy[];
}

/** Finds the place of a field such as `spec.egress[0].ports`, or of the nearest field around it. */
export type PlaceFinder = (path: string) => ProblemPlace;

/**
 * The places in files with policies that are wanted. Files are read again, because most results need no places.
 * @throws CliError
 */
export async function policyPlaces(
  files: readonly PolicyFile[],
  wanted: ReadonlySet<NetworkPolicy>,
): Promise<ReadonlyMap<NetworkPolicy, PlaceFinder>> {
  const places = new Map<NetworkPolicy, PlaceFinder>();
  for (const { path, policies } of files) {
    if (path !== '-' && policies.some((policy) => wanted.has(policy))) {
      const finders = placeFinders(path, await readText(path));
      policies.forEach((policy, index) => places.set(policy, finders[index] ?? (() => ({ file: path, line: 1 }))));
    }
  }
  return places;
}

/** A finder for each NetworkPolicy of a file, also of a List. */
function placeFinders(file: string, text: string): readonly PlaceFinder[] {
  const positions = new YamlPositions(text);
  const lines = new LineNumbers(text);
  return parseYaml(text).flatMap((document, index) =>
    policyPaths(document, file).map((start): PlaceFinder => {
      return (path) => ({ file, line: lines.at(positions.offsetOf([...start, ...stepsOf(path)], index)) });
    }),
  );
}

/** Where a document has NetworkPolicies. */
function policyPaths(document: unknown, file: string): readonly (readonly (string | number)[])[] {
  return itemsOf(document, () => file).flatMap(({ value, path }) => (isNetworkPolicy(value) ? [path] : []));
}

function stepsOf(path: string): readonly string[] {
  return path.split(/[.[\]]+/).filter((step) => step !== '');
}
