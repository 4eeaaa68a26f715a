// `portcullis test -p POLICY RESOURCE`: policies on plain manifests.
import { rounded } from '../../policy/object-defaults.ts';
import type { RE2JS } from 're2js';
import { EngineError } from '../../../engine/index.ts';
import { CliError, EXIT, usageError } from '../../errors.ts';
import { readText, STANDARD_INPUT } from '../../document.ts';
import { objectId, objectText } from '../../manifest-objects.ts';
import { dataText } from '../../output.ts';
import { moduleFiles, runnablePolicy } from '../../policy/policy-code.ts';
import { type PolicyFiles, readPolicies } from '../../policy/policy-files.ts';
import { withTimeout } from '../../policy/policy-flags.ts';
import { PolicyRunner } from '../../policy/policy-runner.ts';
import { requestForObject } from '../../policy/request-document.ts';
import type { RequestFlags } from '../../policy/request-flags.ts';
import { type PolicyWarning, warningText } from '../../policy/policy-warning.ts';
import { entriesOf, typeWarnings, withTypeWarnings } from '../../policy/type-warnings.ts';
import { ServedKinds } from '../../policy/served-kinds.ts';
import { Progress } from '../../progress.ts';
import { oneLine } from '../../table.ts';
import { type JsonObject, listed, own, styled, textOf, valueAt } from '../../../values/index.ts';
import {
  checksText,
  type Format,
  hasColors,
  isCheckFormat,
  type ReportFile,
  widthOf,
  writeReports,
} from '../suites/report-formats.ts';
import type { FetchingOptions } from '../suites/test-suites.ts';
import { watchChanges } from '../suites/watch-changes.ts';
import { FieldLines } from './field-lines.ts';
import { type Resource, readResources, type Resources } from './read-resources.ts';
import { resourceChecks } from './resource-checks.ts';
import { resourceData } from './resource-data.ts';
import { exitCodeOf, hasNoMatch, type ResourceReport } from './resource-report.ts';
import { LogLines, type TestedResource, testResources } from './resource-runner.ts';
import { resourceText } from './resource-text.ts';
import { WatchedFiles } from './watched-files.ts';

export interface ResourceTestFlags extends RequestFlags {
  readonly filter?: RE2JS;
  readonly watch?: true;
  readonly output: Format;
  readonly outputFile?: readonly ReportFile[];
  readonly verbose?: true;
  readonly requireMatch?: true;
  readonly timeout?: number;
  readonly kubernetesVersion?: number;
  readonly replayHostCapabilitiesInteractions?: string;
}

const MAX_LISTED = 5;
/** Notes, and warnings, that are printed. */
const MAX_NOTES = 20;

/** What is tested. */
interface Inputs {
  readonly policies: PolicyFiles['policies'];
  readonly subjects: readonly TestedResource[];
  readonly notes: readonly string[];
  /** About the rules of the policies, and the types of their expressions. */
  readonly warnings: readonly PolicyWarning[];
  /** Text of a recorded session that answers host capabilities. */
  readonly session: string | undefined;
}

/**
 * Tests the policies of files on the objects of others, prints and writes the results: once, or again after each change.
 * Returns the exit code.
 * @throws CliError when files cannot be read, or flags do not go together
 */
export async function testResourceFiles(
  policyPaths: readonly string[],
  paths: readonly string[],
  flags: ResourceTestFlags,
  fetching: FetchingOptions,
): Promise<number> {
  const progress = new Progress();
  const test = (onFile: (path: string) => void): Promise<ResourceReport> =>
    testResourcesOnce(policyPaths, paths, flags, { ...fetching, progress, onFile });
  const writeFiles = (report: ResourceReport): Promise<void> =>
    writeReports(flags.outputFile ?? [], (format) => reportText(report, format, flags, undefined));
  if (flags.watch === true) {
    const watched = new WatchedFiles([...policyPaths, ...paths, ...otherInputs(flags)]);
    await watchChanges(async () => {
      const report = await watched.afterChange(test);
      if (report === undefined) {
        return '';
      }
      await writeFiles(report);
      return [...notesOf(report, flags, process.stdout), reportText(report, 'table', flags, process.stdout)].join('\n');
    });
    return EXIT.ok;
  }
  const report = await test(() => undefined);
  notesOf(report, flags, process.stderr).forEach((note) => progress.line(note));
  process.stdout.write(reportText(report, flags.output, flags, process.stdout));
  await writeFiles(report);
  return exitCodeOf(report);
}

