// `portcullis findings`: what the auditor found, as its reports have it.
import { Command, InvalidArgumentError, Option } from 'commander';
import { REPORT_RESULTS, REPORT_SEVERITIES } from '../../resources/index.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { durationMs } from '../cluster/duration.ts';
import { selectResources } from '../cluster/resource-arguments.ts';
import { commaList } from '../comma-list.ts';
import { EXIT, usageError } from '../errors.ts';
import { dataText } from '../output.ts';
import { terminalWidth } from '../table.ts';
import { auditedPolicies, coverageOfNamed, isUncovered } from './audited-policies.ts';
import { findingsMarkdown, type FindingsReport, findingsTable, type TableOptions } from './findings-text.ts';
import { readReports, type ReportScope } from './read-reports.ts';
import { statusPolicies } from './status-policies.ts';
import {
  FINDING_ORDERS,
  type FindingFilter,
  type FindingOrder,
  isWanted,
  type ReportSeverity,
  sortedFindings,
  storedFindings,
  type StoredResultName,
} from './stored-findings.ts';

const OUTPUTS = ['table', 'wide', 'json', 'yaml', 'markdown'] as const;
const FAIL_ON = ['never', 'fail', 'warn'] as const;
/** Results that are stored: passes are not. */
const RESULTS = REPORT_RESULTS.filter((result) => result !== 'pass');
/** Ten years. Milliseconds. */
const MAX_SINCE_MS = 10 * 365 * 86_400_000;

interface FindingsFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly policy?: readonly string[];
  readonly kind?: string;
  readonly result?: readonly StoredResultName[];
  readonly severity?: ReportSeverity;
  readonly since?: string;
  readonly allSources?: true;
  readonly sortBy: FindingOrder;
  readonly failOn: (typeof FAIL_ON)[number];
  readonly output: (typeof OUTPUTS)[number];
}

/** Which reports are read, and which of their findings are shown. */
interface Selection {
  readonly scope: ReportScope;
  readonly filter: FindingFilter;
}

export function findingsCommand(): Command {
  return addClusterFlags(
    new Command('findings')
      .description('show what the auditor of a cluster found, as its reports have it')
      .argument('[object]', 'only of this object: TYPE/NAME')
      .option('-A, --all-namespaces', 'of all namespaces, and of none; the default without -n')
      .option('--policy <name...>', 'only of these policies, such as cap/pinned-images')
      .option('--kind <types>', 'only of objects of these kinds, such as pods,deployments')
      .addOption(new Option('--result <results>', 'only these results: fail,warn,error,skip').argParser(resultNames))
      .addOption(
        new Option('--severity <severity>', 'only of policies of this severity, or a higher one').choices(
          REPORT_SEVERITIES,
        ),
      )
      .option('--since <duration>', 'only what is new or changed since then, such as 24h')
      .option('--all-sources', 'also of other products that write OpenReports or PolicyReports')
      .addOption(new Option('--sort-by <column>', 'order; age: oldest first').choices(FINDING_ORDERS).default('policy'))
      .addOption(
        new Option('--fail-on <result>', 'exit with 1 for these; warn: for failures, too')
          .choices(FAIL_ON)
          .default('never'),
      )
      .addOption(new Option('-o, --output <format>', 'output format').choices(OUTPUTS).default('table')),
  )
    .addHelpText(
      'after',
      `
Exit code: 0 if all objects are known; 1 for findings with --fail-on, or after an error; 2 for wrong usage; 3 if reports cannot be
read, or it is not known that all objects were scanned, whatever else was found.

Examples:
  portcullis findings
  portcullis findings -n shop --severity high
  portcullis findings deployment/web -n shop -o yaml
  portcullis findings --policy cap/pinned-images --since 24h --sort-by age`,
    )
    .action(findings);
}

async function findings(object: string | undefined, flags: FindingsFlags): Promise<void> {
  if (flags.allNamespaces === true && (flags.namespace !== undefined || object !== undefined)) {
    throw usageError('--all-namespaces: expected neither --namespace nor an object');
  }
  using connected = await connect(flags);
  const now = Date.now();
  const report = await readFindings(connected, await selectionOf(connected, object, flags, now), flags.sortBy);
  process.stdout.write(reportText(report, flags, now));
  process.exitCode = exitCodeOf(report, flags.failOn);
}

