/** One aspect of an object's state (`metav1.Condition`). */
export interface Condition {
  /** `Ready`, or `example.com/Ready`: unique in its list. */
  readonly type: string;
  readonly status: ConditionStatus;
  /** The `metadata.generation` that the condition is about. */
  readonly observedGeneration?: number;
  /** RFC 3339, whole seconds: when `status` last became what it is. */
  readonly lastTransitionTime: string;
  /** One word in CamelCase, for programs: a documented constant. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message: string;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** What is to be said of an aspect. */
export type ConditionUpdate = Omit<Condition, 'lastTransitionTime' | 'message'> & { readonly message?: string };

/** Kubernetes' limit of a condition's message, in bytes (`metav1.Condition`). */
export const MAX_CONDITION_MESSAGE_LENGTH = 32_768;

/**
 * The conditions with one of them set. The transition time changes with the status only, so that it says since when things
 * are as they are. The very same list is given back when nothing differs: nothing is to be written then.
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
    message: shortened(update.message ?? ''),
  };
  if (current === undefined) {
    return [...list, next];
  }
  return isSame(current, next) ? list : list.map((one) => (one === current ? next : one));
}

/** The conditions without those of a type; the very same list when there is none. */
export function removeCondition(conditions: readonly Condition[] | undefined, type: string): readonly Condition[] {
  const list = conditions ?? [];
  return list.some((one) => one.type === type) ? list.filter((one) => one.type !== type) : list;
}

export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((one) => one.type === type);
}

/** Whether a condition is there and True. Absent and Unknown are not. */
export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/** A time as Kubernetes' objects have it: RFC 3339 in UTC, whole seconds. `time` in milliseconds since 1970. */
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

function shortened(message: string): string {
  const characters =
    message.length > MAX_CONDITION_MESSAGE_LENGTH ? message.slice(0, MAX_CONDITION_MESSAGE_LENGTH - 1) : message;
  return characters === message ? message : `${characters.toWellFormed()}…`;
}
