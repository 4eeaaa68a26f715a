// What the status of a Policy says of its revisions, in the words of admission policies.
import type { PolicyPhase, PolicyStatus, Readiness } from '../../../resources/index.ts';
import {
  desiredRevision,
  hasFailed,
  isDeclared,
  REASONS,
  revisionSummaries,
  servingRevision,
} from '../../../rollout/index.ts';
import { shortened } from '../../../values/index.ts';
import type { PolicyRolloutView } from './policy-view.ts';

/** Longest text of a failure in a message. Characters. */
const MAX_DETAIL_LENGTH = 2_000;

export interface RolloutReport {
  readonly fields: Pick<PolicyStatus, 'phase' | 'desiredRevision' | 'servingRevision' | 'revisions'>;
  /** What keeps the Policy from being ready, beyond its compliance. */
  readonly problem: Readiness | undefined;
}

/** @param failure of the last reconciliation of the revisions */
export function rolloutReport(view: PolicyRolloutView, failure: Readiness | undefined): RolloutReport {
  const { phase, problem } = revisionPhase(view);
  const serving = servingRevision(view);
  return {
    fields: {
      phase,
      desiredRevision: desiredRevision(view)?.number ?? 0,
      servingRevision: serving?.number ?? 0,
      revisions: [...revisionSummaries(view, serving)],
    },
    problem: failure ?? problem,
  };
}

/** The phase, and what keeps the Policy from being ready by it; undefined where nothing does. */
interface RevisionPhase {
  readonly phase: PolicyPhase;
  readonly problem: Readiness | undefined;
}

/** The phase of a Policy. What its copies report of the revision that serves is its compliance, not its phase. */
function revisionPhase(view: PolicyRolloutView): RevisionPhase {
  const serving = servingRevision(view);
  const stays = serving === undefined ? 'nothing is applied' : `revision ${serving.number} stays applied`;
  const failed = serving === undefined ? 'Error' : 'Degraded';
  const desired = desiredRevision(view);
  if (isDeclared(view) && desired === undefined) {
    const kept = view.revisions.map(({ number }) => number).join(', ');
    const message = `the Policy is pinned to revision ${view.pin}, which does not exist (existing: ${kept}): pin another one, or remove the pin; ${stays}`;
    return { phase: failed, problem: { state: 'stalled', reason: REASONS.pinNotFound, message } };
  }
  if (isDeclared(view) && desired !== undefined && hasFailed(desired)) {
    const { number, reason, state } = desired;
    const message = `revision ${number} failed: ${shortened(desired.message, MAX_DETAIL_LENGTH)}; ${stays}`;
    return { phase: failed, problem: { state: state === 'Failed' ? 'stalled' : 'reconciling', reason, message } };
  }
  if (!isDeclared(view) || desired !== serving || desired === undefined) {
    const message = 'the spec is being checked';
    const phase = serving === undefined ? 'Pending' : 'Updating';
    return { phase, problem: { state: 'reconciling', reason: REASONS.validating, message } };
  }
  return { phase: desired === view.revisions.at(-1) ? 'Active' : 'RolledBack', problem: undefined };
}
