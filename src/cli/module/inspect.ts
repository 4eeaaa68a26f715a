// `portcullis inspect`: the metadata of a module, and how the sandbox runs it.
import { Command } from 'commander';
import { createGuest, FUEL_PER_SECOND } from '../../engine/index.ts';
import { compilePolicyModule } from '../../modules/compiling/index.ts';
import {
  type ExecutionMode,
  executionModeOf,
  isBuiltin,
  METADATA_SECTION,
  type ModuleInterface,
  moduleInterface,
  parseBuiltin,
  type PolicyMetadata,
  type MetadataRule,
  readMetadata,
  requireProtocol,
  requireSupportedVersion,
} from '../../modules/index.ts';
import { createOpaGuest, InstanceMemory, type ModuleShape } from '../../wasm/index.ts';
import { CliError } from '../errors.ts';
import { builtinReport, type BuiltinReport } from './builtin-description.ts';
import { type ModuleSource, readModule, targetReference } from './module-source.ts';
import { readSources } from './read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from './signature-flags.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';
import { countText, dataText, durationText, type OutputFormat, outputOption, sizeText } from '../output.ts';
import { Progress } from '../progress.ts';
import { oneLine, table } from '../table.ts';
import { errorText, styled } from '../../values/index.ts';

/** How the sandbox runs a module. */
interface Inspection {
  readonly shape: ModuleShape;
  /** Undefined when it is not known. */
  readonly mode: ExecutionMode | undefined;
  /** The host's builtins that a Rego module uses; undefined for other modes. */
  readonly builtins: readonly string[] | undefined;
  /** Undefined when it cannot be started. */
  readonly instance: InstanceCost | undefined;
  /** Why it cannot be run. */
  readonly problem: string | undefined;
}

/** What a new instance costs on this machine. */
interface InstanceCost {
  /** Processor time to make it and run its start, the mean of several. */
  readonly processorMicroseconds: number;
  /** Memory that it holds before its first call. */
  readonly heldBytes: number;
}

type Obstacle = NonNullable<ModuleShape['obstacle']>;

const PAGE_BYTES = 64 * 1024;
/** Processor time that is measured: systems count it in steps of up to 10 ms. */
const MEASURED_MICROSECONDS = 50_000;
/** New instances that are measured at most. */
const MAX_MEASURED_INSTANCES = 200;
/** Annotations that have a line of their own, or are too long to print. */
const ANNOTATION = 'io.kubewarden.policy.';
const SHOWN_ELSEWHERE = new Set(['title', 'version', 'description', 'usage'].map((name) => `${ANNOTATION}${name}`));

interface InspectFlags extends SignatureFlags, SourceFlags {
  readonly output: OutputFormat;
}

/** The output as JSON and YAML. */
interface ModuleReport {
  readonly location: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly executionMode: ExecutionMode | null;
  readonly metadata: PolicyMetadata | null;
  readonly imports: readonly { readonly module: string; readonly name: string }[];
  /** Rego builtins that the module imports from its host; null for other modes. */
  readonly builtins: readonly string[] | null;
  readonly sandbox: SandboxReport | null;
  /** Why a policy server would not load the module. */
  readonly problems: readonly string[];
}

interface SandboxReport {
  readonly isolation: ModuleShape['isolation'];
  /** Why an instance cannot be restored. */
  readonly obstacle: Obstacle | null;
  readonly functions: number;
  readonly memoryLimitBytes: number;
  /** Fuel of an evaluation for each second of its timeout; null when the execution mode is unknown. */
  readonly fuelPerSecond: number | null;
  readonly rewrittenBytes: number;
  /** What a new instance costs on this machine; null when it cannot be started. */
  readonly newInstance: InstanceCost | null;
}

