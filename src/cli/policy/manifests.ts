// Admission policies in manifests with their parameters and namespaces: one of our kinds, or Kubernetes' own,
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy, with their bindings.
import { stat } from 'node:fs/promises';
import { policyEntry } from '../../engine/definition/index.ts';
import {
  fieldPathText,
  isJsonObject,
  type JsonObject,
  parsePolicies,
  type PolicyDefinition,
  readPolicyDefinition,
} from '../../engine/index.ts';
import { type AdmissionPolicyObject, POLICIES_GROUP } from '../../resources/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { own, textOf, textPosition, valueAt } from '../../values/index.ts';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import { filesBelow } from '../files-below.ts';
import type { RunnablePolicy } from './policy-runner.ts';

/** Our kinds of policies. */
const OWN_POLICY_KINDS: ReadonlySet<string> = new Set([
  'ClusterAdmissionPolicy',
  'AdmissionPolicy',
  'ClusterAdmissionPolicyGroup',
  'AdmissionPolicyGroup',
]);

/** Files of `portcullis test`. */
export const TEST_FILE = /^(?:(.+)\.)?portcullis-test\.ya?ml$/;

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

/** The manifests of files, and of the files in folders. @throws CliError */
export async function readManifests(paths: readonly string[]): Promise<JsonObject[]> {
  const manifests: JsonObject[] = [];
  for (const path of (await Promise.all(paths.map(manifestFiles))).flat()) {
    manifests.push(...manifestsOf(await readText(path), path));
  }
  return manifests;
}

const MANIFEST_FILE = /\.(?:ya?ml|json)$/;

function isManifestFile(name: string): boolean {
  return !name.startsWith('.') && MANIFEST_FILE.test(name) && !TEST_FILE.test(name);
}

/**
 * A path that is no folder; of a folder, the YAML and JSON files in it and below, sorted, but for test files, node_modules
 * and hidden ones.
 * @throws CliError when a folder has no such file
 */
export async function manifestFiles(path: string): Promise<readonly string[]> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
  if (!isFolder) {
    return [path];
  }
  const files = await filesBelow(path, isManifestFile);
  if (files.length === 0) {
    throw new CliError(`${path} contains no manifests: expected files that end in .yaml, .yml or .json`);
  }
  return files;
}

/**
 * The policy among manifests that has one of our kinds, and the other manifests, which may be its parameters; undefined if there
 * is none.
 * @throws CliError when there are several, or the policy is invalid
 */
export function ownPolicyAmong(
  manifests: readonly JsonObject[],
): { readonly definition: PolicyDefinition; readonly objects: readonly JsonObject[] } | undefined {
  const [policy, ...more] = manifests.filter(isOwnPolicy);
  if (policy === undefined) {
    return undefined;
  }
  if (more.length > 0) {
    throw new CliError(`expected one policy of ${POLICIES_GROUP} among the manifests, got ${more.length + 1}`);
  }
  const name = textOf(valueAt(policy, 'metadata', 'name')) || 'policy';
  const where = `${textOf(own(policy, 'kind'))} ${name}`;
  const { definition, faults = [] } = readPolicyDefinition(name, entryOf(policy, where));
  if (definition === undefined || faults.length > 0) {
    throw new CliError(faults.map(({ path, message }) => `${where}: ${fieldPathText(path)}: ${message}`).join('\n'));
  }
  return { definition, objects: manifests.filter((one) => one !== policy) };
}

/** The entry of a policies file with the spec. */
function entryOf(policy: JsonObject, where: string): object {
  try {
    return policyEntry({ spec: own(policy, 'spec') as unknown as AdmissionPolicyObject['spec'] });
  } catch (error) {
    throw new CliError(`${where}: expected a spec with a module, or with policies that have one`, { cause: error });
  }
}

function isOwnPolicy(manifest: JsonObject): boolean {
  const kind = textOf(own(manifest, 'kind'));
  return textOf(own(manifest, 'apiVersion')).startsWith(`${POLICIES_GROUP}/`) && OWN_POLICY_KINDS.has(kind);
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
