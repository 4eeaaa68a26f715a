// Results in the Test Anything Protocol: https://testanything.org/tap-version-14-specification.html
import { dataText } from '../../output.ts';
import { manyLines, oneLine } from '../../table.ts';
import type { PolicyCheck, CheckReport } from './checks.ts';

export function tapReport({ groups }: CheckReport): string {
  const points = groups.flatMap(({ name, checks }) => checks.map((check) => ({ name, check })));
  const warnings = groups.flatMap((group) => group.warnings ?? []).map((warning) => `# warning: ${oneLine(warning)}`);
  const lines = points.map(({ name, check }, index) => testPoint(index + 1, name, check));
  const plan = points.length === 0 ? '1..0 # SKIP no tests' : `1..${points.length}`;
  return ['TAP version 14', plan, ...warnings, ...lines].join('\n').concat('\n');
}

function testPoint(id: number, group: string, check: PolicyCheck): string {
  const { name, status, message } = check;
  const result = status === 'failed' || status === 'error' ? 'not ok' : 'ok';
  const directive = status === 'skipped' ? ` # SKIP ${description(message)}` : '';
  return [`${result} ${id} - ${description(`${group} › ${name}`)}${directive}`, ...diagnostics(check)].join('\n');
}

/** Text in which nothing is a directive. */
function description(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`);
}

/** A block of YAML with what the line of a test point cannot say. */
function diagnostics({ status, rule, message, details, output, place }: PolicyCheck): readonly string[] {
  const hasMessage = status !== 'passed' && status !== 'skipped';
  const block = {
    ...(hasMessage ? { severity: status === 'warned' ? 'warning' : 'fail', rule, message: oneLine(message) } : {}),
    ...(hasMessage && details.includes('\n') ? { details: manyLines(details) } : {}),
    ...(hasMessage && place !== undefined ? { at: place } : {}),
    ...(output.length === 0 ? {} : { output: output.map(manyLines) }),
  };
  if (Object.keys(block).length === 0) {
    return [];
  }
  const lines = dataText(block, 'yaml').trimEnd().split('\n');
  return ['  ---', ...lines.map((line) => `  ${line}`.trimEnd()), '  ...'];
}
