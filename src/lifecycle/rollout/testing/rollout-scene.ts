// Builders for views of one policy.
import type { AdmissionPolicySpec, RevisionState } from '../../../resources/index.ts';
import type { ReplicaRevisionState } from '../../../control/index.ts';
import {
  DEFAULT_ROLLOUT_SETTINGS,
  type ReplicaFacts,
  type ReplicaRevisionFacts,
  type RevisionFacts,
  type RolloutView,
} from '../rollout-view.ts';

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
export function revision(number: number, state: RevisionState, rest: Partial<RevisionFacts> = {}): RevisionFacts {
  const served = state === 'Serving' || state === 'Retired';
  const wasTried = served || state === 'Validated' || state === 'Staged';
  return {
    number,
    state,
    reason: '',
    message: '',
    modules: wasTried ? MODULES : [],
    warnings: [],
    attempts: wasTried ? 1 : 0,
    nextRetry: undefined,
    stateSince: NOW,
    order: served ? number : 0,
    snapshot: spec(String(number)),
    ownWebhook: false,
    refresh: undefined,
    refreshed: undefined,
    isEnforced: true,
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

/** A view of a policy whose spec is that of its newest revision. */
export function view(
  revisions: readonly RevisionFacts[],
  replicas: readonly ReplicaFacts[] | undefined,
  rest: Partial<RolloutView> = {},
): RolloutView {
  return {
    now: NOW,
    generation: 1,
    spec: revisions.at(-1)?.snapshot ?? spec('1'),
    ownWebhook: revisions.at(-1)?.ownWebhook ?? false,
    refresh: undefined,
    pin: undefined,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    revisions,
    replicas,
    monitored: [],
    hasPolicyServer: true,
    isCovered: revisions.some(({ order }) => order > 0),
    phase: undefined,
    ...rest,
  };
}
