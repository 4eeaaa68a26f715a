// Whether a PolicyException is in force, for what and until when, and what to do about it.
import {
  type Condition,
  exceptedPolicyId,
  expiryOf,
  findCondition,
  groupResourceOf,
  type KubernetesObject,
  POLICY_KINDS,
  type PolicyException,
  READY,
} from '../resources/index.ts';
import { commandNameOf } from './command-name.ts';
import { exceptedText } from './excepted-text.ts';
import type { Asked, Explanation, RootCause } from './explanation.ts';
import type { Read } from './read.ts';

export interface PolicyExceptionFacts {
  readonly exception: PolicyException;
  /** The policies that it names, by their ids. */
  readonly policies: ReadonlyMap<string, Read<KubernetesObject>>;
  /** Milliseconds since 1970. */
  readonly now: number;
}

interface NamedPolicy {
  readonly kind: string;
  readonly name: string;
}

type Step = (program: string, object: string) => string;

interface Standing {
  readonly state: string;
  /** Whether objects are excepted by it. */
  readonly isInForce: boolean;
  readonly cause: RootCause;
  /** The condition that says so; absent where it is seen without one. */
  readonly ready?: Condition;
}

/** No process has accepted the exception as it is now. */
const NOT_ACCEPTED = 'NotAccepted';
const REPLACED = 'PolicyReplaced';
const EXPIRED = 'Expired';
/** Of the state, and of the condition that says so. */
const UNUSED = 'Unused';
const USED = 'Used';
/** States in which it excepts objects. */
const IN_FORCE: ReadonlySet<string | undefined> = new Set(['Active', UNUSED, 'ExpiringSoon']);
const EXTEND = 'set a later spec.expiresAt, at most 366 days ahead.';

/** What to do about a reason. docs/exceptions.md has the reasons. */
const STEPS: ReadonlyMap<string, Step> = new Map<string, Step>([
  [NOT_ACCEPTED, (program) => `To find out why no controller has accepted it: ${program} doctor`],
  ['PolicyNotFound', () => 'Create the policy that the message names, or correct spec.policies.'],
  ['GuardNotFound', (program) => `Have an administrator install Portcullis again: ${program} install`],
  ['CreatedUnguarded', () => 'Delete it, and create it again.'],
  ['Invalid', () => 'Correct the fields that the message names.'],
  [REPLACED, () => 'To except from the policy that is there now, change the spec; else delete the exception.'],
  [UNUSED, (program, object) => `If nothing needs it any more, delete it: ${program} delete ${object}`],
  ['ExpiringSoon', () => `If it is still needed then, ${EXTEND}`],
  [EXPIRED, (program, object) => `If it is still needed, ${EXTEND} Else delete it: ${program} delete ${object}`],
]);

/** Reasons about which somebody writes the spec again, and is asked for the right. */
const REWRITTEN: ReadonlySet<string> = new Set([
  'PolicyNotFound',
  'CreatedUnguarded',
  'Invalid',
  REPLACED,
  'ExpiringSoon',
  EXPIRED,
]);

export function explainPolicyException(facts: PolicyExceptionFacts, { program }: Asked): Explanation {
  const { exception } = facts;
  const object = commandNameOf(exception);
  const { state, isInForce, cause, ready } = standingOf(facts);
  const lost = isInForce ? lostPolicies(facts) : [];
  const replaced = lost.map((name) => ({ reason: REPLACED, message: lostText(name) }));
  const causes = [...(state === 'Active' ? [] : [cause]), ...replaced];
  const unread = unreadOf(facts);
  return {
    object,
    state,
    ...(ready === undefined ? {} : { ready: ready.status }),
    ...(cause.since === undefined ? {} : { since: cause.since }),
    because: [
      `${cause.reason}: ${cause.message}`,
      // The message of the status may say it already.
      ...lost.filter((name) => !cause.message.includes(name)).map(lostText),
      forText(exception, state, isInForce),
      ...useTexts(exception, isInForce),
      ...(isInForce ? [objectsText(exception)] : []),
      whyText(exception),
    ],
    ...(causes.length === 0 ? {} : { rootCauses: causes }),
    ...(ready === undefined || ready.status === 'True' ? {} : { evidence: [ready] }),
    ...(unread.length === 0 ? {} : { unread }),
    toDo: [
      ...stepsFor(causes, exception, program),
      ...(isInForce
        ? [
            `To see the existing objects that exceptions of its namespace let through: ${program} findings -n ${exception.metadata.namespace ?? ''} --result skip`,
          ]
        : []),
    ],
  };
}

/** The clock and the object itself first: policy servers go by these, whatever the status says meanwhile. */
function standingOf(facts: PolicyExceptionFacts): Standing {
  const { metadata, spec, status } = facts.exception;
  const { deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined) {
    return seen('Deleting', 'Deleting', 'it is being deleted, and excepts nothing', deletionTimestamp);
  }
  if ((expiryOf(spec.expiresAt) ?? -Infinity) <= facts.now) {
    return seen(EXPIRED, EXPIRED, `it ended at ${spec.expiresAt}`, spec.expiresAt);
  }
  const ready = findCondition(status?.conditions, READY);
  if (ready === undefined || isOfAnother(facts.exception)) {
    const { generation = 1 } = metadata;
    return seen(
      'Pending',
      NOT_ACCEPTED,
      `the controller has not seen generation ${generation} yet: it excepts nothing until then`,
    );
  }
  const { reason, message, lastTransitionTime } = ready;
  const isInForce = IN_FORCE.has(status?.state);
  if (isInForce && lostPolicies(facts).length === spec.policies.length) {
    return seen('Orphaned', REPLACED, spec.policies.map((one) => lostText(nameOf(one))).join(' '));
  }
  return {
    state: status?.state ?? 'Unknown',
    isInForce,
    cause: { reason, message, since: lastTransitionTime },
    ready,
  };
}

