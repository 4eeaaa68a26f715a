// The flags of `run` and `bench` that select a policy, its settings and a request.
import { basename, dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_TIMEOUT_SECONDS, modulesOf } from '../../engine/definition/index.ts';
import { parsePolicies, type PolicyDefinition } from '../../engine/index.ts';
import {
  EXECUTION_MODES,
  type ExecutionMode,
  isBuiltin,
  parseReference,
  type PolicyMetadata,
  readMetadata,
  type SourcesConfig,
  type TrustRoot,
} from '../../modules/index.ts';
import { parseJsonArgument, readDocument, readText } from '../document.ts';
import { usageError } from '../errors.ts';
import { kubernetesVersion } from '../kubernetes-version.ts';
import { manifestsPolicy, ownPolicyAmong, readManifests } from './manifests.ts';
import type { ModuleInput, PolicyRequest, RunnablePolicy } from './policy-runner.ts';
import { type ModuleSourceOptions, readModule, targetReference } from '../module/module-source.ts';
import { readSources } from '../module/read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { readTrustRoot } from '../module/read-verification.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { findPolicy } from './policies-file.ts';
import type { Progress } from '../progress.ts';
import { readRequest } from './request-document.ts';

/** Longest policy id made of a title, as in a policies file. */
export const MAX_ID_LENGTH = 253;

export interface PolicyFlags extends SignatureFlags, SourceFlags {
  readonly requestPath: string;
  readonly settingsPath?: string;
  readonly settingsJson?: string;
  readonly executionMode?: ExecutionMode;
  readonly raw?: true;
  readonly allowContextAware?: true;
  readonly allowedHostCapabilities: readonly string[];
  readonly replayHostCapabilitiesInteractions?: string;
  readonly timeout?: number;
  readonly policies?: string;
  readonly policy?: string;
  readonly manifests?: readonly string[];
  readonly kubernetesVersion?: number;
}

/** Flags that an entry of a policies file replaces. */
const DEFINITION_FLAGS = [
  'settingsPath',
  'settingsJson',
  'executionMode',
  'allowContextAware',
  'allowedHostCapabilities',
];

