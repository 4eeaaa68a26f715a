// Which results make a command of CI fail.
import type { ConditionStatus } from '../../resources/index.ts';
import { Option } from 'commander';
import { EXIT } from '../errors.ts';

const FAIL_ON = ['never', 'unsupported', 'unknown'] as const;
export type FailOn = (typeof FAIL_ON)[number];

/** The flag, whose default is `unsupported` when providers are named: a whole catalogue always has one that fails. */
export function failOnOption(): Option {
  return new Option('--fail-on <what>', 'exit with 1 if something is not supported, or if that is unknown').choices(
    FAIL_ON,
  );
}

export function exitCodeOf(statuses: readonly ConditionStatus[], failOn: FailOn): number {
  const fails =
    (failOn !== 'never' && statuses.includes('False')) || (failOn === 'unknown' && statuses.includes('Unknown'));
  return fails ? EXIT.failed : EXIT.ok;
}
