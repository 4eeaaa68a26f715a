// What one side of a preview, the old or the new version of a policy, says about an object.
import { type ObjectVerdict, templateInMessage } from '../../engine/index.ts';
import { resultOf } from '../audit-result.ts';

/** `report`: the policy is in monitor mode, and would reject the object. `error`: there is no verdict. */
type SideState = 'pass' | 'mutate' | 'report' | 'reject' | 'error';

export interface SideVerdict {
  readonly state: SideState;
  readonly message?: string;
  /** What it would change, as a JSON patch. */
  readonly patch?: string;
}

/** What no policy is for passes. */
export const PASS: SideVerdict = { state: 'pass' };

/** The first state decides, whatever the verdicts of other policies are. */
const BY_WEIGHT: readonly SideState[] = ['error', 'reject', 'report', 'mutate'];

/** Combines the verdicts of the policies of a side: bindings of one policy are several. */
export function sideVerdict(verdicts: readonly ObjectVerdict[]): SideVerdict {
  const states = verdicts.map((verdict) => ({ verdict, state: stateOf(verdict) }));
  const state = BY_WEIGHT.find((one) => states.some((other) => other.state === one));
  if (state === undefined) {
    return PASS;
  }
  const deciding = states.filter((one) => one.state === state).map(({ verdict }) => verdict);
  const messages = new Set(deciding.flatMap(({ message }) => (message === undefined ? [] : [textOf(message)])));
  const patches = deciding.flatMap(({ patch }) => patch ?? []);
  return {
    state,
    ...(messages.size === 0 || state === 'mutate' ? {} : { message: [...messages].join('; ') }),
    ...(state !== 'mutate' || patches.length === 0 ? {} : { patch: patches.join('\n') }),
  };
}

function stateOf(verdict: ObjectVerdict): SideState {
  const result = resultOf(verdict);
  const isMonitored = verdict.mode === 'monitor';
  switch (result) {
    case 'fail':
      return isMonitored ? 'report' : 'reject';
    case 'wouldChange':
      return isMonitored ? 'pass' : 'mutate';
    case 'error':
      return 'error';
    default:
      return 'pass';
  }
}

/** Pods and the templates that they are made from have the same reason. */
function textOf(message: string): string {
  return templateInMessage(message)?.text ?? message;
}
