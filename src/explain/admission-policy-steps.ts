// What a user can do about an admission policy that does not serve as it is declared.
import { INVALID_PARAMETERS } from '../control/index.ts';
import { type AdmissionPolicyObject, DISARMED, findCondition, POLICY_ENFORCED } from '../resources/index.ts';
import { commandNameOf } from './command-name.ts';
import type { Asked } from './explanation.ts';
import { type PolicyCommand, reasonAnswer, toDoAbout } from './reason-answers.ts';

type CommandLine = (command: PolicyCommand) => string;

/**
 * What to do about the reasons in the status of a policy, the most important first. Each is a sentence, or one that ends with
 * the command for it.
 */
export function admissionPolicySteps(
  policy: AdmissionPolicyObject,
  reasons: readonly string[],
  { program }: Asked,
): readonly string[] {
  const command: CommandLine = (name) => `${program} ${name} ${commandNameOf(policy)}`;
  const answers = reasons.flatMap((reason) => stepFor(reason, command) ?? []);
  // Nothing else helps before the policy is armed again.
  const others = reasons.includes(DISARMED) ? [] : waysOut(policy, command);
  return [...new Set([...answers, ...others])];
}

function stepFor(reason: string, command: CommandLine): string | undefined {
  return reasonAnswer(reason) === undefined
    ? `${reason} is a reason of a newer version: its message says what is wrong.`
    : toDoAbout(reason, command);
}

/** What ends the failure of a revision, whatever its reason is. */
function waysOut({ status = {} }: AdmissionPolicyObject, command: CommandLine): readonly string[] {
  const {
    phase,
    reason,
    serving,
    desiredRevision = 0,
    readyReplicas = 0,
    nextRetry,
    issues = [],
    revisions = [],
  } = status;
  const isBroken = phase === 'Degraded' || phase === 'Error';
  const isServedSomewhere = serving?.revision === desiredRevision && readyReplicas > 0;
  const isFailed = isBroken && !isServedSomewhere;
  const isWrong = !isBroken && issues.some(({ severity }) => severity === 'Error');
  const retires = revisions.some(({ state }) => state === 'Retired');
  return [
    ...(isFailed && nextRetry === undefined && !isTriedAgain(reason)
      ? [`To try it again as it is: ${command('rollout refresh')}`]
      : []),
    ...(isFailed && serving !== undefined ? [`To declare again what serves: ${command('rollout undo')}`] : []),
    ...(isWrong && retires ? [`To go back to the revision before: ${command('rollout undo')}`] : []),
    ...(isRejecting(status) ? ['To admit requests until then: set failurePolicy: Ignore, which needs no load.'] : []),
    ...(nextRetry === undefined ? [] : [`The next try is at ${nextRetry}.`]),
  ];
}

/** Whether a new try needs no command, or the answer of the reason has it. */
function isTriedAgain(reason: string | undefined): boolean {
  return reason === INVALID_PARAMETERS || reasonAnswer(reason ?? '')?.command === 'rollout refresh';
}

/** Whether requests are rejected because nothing serves. */
function isRejecting({ conditions }: NonNullable<AdmissionPolicyObject['status']>): boolean {
  const { reason, message = '' } = findCondition(conditions, POLICY_ENFORCED) ?? {};
  return reason === 'FailurePolicy' && message.includes('rejected');
}
