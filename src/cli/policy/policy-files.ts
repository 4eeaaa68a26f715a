// All policies in files, folders and standard input: our kinds, Kubernetes' own, and entries of policies files.
import { dirname, resolve } from 'node:path';
import {
  createManifestsGuest,
  EngineError,
  type JsonObject,
  parsePolicies,
  type PolicyDefinition,
  type Review,
} from '../../engine/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../values/index.ts';
import { documentName, readText, STANDARD_INPUT } from '../document.ts';
import { CliError, usageError } from '../errors.ts';
import { exceptionErrors } from './exception-errors.ts';
import { isException } from './exceptions-among.ts';
import type { FilePolicy, PolicyFindings, PolicyMatchResult } from './file-policy.ts';
import { isPolicyOfKubernetes, isOfKubernetes, manifestFiles, manifestsPolicy } from './manifests.ts';
import { misspelledPolicy } from './misspelled-policy.ts';
import { ObjectDefaults } from './object-defaults.ts';
import { isOwnPolicy, ownPolicy, type OwnPolicyOptions } from './own-policy.ts';
import {
  isManifest,
  parseManifestDocuments,
  placedManifests,
  type PlacedManifest,
  type SourceText,
} from './placed-manifests.ts';
import { settingsFilter } from './settings-filter.ts';
import { entryFindings, kubernetesFindings, once } from './policy-findings.ts';
import { SourcePlaces } from './source-places.ts';

export interface PolicyFilesOptions extends OwnPolicyOptions {
  /** Minor version of the API server of Kubernetes' own policies, 1.x. Default: the newest known. */
  readonly kubernetesVersion?: number;
  /** More objects of the cluster, such as its namespaces. Default: none. */
  readonly objects?: readonly JsonObject[];
}

/** The contents of files. */
export interface PolicyFiles {
  /** Entries of policies files, and then those of manifests. */
  readonly policies: readonly FilePolicy[];
  /** The manifests that are neither policies nor bindings: parameters, namespaces, and any other objects. */
  readonly objects: readonly PlacedManifest[];
  /** All manifests. */
  readonly manifests: readonly PlacedManifest[];
}

/**
 * Reads files, the manifests of folders, and standard input for `-`.
 * @throws CliError when one cannot be read, or a policy in it is invalid
 */
export async function readPolicies(paths: readonly string[], options: PolicyFilesOptions = {}): Promise<PolicyFiles> {
  const sources = (await Promise.all(paths.map(sourcesOf))).flat();
  return policiesIn(sources, options);
}

async function sourcesOf(path: string): Promise<readonly SourceText[]> {
  const files = path === STANDARD_INPUT ? [path] : await manifestFiles(path);
  const isFolder = files.length !== 1 || files[0] !== path;
  const sources = await Promise.all(files.map(sourceOf));
  // A folder of manifests may have other files beside them, such as values of a chart.
  return isFolder ? sources.filter((source) => parseManifestDocuments(source).some(isManifest)) : sources;
}

async function sourceOf(path: string): Promise<SourceText> {
  return {
    text: await readText(path),
    name: documentName(path),
    folder: path === STANDARD_INPUT ? process.cwd() : dirname(resolve(path)),
  };
}

/** As {@link readPolicies}, of texts. */
export function policiesIn(sources: readonly SourceText[], options: PolicyFilesOptions = {}): PolicyFiles {
  const entries: FilePolicy[] = [];
  const manifests: PlacedManifest[] = [];
  for (const source of sources) {
    const documents = parseManifestDocuments(source);
    if (isPoliciesFile(documents)) {
      entries.push(...entriesOf(source));
    } else {
      manifests.push(...placedManifests(documents, source));
    }
  }
  const among = policiesAmong(manifests, options);
  return { ...among, policies: [...entries, ...among.policies] };
}

