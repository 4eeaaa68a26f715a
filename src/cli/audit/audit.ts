// `portcullis audit`: which existing objects policies would reject.
import { Command, Option } from 'commander';
import { auditCluster, auditObjects, type AuditPart, type AuditScope } from '../../audit/index.ts';
import type { ApiResource } from '../../cluster/index.ts';
import type { EvaluationHost } from '../../evaluation/index.ts';
import { groupResourceOf } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import { addClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { selectResources } from '../cluster/resource-arguments.ts';
import { commaList } from '../comma-list.ts';
import { usageError } from '../errors.ts';
import { addSignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags } from '../module/source-flags.ts';
import { dataText } from '../output.ts';
import { githubAnnotations } from '../problems/github-annotations.ts';
import { sarifText } from '../problems/sarif.ts';
import { exceptionsAmong } from '../policy/exceptions-among.ts';
import { Progress } from '../progress.ts';
import { auditHost, type HostFlags, type Lookups } from './audit-host.ts';
import { auditJunit } from './audit-junit.ts';
import { chosenPolicies, type InputPolicies, policiesIn, policiesOfFiles } from './audit-policies.ts';
import { auditProblems, auditRules } from './audit-problems.ts';
import { ProgressText } from './audit-progress.ts';
import {
  type AuditFailOn,
  type AuditReport,
  auditReport,
  exitCodeOfAudit,
  FAIL_ON,
  summaryOf,
} from './audit-report.ts';
import { type AuditedFiles, objectsOfFiles } from './given-objects.ts';
import { auditMarkdown, auditTable } from './report-text.ts';

const OUTPUTS = ['table', 'json', 'yaml', 'markdown', 'junit', 'sarif', 'github'] as const;

interface AuditFlags extends HostFlags {
  readonly policies?: readonly string[];
  readonly policy?: readonly string[];
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly allNamespaces?: true;
  readonly includeSecrets?: true;
  readonly failOn: AuditFailOn;
  readonly output: (typeof OUTPUTS)[number];
}

export function auditCommand(): Command {
  const command = new Command('audit')
    .description('say which existing objects of a cluster, or of files, policies would reject')
    .argument('[types]', 'only these kinds of the cluster, such as pods,deployments (default: all that policies match)')
    .option('-p, --policies <file...>', 'judge by the policies of files and folders (default: those of the cluster)')
    .option('--policy <name...>', 'judge by these policies only, such as cap/pinned-images')
    .option(
      '-f, --filename <file...>',
      'judge the objects of files, folders, or - for standard input, not of a cluster',
    )
    .option('-R, --recursive', 'include subfolders of -f')
    .option('-A, --all-namespaces', 'judge the objects of all namespaces, and of none; the default without -n')
    .option(
      '--modules-dir <folder>',
      'folder for file://./ references of policies of the cluster, as on its policy servers',
    )
    .option('--include-secrets', 'read Secrets, if a policy is for them')
    .addOption(
      new Option('--fail-on <what>', 'exit with 1 for these; protect: findings of policies in mode protect')
        .choices(FAIL_ON)
        .default('finding'),
    )
    .addOption(
      new Option('-o, --output <format>', 'output format; github: annotations of GitHub Actions')
        .choices(OUTPUTS)
        .default('table'),
    );
  return addSourceFlags(addSignatureFlags(addClusterFlags(command)))
    .addHelpText(
      'after',
      `
Exit code: 0 if everything was judged, and nothing was found; 1 for findings (see --fail-on), or after an error; 2 for wrong
usage; 3 if something could not be read or judged, whatever else was found.

Examples:
  portcullis audit
  portcullis audit pods,deployments -n shop --policy cap/pinned-images
  portcullis audit -p policies/ -f manifests/ -R -o sarif > audit.sarif
  helm template chart | portcullis audit -p policies/ -f -`,
    )
    .action(audit);
}

async function audit(types: string | undefined, flags: AuditFlags): Promise<void> {
  if (flags.allNamespaces === true && flags.namespace !== undefined) {
    throw usageError('--all-namespaces and --namespace: expected one of the two');
  }
  const progress = new Progress();
  const report = await runAudit(types === undefined ? [] : commaList(types), flags, progress);
  const { policies, incomplete, notAuditable } = summaryOf(report);
  if (policies + incomplete + notAuditable === 0) {
    progress.note('nothing was judged: no policy is for any of these kinds');
  }
  process.stdout.write(reportText(report, flags.output));
  process.exitCode = exitCodeOfAudit(report, flags.failOn);
}

async function runAudit(types: readonly string[], flags: AuditFlags, progress: Progress): Promise<AuditReport> {
  const { policies, filename } = flags;
  using connected = policies === undefined || filename === undefined ? await connect(flags) : undefined;
  const files = filename === undefined ? undefined : await filesOf(filename, flags, progress);
  const input = await inputPolicies(connected, flags);
  const lookups: Lookups =
    connected === undefined
      ? { objects: [...input.objects, ...(files?.objects.map(({ object }) => asJson(object)) ?? [])] }
      : { cluster: connected.cluster };
  await using host = await auditHost(flags, lookups, (text) => progress.note(text));
  await host.start();
  const scope: AuditScope = {
    ...(flags.namespace === undefined || files !== undefined ? {} : { namespace: flags.namespace }),
    ...(flags.includeSecrets === true ? { includesSecrets: true } : {}),
    ...(types.length === 0
      ? {}
      : { includesKind: await kindFilter(types, files === undefined ? connected : undefined) }),
    hasCluster: connected !== undefined,
  };
  const parts = await judged({ input, host, scope, files, connected }, progress);
  return auditReport([{ coverage: input.coverage, results: [] }, ...parts], files?.placeOf ?? (() => undefined));
}

async function filesOf(paths: readonly string[], flags: AuditFlags, progress: Progress): Promise<AuditedFiles> {
  const files = await objectsOfFiles(paths, { isRecursive: flags.recursive === true, namespace: flags.namespace });
  files.notes.forEach((note) => progress.note(note));
  return files;
}

async function inputPolicies(connected: Connected | undefined, flags: AuditFlags): Promise<InputPolicies> {
  if (flags.policies !== undefined) {
    return chosenPolicies(await policiesOfFiles(flags.policies), flags.policy);
  }
  if (connected === undefined) {
    throw new Error('expected a cluster where no files have the policies');
  }
  return chosenPolicies(await policiesIn(connected.cluster, flags), flags.policy);
}

interface Run {
  readonly input: InputPolicies;
  readonly host: EvaluationHost;
  readonly scope: AuditScope;
  readonly files: AuditedFiles | undefined;
  readonly connected: Connected | undefined;
}

/** Findings are kept, objects are not. */
async function judged(
  { input, host, scope, files, connected }: Run,
  progress: Progress,
): Promise<readonly AuditPart[]> {
  const { policies } = input;
  return await progress.during('loading policies', async (update) => {
    const text = new ProgressText();
    const exceptions = [
      ...input.exceptions,
      ...exceptionsAmong((files?.objects ?? []).map(({ object }) => asJson(object))),
    ];
    host.except(exceptions);
    const run = {
      host,
      policies,
      scope,
      exceptions,
      onProgress: (one: Parameters<ProgressText['of']>[0]) => update(text.of(one)),
    };
    const parts: AuditPart[] = [];
    const found =
      files !== undefined
        ? auditObjects({ ...run, objects: files.objects })
        : auditCluster({ ...run, cluster: clusterOf(connected) });
    for await (const part of found) {
      parts.push(part);
    }
    return parts;
  });
}

function clusterOf(connected: Connected | undefined): Connected['cluster'] {
  if (connected === undefined) {
    throw new Error('expected a cluster where no files have the objects');
  }
  return connected.cluster;
}

/** By the names that kubectl knows; of files by the same of builtin kinds. @throws CliError for an unknown kind of a cluster */
async function kindFilter(
  words: readonly string[],
  connected: Connected | undefined,
): Promise<(type: ApiResource) => boolean> {
  if (connected === undefined) {
    return (type) =>
      words.some((word) =>
        [type.resource, groupResourceOf(type), type.singular, ...type.shortNames].includes(word.toLowerCase()),
      );
  }
  const selected = await selectResources(connected.cluster, [words.join(',')]);
  const names = new Set(selected.map(({ type }) => groupResourceOf(type)));
  return (type) => names.has(groupResourceOf(type));
}

function reportText(report: AuditReport, output: AuditFlags['output']): string {
  switch (output) {
    case 'table':
      return auditTable(report);
    case 'markdown':
      return auditMarkdown(report);
    case 'junit':
      return auditJunit(report);
    case 'sarif':
      return sarifText(auditProblems(report), auditRules(report));
    case 'github':
      return githubAnnotations(auditProblems(report));
    case 'json':
    case 'yaml':
      return dataText(reportData(report), output, { pretty: true });
    default:
      return output satisfies never;
  }
}

function reportData(report: AuditReport): object {
  const results = report.results.map((result) => ({ ...result, ...report.placeOf(result.object) }));
  return { summary: summaryOf(report), results, coverage: report.coverage };
}
