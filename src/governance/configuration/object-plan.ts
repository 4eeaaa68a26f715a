// What is to be done with one object. The plan ends with a dry run and a write by the controller, whose outcomes complete it.
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import type { ObjectResult } from './compliance-message.ts';
import { REASONS, STATUS_UNCHECKED } from './compliance-reasons.ts';
import { statusDiff } from './object-diff.ts';
import type { DiffRecord } from './object-diff.ts';
import type { RecreateOption } from './object-template.ts';
import type { RelatedObjectProperties } from './related-objects.ts';

/** What is known about an object; `unsure` until a dry run has shown it. */
type Verdict = 'found' | 'mismatch' | 'notFound' | 'unwanted' | 'absent' | 'failed' | 'unsure';

/** What to write. */
type ObjectAction =
  | { readonly type: 'none' }
  | { readonly type: 'create'; readonly object: KubernetesObject }
  /** The whole object, with the resourceVersion that was compared. */
  | { readonly type: 'update'; readonly object: KubernetesObject }
  | { readonly type: 'delete' }
  /** Delete, wait until the object is gone, and create. */
  | { readonly type: 'recreate'; readonly object: KubernetesObject };

/** How the policy wants an object to be handled. */
export interface ObjectSettings {
  readonly isEnforced: boolean;
  readonly recreateOption: RecreateOption;
  readonly diffRecord: DiffRecord;
  /** Whether values of the object come from Secrets: messages about them are not reported. */
  readonly isSensitive: boolean;
}

export interface ObjectPlan {
  readonly type: ResourceType;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  /** Empty for a template without a name. */
  readonly name: string;
  readonly settings: ObjectSettings;
  readonly verdict: Verdict;
  /** The results to report, one after the other: the last one is the current one. */
  readonly history: readonly ObjectResult[];
  readonly action: ObjectAction;
  /** What to send as an update with `dryRun=All`, before {@link afterDryRun}. */
  readonly dryRun?: KubernetesObject;
  readonly live?: KubernetesObject;
  /** The object of the template, to create. */
  readonly desired: KubernetesObject;
  /** Whether the status is as specified; a template may have one, but it is never written. */
  readonly statusMatches: boolean;
  /** Whether the template has a status. */
  readonly hasStatus: boolean;
  /** Where the object differs from its template. */
  readonly mismatches: readonly string[];
  readonly properties?: RelatedObjectProperties;
  /** Whether a difference was found without a dry run: defaults of the API server may be all of it. */
  readonly isUnproven?: boolean;
}

/** The answer of an API server to the dry run of an update. */
export type DryRunOutcome =
  /** The object stays as it is. */
  | { readonly type: 'unchanged' }
  | { readonly type: 'changed'; readonly object: KubernetesObject }
  /** 422: mostly a change of an immutable field. */
  | { readonly type: 'invalid' }
  | { readonly type: 'failed'; readonly message: string; readonly isNotFound?: boolean }
  /** There is no API server: the comparison alone decides. */
  | { readonly type: 'unavailable' };

/** The outcome of an {@link ObjectAction}. */
export type WriteOutcome =
  /** `createdByPolicy` of an object that was created: whether the policy counts as its creator. */
  | { readonly type: 'written'; readonly uid?: string; readonly createdByPolicy?: boolean }
  | { readonly type: 'failed'; readonly message: string; readonly isNotFound?: boolean }
  /** The object to recreate is not gone yet. */
  | { readonly type: 'timeout' };

/** The plan of an object after the dry run of {@link ObjectPlan.dryRun}. */
export function afterDryRun(plan: ObjectPlan, outcome: DryRunOutcome): ObjectPlan {
  const { dryRun: merged, live, ...rest } = plan;
  if (merged === undefined || live === undefined) {
    return plan;
  }
  const settledPlan = { ...rest, live };
  switch (outcome.type) {
    case 'unchanged':
      return unchanged(settledPlan, merged);
    case 'unavailable':
      return plan.mismatches.length === 0
        ? compared(settledPlan)
        : { ...changed(settledPlan, merged, merged), isUnproven: true };
    case 'changed':
      return changed(settledPlan, merged, outcome.object);
    case 'invalid':
      return invalid(settledPlan, merged);
    case 'failed':
      return dryRunFailed(settledPlan, outcome);
    default:
      return outcome satisfies never;
  }
}

