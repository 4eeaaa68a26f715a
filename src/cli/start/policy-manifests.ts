// Policies in manifests for a policy server without a cluster: each is served by the id that it has in a cluster.
import { dirname, resolve } from 'node:path';
import { policyEntry } from '../../engine/definition/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { Logger } from '../../log/index.ts';
import { type AdmissionPolicyObject, isGroupSpec } from '../../resources/index.ts';
import type { PolicyManifests } from '../../server/index.ts';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import { own, textOf, valueAt } from '../../values/index.ts';
import type { FilePolicy } from '../policy/file-policy.ts';
import { isFolder } from '../files-below.ts';
import { manifestFiles } from '../policy/manifests.ts';
import { isManifest, parseManifestDocuments, type SourceText } from '../policy/placed-manifests.ts';
import { ParameterObjects } from '../policy/parameter-objects.ts';
import { absoluteModule } from '../policy/policy-code.ts';
import { policiesIn } from '../policy/policy-files.ts';

/** Whether a path is a folder, or a file with manifests rather than a policies file. */
export async function hasManifests(path: string): Promise<boolean> {
  return (await isFolder(path)) || parseable(sourceOf(await readText(path), path)).some(isManifest);
}

/** @param path a file, or a folder */
export function policyManifests(path: string, log: Logger): PolicyManifests {
  return {
    list: () => manifestFiles(path),
    convert: async (texts, paths) => {
      const sources = texts.map((text, index) => sourceOf(text, paths[index] ?? path));
      // A folder of manifests may have other files beside them.
      const kept =
        paths.length > 1 ? sources.filter((source) => parseManifestDocuments(source).some(isManifest)) : sources;
      const { policies, objects: placed } = policiesIn(kept);
      const objects = placed.map(({ object }) => object);
      const served = policies.filter(({ manifest }) => manifest !== undefined);
      for (const { name } of policies.filter(({ manifest }) => manifest === undefined)) {
        log.warn({ policy: name }, 'policy of Kubernetes is not served: API servers evaluate it themselves');
      }
      if (served.length === 0) {
        throw new CliError(`${path} has no policy that a policy server evaluates`);
      }
      served.forEach((policy) => warnOfMissing(policy, objects, log));
      return {
        text: JSON.stringify(Object.fromEntries(await Promise.all(served.map(entryOf)))),
        objects: new ParameterObjects(objects),
      };
    },
  };
}

function sourceOf(text: string, path: string): SourceText {
  return { text, name: path, folder: dirname(resolve(path)) };
}

/** None of a file that is not YAML: the policy server says where. */
function parseable(source: SourceText): readonly unknown[] {
  try {
    return parseManifestDocuments(source);
  } catch {
    return [];
  }
}

/** Logs which parameters of a policy no manifest has, for any namespace. */
function warnOfMissing({ name: policy, definition }: FilePolicy, objects: readonly JsonObject[], log: Logger): void {
  const uses = definition.kind === 'group' ? definition.members : [definition];
  for (const { parameters } of uses) {
    if (parameters !== undefined && 'resource' in parameters.from) {
      const { apiVersion, kind, name, namespace } = parameters.from.resource;
      const isGiven = objects.some((object) => {
        const metadata = (field: string): string => textOf(valueAt(object, 'metadata', field));
        return (
          own(object, 'apiVersion') === apiVersion &&
          own(object, 'kind') === kind &&
          metadata('name') === name &&
          (namespace === undefined || metadata('namespace') === namespace)
        );
      });
      if (!isGiven) {
        const object = { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
        const { notFound } = parameters;
        log.warn({ policy, ...object, notFound }, 'parameters are not among the manifests: notFound answers requests');
      }
    }
  }
}

/** The entry of a policies file. */
async function entryOf({ manifest, definition, folder }: FilePolicy): Promise<readonly [id: string, entry: object]> {
  // Validated by the schema of its kind.
  const { spec } = manifest as unknown as AdmissionPolicyObject;
  const hostCapabilities =
    definition.kind === 'policy' ? definition.hostCapabilities : definition.members[0]?.hostCapabilities;
  return [definition.id, policyEntry({ spec: await located(spec, folder) }, hostCapabilities && { hostCapabilities })];
}

/** The spec with absolute paths of modules. */
async function located(spec: AdmissionPolicyObject['spec'], folder: string): Promise<AdmissionPolicyObject['spec']> {
  if (!isGroupSpec(spec)) {
    return { ...spec, module: await absoluteModule(spec.module, folder) };
  }
  const members = Object.entries(spec.policies).map(
    async ([name, member]) => [name, { ...member, module: await absoluteModule(member.module, folder) }] as const,
  );
  return { ...spec, policies: Object.fromEntries(await Promise.all(members)) };
}
