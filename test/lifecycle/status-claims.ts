// Compares what statuses of a policy claimed with what its requests got.
import { findCondition, POLICY_ENFORCED, type AdmissionPolicyStatus } from '../../src/resources/index.ts';

/** What a request gets. */
export type Effect = 'judged' | 'rejected' | 'admitted';

/** What a status says that requests get. */
export interface Claim {
  /** The condition Enforced. */
  readonly text: string;
  /** Undefined: it says that this is not known. */
  readonly effect: Effect | undefined;
}

/** A request, and what the status said when it was sent. */
export interface Sample {
  /** Undefined: the policy has no status, or does not exist. */
  readonly claim: Claim | undefined;
  readonly effect: Effect;
  /** Whether nothing that a process knew before this request can be in a later status: all of them had ended. */
  readonly isFresh?: true;
  /** Whether webhook configurations were written since the last sample, and the API server may not use them yet. */
  readonly isConfigured?: true;
}

/** The claim of a status. @throws when its parts contradict each other */
export function claimOf(status: AdmissionPolicyStatus | undefined): Claim | undefined {
  const enforced = findCondition(status?.conditions, POLICY_ENFORCED);
  if (status === undefined || enforced === undefined) {
    return undefined;
  }
  const { reason, message } = enforced;
  const text = `${enforced.status} ${reason}: ${message}`;
  const claim: Claim = { text, effect: effectOf(enforced.status, reason, message) };
  const [, said] = /requests are (rejected|admitted)/.exec(status.message ?? '') ?? [];
  const isAtRest = status.phase === 'Active' || status.phase === 'RolledBack';
  if (
    (said !== undefined && claim.effect !== undefined && said !== claim.effect) ||
    (isAtRest && reason !== 'Serving')
  ) {
    throw new Error(`phase ${status.phase} (${status.message}) contradicts Enforced ${text}`);
  }
  return claim;
}

function effectOf(value: string, reason: string, message: string): Effect | undefined {
  switch (value) {
    case 'True':
      return /admitted|mode monitor/.test(message) ? 'admitted' : reason === 'Serving' ? 'judged' : 'rejected';
    case 'False':
      return 'admitted';
    default:
      return undefined;
  }
}

/**
 * The first claim that was never true; undefined if there is none. A status is a report of what was so a moment ago: replicas switch
 * while it is on its way. So each claim must have been true once, at the latest for the first request after the status was written,
 * and not before the claim before it was true. No claim may be ahead of what requests get, go back to what was so before, or be
 * about a time that no process remembers; how long a claim stays outdated is for the caller, who waits until both agree.
 *
 * A claim that was replaced before the next sample, while things moved on from one state to another, may be about a moment between
 * two requests: no sample shows whether it was true. One that only interrupts another claim must have been true.
 *
 * API servers use a configuration some time after it was written, and do not say when. From a write until a request agrees with a
 * later status, claims need not be true.
 */
export function falseClaim(samples: readonly Sample[]): string | undefined {
  let from = 0;
  /** The status before a configuration was written that the API server may not use yet. */
  let outdated: { readonly claim: Claim | undefined } | undefined;
  for (const [index, { claim, effect, isFresh, isConfigured }] of samples.entries()) {
    const before = samples[index - 1]?.claim;
    const next = samples[index + 1];
    from = isFresh === true ? index : from;
    outdated = isConfigured === true ? { claim: before } : outdated;
    if (outdated !== undefined && claim?.effect === effect && claim.text !== outdated.claim?.text) {
      outdated = undefined;
      from = index;
    }
    if (claim?.effect === undefined || outdated !== undefined || claim.text === before?.text) {
      continue;
    }
    const isPassing = next !== undefined && ![claim.text, before?.text].includes(next.claim?.text);
    const found = samples.findIndex((one, at) => at >= from && at <= index && one.effect === claim.effect);
    if (found === -1 && !isPassing) {
      return claim.text;
    }
    from = found === -1 ? from : found;
  }
  return undefined;
}

/** Each status with what requests got while it stood. */
export function traceOf(samples: readonly Sample[]): string {
  const lines: { text: string; runs: [effect: Effect, count: number][] }[] = [];
  for (const { claim, effect, isFresh, isConfigured } of samples) {
    const marks = `${isFresh === true ? ' (all ended)' : ''}${isConfigured === true ? ' (configured)' : ''}`;
    const text = `${claim?.text ?? 'no status'}${marks}`;
    let line = lines.at(-1);
    if (line === undefined || (line.text !== text && (marks !== '' || !line.text.startsWith(text)))) {
      line = { text, runs: [] };
      lines.push(line);
    }
    const run = line.runs.at(-1);
    if (run?.[0] === effect) {
      run[1] += 1;
    } else {
      line.runs.push([effect, 1]);
    }
  }
  return lines
    .map(({ text, runs }) => `${text}: ${runs.map(([effect, count]) => `${count} ${effect}`).join(', ')}`)
    .join('\n');
}