/** What this process sees, of an exception that is not in force. */
function seen(state: string, reason: string, message: string, since?: string): Standing {
  return { state, isInForce: false, cause: { reason, message, ...(since === undefined ? {} : { since }) } };
}

/** Whether the status is about an older spec, or about the object that this is a copy of. */
function isOfAnother({ metadata, status }: PolicyException): boolean {
  const { generation = 1, uid } = metadata;
  const { observedGeneration = -1, accepted } = status ?? {};
  const isCopy = accepted !== undefined && (accepted.uid !== uid || accepted.generation !== generation);
  return observedGeneration < generation || isCopy;
}

/** Names of policies that it was accepted for, and that are not there any more. */
function lostPolicies({ exception, policies }: PolicyExceptionFacts): readonly string[] {
  return (exception.status?.accepted?.policies ?? [])
    .filter((one) => {
      const read = policies.get(idOf(one, exception));
      return read === 'absent' || (typeof read === 'object' && read.metadata.uid !== one.uid);
    })
    .map(nameOf);
}

function lostText(name: string): string {
  return `It excepts nothing from ${name}, which was deleted, or is another one now.`;
}

function forText(exception: PolicyException, state: string, isInForce: boolean): string {
  const text = exceptedText(exception);
  if (isInForce) {
    return `It excepts ${text}.`;
  }
  return `In force it would except ${text}${state === EXPIRED ? '' : `, until ${exception.spec.expiresAt}`}.`;
}

/** How often it was used; nothing where no controller has said it. */
function useTexts({ status }: PolicyException, isInForce: boolean): readonly string[] {
  const { used = 0, lastUsed = '' } = status ?? {};
  const { reason, message = '' } = findCondition(status?.conditions, USED) ?? {};
  if (used > 0) {
    const count = used === 1 ? 'One request has' : `${used} requests have`;
    return [`${count} used it, the last one at ${lastUsed}.`];
  }
  return !isInForce || reason === undefined || status?.state === UNUSED ? [] : [`${reason}: ${message}`];
}

/** Objects that nobody creates anew use no exception, and need it all the same. */
function objectsText({ status }: PolicyException): string {
  const { matched } = status ?? {};
  if (matched === undefined) {
    return 'How many existing objects it lets through is Unknown: no auditor has said it.';
  }
  const { summary, message } = matched;
  return message === undefined
    ? `Existing objects that it lets through: ${summary}.`
    : `Existing objects that it lets through: ${summary}, because not all are judged: ${message}`;
}

function whyText({ spec: { reason, ticket, owner } }: PolicyException): string {
  const more = [
    ...(ticket === undefined ? [] : [`ticket ${ticket}`]),
    ...(owner === undefined ? [] : [`owner ${owner}`]),
  ];
  return `Its author says why: ${reason}${more.length === 0 ? '' : ` (${more.join(', ')})`}`;
}

function unreadOf({ exception, policies }: PolicyExceptionFacts): readonly string[] {
  return exception.spec.policies
    .filter((one) => policies.get(idOf(one, exception)) === 'unreadable')
    .map((one) => `You may not read ${nameOf(one)}: whether it is there, and still the same one, is Unknown.`);
}

function stepsFor(causes: readonly RootCause[], exception: PolicyException, program: string): readonly string[] {
  const reasons = new Set(causes.map(({ reason }) => reason));
  const object = commandNameOf(exception);
  const steps = [...reasons].flatMap((reason) => STEPS.get(reason)?.(program, object) ?? []);
  return [...steps, ...(REWRITTEN.isDisjointFrom(reasons) ? [] : rightSteps(exception))];
}

/** How to find out who may write the spec, and who can grant it. */
function rightSteps({ spec, metadata: { namespace = '' } }: PolicyException): readonly string[] {
  const questions = spec.policies.flatMap(({ kind, name }) => {
    const type = POLICY_KINDS.find((one) => one.kind === kind);
    return type === undefined
      ? []
      : [`kubectl auth can-i exempt ${groupResourceOf(type)}/${name}${type.namespaced ? ` -n ${namespace}` : ''}`];
  });
  return [
    'Who writes it needs the verb exempt on each of its policies; an administrator grants it with the ClusterRole portcullis-policy-exempter, or one for some policies.',
    ...questions.map((question) => `To see whether you have it: ${question}`),
  ];
}

function idOf(policy: NamedPolicy, { metadata }: PolicyException): string {
  return exceptedPolicyId(policy, metadata.namespace ?? '');
}

function nameOf({ kind, name }: NamedPolicy): string {
  return `${kind} ${name}`;
}
