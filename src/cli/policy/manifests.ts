// Kubernetes' own admission policies, in files: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with what they need.
import {
  isJsonObject,
  type JsonObject,
  parsePolicies,
  parseYaml,
  type PolicyDefinition,
  textPosition,
  YamlSyntaxError,
} from '../../engine/index.ts';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import type { ModuleInput } from '../module/module-job.ts';

/** What a definition names as its module when its code are manifests. */
const MANIFESTS = 'manifests';

/** A policy whose code are manifests, as the module thread takes it. */
interface ManifestsPolicy {
  readonly definition: PolicyDefinition;
  readonly modules: Readonly<Record<string, ModuleInput>>;
}

/** All manifests in a text of YAML documents; the items of a List are manifests of their own. @throws CliError */
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
      throw new CliError(`${name}: document ${index + 1} is no manifest: expected a mapping with apiVersion and kind`);
    }
    const items = document['kind'] === 'List' ? document['items'] : undefined;
    return Array.isArray(items) ? items.filter(isJsonObject) : [document];
  });
}

/** All manifests of files. @throws CliError */
export async function readManifests(paths: readonly string[]): Promise<JsonObject[]> {
  const manifests: JsonObject[] = [];
  for (const path of paths) {
    manifests.push(...manifestsOf(await readText(path), path));
  }
  return manifests;
}

/** `version` is that of an API server: `1.34`. */
export function manifestsPolicy(
  id: string,
  manifests: readonly JsonObject[],
  version: string | undefined,
): ManifestsPolicy {
  const entry = { module: MANIFESTS, allowedToMutate: true };
  const [definition] = parsePolicies(JSON.stringify({ [id]: entry }), id).policies;
  if (definition === undefined) {
    throw new CliError(`${id} is no name of a policy`);
  }
  const minor = version === undefined ? {} : { kubernetesVersion: Number(version.split('.')[1]) };
  return { definition, modules: { [MANIFESTS]: { manifests, ...minor } } };
}
