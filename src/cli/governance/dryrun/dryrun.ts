// `portcullis dryrun`: what governance policies would report, as Open Cluster Management's `dryrun`, and for whole Policies.
import { createWriteStream, openSync } from 'node:fs';
import { Command, Option } from 'commander';
import type { Cluster } from '../../../cluster/index.ts';
import { unsupportedKind } from '../../../governance/index.ts';
import { createLog, type Logger } from '../../../log/index.ts';
import {
  GOVERNANCE_KINDS,
  isJsonObject,
  type JsonObject,
  knownKind,
  type KubernetesObject,
} from '../../../resources/index.ts';
import { readObjects } from '../../cluster/apply-files.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../../cluster/cluster-flags.ts';
import { readDocument } from '../../document.ts';
import { fileProblem } from '../../../files/index.ts';
import { CliError, usageError } from '../../errors.ts';
import { dataText } from '../../output.ts';
import { replaceFile } from '../../replace-file.ts';
import { oneLine } from '../../table.ts';
import { clusterNameOption } from '../cluster-name-flag.ts';
import { readMappings } from './api-mappings.ts';
import { compareStatus } from './compare-status.ts';
import {
  comparisonText,
  type ReportFormat,
  reportsText,
  type TemplateReport,
  templateReports,
  wholeStatus,
} from './dryrun-report.ts';
import { generateCommand } from './generate.ts';
import { InputCluster } from './input-cluster.ts';
import { readOnly } from './read-only-cluster.ts';
import { triedPolicies } from './tried-policies.ts';

const NAMESPACES = knownKind('v1', 'Namespace');
/** A policy is not compliant, as of Open Cluster Management's `dryrun`. */
const EXIT_NONCOMPLIANT = 2;

interface DryrunFlags extends ClusterFlags {
  readonly policy?: readonly string[];
  readonly desiredStatus?: string;
  readonly printDiffs: 'true' | 'false';
  readonly fullDiffs?: true;
  readonly colors: boolean;
  readonly statusPath?: string;
  readonly messagesPath?: string;
  readonly mappingsFile?: string;
  readonly fromCluster?: boolean;
  readonly log?: true;
  readonly logPath?: string;
  readonly clusterName: string;
}

