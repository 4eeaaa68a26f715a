// Builders for views of one policy.
import { type AdmissionPolicySpec, effectiveFailurePolicy, type RevisionState } from '../../../resources/index.ts';
import type { ReplicaRevisionState } from '../../../control/index.ts';
import {
  cannotServe,
  DEFAULT_ROLLOUT_SETTINGS,
  type ReplicaFacts,
  type ReplicaRevisionFacts,
} from '../../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from '../admission-rollout-view.ts';
import { ADMISSION_RULES } from '../inherited-validation.ts';
import { ABSENT, COVERED } from '../webhook-state.ts';

/** The default time of a scene. Milliseconds since 1970. */
export const NOW = Date.parse('2026-01-01T00:00:00Z');

/** A spec that is identified by its settings. */
export function spec(settings: string, rest: object = {}): AdmissionPolicySpec {
  return {
    module: 'registry://example.com/policy:v1',
    settings: { settings },
    policyServer: 'default',
    mode: 'protect',
    mutating: false,
    rules: [],
    timeoutSeconds: 10,
    ...rest,
  } as unknown as AdmissionPolicySpec;
}

export const MODULES = [
  { name: 'policy', module: 'registry://example.com/policy:v1', digest: `sha256:${'a'.repeat(64)}` },
] as const;

/** A revision with `spec(number)` and the fields that its state implies. */
export function revision(
  number: number,
  state: RevisionState,
  rest: Partial<AdmissionRevision> = {},
): AdmissionRevision {
  const served = state === 'Serving' || state === 'Retired';
  const wasTried = served || state === 'Validated' || state === 'Staged';
  return {
    number,
    policy: 'policy',
    generation: number,
    rollbackOf: undefined,
    state,
    reason: '',
    message: '',
    modules: wasTried ? MODULES : [],
    warnings: [],
    attempts: wasTried ? 1 : 0,
    nextRetry: undefined,
    triedParameters: undefined,
    stateSince: NOW,
    order: served ? number : 0,
    servingSince: served ? NOW : undefined,
    snapshot: spec(String(number)),
    ownWebhook: false,
    refresh: undefined,
    refreshed: undefined,
    isEnforced: state !== 'Validated' && state !== 'Staged',
    ...rest,
  };
}

/** Reports of a replica by revision number: a state, or more fields. */
type Reports = Readonly<Record<number, ReplicaRevisionState | Partial<ReplicaRevisionFacts>>>;

export function replica(name: string, reports: Reports = {}, state: ReplicaFacts['state'] = 'connected'): ReplicaFacts {
  return {
    name,
    state,
    revisions: new Map(
      Object.entries(reports).map(([number, report]) => [
        Number(number),
        {
          state: 'Loading',
          reason: '',
          message: '',
          nextRetry: undefined,
          ...(typeof report === 'string' ? { state: report } : report),
        },
      ]),
    ),
  };
}

/** A replica that says what it answers, as replicas do, unless the scene says it. */
function saying(one: ReplicaFacts, all: readonly AdmissionRevision[]): ReplicaFacts {
  const isSaid = [...one.revisions.values()].some(({ answers }) => answers !== undefined);
  if (one.state !== 'connected' || isSaid) {
    return one;
  }
  const served = [...one.revisions].find(([, { state }]) => state === 'Serving')?.[0];
  const newest = all.at(-1);
  const failing =
    all.find(({ state }) => state === 'Serving') ?? (newest !== undefined && cannotServe(newest) ? newest : undefined);
  const silent: readonly (readonly [number, ReplicaRevisionFacts])[] = [...one.revisions].map(([number, report]) => [
    number,
    { ...report, answers: 'Nothing' },
  ]);
  const revisions = new Map(silent);
  const answering = served ?? failing?.number;
  if (answering !== undefined && (revisions.has(answering) || failing?.state !== 'Serving')) {
    const report = revisions.get(answering) ?? { state: 'Loading', reason: '', message: '', nextRetry: undefined };
    const answers = served === undefined ? effectiveFailurePolicy(failing?.snapshot ?? spec('')) : 'Verdict';
    revisions.set(answering, { ...report, answers });
  }
  return { ...one, revisions };
}

/** A view of a policy whose spec is that of its newest revision. It is covered where a revision has served, unless said otherwise. */
export function view(
  revisions: readonly AdmissionRevision[],
  replicas: readonly ReplicaFacts[] | undefined,
  {
    isCovered = revisions.some(({ order }) => order > 0),
    ...rest
  }: Partial<AdmissionRolloutView & { isCovered: boolean }> = {},
): AdmissionRolloutView {
  const inForce = revisions.find(({ state }) => state === 'Serving') ?? revisions.at(-1);
  return {
    now: NOW,
    generation: 1,
    spec: revisions.at(-1)?.snapshot ?? spec('1'),
    ownWebhook: revisions.at(-1)?.ownWebhook ?? false,
    refresh: undefined,
    pin: undefined,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    revisions,
    replicas: replicas?.map((one) => saying(one, revisions)),
    monitored: [],
    hasPolicyServer: true,
    isTypeCheckPending: false,
    invalidAnnotations: [],
    webhook: isCovered ? COVERED[effectiveFailurePolicy(inForce?.snapshot ?? spec('1'))] : ABSENT,
    phase: undefined,
    rules: ADMISSION_RULES,
    ...rest,
  };
}
