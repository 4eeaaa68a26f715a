// The conditions of kstatus, for GitOps tools:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
import { type Condition, removeCondition, setCondition } from './conditions.ts';

/** Whether the object is in the state of its spec. Summarises all other conditions; always present. */
export const READY = 'Ready';
/** Present with status True only while the controller works towards the spec. */
export const RECONCILING = 'Reconciling';
/** Present with status True only while nothing happens without a change by a user. */
export const STALLED = 'Stalled';

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
 * Returns the same list when nothing changed.
 *
 * @param observedGeneration generation of the spec that the readiness refers to
 * @param now milliseconds since 1970
 */
export function setReadiness(
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
