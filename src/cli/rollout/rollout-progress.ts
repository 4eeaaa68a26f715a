// What the status of a policy says of its rollout: done, failed, or under way; as a sentence, and what to do about it.
import { type AdmissionPolicyObject, ANNOTATIONS } from '../../resources/index.ts';
import { oneLine } from '../table.ts';
import type { RolloutTarget } from './rollout-target.ts';

export type RolloutProgress =
  | { readonly kind: 'done'; readonly text: string }
  /** It will not be done unless somebody does something, or something that is away comes back. */
  | { readonly kind: 'failed'; readonly text: string; readonly hint: string }
  | { readonly kind: 'waiting'; readonly text: string };

/** How the rollout stands. A status that is about an older state of the policy says nothing of this one. */
export function rolloutProgress(policy: AdmissionPolicyObject, command: RolloutCommands): RolloutProgress {
  const { metadata, status } = policy;
  const rollback = metadata.annotations?.[ANNOTATIONS.rollbackTo];
  if (rollback !== undefined) {
    return waiting(`the rollback to revision ${oneLine(rollback, 20)} has not been taken by the controller yet`);
  }
  if (status?.phase === undefined || (status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    return waiting(`generation ${metadata.generation ?? 0} has not been seen by the controller yet`);
  }
  const { phase, reason = '', message = '', desiredRevision = 0 } = status;
  const why = oneLine([reason, message].filter((text) => text !== '').join(': '));
  const replicas = `${status.readyReplicas ?? 0} of ${status.totalReplicas ?? 0} replicas`;
  if (phase === 'Degraded' || phase === 'Error') {
    return { kind: 'failed', text: `${phase}: ${why}`, hint: remedy(policy, command) };
  }
  if (phase === 'Pending' || phase === 'Updating') {
    return waiting(`${phase}: ${why}`);
  }
  const pin = metadata.annotations?.[ANNOTATIONS.pin];
  if (pin === undefined && phase === 'RolledBack') {
    return waiting('that it was unpinned has not been seen by the controller yet');
  }
  return pin === undefined || pin === String(desiredRevision)
    ? { kind: 'done', text: `${phase}: revision ${desiredRevision} serves on ${replicas}` }
    : waiting(`the pin to revision ${oneLine(pin, 20)} has not been seen by the controller yet`);
}

/** How commands that help are written for one policy. */
interface RolloutCommands {
  /** `portcullis rollout undo cap/one` */
  undo(): string;
}

export function commandsFor({ type, key }: Pick<RolloutTarget, 'type' | 'key'>): RolloutCommands {
  const namespace = key.namespace === undefined ? '' : ` -n ${key.namespace}`;
  return { undo: () => `portcullis rollout undo ${type.shortNames[0] ?? type.resource}/${key.name}${namespace}` };
}

/** The message of the status has said what serves meanwhile. */
function remedy({ status }: AdmissionPolicyObject, command: RolloutCommands): string {
  const { servingRevision = 0, desiredRevision = 0, nextRetry = '' } = status ?? {};
  const retry = nextRetry === '' ? [] : [`It is tried again at ${nextRetry}.`];
  const mend = 'Mend the policy and apply it again';
  if (servingRevision === 0) {
    return [...retry, `${mend}.`].join(' ');
  }
  return servingRevision === desiredRevision
    ? [...retry, `Revision ${servingRevision} serves, but not on every replica.`].join(' ')
    : [...retry, `${mend}, or go back: ${command.undo()}`].join(' ');
}

function waiting(text: string): RolloutProgress {
  return { kind: 'waiting', text };
}