async function readFindings(
  { cluster, namespace }: Connected,
  { scope, filter }: Selection,
  order: FindingOrder,
): Promise<FindingsReport> {
  const { policies: names } = filter;
  const [{ reports, unread }, policies, ofStatuses] = await Promise.all([
    readReports(cluster, scope),
    auditedPolicies(cluster, namespace),
    names === undefined ? [] : statusPolicies(cluster),
  ]);
  const stored = reports.flatMap(storedFindings);
  const others = { reported: stored.map(({ policy }) => policy), isAllRead: unread.length === 0, ofStatuses };
  return {
    findings: sortedFindings(
      stored.filter((one) => isWanted(one, filter)),
      order,
    ),
    unread,
    policies: names === undefined ? policies : coverageOfNamed(names, policies, others),
  };
}

async function selectionOf(
  connected: Connected,
  object: string | undefined,
  flags: FindingsFlags,
  now: number,
): Promise<Selection> {
  const { cluster, namespace: ownNamespace } = connected;
  const named = object === undefined ? undefined : await namedObject(connected, object);
  const kinds =
    flags.kind === undefined ? undefined : await selectResources(cluster, [commaList(flags.kind).join(',')]);
  const namespace = named === undefined ? flags.namespace : (named.object.namespace ?? '');
  return {
    scope: {
      ...(namespace === undefined ? {} : { namespace }),
      allSources: flags.allSources === true,
      ownNamespace,
    },
    filter: {
      ...(flags.policy === undefined ? {} : { policies: flags.policy }),
      ...(kinds === undefined ? {} : { kinds: kinds.map(({ type }) => type) }),
      ...(flags.result === undefined ? {} : { results: flags.result }),
      ...(flags.severity === undefined ? {} : { severity: flags.severity }),
      ...(flags.since === undefined ? {} : { since: now - durationMs(flags.since, '--since', MAX_SINCE_MS) }),
      ...named,
    },
  };
}

/** @throws CliError unless the text names one object */
async function namedObject(
  { cluster, namespace }: Connected,
  text: string,
): Promise<Required<Pick<FindingFilter, 'kinds' | 'object'>>> {
  if (!text.includes('/')) {
    throw usageError(
      `expected TYPE/NAME of an object, such as pod/web`,
      'portcullis findings --kind TYPE shows those of all.',
    );
  }
  const [selection] = await selectResources(cluster, [text]);
  const [name = ''] = selection?.names ?? [];
  const type = selection?.type ?? { group: '', kind: '', namespaced: true };
  return { kinds: [type], object: type.namespaced ? { namespace, name } : { name } };
}

function resultNames(text: string): readonly StoredResultName[] {
  return commaList(text).map((word) => {
    const result = RESULTS.find((one) => one === word);
    if (result === undefined) {
      throw new InvalidArgumentError(`Expected one or more of ${RESULTS.join(', ')}.`);
    }
    return result;
  });
}

function reportText(report: FindingsReport, flags: FindingsFlags, now: number): string {
  const { output } = flags;
  const options: TableOptions = { isWide: output === 'wide', withSource: flags.allSources === true, now };
  switch (output) {
    case 'table':
      return findingsTable(report, process.stdout.isTTY ? { ...options, maxWidth: terminalWidth() } : options);
    case 'wide':
      return findingsTable(report, options);
    case 'markdown':
      return findingsMarkdown(report, options);
    case 'json':
    case 'yaml':
      return dataText({ findings: report.findings, unread: report.unread, policies: report.policies }, output, {
        pretty: true,
      });
    default:
      return output satisfies never;
  }
}

/** What is not known weighs more than what was found: it may hide more. */
function exitCodeOf({ findings: found, unread, policies }: FindingsReport, failOn: FindingsFlags['failOn']): number {
  if (unread.length > 0 || policies.some(isUncovered)) {
    return EXIT.incomplete;
  }
  const failures: Readonly<Record<FindingsFlags['failOn'], readonly string[]>> = {
    never: [],
    fail: ['fail'],
    warn: ['fail', 'warn'],
  };
  return found.some(({ result }) => failures[failOn].includes(result)) ? EXIT.failed : EXIT.ok;
}