/** Files besides policies and resources. */
function otherInputs({ old, replayHostCapabilitiesInteractions: replay }: ResourceTestFlags): readonly string[] {
  return [old, replay].filter((path) => path !== undefined);
}

/** Warnings and notes in the style of a stream. */
function notesOf(
  report: ResourceReport,
  { verbose = false }: { readonly verbose?: boolean },
  stream: NodeJS.WriteStream,
): readonly string[] {
  const labelled = (label: 'note' | 'warning', notes: readonly string[]): readonly string[] => {
    const more = notes.length > MAX_NOTES ? [`${notes.length - MAX_NOTES} more ${label}s are not shown`] : [];
    return [...notes.slice(0, MAX_NOTES), ...more].map(
      (note) => `${styled('yellow', `${label}:`, { stream })} ${oneLine(note)}`,
    );
  };
  return [
    ...labelled('warning', report.warnings.map(warningText)),
    ...labelled('note', [...report.notes, ...emptyNotes(report, verbose)]),
  ];
}

interface ResourceTestOptions extends FetchingOptions {
  readonly progress: Progress;
  /** Called with the path of the file of each module before it is read. */
  readonly onFile: (path: string) => void;
}

async function testResourcesOnce(
  policyPaths: readonly string[],
  paths: readonly string[],
  flags: ResourceTestFlags,
  options: ResourceTestOptions,
): Promise<ResourceReport> {
  const { notes, ...inputs } = await asUsage(() => readInputs(policyPaths, paths, flags));
  const report = await reportOn(inputs, flags, options);
  return { ...report, notes: [...notes, ...report.notes], requiresMatch: flags.requireMatch === true };
}

async function reportOn(
  { policies, subjects, warnings, session }: Omit<Inputs, 'notes'>,
  { filter, timeout }: ResourceTestFlags,
  { sources, verification, trustRoot, progress, onFile }: ResourceTestOptions,
): Promise<ResourceReport> {
  const log = new LogLines();
  await using runner = new PolicyRunner({ onLog: log.add });
  runner.capabilities.setSources(sources, trustRoot);
  const results = await testResources(policies, subjects, runner, log, {
    progress,
    session,
    isWanted: (resource, policy) => filter === undefined || filter.matcher(`${resource} › ${policy}`).find(),
    codeOf: async (policy) => {
      (await moduleFiles(policy)).forEach(onFile);
      const code = await runnablePolicy(policy, { progress, sources, verification });
      return { ...code, definition: withTimeout(code.definition, timeout) };
    },
  });
  if (filter !== undefined && results.resources.every((one) => one.results.length === 0)) {
    throw usageError(
      `nothing matches --filter ${filter.pattern()}`,
      'It is matched against "Kind namespace/name › policy".',
    );
  }
  return { ...results, warnings: [...warnings, ...results.warnings] };
}

/** A report in a format. @param stream undefined: for a file */
function reportText(
  report: ResourceReport,
  format: Format,
  { verbose = false }: { readonly verbose?: boolean },
  stream: NodeJS.WriteStream | undefined,
): string {
  const lines = new FieldLines(report);
  if (isCheckFormat(format)) {
    return checksText(resourceChecks(report, lines), format);
  }
  return format === 'table'
    ? resourceText(report, lines, {
        color: hasColors(stream),
        withSkipped: verbose,
        ...widthOf(stream),
      })
    : dataText(resourceData(report, lines), format, { pretty: true });
}

