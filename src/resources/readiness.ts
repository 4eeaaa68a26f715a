// The conditions of kstatus, for GitOps tools:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
import { type Condition, removeCondition, setCondition } from './conditions.ts';

/** Whether the object is in the state of its spec. Summarises all other conditions; always present. */
export const READY = 'Ready';
/** Present with status True only while the controller works towards the spec. */
export const RECONCILING = 'Reconciling';
/** Present with status True only while nothing happens without a change by a user. */
export const STALLED = 'Stalled';

/** Present with status False, and the reason {@link UNINSTALLED}, on an object that was maintained until an uninstallation. */
const ENFORCED = 'Enforced';
/** The reason of conditions that `portcullis uninstall` wrote last: nothing enforces or evaluates the object any more. */
export const UNINSTALLED = 'Uninstalled';

/** The controller's progress with the spec of an object. */
export interface Readiness {
  readonly state: 'ready' | 'reconciling' | 'stalled';
  /** CamelCase, for programs: a documented constant. */
  readonly reason: string;
  /** For users; may be empty. */
  readonly message: string;
}

/** The condition that explains why an object is not ready. */
const ABNORMAL = { ready: undefined, reconciling: RECONCILING, stalled: STALLED } as const;

/**
 * Sets `Ready`, and `Reconciling` or `Stalled` unless it is True. Never both, because kstatus reads only the first one.
 * Removes what an uninstallation wrote, since the writer is installed. Returns the same list when nothing changed.
 *
 * @param observedGeneration generation of the spec that the readiness refers to
 * @param now milliseconds since 1970
 */
export function setReadiness(
  conditions: readonly Condition[] | undefined,
  readiness: Readiness,
  observedGeneration: number,
  now: number,
): readonly Condition[] {
  const left = conditions?.some(({ type, reason }) => type === ENFORCED && reason === UNINSTALLED) === true;
  return withReadiness(left ? removeCondition(conditions, ENFORCED) : conditions, readiness, observedGeneration, now);
}

/** The last conditions of an object: it is not enforced, and nobody maintains it. Returns the same list when nothing changed. */
export function setUninstalled(
  conditions: readonly Condition[] | undefined,
  message: string,
  observedGeneration: number,
  now: number,
): readonly Condition[] {
  const stalled = { state: 'stalled', reason: UNINSTALLED, message } as const;
  const list = withReadiness(conditions, stalled, observedGeneration, now);
  return setCondition(list, { type: ENFORCED, status: 'False', reason: UNINSTALLED, message, observedGeneration }, now);
}

function withReadiness(
  conditions: readonly Condition[] | undefined,
  { state, reason, message }: Readiness,
  observedGeneration: number,
  now: number,
): readonly Condition[] {
  const abnormal = ABNORMAL[state];
  const about = { observedGeneration, reason, message };
  const others = [RECONCILING, STALLED]
    .filter((type) => type !== abnormal)
    .reduce((list, type) => removeCondition(list, type), conditions ?? []);
  const ready = setCondition(others, { type: READY, status: state === 'ready' ? 'True' : 'False', ...about }, now);
  return abnormal === undefined ? ready : setCondition(ready, { type: abnormal, status: 'True', ...about }, now);
}
