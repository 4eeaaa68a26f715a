// API mappings: the kinds of a cluster as Open Cluster Management's `dryrun` reads and writes them.
import type { ApiResource } from '../../../cluster/index.ts';
import { parseYaml } from '../../../values/yaml/index.ts';
import { isJsonObject, type JsonObject, own, textOf } from '../../../resources/index.ts';
import { errorText } from '../../../values/index.ts';
import { readText } from '../../document.ts';
import { CliError } from '../../errors.ts';
import { oneLine } from '../../table.ts';

const DEFAULT_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** One kind, as in a file. */
interface ApiMapping {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly singular: string;
  readonly plural: string;
  readonly scope: 'namespace' | 'root';
  /** Absent for the usual ones. */
  readonly verbs?: readonly string[];
}

/** Reads a file of mappings. @throws CliError */
export async function readMappings(path: string): Promise<readonly ApiResource[]> {
  const documents = parsed(await readText(path), path);
  return documents.flat().map((item, index) => {
    // Fields of any case, as Go reads them.
    const fields = isJsonObject(item) ? lowerCased(item) : {};
    const text = (name: string): string => textOf(own(fields, name));
    const [kind, version, plural] = [text('kind'), text('version'), text('plural')];
    if (kind === '' || version === '' || plural === '') {
      throw new CliError(`${path}: mapping ${index + 1} lacks kind, version or plural`, {
        hint: 'portcullis dryrun generate writes the mappings of a cluster.',
      });
    }
    return {
      group: text('group'),
      version,
      kind,
      resource: plural,
      namespaced: text('scope').toLowerCase() === 'namespace',
      singular: text('singular'),
      shortNames: [],
      categories: [],
      verbs: DEFAULT_VERBS,
      subresources: [],
    };
  });
}

/** The mappings of a cluster, sorted. */
export function mappingsOf(resources: readonly ApiResource[]): readonly ApiMapping[] {
  return resources
    .map(({ group, version, kind, singular, resource, namespaced, verbs }): ApiMapping => {
      const sorted = verbs.toSorted();
      const isUsual = sorted.join() === DEFAULT_VERBS.join();
      const scope = namespaced ? 'namespace' : 'root';
      return { group, version, kind, singular, plural: resource, scope, ...(isUsual ? {} : { verbs: sorted }) };
    })
    .toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1));
}

function idOf({ group, version, plural }: ApiMapping): string {
  return `${group}/${version} ${plural}`;
}

function parsed(text: string, path: string): unknown[] {
  try {
    return parseYaml(text).filter((document) => document !== null && document !== undefined);
  } catch (error) {
    throw new CliError(`${path} is no file of API mappings: ${oneLine(errorText(error))}`, { cause: error });
  }
}

function lowerCased(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key.toLowerCase(), value]));
}
