// Results as JUnit XML: a test suite per file, a test case per check. https://github.com/testmoapp/junitxml
import { element, escapeText } from '../../junit-xml.ts';
import type { PolicyCheck, CheckGroup, CheckReport } from './checks.ts';

export function junitReport({ groups }: CheckReport): string {
  const durationMs = groups.reduce((sum, group) => sum + group.durationMs, 0);
  const total = { ...countsOf(groups.flatMap(({ checks }) => checks)), time: seconds(durationMs) };
  const suites = groups.map(suiteElement);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'portcullis', ...total }, suites)}\n`;
}

function suiteElement({ name, file, checks, durationMs, warnings = [] }: CheckGroup): string {
  const attributes = { name, ...(file === undefined ? {} : { file }), ...countsOf(checks), time: seconds(durationMs) };
  return element('testsuite', attributes, [
    ...checks.map((check) => caseElement(name, check)),
    ...outputElement(warnings.map((warning) => `warning ${warning}`)),
  ]);
}

function outputElement(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [element('system-out', {}, [escapeText(lines.join('\n'))])];
}

function caseElement(classname: string, check: PolicyCheck): string {
  const { name, output, place = {}, durationMs } = check;
  return element('testcase', { name, classname, ...place, time: seconds(durationMs) }, [
    ...outcome(check),
    ...outputElement(output),
  ]);
}

/** JUnit has no warnings: what only warns has passed. */
function outcome({ status, message, rule, details }: PolicyCheck): string[] {
  switch (status) {
    case 'failed':
      return [element('failure', { message, type: rule }, [escapeText(details)])];
    case 'error':
      return [element('error', { message, type: rule }, [escapeText(details)])];
    case 'skipped':
      return [element('skipped', { message }, [])];
    case 'passed':
    case 'warned':
      return [];
    default:
      return status satisfies never;
  }
}

function countsOf(checks: readonly PolicyCheck[]): Readonly<Record<string, number>> {
  const count = (status: PolicyCheck['status']): number => checks.filter((check) => check.status === status).length;
  const skipped = count('skipped');
  return {
    tests: checks.length,
    failures: count('failed'),
    errors: count('error'),
    ...(skipped === 0 ? {} : { skipped }),
  };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
