// The progress of a rollout from the status of its policy, as a sentence, with a hint after a failure.
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  CHECKING,
  findCondition,
  issueText,
  MODULES_KEPT,
  monitoredText,
  type Policy,
  READY,
  refreshRequest,
} from '../../resources/index.ts';
import { admissionPolicySteps } from '../../explain/index.ts';
import { oneLine } from '../table.ts';
import { isGovernancePolicy, type RolledOutPolicy } from './rollout-target.ts';

/** Length of the text about copies: all of it. Characters. */
const MAX_COPIES_TEXT = 400;
/** Characters of the issues of a policy: usually one or two. */
const MAX_REMARKS = 2_000;

export type RolloutProgress =
  | { readonly kind: 'done'; readonly text: string }
  /** It stays so until the user changes something, or a dependency works again. */
  | { readonly kind: 'failed'; readonly text: string; readonly hint: string }
  | {
      readonly kind: 'waiting';
      readonly text: string;
      /** The status is about an earlier state: the controller may not run. */
      readonly isUnseen?: true;
    };

/** The progress of the newest state of the policy: a status of an older generation counts as waiting. */
export function rolloutProgress(policy: RolledOutPolicy): RolloutProgress {
  return unhandled(policy) ?? (isGovernancePolicy(policy) ? governanceProgress(policy) : admissionProgress(policy));
}

/** What the controller has not seen yet. */
function unhandled({ metadata, status }: RolledOutPolicy): RolloutProgress | undefined {
  const rollback = metadata.annotations?.[ANNOTATIONS.rollbackTo];
  if (rollback !== undefined) {
    return unseen(`the controller has not handled the rollback to revision ${oneLine(rollback, 20)} yet`);
  }
  if (status?.phase === undefined || (status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    return unseen(`the controller has not seen generation ${metadata.generation ?? 0} yet`);
  }
  return undefined;
}

function admissionProgress(policy: AdmissionPolicyObject): RolloutProgress {
  const { metadata, status = {} } = policy;
  const refresh = refreshRequest(metadata.annotations);
  if (refresh !== undefined && status.refreshed?.value !== refresh) {
    return unseen(`the controller has not handled the refresh ${oneLine(refresh)} yet`);
  }
  const { phase, reason = '', message = '', desiredRevision = 0 } = status;
  const why = oneLine([reason, message].filter((text) => text !== '').join(': '));
  const replicas = `${status.readyReplicas ?? 0} of ${status.totalReplicas ?? 0} replicas`;
  if (phase === 'Degraded' || phase === 'Error') {
    return { kind: 'failed', text: `${phase}: ${why}`, hint: hintFor(policy, reason === '' ? [] : [reason]) };
  }
  if (phase === 'Pending' || phase === 'Updating') {
    return waiting(`${phase}: ${why}`);
  }
  const pin = metadata.annotations?.[ANNOTATIONS.pin];
  const held = phase === 'RolledBack' && message !== '' ? `${phase}: ${oneLine(message)}` : undefined;
  if (pin === undefined && phase === 'RolledBack') {
    return unseen('the controller has not seen the removal of the pin yet');
  }
  return pin === undefined || pin === String(desiredRevision)
    ? served(policy, held ?? `${phase}: revision ${desiredRevision} serves on ${replicas}`)
    : unseen(`the controller has not seen the pin to revision ${oneLine(pin, 20)} yet`);
}

/** A Policy is done when the desired revision is applied: its compliance is a result, not a failure. */
function governanceProgress({ metadata, status = {} }: Policy): RolloutProgress {
  const { phase = 'Pending', desiredRevision = 0, compliant = 'not known yet', conditions } = status;
  const { reason = '', message = '' } = findCondition(conditions, READY) ?? {};
  const why = oneLine([reason, message].filter((text) => text !== '').join(': '));
  if (phase === 'Degraded' || phase === 'Error') {
    const name = `policy/${metadata.name ?? ''} -n ${metadata.namespace ?? ''}`;
    const hint = `Correct the Policy, or go back with \`portcullis rollout undo ${name}\`; \`portcullis explain ${name}\` says more.`;
    return { kind: 'failed', text: `${phase}: ${why}`, hint };
  }
  return phase === 'Pending' || phase === 'Updating'
    ? waiting(`${phase}: ${why}`)
    : { kind: 'done', text: `${phase}: revision ${desiredRevision} is applied; compliance: ${compliant}` };
}

/** The desired revision serves everywhere: done, unless the policy cannot work, or that is not known yet. */
function served(policy: AdmissionPolicyObject, text: string): RolloutProgress {
  const { issues = [], conditions } = policy.status ?? {};
  const checking = findCondition(conditions, READY);
  if (checking?.status === 'False' && checking.reason === CHECKING) {
    return waiting(oneLine(checking.message));
  }
  const remarks = issues.map((issue) => `${issue.reason}: ${issueText(issue)}`).join('; ');
  const whole = `${text}${remarks === '' ? '' : oneLine(`, but ${remarks}`, MAX_REMARKS)}`;
  return issues.some(({ severity }) => severity === 'Error')
    ? {
        kind: 'failed',
        text: whole,
        hint: hintFor(
          policy,
          issues.map(({ reason }) => reason),
        ),
      }
    : { kind: 'done', text: `${whole}${monitoredPart(policy)}${copiesPart(policy)}` };
}

/** What the policy would have rejected, in monitor mode. */
function monitoredPart({ status }: AdmissionPolicyObject): string {
  const monitored = status?.monitored;
  return monitored === undefined ? '' : `; mode monitor: ${oneLine(monitoredText(monitored))}`;
}

/** That the loss of processes could end the policy. */
function copiesPart({ status }: AdmissionPolicyObject): string {
  const kept = findCondition(status?.conditions, MODULES_KEPT);
  return kept?.status === 'False' ? `; ${MODULES_KEPT} False: ${oneLine(kept.message, MAX_COPIES_TEXT)}` : '';
}

/** What the user can do, a line for each way. The message of the status says which revision serves meanwhile. */
function hintFor(policy: AdmissionPolicyObject, reasons: readonly string[]): string {
  return admissionPolicySteps(policy, reasons, { program: 'portcullis' }).join('\n');
}

function waiting(text: string): RolloutProgress {
  return { kind: 'waiting', text };
}

/** The controller has not seen the newest state. */
function unseen(text: string): RolloutProgress {
  return { kind: 'waiting', text, isUnseen: true };
}