/** Adds the flags of `kwctl run`, and those that only Portcullis has. */
export function addPolicyFlags(command: Command): Command {
  const withTarget = command
    .argument(
      '[target]',
      'the module: a file, a URL (registry://, https://, http://, file://; may end in @sha256:…), or builtin:NAME',
    )
    .addOption(
      new Option(
        '-r, --request-path <file>',
        'AdmissionReview or AdmissionRequest, JSON or YAML; - for standard input',
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
        'host capabilities that it may use, separated by commas; "" for none',
      )
        .default(['*'], '*')
        .argParser(capabilities),
    )
    .option('--replay-host-capabilities-interactions <file>', 'answer host capabilities from a recorded session');
  return addSourceFlags(addSignatureFlags(withTarget))
    .addOption(
      new Option(
        '--timeout <seconds>',
        `timeout of one evaluation (default: that of the policies file, or ${DEFAULT_TIMEOUT_SECONDS})`,
      ).argParser(seconds),
    )
    .addOption(new Option('--policies <file>', 'take the policy from this policies file').conflicts(DEFINITION_FLAGS))
    .option('--policy <id>', 'the policy or group of the policies file')
    .addOption(
      new Option(
        '--manifests <files...>',
        'evaluate the policy in these files, or Kubernetes’ own ones with their bindings, with parameters and namespaces',
      ).conflicts([...DEFINITION_FLAGS, 'policies', 'policy', 'raw']),
    )
    .addOption(
      new Option(
        '--kubernetes-version <version>',
        'with --manifests: version of the API server, such as 1.34',
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
}

/** @throws CliError, ModuleError, EngineError */
export async function policyUnderTest(
  target: string | undefined,
  flags: PolicyFlags,
  progress: Progress,
): Promise<PolicyUnderTest> {
  checkCombination(target, flags);
  const route = flags.raw === true ? 'validate_raw' : 'validate';
  const replay = flags.replayHostCapabilitiesInteractions;
  const [body, session, sources, verification, trustRoot] = await Promise.all([
    readRequest(flags.requestPath, route),
    replay === undefined ? undefined : readText(replay),
    readSources(flags),
    readSignatureFlags(flags),
    readTrustRoot(flags.sigstoreTrustConfig),
  ]);
  const options = { progress, baseDir: process.cwd(), sources, verification };
  const { notes, ...policy } = await policyAndCode(target, flags, options);
  return { policy, request: { body, route }, session, sources, trustRoot, notes };
}

async function policyAndCode(
  target: string | undefined,
  flags: PolicyFlags,
  options: ModuleSourceOptions,
): Promise<PolicyAndCode> {
  if (target !== undefined) {
    return await fromTarget(target, flags, options);
  }
  if (flags.manifests !== undefined) {
    const manifests = await readManifests(flags.manifests);
    const own = ownPolicyAmong(manifests);
    if (own !== undefined) {
      const code = await withModules(own.definition, process.cwd(), flags, options);
      return { ...code, objects: own.objects };
    }
    const { definition, modules } = manifestsPolicy('manifests', manifests, flags.kubernetesVersion);
    return { definition: withTimeout(definition, flags.timeout), modules, notes: [] };
  }
  return await fromPoliciesFile(flags.policies ?? '', flags, options);
}

function checkCombination(target: string | undefined, flags: PolicyFlags): void {
  if (target === undefined && flags.policies === undefined && flags.manifests === undefined) {
    throw usageError(
      'no policy is named',
      'Name a module (a file or a URL), a policy with --policies FILE --policy ID, or manifests with --manifests FILE.',
    );
  }
  if (target !== undefined && flags.manifests !== undefined) {
    throw usageError(`expected a module or manifests, got both (${target} and --manifests)`);
  }
  if (flags.kubernetesVersion !== undefined && flags.manifests === undefined) {
    throw usageError('--kubernetes-version is only used with --manifests');
  }
  if (target !== undefined && flags.policies !== undefined) {
    throw usageError(`expected a module or a policies file, got both (${target} and ${flags.policies})`);
  }
  if (flags.policy !== undefined && flags.policies === undefined) {
    throw usageError('--policy needs --policies, the file that defines it');
  }
  if (flags.requestPath === '-' && flags.settingsPath === '-') {
    throw usageError('request and settings cannot both come from standard input');
  }
}

interface PolicyAndCode extends RunnablePolicy {
  readonly notes: readonly string[];
}

async function fromTarget(target: string, flags: PolicyFlags, options: ModuleSourceOptions): Promise<PolicyAndCode> {
  const [settings, { location, modules, metadata }] = await Promise.all([
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
    hostCapabilities: flags.allowedHostCapabilities,
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
  return { definition, modules, notes };
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

async function readSettings(flags: PolicyFlags): Promise<unknown> {
  if (flags.settingsJson !== undefined) {
    return parseJsonArgument(flags.settingsJson, '--settings-json');
  }
  return flags.settingsPath === undefined ? {} : (await readDocument(flags.settingsPath)).value;
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

async function fromPoliciesFile(
  file: string,
  flags: PolicyFlags,
  options: ModuleSourceOptions,
): Promise<PolicyAndCode> {
  const text = await readText(file);
  const found = findPolicy(text, file, flags.policy ?? onlyId(text, file));
  return await withModules(found, dirname(resolve(file)), flags, options);
}

/** @param baseDir of relative paths of modules */
async function withModules(
  found: PolicyDefinition,
  baseDir: string,
  flags: PolicyFlags,
  options: ModuleSourceOptions,
): Promise<PolicyAndCode> {
  const references = modulesOf(found).filter((reference) => !isBuiltin(reference));
  const modules = await Promise.all(
    references.map(async (reference): Promise<[string, ModuleInput]> => {
      const { bytes } = await readModule(parseReference(reference, { baseDir }), options);
      return [reference, { bytes }];
    }),
  );
  return { definition: withTimeout(found, flags.timeout), modules: Object.fromEntries(modules), notes: [] };
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
  const mode = text === 'kubewarden' ? 'kubewarden-wapc' : EXECUTION_MODES.find((known) => known === text);
  if (mode === undefined) {
    throw new InvalidArgumentError('Allowed choices are opa, gatekeeper, kubewarden, wasi.');
  }
  return mode;
}

/** The flag may be repeated, and its value may have commas. */
function capabilities(text: string, previous: readonly string[] | undefined): readonly string[] {
  const patterns = text.split(',').filter((pattern) => pattern !== '');
  return isDefault(previous) ? patterns : [...previous, ...patterns];
}

const isDefault = (patterns: readonly string[] | undefined): patterns is undefined =>
  patterns === undefined || (patterns.length === 1 && patterns[0] === '*');

/** Parses the seconds of `--timeout`. */
export function seconds(text: string): number {
  const value = Number(text);
  if (!/^\d{1,3}$/.test(text) || value < 1 || value > 300) {
    throw new InvalidArgumentError(`Expected whole seconds from 1 to 300, got ${text}.`);
  }
  return value;
}
