// The conditions that kstatus reads, so that GitOps tools see the truth:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
import { type Condition, removeCondition, setCondition } from './conditions.ts';

/** Whether the object is as its spec says. The summary of all other conditions; always present. */
export const READY = 'Ready';
/** Present, with status True, only while the controller still works towards the spec. */
export const RECONCILING = 'Reconciling';
/** Present, with status True, only while nothing more happens until a user changes something. */
export const STALLED = 'Stalled';

/** How far the controller is with the spec of an object. */
export interface Readiness {
  readonly state: 'ready' | 'reconciling' | 'stalled';
  /** One word in CamelCase, for programs: a documented constant. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message: string;
}

/** The condition that explains why an object is not ready. */
const ABNORMAL = { ready: undefined, reconciling: RECONCILING, stalled: STALLED } as const;

/**
 * The conditions with `Ready`, and with `Reconciling` or `Stalled` where it is not True. Never both: kstatus reads the first one.
 * The very same list when nothing differs.
 *
 * @param observedGeneration of the spec that the readiness is about
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