export function inspectCommand(): Command {
  const command = new Command('inspect')
    .description('show the metadata of a module, and how the sandbox runs it')
    .argument(
      '<target>',
      'the module: a file, a URL (registry://, https://, http://, file://) that may end in @sha256:…, or builtin:NAME',
    );
  return addSourceFlags(addSignatureFlags(command))
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Exit code: 0 when a policy server would load the module, 1 when it would not, or when there is no module.

Examples:
  portcullis inspect policy.wasm
  portcullis inspect builtin:cel
  portcullis inspect https://example.com/policy.wasm -o json`,
    )
    .action(inspect);
}

async function inspect(target: string, flags: InspectFlags): Promise<void> {
  if (isBuiltin(target)) {
    const report = builtinReport(parseBuiltin(target));
    process.stdout.write(
      flags.output === 'table' ? builtinText(report) : dataText(report, flags.output, { pretty: true }),
    );
    return;
  }
  const progress = new Progress();
  const [sources, verification] = await Promise.all([readSources(flags), readSignatureFlags(flags)]);
  const options = { progress, baseDir: process.cwd(), sources, verification };
  const source = await readModule(targetReference(target), options);
  const report = await progress.during(`compiling ${source.location}`, () => reportOf(source));
  process.stdout.write(
    flags.output === 'table' ? reportText(report) : dataText(report, flags.output, { pretty: true }),
  );
  if (report.problems.length > 0) {
    throw new CliError(
      `a policy server would not load this module:\n${report.problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
  }
}

function builtinText({ location, version, purpose, page, settings }: BuiltinReport): string {
  const sections = [
    `${styled('bold', location)}\n${purpose}`,
    section('Module', [
      ['Version', version],
      ['File', 'none: it is part of this product'],
      ['Documentation', page],
    ]),
    section('Settings', Object.entries(settings)),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** Inspects the module as far as possible; what fails is listed in `problems`. */
async function reportOf({ location, digest, bytes }: ModuleSource): Promise<ModuleReport> {
  const problems: string[] = [];
  const attempt = async <T>(work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      const text = errorText(error);
      if (!problems.includes(text)) {
        problems.push(text);
      }
      return undefined;
    }
  };
  const metadata = await attempt(() => readMetadata(bytes));
  const inspection: Inspection | undefined = await attempt(() => inspectModule(bytes));
  const found = inspection === undefined ? interfaceOf(bytes) : undefined;
  if (inspection?.problem !== undefined) {
    problems.push(inspection.problem);
  }
  if (inspection?.mode === 'kubewarden-wapc') {
    await attempt(() => requireProtocol(metadata));
  }
  await attempt(() => requireSupportedVersion(metadata));
  return {
    location,
    digest,
    sizeBytes: bytes.length,
    executionMode: inspection?.mode ?? null,
    metadata: metadata ?? null,
    imports: inspection?.shape.imports ?? found?.imports ?? [],
    builtins: inspection?.builtins?.toSorted() ?? null,
    sandbox: inspection === undefined ? null : sandboxOf(inspection),
    problems,
  };
}

/** The interface of a module that cannot be run, as far as V8 knows it. */
function interfaceOf(bytes: Uint8Array): ModuleInterface | undefined {
  try {
    return moduleInterface(bytes);
  } catch {
    return undefined;
  }
}

/** Starts a guest as well: only that shows whether everything that the module imports is there. */
function inspectModule(bytes: Uint8Array): Inspection {
  const stated = readMetadata(bytes)?.executionMode;
  const compiled = compilePolicyModule(bytes);
  const { shape } = compiled;
  let mode: ExecutionMode | undefined;
  try {
    mode = executionModeOf(shape, { metadata: stated });
    const isRego = mode === 'opa' || mode === 'gatekeeper';
    const builtins = isRego ? createOpaGuest(compiled).usedBuiltins : undefined;
    return { shape, mode, builtins, instance: instanceCost({ compiled, mode }), problem: undefined };
  } catch (error) {
    return { shape, mode, builtins: undefined, instance: undefined, problem: errorText(error) };
  }
}

/** Starts instances until their processor time can be measured. @throws WasmError when the module cannot start */
function instanceCost(code: Parameters<typeof createGuest>[0]): InstanceCost {
  const memory = new InstanceMemory({ bytes: Infinity, bytesOf: () => Infinity });
  const start = (): number => {
    createGuest(code, memory.share(code.mode, '')).start();
    const heldBytes = memory.lastBytes(code.mode) ?? 0;
    memory.forget(code.mode);
    return heldBytes;
  };
  // V8 compiles the functions of the start for the first one.
  const heldBytes = start();
  const before = process.threadCpuUsage();
  let spent = 0;
  let instances = 0;
  while (spent < MEASURED_MICROSECONDS && instances < MAX_MEASURED_INSTANCES) {
    start();
    instances += 1;
    const { user, system } = process.threadCpuUsage(before);
    spent = user + system;
  }
  return { processorMicroseconds: Math.round(spent / instances), heldBytes };
}

function sandboxOf({ shape, mode, instance }: Inspection): SandboxReport {
  const { isolation, obstacle, functions, memoryPages, rewrittenBytes } = shape;
  return {
    isolation,
    obstacle: obstacle ?? null,
    functions,
    memoryLimitBytes: memoryPages * PAGE_BYTES,
    fuelPerSecond: mode === undefined ? null : FUEL_PER_SECOND[mode],
    rewrittenBytes,
    newInstance: instance ?? null,
  };
}

type Line = readonly [name: string, value: string];

function reportText(report: ModuleReport): string {
  const { metadata } = report;
  const sections = [
    title(metadata),
    section('Module', moduleLines(report)),
    ...(metadata === null ? [] : [section('Policy', policyLines(metadata))]),
    ...(metadata === null || metadata.rules.length === 0 ? [] : [rulesText(metadata.rules)]),
    section('Sandbox', report.sandbox === null ? [] : sandboxLines(report.sandbox, report.executionMode)),
    section('Annotations', annotationLines(metadata)),
  ];
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`;
}

function title(metadata: PolicyMetadata | null): string {
  const annotation = (name: string): string => oneLine(metadata?.annotations[`${ANNOTATION}${name}`] ?? '');
  const name = annotation('title');
  const heading = name === '' ? '' : `${styled('bold', name)} ${annotation('version')}`.trimEnd();
  return [heading, annotation('description')].filter((line) => line !== '').join('\n');
}

function section(name: string, lines: readonly Line[]): string {
  if (lines.length === 0) {
    return '';
  }
  const width = Math.max(...lines.map(([key]) => key.length));
  return [styled('bold', name), ...lines.map(([key, value]) => `  ${key.padEnd(width)}   ${value}`)].join('\n');
}

const KINDS: Readonly<Record<ExecutionMode, string>> = {
  'kubewarden-wapc': 'waPC (kubewarden-wapc)',
  wasi: 'WASI command (wasi)',
  opa: 'Rego for Open Policy Agent (opa)',
  gatekeeper: 'Rego for Gatekeeper (gatekeeper)',
};

function moduleLines(report: ModuleReport): Line[] {
  const { location, digest, sizeBytes, executionMode, metadata, imports, builtins } = report;
  const byModule = Map.groupBy(imports, ({ module }) => module);
  return [
    ['Location', location],
    ['Digest', digest],
    ['Size', sizeText(sizeBytes)],
    ['Kind', executionMode === null ? 'unknown' : KINDS[executionMode]],
    ['Metadata', metadata === null ? `none (no usable section ${METADATA_SECTION})` : protocolText(metadata)],
    ...[...byModule].map(([module, names], index): Line => [
      index === 0 ? 'Imports' : '',
      oneLine(`${module}: ${names.map(({ name }) => name).join(', ')}`, 160),
    ]),
    ...(builtins === null ? [] : [['Builtins', builtins.join(', ') || 'none of the host'] as const]),
  ];
}

function protocolText({ protocolVersion, minimumKubewardenVersion }: PolicyMetadata): string {
  const parts = [
    protocolVersion === undefined ? 'present' : `protocol ${protocolVersion}`,
    ...(minimumKubewardenVersion === undefined ? [] : [`needs Kubewarden ${minimumKubewardenVersion} or newer`]),
  ];
  return oneLine(parts.join(', '));
}

function policyLines({
  policyType,
  mutating,
  backgroundAudit,
  contextAwareResources,
  hostCapabilities,
}: PolicyMetadata): Line[] {
  const kinds = contextAwareResources.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`);
  return [
    ['Requests', policyType === 'raw' ? 'anything (raw)' : 'admission reviews'],
    ['Changes objects', mutating ? 'yes' : 'no'],
    ['Background audit', backgroundAudit ? 'yes' : 'no'],
    ['Reads from cluster', oneLine(kinds.join(', ')) || 'nothing'],
    ['Host capabilities', oneLine(hostCapabilities.join(', ')) || 'none stated'],
  ];
}

function rulesText(rules: readonly MetadataRule[]): string {
  const list = (values: readonly string[]): string =>
    oneLine(values.map((value) => (value === '' ? '""' : value)).join(', '));
  const rows = table<MetadataRule>(
    [
      { header: 'API GROUPS', cell: ({ apiGroups }) => list(apiGroups) },
      { header: 'VERSIONS', cell: ({ apiVersions }) => list(apiVersions) },
      { header: 'RESOURCES', cell: ({ resources }) => list(resources) },
      { header: 'OPERATIONS', cell: ({ operations }) => list(operations) },
    ],
    rules,
  );
  return `${styled('bold', 'Rules')}\n${rows.replaceAll(/^/gm, '  ')}`;
}

const OBSTACLES: Readonly<Record<Obstacle, string>> = {
  'table-mutation': 'its code changes a table',
  'segment-drop': 'its code drops a segment',
  'no-memory': 'it has no memory to restore',
};

function sandboxLines(sandbox: SandboxReport, mode: ExecutionMode | null): Line[] {
  const { isolation, obstacle, functions, memoryLimitBytes, fuelPerSecond, rewrittenBytes, newInstance } = sandbox;
  const reason = obstacle === null ? (mode === 'wasi' ? 'a command runs once' : undefined) : OBSTACLES[obstacle];
  const fresh = `a new instance for every call${reason === undefined ? '' : `: ${reason}`}`;
  return [
    ['Isolation', `${isolation} (${isolation === 'restore' ? 'one instance, restored after every call' : fresh})`],
    ...(newInstance === null ? [] : [['New instance', newInstanceText(newInstance)] as const]),
    ['Memory', `at most ${sizeText(memoryLimitBytes)}`],
    ...(fuelPerSecond === null
      ? []
      : [['Fuel', `${countText(fuelPerSecond)} units for each second of its timeout`] as const]),
    ['Functions', String(functions)],
    ['Size inside', `${sizeText(rewrittenBytes)} with fuel and limits added`],
  ];
}

function newInstanceText({ processorMicroseconds, heldBytes }: InstanceCost): string {
  return `${durationText(processorMicroseconds)} of processor time on this machine, holds ${sizeText(heldBytes)}`;
}

function annotationLines(metadata: PolicyMetadata | null): Line[] {
  const annotations = metadata?.annotations ?? {};
  const usage = annotations[`${ANNOTATION}usage`];
  return [
    ...Object.entries(annotations)
      .filter(([key]) => !SHOWN_ELSEWHERE.has(key))
      .map(([key, value]): Line => [oneLine(key.replace(ANNOTATION, '')), oneLine(value, 120)]),
    ...(usage === undefined ? [] : [['usage', `${usage.split('\n').length} lines; -o json shows them`] as const]),
  ];
}
