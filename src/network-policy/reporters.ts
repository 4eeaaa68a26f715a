// The reporters that NetworkPolicyProviders name: who may write the entries of a provider, and for how long these count.
import { compareStrings } from '../go/index.ts';
import type { NetworkPolicyProvider } from '../resources/index.ts';

export interface Reporter {
  /** The name of the NetworkPolicyProvider. */
  readonly provider: string;
  /** The key of its entries. */
  readonly controllerName: string;
  readonly username: string;
  /** Its entries count from then on. Milliseconds since 1970; infinite without a heartbeat. */
  readonly from: number;
  /** They count until then. */
  readonly until: number;
}

/** Differences between the clock of a reporter and ours: what NTP leaves, many times over. Milliseconds. */
const MAX_CLOCK_SKEW_MS = 30_000;

/** The reporters by `controllerName`. Of several NetworkPolicyProviders with the same, the first by name counts. */
export function reportersOf(declared: readonly NetworkPolicyProvider[]): ReadonlyMap<string, Reporter> {
  const reporters = new Map<string, Reporter>();
  for (const object of [...declared].sort((one, other) => compareStrings(nameOf(one), nameOf(other)))) {
    const reporter = reporterOf(object);
    if (reporter !== undefined && !reporters.has(reporter.controllerName)) {
      reporters.set(reporter.controllerName, reporter);
    }
  }
  return reporters;
}

/** Whether its entries count. @param now milliseconds since 1970 */
export function isReporting({ from, until }: Reporter, now: number): boolean {
  return from <= now && now < until;
}

/** When {@link isReporting} changes without another heartbeat; undefined: never. */
export function nextReportingChange({ from, until }: Reporter, now: number): number | undefined {
  return [from, until].find((time) => time > now && Number.isFinite(time));
}

function reporterOf({ metadata, spec, status }: NetworkPolicyProvider): Reporter | undefined {
  if (spec.reporter === undefined || spec.presence === 'Absent') {
    return undefined;
  }
  const { controllerName, username, expireAfterSeconds } = spec.reporter;
  const renewedAt = Date.parse(status?.renewTime ?? '');
  const isSilent = Number.isNaN(renewedAt);
  return {
    provider: metadata.name ?? '',
    controllerName,
    username,
    from: isSilent ? Number.POSITIVE_INFINITY : renewedAt - MAX_CLOCK_SKEW_MS,
    until: isSilent ? Number.NEGATIVE_INFINITY : renewedAt + expireAfterSeconds * 1_000,
  };
}

function nameOf({ metadata }: NetworkPolicyProvider): string {
  return metadata.name ?? '';
}
