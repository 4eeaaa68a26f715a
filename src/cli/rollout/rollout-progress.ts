// The progress of a rollout from the status of its policy, as a sentence, with a hint after a failure.
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  CHECKING,
  DISARMED,
  findCondition,
  issueText,
  MODULES_KEPT,
  monitoredText,
  POLICY_ENFORCED,
  READY,
  refreshRequest,
} from '../../resources/index.ts';
import { INVALID_PARAMETERS } from '../../control/index.ts';
import { oneLine } from '../table.ts';
import type { RolloutTarget } from './rollout-target.ts';

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
export function rolloutProgress(policy: AdmissionPolicyObject, command: RolloutCommands): RolloutProgress {
  const { metadata, status } = policy;
  const rollback = metadata.annotations?.[ANNOTATIONS.rollbackTo];
  if (rollback !== undefined) {
    return unseen(`the controller has not handled the rollback to revision ${oneLine(rollback, 20)} yet`);
  }
  if (status?.phase === undefined || (status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    return unseen(`the controller has not seen generation ${metadata.generation ?? 0} yet`);
  }
  const refresh = refreshRequest(metadata.annotations);
  if (refresh !== undefined && status.refreshed?.value !== refresh) {
    return unseen(`the controller has not handled the refresh ${oneLine(refresh)} yet`);
  }
  const { phase, reason = '', message = '', desiredRevision = 0 } = status;
  const why = oneLine([reason, message].filter((text) => text !== '').join(': '));
  const replicas = `${status.readyReplicas ?? 0} of ${status.totalReplicas ?? 0} replicas`;
  if (phase === 'Degraded' || phase === 'Error') {
    return { kind: 'failed', text: `${phase}: ${why}`, hint: hintFor(policy, command) };
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
    ? served(policy, held ?? `${phase}: revision ${desiredRevision} serves on ${replicas}`, command)
    : unseen(`the controller has not seen the pin to revision ${oneLine(pin, 20)} yet`);
}

/** The desired revision serves everywhere: done, unless the policy cannot work, or that is not known yet. */
function served(policy: AdmissionPolicyObject, text: string, command: RolloutCommands): RolloutProgress {
  const { issues = [], conditions } = policy.status ?? {};
  const checking = findCondition(conditions, READY);
  if (checking?.status === 'False' && checking.reason === CHECKING) {
    return waiting(oneLine(checking.message));
  }
  const remarks = issues.map((issue) => `${issue.reason}: ${issueText(issue)}`).join('; ');
  const whole = `${text}${remarks === '' ? '' : oneLine(`, but ${remarks}`, MAX_REMARKS)}`;
  return issues.some(({ severity }) => severity === 'Error')
    ? { kind: 'failed', text: whole, hint: hintForIssues(policy, command) }
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

function hintForIssues({ status }: AdmissionPolicyObject, command: RolloutCommands): string {
  const hasEarlier = (status?.revisions ?? []).some(({ state }) => state === 'Retired');
  return `Correct the policy and apply it again${hasEarlier ? `, or go back: ${command.undo()}` : ''}.`;
}

/** Command lines in hints, for one policy. */
interface RolloutCommands {
  /** `portcullis rollout undo cap/one` */
  undo(): string;
  /** `portcullis rollout refresh cap/one` */
  refresh(): string;
  /** `portcullis break-glass rearm cap/one` */
  rearm(): string;
}

export function commandsFor({ type, key }: Pick<RolloutTarget, 'type' | 'key'>): RolloutCommands {
  const namespace = key.namespace === undefined ? '' : ` -n ${key.namespace}`;
  const command = (verb: string): string =>
    `portcullis ${verb} ${type.shortNames[0] ?? type.resource}/${key.name}${namespace}`;
  return {
    undo: () => command('rollout undo'),
    refresh: () => command('rollout refresh'),
    rearm: () => command('break-glass rearm'),
  };
}

/** What the user can do. The message of the status says which revision serves meanwhile. */
function hintFor({ status }: AdmissionPolicyObject, command: RolloutCommands): string {
  const { servingRevision = 0, desiredRevision = 0, readyReplicas = 0, nextRetry = '' } = status ?? {};
  if (status?.reason === DISARMED) {
    return `Arm it again: ${command.rearm()}`;
  }
  const retry = nextRetry === '' ? [] : [`The next retry is at ${nextRetry}.`];
  if (servingRevision === desiredRevision && readyReplicas > 0) {
    return [...retry, `Revision ${servingRevision} serves, but not on every replica.`].join(' ');
  }
  // To apply the same again changes nothing.
  const isFinal = nextRetry === '' && status?.reason !== INVALID_PARAMETERS;
  const ways = [
    fixFor(status?.reason),
    ...(isFinal ? [`try it as it is: ${command.refresh()}`] : []),
    ...(servingRevision === 0 ? [] : [`go back: ${command.undo()}`]),
    ...(isRejecting(status) ? ['set failurePolicy: Ignore, which needs no load, to admit requests until then'] : []),
  ];
  return [...retry, ways.join('; or ')].join(' ');
}

/** Whether requests are rejected because nothing serves. */
function isRejecting(status: AdmissionPolicyObject['status']): boolean {
  const { reason, message = '' } = findCondition(status?.conditions, POLICY_ENFORCED) ?? {};
  return reason === 'FailurePolicy' && message.includes('rejected');
}

/** What makes a failed revision serve. */
function fixFor(reason: string | undefined): string {
  return reason === INVALID_PARAMETERS
    ? 'Correct the parameters of these namespaces, and it is tried again by itself; or change the policy and apply it'
    : 'Fix the policy and apply it';
}

function waiting(text: string): RolloutProgress {
  return { kind: 'waiting', text };
}

/** The controller has not seen the newest state. */
function unseen(text: string): RolloutProgress {
  return { kind: 'waiting', text, isUnseen: true };
}