/** As {@link readPolicies}, among manifests. */
export function policiesAmong(manifests: readonly PlacedManifest[], options: PolicyFilesOptions = {}): PolicyFiles {
  const others = manifests.filter(({ object }) => !isOwnPolicy(object) && !isOfKubernetes(object));
  const beside = [...others.map(({ object }) => object), ...(options.objects ?? [])];
  const defaults = new ObjectDefaults(beside);
  const objects = beside.map((object) => defaults.defaulted(object).object);
  const ofKubernetes = manifests.flatMap(({ object }) => (isOfKubernetes(object) ? [object] : []));
  const policies: FilePolicy[] = [];
  const problems = others.flatMap((placed) => misspelledPolicy(placed) ?? []);
  for (const placed of manifests) {
    try {
      if (isOwnPolicy(placed.object)) {
        policies.push(ownPolicy(placed, objects, options));
      } else if (isException(placed.object)) {
        problems.push(...exceptionErrors(placed));
      } else if (isPolicyOfKubernetes(placed.object)) {
        const bindings = manifests.filter((one) => isBindingOf(one.object, placed.object));
        policies.push(kubernetesPolicy([placed, ...bindings], [...ofKubernetes, ...objects], options));
      }
    } catch (error) {
      if (!(error instanceof CliError)) {
        throw error;
      }
      problems.push(error.message);
    }
  }
  problems.push(...duplicates(policies));
  if (problems.length > 0) {
    throw new CliError(problems.join('\n'));
  }
  return { policies, objects: others, manifests };
}

function duplicates(policies: readonly FilePolicy[]): readonly string[] {
  const seen = new Map<string, FilePolicy>();
  return policies.flatMap((policy) => {
    const first = seen.get(policy.name);
    seen.set(policy.name, first ?? policy);
    return first === undefined
      ? []
      : [`${policy.file}:${policy.line} ${policy.name} is also in ${first.file}:${first.line}: expected it once`];
  });
}

/** Whether a document is a policies file: a mapping of ids to policies. */
function isPoliciesFile(documents: readonly unknown[]): boolean {
  const [root, ...more] = documents;
  return (
    more.length === 0 &&
    isJsonObject(root) &&
    !isManifest(root) &&
    Object.values(root).some((entry) => isJsonObject(entry) && ['module', 'policies'].some((key) => key in entry))
  );
}

function entriesOf({ text, name, folder }: SourceText): readonly FilePolicy[] {
  const { policies, problems } = parsePolicies(text, name);
  if (problems.length > 0) {
    throw new CliError(
      problems
        .map(
          ({ line, column, field, message }) =>
            `${name}:${line}:${column} ${field === '' ? '' : `${field}: `}${message}`,
        )
        .join('\n'),
    );
  }
  const places = new SourcePlaces(text, name);
  return policies.map((definition) => ({
    match: matchOfEntry(definition),
    findings: once(() => entryFindings(definition, places.below([definition.id]))),
    name: definition.id,
    aliases: [],
    file: name,
    line: places.placeOf([definition.id], undefined).line,
    folder,
    placeOf: places.below([definition.id]),
    definition,
  }));
}

/** Entries have no rules: only settings of builtin:cel exclude requests. */
function matchOfEntry(definition: PolicyDefinition): (review: Review) => PolicyMatchResult {
  const filter = settingsFilter(definition, []);
  return (review) => filter(review) ?? { isMatch: true, unchecked: [] };
}

const SHORT_NAMES: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: 'vap',
  MutatingAdmissionPolicy: 'map',
};

/**
 * A policy of Kubernetes with its bindings.
 * @param written the policy, and its bindings
 * @param others all manifests but policies of our kinds
 */
function kubernetesPolicy(
  written: readonly [PlacedManifest, ...PlacedManifest[]],
  others: readonly JsonObject[],
  { kubernetesVersion }: PolicyFilesOptions,
): FilePolicy {
  const [placed] = written;
  const { object, source, positionOf } = placed;
  const kind = textOf(own(object, 'kind'));
  const name = textOf(valueAt(object, 'metadata', 'name'));
  const short = SHORT_NAMES[kind] ?? '';
  const manifests = [object, ...others.filter((one) => (isOfKubernetes(one) ? isBindingOf(one, object) : true))];
  const { definition } = manifestsPolicy(`${short}.${name}`, manifests, kubernetesVersion);
  return {
    name: `${short}/${name}`,
    aliases: [name, `${kind.toLowerCase()}/${name}`],
    kind,
    file: source.name,
    line: positionOf().line,
    folder: source.folder,
    placed: [placed],
    definition,
    findings: once(() => kubernetesFindings(written, kubernetesVersion, others)),
    manifests,
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
    match: matchOf(manifests, kubernetesVersion),
  };
}

