import { inertText, shortened } from '../values/index.ts';

/** One aspect of an object's state (`metav1.Condition`). */
export interface Condition {
  /** `Ready`, or `example.com/Ready`: unique in its list. */
  readonly type: string;
  readonly status: ConditionStatus;
  /** The `metadata.generation` that the condition refers to. */
  readonly observedGeneration?: number;
  /** RFC 3339, whole seconds: when `status` last changed. */
  readonly lastTransitionTime: string;
  /** CamelCase, for programs: a documented constant. */
  readonly reason: string;
  /** For users; may be empty. */
  readonly message: string;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** A new state of a condition. */
export type ConditionUpdate = Omit<Condition, 'lastTransitionTime' | 'message'> & { readonly message?: string };

/** Kubernetes' limit of a condition's message, in bytes (`metav1.Condition`). */
export const MAX_CONDITION_MESSAGE_LENGTH = 32_768;

/**
 * Sets one of the conditions. The transition time changes only with the status. Returns the same list when nothing
 * changed, so that nothing has to be written.
 *
 * @param now milliseconds since 1970
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  update: ConditionUpdate,
  now: number,
): readonly Condition[] {
  const list = conditions ?? [];
  const current = list.find(({ type }) => type === update.type);
  const next: Condition = {
    type: update.type,
    status: update.status,
    ...(update.observedGeneration === undefined ? {} : { observedGeneration: update.observedGeneration }),
    lastTransitionTime: current?.status === update.status ? current.lastTransitionTime : timeText(now),
    reason: update.reason,
    message: inertText(shortened(update.message ?? '', MAX_CONDITION_MESSAGE_LENGTH)),
  };
  if (current === undefined) {
    return [...list, next];
  }
  return isSame(current, next) ? list : list.map((one) => (one === current ? next : one));
}

/** Removes a condition; returns the same list when it is absent. */
export function removeCondition(conditions: readonly Condition[] | undefined, type: string): readonly Condition[] {
  const list = conditions ?? [];
  return list.some((one) => one.type === type) ? list.filter((one) => one.type !== type) : list;
}

export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((one) => one.type === type);
}

/** Whether a condition exists with status True. */
export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/** A time in the format of Kubernetes' objects: RFC 3339 in UTC, whole seconds. `time` in milliseconds since 1970. */
export function timeText(time: number): string {
  return `${new Date(time).toISOString().slice(0, -5)}Z`;
}

function isSame(left: Condition, right: Condition): boolean {
  return (
    left.status === right.status &&
    left.reason === right.reason &&
    left.message === right.message &&
    left.observedGeneration === right.observedGeneration
  );
}
