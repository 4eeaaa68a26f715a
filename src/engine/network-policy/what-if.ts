import type { ConditionStatus } from '../../resources/index.ts';
import type { Effect } from './feature.ts';
import { SEVERITY } from './support.ts';
import type { SupportReason } from './support.ts';
import type { FeatureVerdict, ProviderVerdict, ProviderWarning } from './verdict.ts';

/** What a change of provider or version does to a feature that a policy uses. */
export interface FeatureChange {
  /**
   * `MayBreak`, `MayFix`: afterwards it depends on what is not known. `Changes`: it does not work before and after,
   * differently.
   */
  readonly change: 'Fixes' | 'MayFix' | 'Breaks' | 'MayBreak' | 'Changes';
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
  /** Supported, but with a warning: its status. */
  readonly warning?: ConditionStatus;
}

/** The features whose support differs, or may differ. Empty for equal verdicts. */
export function compareVerdicts(before: ProviderVerdict, after: ProviderVerdict): readonly FeatureChange[] {
  const types = new Set(
    [before, after].flatMap(({ features, warnings }) => [...features, ...warnings].map(({ type }) => type)),
  );
  return [...types].flatMap((type) => {
    const [old, now] = [stateOf(before, type), stateOf(after, type)];
    const isSame = certaintyOf(now) === 'may work' ? dependsOnTheSame(before, after, old, now) : failsAlike(old, now);
    const change = isSame ? undefined : CHANGES[certaintyOf(old)][certaintyOf(now)];
    const paths = pathsOf(after, type) ?? pathsOf(before, type) ?? [];
    return change === undefined ? [] : [{ change, type, before: old, after: now, paths }];
  });
}

/** `may fail`: it fails by default, if the policy uses it. `may work`: what is known does not suffice. */
type Certainty = 'works' | 'may work' | 'may fail' | 'fails';

function certaintyOf({ status, warning }: FeatureState): Certainty {
  if (status !== 'True') {
    return status === 'False' ? 'fails' : 'may work';
  }
  return warning === undefined ? 'works' : warning === 'False' ? 'may fail' : 'may work';
}

const CHANGES: Readonly<Record<Certainty, Readonly<Record<Certainty, FeatureChange['change'] | undefined>>>> = {
  works: { works: undefined, 'may work': 'MayBreak', 'may fail': 'MayBreak', fails: 'Breaks' },
  'may work': { works: 'Fixes', 'may work': 'MayBreak', 'may fail': 'MayBreak', fails: 'Breaks' },
  'may fail': { works: 'Fixes', 'may work': 'MayFix', 'may fail': 'Changes', fails: 'Breaks' },
  fails: { works: 'Fixes', 'may work': 'MayFix', 'may fail': 'MayFix', fails: 'Changes' },
};

function failsAlike(old: FeatureState, now: FeatureState): boolean {
  return certaintyOf(old) === certaintyOf(now) && old.effect === now.effect && old.reason === now.reason;
}

/** Whether the same of the same provider decides before and after, so that nothing changes. */
function dependsOnTheSame(
  before: ProviderVerdict,
  after: ProviderVerdict,
  old: FeatureState,
  now: FeatureState,
): boolean {
  const isExamined = before.version === after.version || !UNEXAMINED.includes(now.reason);
  return (
    before.provider === after.provider &&
    isExamined &&
    certaintyOf(old) === certaintyOf(now) &&
    old.message.replaceAll(before.label, '') === now.message.replaceAll(after.label, '')
  );
}

/** Reasons that tell nothing of another version. */
const UNEXAMINED: readonly SupportReason[] = ['NotInCatalogue', 'ProviderVersionUnknown', 'ProviderNotFound'];

/** A provider that enforces nothing has no verdicts about other features: they have the state of enforcement. */
function stateOf(verdict: ProviderVerdict, type: FeatureVerdict['type']): FeatureState {
  const warnings = verdict.warnings.filter((one) => one.type === type);
  const enforcement = verdict.features.find((feature) => feature.type === 'Enforcement');
  const own = verdict.features.find((feature) => feature.type === type);
  const isMoot = own === undefined && enforcement?.status === 'False';
  const { status, reason, effect, message } =
    own ?? (isMoot ? enforcement : { status: 'True', reason: 'Accepted', effect: undefined, message: 'supported' });
  const state = { status, reason, ...(effect === undefined ? {} : { effect }), message };
  return status === 'True' && warnings.length > 0 ? { ...state, ...warnedState(warnings) } : state;
}

/** The state of the worst warning, with the texts of all. */
function warnedState(warnings: readonly ProviderWarning[]): Pick<FeatureState, 'message' | 'warning' | 'effect'> {
  const [worst] = warnings.toSorted((one, other) => SEVERITY[other.status] - SEVERITY[one.status]);
  return {
    message: warnings.map(({ message }) => message).join('; '),
    ...(worst === undefined ? {} : { warning: worst.status }),
    ...(worst?.effect === undefined ? {} : { effect: worst.effect }),
  };
}

function pathsOf({ features, warnings }: ProviderVerdict, type: FeatureVerdict['type']): readonly string[] | undefined {
  return [...features, ...warnings].find((one) => one.type === type)?.paths;
}
