// The flags of `run` and `bench` that select a policy, its settings and a request.
import { basename, dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_TIMEOUT_SECONDS } from '../../engine/definition/index.ts';
import { parsePolicies, type PolicyDefinition } from '../../engine/index.ts';
import {
  EXECUTION_MODES,
  type ExecutionMode,
  isBuiltin,
  type PolicyMetadata,
  readMetadata,
  requireSupportedMode,
  type TrustRoot,
} from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import { commaList } from '../comma-list.ts';
import { parseJsonArgument, readDocument, readText } from '../document.ts';
import { parseJson, valueAt } from '../../values/index.ts';
import { CliError, usageError } from '../errors.ts';
import { kubernetesVersion } from '../kubernetes-version.ts';
import { isFolder } from '../files-below.ts';
import { MANIFEST_FILE } from './manifests.ts';
import { matchRequest } from './match-request.ts';
import { type PlaceOf, placesOfSettings, SourcePlaces } from './source-places.ts';
import type { PolicyWarning } from './policy-warning.ts';
import { type CheckedEntry, filePolicyWarnings, typeWarnings } from './type-warnings.ts';
import type { ModuleInput, PolicyRequest, RunnablePolicy } from './policy-runner.ts';
import { type ModuleSourceOptions, readModule, targetReference } from '../module/module-source.ts';
import { readSources } from '../module/read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { readTrustRoot } from '../module/read-verification.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { findPolicy } from './policies-file.ts';
import { modulesFor, runnablePolicy } from './policy-code.ts';
import { choosePolicy, ofKubernetes, type PolicyFiles, readPolicies } from './policy-files.ts';
import type { Progress } from '../progress.ts';
import { requireApplicable, requireSettings } from './policy-findings.ts';
import { readRequestOrObject } from './request-document.ts';
import { ServedKinds } from './served-kinds.ts';
import { addRequestFlags, givenRequestFlags, type RequestFlags } from './request-flags.ts';

/** Longest policy id made of a title, as in a policies file. */
export const MAX_ID_LENGTH = 253;

export interface PolicyFlags extends SignatureFlags, SourceFlags, RequestFlags {
  readonly requestPath: string;
  readonly settingsPath?: string;
  readonly settingsJson?: string;
  readonly executionMode?: ExecutionMode;
  readonly raw?: true;
  readonly allowContextAware?: true;
  readonly allowedHostCapabilities?: readonly string[];
  readonly replayHostCapabilitiesInteractions?: string;
  readonly timeout?: number;
  readonly policies?: string;
  readonly policy?: string;
  readonly manifests?: readonly string[];
  readonly ignoreRules?: true;
  readonly kubernetesVersion?: number;
}

/** Flags that an entry of a policies file or a manifest replaces, as users write them. */
const DEFINITION_FLAGS = {
  settingsPath: '--settings-path',
  settingsJson: '--settings-json',
  executionMode: '--execution-mode',
  allowContextAware: '--allow-context-aware',
} as const;

