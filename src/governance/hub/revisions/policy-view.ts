// What is known of one Policy, to plan its rollout. Its copies are written from the revision that serves, so that the hub itself is
// the only replica: it has loaded every revision.
import { ANNOTATIONS, type Policy, type PolicyRevision, snapshotOf } from '../../../resources/index.ts';
import {
  DEFAULT_ROLLOUT_SETTINGS,
  parseRevisionNumber,
  parseRolloutAnnotations,
  type ReplicaFacts,
  type ReplicaRevisionFacts,
  type RevisionFacts,
  revisionFacts,
  type RolloutView,
} from '../../../rollout/index.ts';
import { POLICY_RULES } from './policy-rules.ts';

type Spec = Policy['spec'];

/** The view of a Policy. */
export type PolicyRolloutView = RolloutView<Spec>;

/** @param revisions of this Policy, in the order of their numbers; @param now milliseconds since 1970 */
export function policyView(root: Policy, revisions: readonly PolicyRevision[], now: number): PolicyRolloutView {
  const { annotations = {}, generation = 0 } = root.metadata;
  const newest = revisions.at(-1);
  const pin = annotations[ANNOTATIONS.pin];
  const { historyLimit } = parseRolloutAnnotations(annotations).settings;
  const facts = revisions.map((revision) => revisionFacts<Spec>(revision));
  return {
    now,
    generation,
    // The snapshot counts as the spec of its generation, even if it reads differently, as with defaults of a newer schema.
    spec: newest?.spec.policyGeneration === generation ? (snapshotOf(newest) as unknown as Spec) : root.spec,
    ownWebhook: false,
    refresh: undefined,
    pin: pin === undefined ? undefined : parseRevisionNumber(pin),
    settings: { ...DEFAULT_ROLLOUT_SETTINGS, ...(historyLimit === undefined ? {} : { historyLimit }) },
    revisions: facts,
    replicas: [hub(facts)],
    // Verdicts cannot mix, so that no phase has to be published before a switch.
    phase: undefined,
    rules: POLICY_RULES,
  };
}

function hub(revisions: readonly RevisionFacts<Spec>[]): ReplicaFacts {
  const reports = revisions.map(({ number, order, state }): readonly [number, ReplicaRevisionFacts] => [
    number,
    { state: state === 'Serving' ? 'Serving' : 'Staged', order, reason: '', message: '', nextRetry: undefined },
  ]);
  return { name: 'hub', state: 'connected', revisions: new Map(reports) };
}