async function readInputs(
  policyPaths: readonly string[],
  paths: readonly string[],
  flags: ResourceTestFlags,
): Promise<Inputs> {
  const replay = flags.replayHostCapabilitiesInteractions;
  requireOneInput([...policyPaths, ...paths, ...otherInputs(flags)]);
  const { resources, others } = await readResources(paths);
  const old = flags.old === undefined ? undefined : await readResources([flags.old]);
  const { kubernetesVersion } = flags;
  const { policies, objects, manifests } = await readPolicies(policyPaths, {
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
    objects: resources
      .map(({ object }) => object)
      .filter((object) => isNamespace(object) || own(object, 'kind') === 'CustomResourceDefinition')
      .map(rounded),
  });
  if (policies.length === 0) {
    throw new CliError(`${policyPaths.join(', ')}: no policies`, { hint: POLICIES_HINT });
  }
  const kinds = new ServedKinds([...objects, ...resources].map(({ object }) => object));
  const { subjects, notes } = subjectsOf(resources, old, flags, kinds);
  return {
    policies,
    subjects,
    notes: [...othersNotes(others), ...notes],
    warnings: withTypeWarnings(
      policies.flatMap((policy) => policy.findings().warnings),
      typeWarnings({
        manifests: [...manifests, ...resources.filter(isDefinition)],
        entries: policies.flatMap(entriesOf),
        objects: resources.map(({ object }) => object),
      }),
    ),
    session: replay === undefined ? undefined : await readText(replay),
  };
}

const POLICIES_HINT =
  'Expected manifests of policies (ours, or ValidatingAdmissionPolicy and MutatingAdmissionPolicy with bindings), or a policies file.';

function requireOneInput(paths: readonly string[]): void {
  if (paths.filter((path) => path === STANDARD_INPUT).length > 1) {
    throw usageError('only one file can come from standard input');
  }
}

function subjectsOf(
  resources: readonly Resource[],
  old: Resources | undefined,
  flags: RequestFlags,
  kinds: ServedKinds,
): { readonly subjects: readonly TestedResource[]; readonly notes: readonly string[] } {
  const before = new Map(old?.resources.map(({ object }) => [objectId(object), object]));
  const notes = new Set<string>();
  const subjects = resources.map((resource): TestedResource => {
    const { object } = resource;
    const id = objectId(object);
    const place = `${resource.file.name}:${resource.line} ${objectText(object)}`;
    if (own(object, 'kind') === 'AdmissionReview') {
      throw usageError(`${place} is a request and no object`, 'To evaluate it: portcullis run POLICY -r FILE');
    }
    const previous = before.get(id);
    before.delete(id);
    if (old !== undefined && previous === undefined && flags.operation === 'UPDATE') {
      throw usageError(`${place} has no object before the change in ${flags.old ?? ''}`);
    }
    const request = requestForObject(object, previous, flagsFor(object, flags), kinds);
    request.notes.forEach((note) => notes.add(note));
    const withDefaults = (changed: JsonObject): JsonObject => kinds.defaulted(changed).object;
    return { resource, text: objectText(object), review: request.review, withDefaults };
  });
  const removed = [...before.values()].map(objectText);
  return { subjects, notes: [...notes, ...removedNotes(removed)] };
}

/** `--namespace` is for objects that name none, as for Helm, whose output has objects in other namespaces too. */
function flagsFor(object: JsonObject, flags: RequestFlags): RequestFlags {
  if (textOf(valueAt(object, 'metadata', 'namespace')) === '') {
    return flags;
  }
  const { namespace: _, ...others } = flags;
  return others;
}

function isNamespace(object: JsonObject): boolean {
  return own(object, 'kind') === 'Namespace' && own(object, 'apiVersion') === 'v1';
}

function isDefinition({ object }: Resource): boolean {
  return own(object, 'kind') === 'CustomResourceDefinition';
}

function othersNotes(others: readonly string[]): readonly string[] {
  return others.length === 0 ? [] : [`not Kubernetes objects, and not tested: ${listed(others, MAX_LISTED)}`];
}

function removedNotes(removed: readonly string[]): readonly string[] {
  return removed.length === 0
    ? []
    : [`only in --old, and not tested: ${listed(removed, MAX_LISTED)}; --operation DELETE tests deletions`];
}

/** A green result that tested nothing should not go unnoticed. */
function emptyNotes(report: ResourceReport, verbose: boolean): readonly string[] {
  return hasNoMatch(report) ? [`no policy applies to any resource${verbose ? '' : ': -v says why'}`] : [];
}

/** Errors in files are wrong usage, since nothing was tested. */
async function asUsage<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError || error instanceof EngineError) {
      const hint = error instanceof CliError && error.hint !== undefined ? { hint: error.hint } : {};
      throw new CliError(error.message, { ...hint, exitCode: EXIT.usage, cause: error });
    }
    throw error;
  }
}
