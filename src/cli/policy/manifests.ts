// Manifests in files and folders, and Kubernetes' own admission policies among them.
import { type JsonObject, parsePolicies } from '../../engine/index.ts';
import { own, textOf } from '../../values/index.ts';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import { filesBelow, isFolder } from '../files-below.ts';
import { parseManifestDocuments, type PlacedManifest, placedManifests } from './placed-manifests.ts';
import type { RunnablePolicy } from './policy-runner.ts';

const KUBERNETES_KIND = /^(?:Validating|Mutating)AdmissionPolicy(?:Binding)?$/;

/** Files of `portcullis test`. */
export const TEST_FILE = /^(?:(.+)\.)?portcullis-test\.ya?ml$/;

/** Stands for the module of a definition whose code is manifests. */
const MANIFESTS = 'manifests';

/** The manifests of a YAML text, with the items of each List. @throws CliError */
export function manifestsOf(text: string, name: string): JsonObject[] {
  return placedManifestsOf(text, name).map(({ object }) => object);
}

/** As {@link manifestsOf}, with their places. */
export function placedManifestsOf(text: string, name: string): readonly PlacedManifest[] {
  const source = { text, name, folder: process.cwd() };
  return placedManifests(parseManifestDocuments(source), source);
}

/** The manifests of files, and of the files in folders. @throws CliError */
export async function readManifests(paths: readonly string[]): Promise<JsonObject[]> {
  const manifests: JsonObject[] = [];
  for (const path of (await Promise.all(paths.map(manifestFiles))).flat()) {
    manifests.push(...manifestsOf(await readText(path), path));
  }
  return manifests;
}

/** Names of files with manifests. */
export const MANIFEST_FILE = /\.(?:ya?ml|json)$/;

function isManifestFile(name: string): boolean {
  return !name.startsWith('.') && MANIFEST_FILE.test(name) && !TEST_FILE.test(name);
}

/**
 * A path that is no folder; of a folder, the YAML and JSON files in it and below, sorted, but for test files, node_modules
 * and hidden ones.
 * @throws CliError when a folder has no such file
 */
export async function manifestFiles(path: string): Promise<readonly string[]> {
  if (!(await isFolder(path))) {
    return [path];
  }
  const files = await filesBelow(path, isManifestFile);
  if (files.length === 0) {
    throw new CliError(`${path} contains no manifests: expected files that end in .yaml, .yml or .json`);
  }
  return files;
}

/** Whether a manifest is an admission policy of Kubernetes, or a binding of one. */
export function isOfKubernetes(manifest: JsonObject): boolean {
  return KUBERNETES_KIND.test(textOf(own(manifest, 'kind'))) && isOfAdmissionGroup(manifest);
}

/** Whether a manifest is an admission policy of Kubernetes. */
export function isPolicyOfKubernetes(manifest: JsonObject): boolean {
  return isOfKubernetes(manifest) && !textOf(own(manifest, 'kind')).endsWith('Binding');
}

function isOfAdmissionGroup(manifest: JsonObject): boolean {
  return textOf(own(manifest, 'apiVersion')).startsWith('admissionregistration.k8s.io/');
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