/** The plan of an object after its action. */
export function afterWrite(plan: ObjectPlan, outcome: WriteOutcome): ObjectPlan {
  switch (outcome.type) {
    case 'written':
      return written(plan, outcome);
    case 'timeout': {
      const message =
        'timed out waiting for the object to delete during recreate, will retry on the next policy evaluation';
      return failed(plan, REASONS.updateFailed, `${place(plan)} ${message}`);
    }
    case 'failed':
      return writeFailed(plan, outcome);
    default:
      return outcome satisfies never;
  }
}

/** The result of a named object. */
export function objectResult(
  { namespace, name }: Pick<ObjectPlan, 'namespace' | 'name'>,
  isCompliant: boolean,
  reason: string,
  message?: string,
): ObjectResult {
  return { namespace, names: [name], isCompliant, reason, ...(message === undefined ? {} : { message }) };
}

type LivePlan = Omit<ObjectPlan, 'dryRun'> & { readonly live: KubernetesObject };

/** The object is as the comparison says, without anything to write. */
function compared(plan: LivePlan): ObjectPlan {
  const isFound = plan.statusMatches;
  const result = objectResult(plan, isFound, isFound ? REASONS.found : REASONS.mismatch);
  return { ...plan, verdict: isFound ? 'found' : 'mismatch', history: [result] };
}

function unchanged(plan: LivePlan, merged: KubernetesObject): ObjectPlan {
  const diff = plan.statusMatches ? '' : statusDiff(plan.settings.diffRecord, plan.live, merged);
  const properties = { ...withDiff(plan, diff), matchesAfterDryRun: true };
  return compared({ ...plan, properties });
}

function changed(plan: LivePlan, merged: KubernetesObject, updated: KubernetesObject): ObjectPlan {
  const { isEnforced, recreateOption, diffRecord } = plan.settings;
  return {
    ...plan,
    verdict: 'mismatch',
    history: [objectResult(plan, false, REASONS.mismatch)],
    action: !isEnforced
      ? { type: 'none' }
      : recreateOption === 'Always'
        ? recreation(plan)
        : { type: 'update', object: merged },
    properties: withDiff(plan, statusDiff(diffRecord, plan.live, updated)),
  };
}

/** The update is refused, so the object can only be replaced. */
function invalid(plan: LivePlan, merged: KubernetesObject): ObjectPlan {
  const { isEnforced, recreateOption, diffRecord } = plan.settings;
  const mismatched: ObjectPlan = {
    ...plan,
    verdict: 'mismatch',
    history: [objectResult(plan, false, REASONS.mismatch)],
    properties: withDiff(plan, statusDiff(diffRecord, plan.live, merged)),
  };
  if (!isEnforced) {
    return mismatched;
  }
  if (recreateOption !== 'None') {
    return { ...mismatched, action: recreation(plan) };
  }
  const advice = 'you may set spec["object-templates"][].recreateOption to recreate the object';
  const message = `${place(plan)} cannot be updated, likely due to immutable fields not matching, ${advice}`;
  return { ...mismatched, verdict: 'failed', history: [objectResult(plan, false, REASONS.updateFailed, message)] };
}

function dryRunFailed(plan: LivePlan, outcome: Extract<DryRunOutcome, { type: 'failed' }>): ObjectPlan {
  const unknown = `Error issuing a dry run update request for the object \`${plan.name}\`, the error is \`${outcome.message}\``;
  const mismatched = plan.mismatches.length === 0 ? [] : [objectResult(plan, false, REASONS.mismatch)];
  return failed({ ...plan, history: mismatched }, REASONS.updateFailed, updateProblem(plan, outcome) ?? unknown);
}

