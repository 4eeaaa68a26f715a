// Kubernetes' own admission policies in files: ValidatingAdmissionPolicy and MutatingAdmissionPolicy, with their bindings,
// parameters and namespaces.
import { isJsonObject, type JsonObject, parsePolicies } from '../../engine/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { textPosition } from '../../values/index.ts';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import type { RunnablePolicy } from './policy-runner.ts';

/** Stands for the module of a definition whose code is manifests. */
const MANIFESTS = 'manifests';

/** The manifests of a YAML text, with the items of each List. @throws CliError */
export function manifestsOf(text: string, name: string): JsonObject[] {
  let documents: unknown[];
  try {
    documents = parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) {
      throw error;
    }
    const { line, column, excerpt } = textPosition(text, error.offset);
    throw new CliError(`${name}:${line}:${column} is not YAML: ${error.message}\n${excerpt}`, { cause: error });
  }
  return documents.flatMap((document, index) => {
    if (document === null || document === undefined) {
      return [];
    }
    if (!isJsonObject(document) || typeof document['kind'] !== 'string') {
      throw new CliError(
        `${name}: document ${index + 1} is not a manifest: expected a mapping with apiVersion and kind`,
      );
    }
    const items = document['kind'] === 'List' ? document['items'] : undefined;
    return Array.isArray(items) ? items.filter(isJsonObject) : [document];
  });
}

/** The manifests of files. @throws CliError */
export async function readManifests(paths: readonly string[]): Promise<JsonObject[]> {
  const manifests: JsonObject[] = [];
  for (const path of paths) {
    manifests.push(...manifestsOf(await readText(path), path));
  }
  return manifests;
}

/** @param minor of the API server's version, 1.x */
export function manifestsPolicy(
  id: string,
  manifests: readonly JsonObject[],
  minor: number | undefined,
): RunnablePolicy {
  const entry = { module: MANIFESTS, allowedToMutate: true };
  const [definition] = parsePolicies(JSON.stringify({ [id]: entry }), id).policies;
  if (definition === undefined) {
    throw new CliError(`${id} is not a valid name of a policy`);
  }
  const version = minor === undefined ? {} : { kubernetesVersion: minor };
  return { definition, modules: { [MANIFESTS]: { manifests, ...version } } };
}