/** Adds the flags of `kwctl run`, and those that only Portcullis has. */
export function addPolicyFlags(command: Command): Command {
  const withTarget = command
    .argument(
      '[target]',
      'manifests with the policy (a file, a folder, - for standard input), or its module: a file, a URL (registry://, https://, http://, file://; may end in @sha256:…), or builtin:NAME',
    )
    .addOption(
      new Option(
        '-r, --request-path <file>',
        'AdmissionReview, AdmissionRequest or an object, JSON or YAML; - for standard input',
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option('-s, --settings-path <file>', 'settings of the policy, JSON or YAML').conflicts('settingsJson'),
    )
    .addOption(new Option('--settings-json <json>', 'settings of the policy, as JSON'))
    .addOption(
      new Option('-e, --execution-mode <mode>', 'execution mode of the module, if its metadata has none')
        .choices(['opa', 'gatekeeper', 'kubewarden', 'wasi'])
        .argParser(executionMode),
    )
    .option('--raw', 'the request is any JSON or YAML, not an admission request')
    .option('--allow-context-aware', 'let the policy read the kinds of objects in its metadata')
    .addOption(
      new Option(
        '--allowed-host-capabilities <patterns>',
        'host capabilities that it may use, separated by commas; "" for none (default: all; of namespaced policies in manifests: none)',
      ).argParser(capabilities),
    )
    .option('--replay-host-capabilities-interactions <file>', 'answer host capabilities from a recorded session');
  const withRequest = addRequestFlags(withTarget, 'the object before the change, for an UPDATE');
  return addSourceFlags(addSignatureFlags(withRequest))
    .addOption(
      new Option(
        '--timeout <seconds>',
        `timeout of one evaluation (default: that of the policies file, or ${DEFAULT_TIMEOUT_SECONDS})`,
      ).argParser(seconds),
    )
    .addOption(new Option('--policies <file>', 'take the policy from this policies file'))
    .option('--policy <name>', 'the policy to evaluate, of several: cap/NAME, or its id in a policies file')
    .addOption(
      new Option(
        '--manifests <files...>',
        'more manifests: the policy, parameters and namespaces; Kubernetes’ own policies with their bindings',
      ).conflicts(['policies', 'raw']),
    )
    .option('--ignore-rules', 'evaluate the policy of a manifest although it does not match the request')
    .addOption(
      new Option(
        '--kubernetes-version <version>',
        'with Kubernetes’ own policies: version of the API server, such as 1.34',
      ).argParser(kubernetesVersion),
    );
}

/** The policy and the request of the command line, with all modules fetched. */
interface PolicyUnderTest {
  readonly policy: RunnablePolicy;
  readonly request: PolicyRequest;
  /** Text of a recorded session that answers host capabilities. */
  readonly session: string | undefined;
  /** How to reach the registries that the policy reads. */
  readonly sources: SourcesConfig;
  /** For keyless signatures of images that the policy verifies. */
  readonly trustRoot: TrustRoot | undefined;
  /** Notes for the user. */
  readonly notes: readonly string[];
  /** About the rules of the policy, and the types of its expressions. */
  readonly warnings: readonly PolicyWarning[];
  /** Why API servers would not ask the policy about the request. Default: they would. */
  readonly unmatched?: string;
}

/** @throws CliError, ModuleError, EngineError */
export async function policyUnderTest(
  target: string | undefined,
  flags: PolicyFlags,
  progress: Progress,
): Promise<PolicyUnderTest> {
  const manifests = await manifestsOfFlags(target, flags);
  checkCombination(target, flags, manifests);
  const route = flags.raw === true ? 'validate_raw' : 'validate';
  const replay = flags.replayHostCapabilitiesInteractions;
  const files = manifests.length > 0 ? await readFilesOf(manifests, flags) : undefined;
  const kinds = new ServedKinds(files?.objects.map(({ object }) => object) ?? []);
  const [{ body, notes: requestNotes }, session, sources, verification, trustRoot] = await Promise.all([
    readRequestOrObject(flags.requestPath, route, flags, kinds),
    replay === undefined ? undefined : readText(replay),
    readSources(flags),
    readSignatureFlags(flags),
    readTrustRoot(flags.sigstoreTrustConfig),
  ]);
  const options = { progress, baseDir: process.cwd(), sources, verification };
  const request = { body, route } as const;
  const { notes, warnings, unmatched, ...policy } =
    files === undefined
      ? await fromModule(target, request, flags, options)
      : await fromManifests(files, manifests, request, flags, options);
  const base = { policy, request, session, sources, trustRoot, notes: [...requestNotes, ...notes], warnings };
  return unmatched === undefined ? base : { ...base, unmatched };
}

/** Files and folders with manifests. A target is one if it is no module. */
async function manifestsOfFlags(target: string | undefined, flags: PolicyFlags): Promise<readonly string[]> {
  const { manifests = [] } = flags;
  return target !== undefined && (await hasManifests(target)) ? [target, ...manifests] : manifests;
}

/** Whether a target is a folder, standard input, or a file in a format of manifests. */
async function hasManifests(target: string): Promise<boolean> {
  return target === '-' || MANIFEST_FILE.test(target) || (await isFolder(target));
}

/** Of policies without rules, whose types are checked for the kind of the request. */
async function fromModule(
  target: string | undefined,
  request: PolicyRequest,
  flags: PolicyFlags,
  options: ModuleSourceOptions,
): Promise<PolicyAndCode> {
  const { placeOf, id, ...found } =
    target === undefined
      ? await fromPoliciesFile(flags.policies ?? '', flags, options)
      : await fromTarget(target, flags, options);
  const { definition } = found;
  requireSettings(definition, placeOf);
  const entry = { definition, placeOf, ...(id === undefined ? {} : { id }) };
  return { ...found, warnings: typeWarnings({ manifests: [], entries: [entry], objects: objectsOf(request) }) };
}

/** The objects of a request; nothing for a raw one. */
function objectsOf({ body, route }: PolicyRequest): readonly unknown[] {
  const request = route === 'validate' ? valueAt(parseJson(Buffer.from(body).toString()), 'request') : undefined;
  return [valueAt(request, 'object'), valueAt(request, 'oldObject')];
}

function readFilesOf(
  paths: readonly string[],
  { kubernetesVersion, allowedHostCapabilities }: PolicyFlags,
): Promise<PolicyFiles> {
  return readPolicies(paths, {
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
    ...(allowedHostCapabilities === undefined ? {} : { tenantCapabilities: allowedHostCapabilities }),
  });
}

async function fromManifests(
  files: PolicyFiles,
  paths: readonly string[],
  request: PolicyRequest,
  flags: PolicyFlags,
  options: ModuleSourceOptions,
): Promise<PolicyAndCode> {
  const { policy, kubernetesVersion } = flags;
  const where = paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ');
  const chosen = policy === undefined ? ofKubernetes(files, kubernetesVersion) : undefined;
  const found = chosen ?? choosePolicy(files.policies, policy, where);
  requireApplicable(found);
  const { definition, ...code } = await runnablePolicy(found, options);
  const { result, reason, notes } = matchRequest(found, request);
  if ('error' in result && flags.ignoreRules !== true) {
    throw new CliError(`${found.name} gave no verdict: ${result.error}`);
  }
  const isUnmatched = 'isMatch' in result && !result.isMatch;
  const unmatched = `${found.name} does not match the request: ${reason ?? ''}`;
  return {
    definition: withTimeout(definition, flags.timeout),
    ...code,
    notes: [...(isUnmatched && flags.ignoreRules === true ? [unmatched] : notes)],
    warnings: filePolicyWarnings(found, files.objects, objectsOf(request)),
    ...(isUnmatched && flags.ignoreRules !== true ? { unmatched } : {}),
  };
}

function checkCombination(target: string | undefined, flags: PolicyFlags, manifests: readonly string[]): void {
  if (target === undefined && flags.policies === undefined && manifests.length === 0) {
    throw usageError(
      'no policy is named',
      'Name a manifest or a module (a file or a URL), or a policies file with --policies FILE --policy ID.',
    );
  }
  if (target !== undefined && flags.manifests !== undefined && !manifests.includes(target)) {
    throw usageError(`expected a module or manifests, got both (${target} and --manifests)`);
  }
  if (flags.kubernetesVersion !== undefined && manifests.length === 0) {
    throw usageError('--kubernetes-version is only used with manifests');
  }
  if (flags.ignoreRules === true && manifests.length === 0) {
    throw usageError('--ignore-rules is only used with manifests: nothing else has rules');
  }
  if (target !== undefined && flags.policies !== undefined) {
    throw usageError(`expected a policy or a policies file, got both (${target} and ${flags.policies})`);
  }
  if (flags.policy !== undefined && flags.policies === undefined && manifests.length === 0) {
    throw usageError('--policy needs the file that defines it: manifests, or a policies file with --policies');
  }
  if (manifests.length > 0 && flags.raw === true) {
    throw usageError('--raw is only used with modules: the policies of manifests get admission requests');
  }
  const given = givenRequestFlags(flags);
  if (flags.raw === true && given.length > 0) {
    throw usageError(`${given.join(', ')}: only used with an object, not with --raw`);
  }
  const inputs = [flags.requestPath, flags.settingsPath, flags.old, ...manifests].filter((path) => path === '-');
  if (inputs.length > 1) {
    throw usageError('only one of request, old object, settings and manifests can come from standard input');
  }
  const defined = manifests.length > 0 || flags.policies !== undefined ? definitionFlagsOf(flags) : [];
  if (defined.length > 0) {
    const owner = manifests.length > 0 ? 'manifests' : '--policies';
    throw usageError(`${defined.join(', ')} cannot be used with ${owner}: the policy is defined there`);
  }
}

/** The flags of this command line that a file with the policy replaces. */
function definitionFlagsOf(flags: PolicyFlags): readonly string[] {
  return [
    ...Object.entries(DEFINITION_FLAGS).flatMap(([key, flag]) =>
      flags[key as keyof typeof DEFINITION_FLAGS] === undefined ? [] : [flag],
    ),
    ...(flags.policies !== undefined && flags.allowedHostCapabilities !== undefined
      ? ['--allowed-host-capabilities']
      : []),
  ];
}

interface PolicyAndCode extends RunnablePolicy, Pick<PolicyUnderTest, 'notes' | 'warnings'> {
  readonly unmatched?: string;
}

/** A policy without rules, with the places of its fields. */
interface EntryAndCode extends Omit<PolicyAndCode, 'warnings' | 'unmatched'>, Pick<CheckedEntry, 'id' | 'placeOf'> {}

async function fromTarget(target: string, flags: PolicyFlags, options: ModuleSourceOptions): Promise<EntryAndCode> {
  const [{ value: settings, placeOf }, { location, modules, metadata }] = await Promise.all([
    readSettings(flags),
    codeOf(target, flags, options),
  ]);
  const wanted = metadata?.contextAwareResources ?? [];
  const isAllowed = flags.allowContextAware === true;
  const id = policyId(metadata, location);
  const entry = {
    module: location,
    settings,
    allowedToMutate: true,
    hostCapabilities: flags.allowedHostCapabilities ?? ['*'],
    contextAwareResources: isAllowed ? wanted : [],
    ...(flags.timeout === undefined ? {} : { timeoutEvalSeconds: flags.timeout }),
  };
  // The reader of policies files makes all checks; its messages name fields of a file, which are replaced by flags.
  const { policies, problems } = parsePolicies(JSON.stringify({ [id]: entry }), 'the command line');
  const [definition] = policies;
  if (definition === undefined) {
    throw usageError(
      problems.map(({ field, message }) => `${flagOf(field, flags)}: ${message.replace(/^\w+: /, '')}`).join('\n'),
    );
  }
  const kinds = wanted.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`).join(', ');
  const notes =
    wanted.length > 0 && !isAllowed
      ? [`the policy reads ${kinds} from the cluster, which needs --allow-context-aware`]
      : [];
  return { definition, modules, notes, placeOf };
}

interface TargetCode {
  readonly location: string;
  readonly modules: Readonly<Record<string, ModuleInput>>;
  readonly metadata: PolicyMetadata | undefined;
}

async function codeOf(target: string, flags: PolicyFlags, options: ModuleSourceOptions): Promise<TargetCode> {
  if (isBuiltin(target)) {
    return { location: target, modules: {}, metadata: undefined };
  }
  const { location, bytes } = await readModule(targetReference(target), options);
  const chosen = flags.executionMode;
  const input = { bytes, ...(chosen === undefined ? {} : { chosenMode: chosen }) };
  return { location, modules: { [location]: input }, metadata: readMetadata(bytes) };
}

/** The title of the policy, or the name of its file. */
function policyId(metadata: PolicyMetadata | undefined, location: string): string {
  const title = metadata?.annotations['io.kubewarden.policy.title'] ?? '';
  const name = title === '' ? basename(new URL(location).pathname, '.wasm') : title;
  return name.replaceAll(/[/\p{Cc}\p{Cs}]/gu, '').slice(0, MAX_ID_LENGTH) || 'policy';
}

async function readSettings({
  settingsJson,
  settingsPath,
}: PolicyFlags): Promise<{ readonly value: unknown; readonly placeOf?: PlaceOf }> {
  if (settingsJson !== undefined) {
    return { value: parseJsonArgument(settingsJson, '--settings-json') };
  }
  if (settingsPath === undefined) {
    return { value: {} };
  }
  const { value, text, name } = await readDocument(settingsPath);
  return { value, placeOf: placesOfSettings(text, name) };
}

function flagOf(field: string, { settingsPath, settingsJson }: PolicyFlags): string {
  switch (field.split('.', 1)[0]) {
    case 'hostCapabilities':
      return '--allowed-host-capabilities';
    case 'timeoutEvalSeconds':
      return '--timeout';
    case 'settings':
      return settingsJson === undefined ? (settingsPath ?? 'settings') : '--settings-json';
    default:
      return field;
  }
}

async function fromPoliciesFile(file: string, flags: PolicyFlags, options: ModuleSourceOptions): Promise<EntryAndCode> {
  const text = await readText(file);
  const found = findPolicy(text, file, flags.policy ?? onlyId(text, file));
  const modules = await modulesFor(found, dirname(resolve(file)), options);
  const placeOf = new SourcePlaces(text, file).below([found.id]);
  return { id: found.id, placeOf, definition: withTimeout(found, flags.timeout), modules, notes: [] };
}

function onlyId(text: string, file: string): string {
  const { policies, problems } = parsePolicies(text, file);
  const ids = [...new Set([...policies, ...problems].map(({ id }) => id))];
  const [only] = ids;
  if (only === undefined || ids.length > 1) {
    throw usageError(
      `${file} has ${ids.length} policies: expected --policy with one of them`,
      `It has ${ids.join(', ')}.`,
    );
  }
  return only;
}

/** The definition with this timeout, if there is one. */
export function withTimeout(definition: PolicyDefinition, timeout: number | undefined): PolicyDefinition {
  if (timeout === undefined) {
    return definition;
  }
  return definition.kind === 'policy'
    ? { ...definition, timeoutEvalSeconds: timeout }
    : { ...definition, members: definition.members.map((member) => ({ ...member, timeoutEvalSeconds: timeout })) };
}

function executionMode(text: string): ExecutionMode {
  requireSupportedMode(text);
  const mode = text === 'kubewarden' ? 'kubewarden-wapc' : EXECUTION_MODES.find((known) => known === text);
  if (mode === undefined) {
    throw new InvalidArgumentError('Allowed choices are opa, gatekeeper, kubewarden, wasi.');
  }
  return mode;
}

/** The flag may be repeated, and its value may have commas. */
function capabilities(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, ...commaList(text)];
}

/** Parses the seconds of `--timeout`. */
export function seconds(text: string): number {
  const value = Number(text);
  if (!/^\d{1,3}$/.test(text) || value < 1 || value > 300) {
    throw new InvalidArgumentError(`Expected whole seconds from 1 to 300, got ${text}.`);
  }
  return value;
}