function written(
  plan: ObjectPlan,
  { uid, createdByPolicy = plan.action.type === 'create' }: Extract<WriteOutcome, { type: 'written' }>,
): ObjectPlan {
  const identity = uid === undefined ? {} : { uid };
  switch (plan.action.type) {
    case 'none':
      return plan;
    case 'create':
      return { ...created(plan), properties: { createdByPolicy, ...identity } };
    case 'delete':
      return { ...done(plan, 'absent'), history: [objectResult(plan, true, REASONS.deleted)] };
    case 'update':
    case 'recreate':
      return { ...updated(plan), properties: { ...plan.properties, createdByPolicy, ...identity } };
    default:
      return plan.action satisfies never;
  }
}

function created(plan: ObjectPlan): ObjectPlan {
  if (!plan.hasStatus) {
    return reported(done(plan, 'found'), objectResult(plan, true, REASONS.created));
  }
  const message = `${place(plan)} was created successfully, the status of the object will be verified in the next evaluation`;
  return reported(done(plan, 'mismatch'), objectResult(plan, false, REASONS.created + STATUS_UNCHECKED, message));
}

function updated(plan: ObjectPlan): ObjectPlan {
  return plan.statusMatches
    ? reported(done(plan, 'found'), objectResult(plan, true, REASONS.updated))
    : reported(done(plan, 'mismatch'), objectResult(plan, false, REASONS.mismatch));
}

function writeFailed(plan: ObjectPlan, outcome: Extract<WriteOutcome, { type: 'failed' }>): ObjectPlan {
  const { message } = outcome;
  switch (plan.action.type) {
    case 'none':
      return plan;
    case 'create':
      return failed(
        plan,
        REASONS.creationFailed,
        `${place(plan)} is missing, and cannot be created, reason: \`${message}\``,
      );
    case 'delete':
      return failed(
        { ...plan, history: [] },
        REASONS.deletionFailed,
        `${place(plan)} exists, and cannot be deleted, reason: \`${message}\``,
      );
    case 'update':
    case 'recreate': {
      const unknown = `${place(plan)} failed to ${plan.action.type} with the error \`${message}\``;
      return failed(plan, REASONS.updateFailed, updateProblem(plan, outcome) ?? unknown);
    }
    default:
      return plan.action satisfies never;
  }
}

const VALIDATION = 'Error validating the object';

/** The message for errors of updates that OCM tells apart. */
function updateProblem(
  { name, type: { kind } }: Pick<ObjectPlan, 'name' | 'type'>,
  { message, isNotFound }: { readonly message: string; readonly isNotFound?: boolean },
): string | undefined {
  if (isNotFound === true) {
    return `\`${kind}\` is not present and must be created`;
  }
  return message.includes('strict decoding error:') ? `${VALIDATION} ${name}, the error is \`${message}\`` : undefined;
}

/** The plan of an object that could not be handled. */
export function failed(plan: Omit<ObjectPlan, 'dryRun'>, reason: string, message: string): ObjectPlan {
  // What the API server finds invalid was never a mismatch.
  const history = message.includes(VALIDATION) ? [] : plan.history;
  return reported({ ...done(plan, 'failed'), history }, objectResult(plan, false, reason, message));
}

function done(plan: ObjectPlan, verdict: Verdict): ObjectPlan {
  return { ...plan, verdict, action: { type: 'none' } };
}

function reported(plan: ObjectPlan, result: ObjectResult): ObjectPlan {
  return { ...plan, history: [...plan.history, result] };
}

function recreation({ desired }: LivePlan): ObjectAction {
  return { type: 'recreate', object: desired };
}

function withDiff({ properties }: Pick<ObjectPlan, 'properties'>, diff: string): RelatedObjectProperties {
  return { ...properties, ...(diff === '' ? {} : { diff }) };
}

/** `pods [x] in namespace ns`. */
function place({ type, namespace, name }: Pick<ObjectPlan, 'type' | 'namespace' | 'name'>): string {
  return `${type.resource} [${name}]${namespace === '' ? '' : ` in namespace ${namespace}`}`;
}
