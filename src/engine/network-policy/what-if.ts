import type { ConditionStatus } from '../../resources/index.ts';
import { EFFECTS } from './feature.ts';
import type { Effect } from './feature.ts';
import type { SupportReason } from './support.ts';
import type { FeatureVerdict, ProviderVerdict } from './verdict.ts';

/** What a change of provider or version does to a feature that a policy uses. */
export interface FeatureChange {
  /** `MayBreak`: afterwards it depends on what is not known. `Changes`: it does not work before and after, differently. */
  readonly change: 'Fixes' | 'Breaks' | 'MayBreak' | 'Changes';
  readonly type: FeatureVerdict['type'];
  readonly before: FeatureState;
  readonly after: FeatureState;
  readonly paths: readonly string[];
}

export interface FeatureState {
  readonly status: ConditionStatus;
  readonly reason: SupportReason;
  readonly effect?: Effect;
  readonly message: string;
  /** Supported, but with a warning. */
  readonly isWarned?: true;
}

/** The features whose support differs. Empty for equal verdicts. */
export function compareVerdicts(before: ProviderVerdict, after: ProviderVerdict): readonly FeatureChange[] {
  const types = new Set(
    [before, after].flatMap(({ features, warnings }) => [...features, ...warnings].map(({ type }) => type)),
  );
  return [...types].flatMap((type) => {
    const [old, now] = [stateOf(before, type), stateOf(after, type)];
    const change = changeOf(old, now);
    const paths = pathsOf(after, type) ?? pathsOf(before, type) ?? [];
    return change === undefined ? [] : [{ change, type, before: old, after: now, paths }];
  });
}

function changeOf(old: FeatureState, now: FeatureState): FeatureChange['change'] | undefined {
  const difference = severity(now) - severity(old);
  if (difference === 0) {
    return old.reason === now.reason ? undefined : 'Changes';
  }
  if (difference < 0) {
    return now.status === 'False' ? 'Changes' : 'Fixes';
  }
  return now.status === 'False' ? (old.status === 'False' ? 'Changes' : 'Breaks') : 'MayBreak';
}

/** A provider that enforces nothing has no verdicts about other features: they have the state of enforcement. */
function stateOf(verdict: ProviderVerdict, type: FeatureVerdict['type']): FeatureState {
  const warning = verdict.warnings.find((one) => one.type === type);
  const enforcement = verdict.features.find((feature) => feature.type === 'Enforcement');
  const own = verdict.features.find((feature) => feature.type === type);
  const isMoot = own === undefined && enforcement?.status === 'False';
  const { status, reason, effect, message } =
    own ?? (isMoot ? enforcement : { status: 'True', reason: 'Accepted', effect: undefined, message: 'supported' });
  const state = { status, reason, ...(effect === undefined ? {} : { effect }), message };
  return warning === undefined || status !== 'True' ? state : { ...state, message: warning.message, isWarned: true };
}

function pathsOf({ features }: ProviderVerdict, type: FeatureVerdict['type']): readonly string[] | undefined {
  return features.find((feature) => feature.type === type)?.paths;
}

const STATUS_SEVERITY: Readonly<Record<ConditionStatus, number>> = { True: 0, Unknown: 2, False: 3 };

/** The status first, then the effect. */
export function severity({ status, effect, isWarned }: Omit<FeatureState, 'message' | 'reason'>): number {
  const ofEffect = status === 'False' && effect !== undefined ? EFFECTS.indexOf(effect) + 1 : 0;
  return STATUS_SEVERITY[status] + (isWarned === true ? 1 : 0) + ofEffect;
}