function isBindingOf(manifest: JsonObject, policy: JsonObject): boolean {
  return (
    isOfKubernetes(manifest) &&
    own(manifest, 'kind') === `${textOf(own(policy, 'kind'))}Binding` &&
    valueAt(manifest, 'spec', 'policyName') === valueAt(policy, 'metadata', 'name')
  );
}

function matchOf(
  manifests: readonly JsonObject[],
  kubernetesVersion: number | undefined,
): (review: Review) => PolicyMatchResult {
  let guest: ReturnType<typeof guestOf> | undefined;
  return ({ requestJson }) => {
    guest ??= guestOf(manifests, kubernetesVersion);
    const reason = guest === 'invalid' ? undefined : guest.unmatchedBecause(requestJson);
    return reason === undefined
      ? { isMatch: true, unchecked: [] }
      : { isMatch: false, excludedBy: 'binding', detail: reason };
  };
}

/** `invalid` for manifests with mistakes: loading them says which. */
function guestOf(
  manifests: readonly JsonObject[],
  kubernetesVersion: number | undefined,
): ReturnType<typeof createManifestsGuest> | 'invalid' {
  try {
    return createManifestsGuest(manifests, kubernetesVersion === undefined ? {} : { kubernetesVersion });
  } catch (error) {
    if (error instanceof EngineError) {
      return 'invalid';
    }
    throw error;
  }
}

/**
 * All policies as one, with the verdict of an API server that has them all; undefined unless all are Kubernetes' own, and
 * there is one.
 */
export function ofKubernetes({ policies, manifests }: PolicyFiles, kubernetesVersion?: number): FilePolicy | undefined {
  const [first] = policies;
  if (first === undefined || policies.some((policy) => policy.manifests === undefined)) {
    return undefined;
  }
  const all = manifests.map(({ object }) => object);
  const { definition } = manifestsPolicy('manifests', all, kubernetesVersion);
  const name = policies.map((policy) => policy.name).join(', ');
  const placed = policies.flatMap((policy) => policy.placed ?? []);
  const findings = (): PolicyFindings => {
    const each = policies.map((policy) => policy.findings());
    return { errors: each.flatMap(({ errors }) => errors), warnings: each.flatMap(({ warnings }) => warnings) };
  };
  return { ...first, name, placed, definition, findings, manifests: all, match: matchOf(all, kubernetesVersion) };
}

/**
 * The policy with a name: its own, or another of {@link FilePolicy.aliases} that is unambiguous; without a name the only one.
 * @param where the files, for messages
 * @param choice how users choose one
 * @throws CliError that lists the policies
 */
export function choosePolicy(
  policies: readonly FilePolicy[],
  name: string | undefined,
  where: string,
  choice = '--policy',
): FilePolicy {
  const found =
    name === undefined
      ? policies
      : ([
          policies.filter((policy) => policy.name === name),
          policies.filter((policy) => policy.aliases.includes(name)),
        ].find((matching) => matching.length > 0) ?? []);
  const [only] = found;
  if (only !== undefined && found.length === 1) {
    return only;
  }
  if (policies.length === 0) {
    throw new CliError(`${where} has no policy`, { hint: NO_POLICY });
  }
  const listed = (found.length === 0 ? policies : found).map((policy) => policy.name).join(', ');
  if (name === undefined) {
    throw usageError(
      `${where} has ${policies.length} policies: expected ${choice} with one of them`,
      `It has ${listed}.`,
    );
  }
  throw found.length === 0
    ? new CliError(`${where} has no policy ${JSON.stringify(name)}`, { hint: `It has ${listed}.` })
    : usageError(`${name} is the name of ${found.length} policies: expected one of ${listed}`);
}

/** What files without a policy should have. */
export const NO_POLICY =
  'Expected a ClusterAdmissionPolicy, AdmissionPolicy, a group of either, a ValidatingAdmissionPolicy or MutatingAdmissionPolicy, or an entry of a policies file.';
