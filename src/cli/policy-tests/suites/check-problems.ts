import type { Problem } from '../../problems/problem.ts';
import { oneLine } from '../../table.ts';
import type { PolicyCheck, CheckReport } from './checks.ts';

/** Checks that have not passed, and warnings, for SARIF and annotations. */
export function checkProblems({ groups, warnings }: CheckReport): readonly Problem[] {
  return [...groups.flatMap(({ checks }) => checks.flatMap(problemOf)), ...warnings];
}

function problemOf({ subject, status, rule, message, place }: PolicyCheck): Problem[] {
  if (status === 'passed' || status === 'skipped') {
    return [];
  }
  return [
    {
      rule,
      level: status === 'warned' ? 'warning' : 'error',
      message: oneLine(message),
      subject: oneLine(subject),
      ...(place === undefined ? {} : { place }),
    },
  ];
}
