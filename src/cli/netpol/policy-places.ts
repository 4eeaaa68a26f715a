import { isNetworkPolicy, type NetworkPolicy } from '../../engine/network-policy/index.ts';
import { isJsonObject } from '../../values/index.ts';
import { parseYaml, YamlPositions } from '../../values/yaml/index.ts';
import { readText } from '../document.ts';
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
    policyPaths(document).map((start): PlaceFinder => {
      return (path) => ({ file, line: lines.at(positions.offsetOf([...start, ...stepsOf(path)], index)) });
    }),
  );
}

/** Where a document has NetworkPolicies. */
function policyPaths(document: unknown): readonly (readonly (string | number)[])[] {
  const items = isJsonObject(document) && document['kind'] === 'List' ? document['items'] : undefined;
  if (Array.isArray(items)) {
    return items.flatMap((item, index) => (isNetworkPolicy(item) ? [['items', index]] : []));
  }
  return isNetworkPolicy(document) ? [[]] : [];
}

function stepsOf(path: string): readonly string[] {
  return path.split(/[.[\]]+/).filter((step) => step !== '');
}
