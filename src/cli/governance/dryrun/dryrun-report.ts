// What a dry run prints, in the format of Open Cluster Management's.
import { styled } from '../../../values/index.ts';
import {
  type ConfigurationPolicy,
  type JsonObject,
  own,
  POLICIES,
  type Policy,
  type PolicyHistoryEntry,
  POLICY_SETS,
  type RelatedObject,
  textOf,
} from '../../../resources/index.ts';
import { manyLines, oneLine } from '../../table.ts';
import type { StatusComparison } from './compare-status.ts';
import type { EvaluatedObject, EvaluatedPolicies } from './evaluate-policies.ts';

/** Dashes behind the name of a template. */
const RULE = '-'.repeat(47);

/** The result of one template. */
export interface TemplateReport {
  readonly policy: string;
  readonly name: string;
  /** Undefined if nothing here evaluates its kind. */
  readonly compliant: string | undefined;
  /** Several lines if the evaluation had several messages. */
  readonly message: string;
  readonly relatedObjects: readonly RelatedObject[];
  /** The status of its object; that of its Policy while it is not applied. */
  readonly status: JsonObject;
}

/** The results of all templates. */
export function templateReports(evaluated: EvaluatedPolicies): readonly TemplateReport[] {
  return evaluated.policies.flatMap((policy) => {
    const { kind, metadata, status = {} } = policy;
    const name = metadata.name ?? '';
    if (kind === POLICY_SETS.kind) {
      return [];
    }
    if (kind !== POLICIES.kind) {
      return [reportOf(name, name, policy)];
    }
    const copy = copyOf(policy, evaluated);
    return copy === undefined
      ? [{ policy: name, name, compliant: compliantOf(status), message: summaryOf(status), relatedObjects: [], status }]
      : reportsOf(name, copy, evaluated);
  });
}

/** The results of the templates of a Policy. */
function reportsOf(policy: string, copy: EvaluatedObject, { find }: EvaluatedPolicies): readonly TemplateReport[] {
  // Its kind has been validated.
  const { spec, status } = copy as unknown as Policy;
  return spec['policy-templates'].map(({ objectDefinition }, index) => {
    const { templateMeta, state, compliant, history } = status?.details?.[index] ?? {};
    const name = templateMeta?.name ?? '';
    const applied = state === 'Applied' ? find(textOf(own(objectDefinition, 'kind')), name) : undefined;
    const report = reportOf(policy, name, applied ?? { ...copy, status: {} });
    const message = report.message === '' ? (history?.[0]?.message ?? '') : report.message;
    return { ...report, compliant, message, status: applied?.status ?? copy.status ?? {} };
  });
}

/** The result in the status of a template's object. */
function reportOf(policy: string, name: string, { status = {} }: EvaluatedObject): TemplateReport {
  const { history = [], relatedObjects = [] } = status as NonNullable<ConfigurationPolicy['status']>;
  const message = lastMessages(history).join('\n');
  return { policy, name, compliant: compliantOf(status), message, relatedObjects, status };
}

/**
 * The messages of the last evaluation, in their order: what is wrong with an object, and then why it cannot be corrected.
 * An evaluation dates its messages one millisecond apart.
 */
function lastMessages(history: readonly PolicyHistoryEntry[]): readonly string[] {
  const times = history.map(({ lastTimestamp = '' }) => Date.parse(lastTimestamp));
  const end = times.findIndex((time, index) => times[index + 1] !== time - 1);
  return history
    .slice(0, end + 1)
    .map(({ message = '' }) => message.trimEnd())
    .toReversed();
}

function copyOf({ kind, metadata }: EvaluatedObject, { find }: EvaluatedPolicies): EvaluatedObject | undefined {
  return kind === POLICIES.kind ? find(kind, `${metadata.namespace ?? ''}.${metadata.name ?? ''}`) : undefined;
}

function compliantOf(status: JsonObject): string | undefined {
  const compliant = textOf(own(status, 'compliant'));
  return compliant === '' ? undefined : compliant;
}

function summaryOf(status: JsonObject): string {
  return textOf(own(status, 'message'));
}

/** The status of all: of the only template, of the only policy, or of each policy by its name. */
export function wholeStatus(evaluated: EvaluatedPolicies, reports: readonly TemplateReport[]): JsonObject {
  const [only, ...others] = reports;
  if (only !== undefined && others.length === 0) {
    return only.status;
  }
  const statuses = evaluated.policies
    .filter(({ kind }) => kind !== POLICY_SETS.kind)
    .map((policy) => [policy.metadata.name ?? '', copyOf(policy, evaluated)?.status ?? policy.status ?? {}] as const);
  const [first, ...more] = statuses;
  return first !== undefined && more.length === 0 ? first[1] : Object.fromEntries(statuses);
}

export interface ReportFormat {
  readonly hasDiffs: boolean;
  readonly hasMessages: boolean;
  readonly hasColors: boolean;
}

export function comparisonText({ isMatch, lines }: StatusComparison, format: ReportFormat): string {
  const tones = { matches: 'green', differs: 'red', skipped: 'yellow' } as const;
  const verdict = isMatch
    ? toned(['green', 'bold'], ' Expected status matches the actual status', format)
    : toned(['red', 'bold'], ' Expected status does not match the actual status', format);
  return [
    '# Status compare:',
    ...lines.map(({ text, outcome }) => toned([tones[outcome]], oneLine(text), format)),
    verdict,
    '',
    '',
  ].join('\n');
}

/** The differences and messages of all templates, each below its name if there are several. */
export function reportsText(reports: readonly TemplateReport[], format: ReportFormat): string {
  const hasPolicies = new Set(reports.map(({ policy }) => policy)).size > 1;
  return reports
    .map((report) => {
      const { policy, name } = report;
      const title = hasPolicies && policy !== name ? `${policy}/${name}` : name;
      const heading = reports.length > 1 ? `${oneLine(title)}  ${RULE}\n` : '';
      return `${heading}${format.hasDiffs ? diffsText(report, format) : ''}${format.hasMessages ? messagesText(report) : ''}`;
    })
    .join('\n');
}

function messagesText({ message }: TemplateReport): string {
  return `# Compliance messages:\n${message === '' ? '' : `${manyLines(message)}\n`}`;
}

function diffsText({ relatedObjects }: TemplateReport, format: ReportFormat): string {
  const objects = relatedObjects.map(({ object, properties }) => {
    const { name = '', namespace = '' } = object?.metadata ?? {};
    const title = `${object?.apiVersion ?? ''} ${object?.kind ?? ''} ${namespace === '' ? '' : `${namespace}/`}${name}:`;
    const lines = manyLines(properties?.diff ?? '')
      .replace(/\n$/, '')
      .split('\n');
    return [oneLine(title), ...lines.map((line) => coloredLine(line, format)), ''].join('\n');
  });
  return `# Diffs:\n${objects.join('')}`;
}

function coloredLine(line: string, format: ReportFormat): string {
  if (line.startsWith('-') && !line.startsWith('---')) {
    return toned(['red'], line, format);
  }
  return line.startsWith('+') && !line.startsWith('+++') ? toned(['green'], line, format) : line;
}

function toned(tones: Parameters<typeof styled>[0], text: string, { hasColors }: ReportFormat): string {
  return hasColors ? styled(tones, text) : text;
}
