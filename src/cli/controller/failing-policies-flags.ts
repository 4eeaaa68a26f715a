// What happens to policies whose newest revision fails: the administrator's choice, on a controller and on `start`.
import { type Command, Option } from 'commander';
import type { DegradedBehaviour, RolloutSettings, UnservedBehaviour } from '../../lifecycle/index.ts';

const DEGRADED = {
  'last-good': 'Serve',
  reject: 'Reject',
  ignore: 'Ignore',
} as const satisfies Readonly<Record<string, DegradedBehaviour>>;

const UNSERVED = { ignore: 'Ignore', reject: 'Reject' } as const satisfies Readonly<Record<string, UnservedBehaviour>>;

export interface FailingPoliciesFlags {
  readonly degradedPolicies: keyof typeof DEGRADED;
  readonly unservedPolicies: keyof typeof UNSERVED;
}

export function addFailingPoliciesFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--degraded-policies <what>',
        'when the newest revision fails: keep serving the last good one, apply the failurePolicy, or stop enforcing',
      )
        .choices(Object.keys(DEGRADED))
        .default('last-good'),
    )
    .addOption(
      new Option(
        '--unserved-policies <what>',
        'when no revision has ever served, and the newest fails: do not enforce, or apply the failurePolicy',
      )
        .choices(Object.keys(UNSERVED))
        .default('ignore'),
    );
}

export function failingPolicies(flags: FailingPoliciesFlags): Pick<RolloutSettings, 'degraded' | 'unserved'> {
  return { degraded: DEGRADED[flags.degradedPolicies], unserved: UNSERVED[flags.unservedPolicies] };
}
