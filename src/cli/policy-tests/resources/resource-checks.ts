import type { PolicyCheck, CheckGroup, CheckReport } from '../suites/checks.ts';
import { oneLine } from '../../table.ts';
import { warningRules, warningText } from '../../policy/policy-warning.ts';
import { warningProblem } from '../suites/policy-warnings.ts';
import type { FieldLines } from './field-lines.ts';
import type { ResourceFile } from './read-resources.ts';
import type { Outcome, UnusablePolicy, PolicyResult, ResourceReport, ResourceResult } from './resource-report.ts';

const STATUSES: Readonly<Record<Outcome, PolicyCheck['status']>> = {
  pass: 'passed',
  warn: 'warned',
  fail: 'failed',
  error: 'error',
  skip: 'skipped',
};

/** Results by file: of policies that cannot be evaluated, and then of resources. */
export function resourceChecks(report: ResourceReport, lines: FieldLines): CheckReport {
  const groups = new Map<ResourceFile, CheckGroup & { checks: PolicyCheck[]; durationMs: number }>();
  for (const tested of report.resources) {
    const { file } = tested.resource;
    const group = groups.get(file) ?? groupOf(file);
    groups.set(file, group);
    for (const result of tested.results) {
      group.durationMs += result.durationMs;
      group.checks.push(checkOf(tested, result, lines));
    }
  }
  return {
    groups: [...policyGroups(report), ...groups.values()],
    warnings: report.warnings.map((warning) => warningProblem(warning, 'policy')),
    rules: [
      ...report.policies.map(({ name, kind = 'policy', file }) => ({
        id: name,
        description: oneLine(`${kind} ${name} of ${file}`),
      })),
      ...warningRules(report.warnings),
    ],
  };
}

function groupOf({ name, isInput }: ResourceFile): CheckGroup & { checks: PolicyCheck[]; durationMs: number } {
  return { name, ...(isInput ? {} : { file: name }), checks: [], durationMs: 0 };
}

function checkOf({ resource, text }: ResourceResult, result: PolicyResult, lines: FieldLines): PolicyCheck {
  const { policy, outcome, message = '', log, warnings, durationMs } = result;
  const { file, template } = resource;
  const source = template === undefined ? '' : ` (of ${template})`;
  return {
    name: `${text} › ${policy.name}`,
    subject: text,
    status: STATUSES[outcome],
    rule: policy.name,
    message: outcome === 'pass' ? '' : `${oneLine(message)}${source}`,
    details: outcome === 'pass' ? '' : message,
    output: [
      ...warnings.map((warning) => `warning ${warning}`),
      ...log.map(({ level, message: line }) => `${level} ${line}`),
    ],
    ...(file.isInput ? {} : { place: { file: file.name, line: lines.lineOf(resource, result) } }),
    durationMs,
  };
}

/** Files of policies that have warnings or cannot be evaluated. */
function policyGroups({ problems, warnings }: ResourceReport): readonly CheckGroup[] {
  const files = new Set([
    ...problems.map(({ policy }) => policy.file),
    ...warnings.flatMap(({ place }) => place?.file ?? []),
  ]);
  return [...files].map((file) => ({
    name: file,
    file,
    checks: problems.filter(({ policy }) => policy.file === file).map(problemCheck),
    warnings: warnings.filter(({ place }) => place?.file === file).map(warningText),
    durationMs: 0,
  }));
}

function problemCheck({ policy, message }: UnusablePolicy): PolicyCheck {
  const { name, file, line } = policy;
  return {
    name: `${name} can be evaluated`,
    subject: name,
    status: 'error',
    rule: name,
    message: oneLine(message),
    details: message,
    output: [],
    place: { file, line },
    durationMs: 0,
  };
}