export function dryrunCommand(): Command {
  return addConnectionFlags(
    new Command('dryrun')
      .description('evaluate governance policies on manifests or on a cluster, without changing anything')
      .argument('[inputs...]', 'the objects of the cluster: files, folders, or - for standard input')
      .option('-p, --policy <file>', 'policies to evaluate: a file, a folder, or -; may be repeated', collected)
      .option('-c, --desired-status <file>', 'compare the status with this one, which may be part of it')
      .addOption(new Option('--print-diffs <boolean>', 'print differences').choices(['true', 'false']).default('true'))
      .option('--full-diffs', 'print long differences in full')
      .option('--no-colors', 'print without colors')
      .option('--status-path <file>', 'write the status to a file')
      .option('--messages-path <file>', 'write compliance messages to a file instead of printing them')
      .addOption(
        new Option('--mappings-file <file>', 'kinds of the cluster, see `dryrun generate`').env('DRYRUN_MAPPINGS_FILE'),
      )
      .option(
        '--from-cluster',
        'read the objects of a cluster',
        process.env['DRYRUN_FROM_CLUSTER'] === 'true' ? true : undefined,
      )
      .option('--log', 'log to standard error')
      .option('--log-path <file>', 'log to a file')
      .addOption(clusterNameOption()),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis dryrun -p policy.yaml pods.yaml
  portcullis dryrun -p policies/ cluster/ -c expected-status.yaml
  portcullis dryrun -p policy.yaml --from-cluster
  portcullis dryrun generate > mappings.yaml

Exit code: 0 when all policies are Compliant, 2 when one is not, or the command line is invalid, 1 after another error.`,
    )
    .addCommand(generateCommand())
    .action(dryrun);
}

async function dryrun(inputs: readonly string[], flags: DryrunFlags): Promise<void> {
  const policies = await readPolicies(flags);
  using source = await sourceOf(inputs, flags);
  const { evaluatePolicies } = await import('./evaluate-policies.ts');
  const evaluated = await evaluatePolicies({
    policies,
    cluster: source.cluster,
    clusterName: flags.clusterName,
    fullDiffs: flags.fullDiffs === true,
    log: logOf(flags),
  });
  const reports = templateReports(evaluated);
  await print(reports, wholeStatus(evaluated, reports), flags);
  process.exitCode = reports.every(({ compliant }) => compliant === 'Compliant') ? 0 : EXIT_NONCOMPLIANT;
}

/** @throws CliError when there are none */
async function readPolicies({ policy = [], clusterName }: DryrunFlags): Promise<readonly KubernetesObject[]> {
  if (policy.length === 0) {
    throw usageError('expected a policy', 'Name it with -p: portcullis dryrun -p policy.yaml pods.yaml');
  }
  const { policies, ignored } = triedPolicies(await readObjects(policy, false), clusterName);
  if (policies.length === 0) {
    const kinds = GOVERNANCE_KINDS.map(({ kind }) => kind).join(', ');
    const [unsupported] = ignored.flatMap(({ apiVersion, kind }) => unsupportedKind(apiVersion, kind) ?? []);
    throw new CliError(unsupported ?? `no policy in ${policy.join(', ')}: expected ${kinds}`);
  }
  noteIgnored(ignored);
  return policies;
}

function noteIgnored(ignored: readonly KubernetesObject[]): void {
  const nameOf = ({ kind, metadata }: KubernetesObject): string => oneLine(`${kind} ${metadata.name ?? ''}`);
  const { unsupported = [], others = [] } = Object.groupBy(ignored, ({ apiVersion, kind }) =>
    unsupportedKind(apiVersion, kind) === undefined ? 'others' : 'unsupported',
  );
  for (const object of unsupported) {
    const text = unsupportedKind(object.apiVersion, object.kind) ?? '';
    process.stderr.write(`note: ${nameOf(object)} is ignored: ${text}\n`);
  }
  if (others.length > 0) {
    const text = `no policies, and ignored: ${others.map(nameOf).join(', ')}. Name objects of the cluster without -p`;
    process.stderr.write(`note: ${text}\n`);
  }
}

async function print(reports: readonly TemplateReport[], status: JsonObject, flags: DryrunFlags): Promise<void> {
  const { desiredStatus, statusPath, messagesPath } = flags;
  const format: ReportFormat = {
    hasDiffs: flags.printDiffs === 'true',
    hasMessages: messagesPath === undefined,
    hasColors: flags.colors,
  };
  if (desiredStatus !== undefined) {
    process.stdout.write(comparisonText(compareStatus(await readExpected(desiredStatus), status), format));
  }
  if (statusPath !== undefined) {
    await replaceFile(statusPath, Buffer.from(dataText(status, 'yaml')));
  }
  if (messagesPath !== undefined) {
    const lines = reports.filter(({ message }) => message !== '').map(({ message }) => `${message}\n`);
    await replaceFile(messagesPath, Buffer.from(lines.join('')));
  }
  process.stdout.write(reportsText(reports, format));
  for (const { policy, name } of reports.filter(({ compliant }) => compliant === undefined)) {
    process.stderr.write(`note: ${oneLine(`${policy}: nothing here evaluates the template ${name}`)}\n`);
  }
}

interface Source extends Disposable {
  readonly cluster: Cluster;
}

/** What the policies are about. */
async function sourceOf(inputs: readonly string[], flags: DryrunFlags): Promise<Source> {
  if (flags.fromCluster === true) {
    if (inputs.length > 0) {
      throw usageError('expected no inputs with --from-cluster', 'Objects are read from the cluster.');
    }
    return await clusterSource(flags);
  }
  const mappings = flags.mappingsFile === undefined ? [] : await readMappings(flags.mappingsFile);
  const cluster = new InputCluster(inputs.length === 0 ? [] : await readObjects(inputs, false), mappings);
  for (const { kind, group, resource, namespaced } of cluster.discovery.guessed) {
    const guess = `${resource}${group === '' ? '' : `.${group}`}, ${namespaced ? 'in namespaces' : 'without namespace'}`;
    process.stderr.write(
      `note: ${oneLine(`${kind} is taken for ${guess}: name its kind with --mappings-file, or its CRD`)}\n`,
    );
  }
  return { cluster, [Symbol.dispose]: () => undefined };
}

async function clusterSource(flags: DryrunFlags): Promise<Source> {
  const { cluster } = await connect(flags);
  try {
    // Controllers watch namespaces for every policy: without that right, the command fails at once.
    await cluster.list(NAMESPACES, { limit: 1 });
  } catch (error) {
    cluster.close();
    throw error;
  }
  return { cluster: readOnly(cluster), [Symbol.dispose]: () => cluster.close() };
}

/** @throws CliError when it is no mapping */
async function readExpected(path: string): Promise<JsonObject> {
  const { value } = await readDocument(path);
  if (!isJsonObject(value)) {
    throw new CliError(`${path} is no status: expected a mapping`);
  }
  return value;
}

function logOf({ log, logPath }: DryrunFlags): Logger {
  if (logPath === undefined) {
    return createLog({ level: log === true ? 'debug' : 'silent', format: 'text', destination: process.stderr });
  }
  try {
    const destination = createWriteStream(logPath, { fd: openSync(logPath, 'a') });
    return createLog({ level: 'debug', format: 'text', destination });
  } catch (error) {
    throw new CliError(`${logPath} cannot be written: ${fileProblem(error)}`, { cause: error });
  }
}

function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
