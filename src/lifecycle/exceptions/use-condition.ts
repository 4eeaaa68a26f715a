// Whether something uses an exception: the condition `Used` of one that is in force.
import { type ConditionUpdate, timeText } from '../../resources/index.ts';
import { listed } from '../../values/index.ts';

export type UseUpdate = Pick<ConditionUpdate, 'status' | 'reason' | 'message'>;

/** The type of the condition. */
export const USED = 'Used';
const DAY_MS = 86_400_000;
/** Days without a use after which an exception is unused: longer than what runs once a month. */
const UNUSED_AFTER_DAYS = 32;
const UNUSED_AFTER_MS = UNUSED_AFTER_DAYS * DAY_MS;
/** Names of replicas in a message; further ones are counted. */
const MAX_NAMES = 3;

/** Reasons of the condition `Used`. */
export const USE_REASONS = {
  /** A request used it in the last {@link UNUSED_AFTER_DAYS} days. */
  used: 'RequestsExcepted',
  /** Nothing has used it yet, and it has not been in force for long. */
  early: 'NotUsedYet',
  /** Nothing has used it for so long. */
  unused: 'Unused',
  /** Some replicas that may know a use are not connected to the controller. */
  unknown: 'ReplicasNotConnected',
} as const;

/**
 * Names of replicas that answer for its policies, and whose uses are not known; undefined while it is not known yet which replicas there
 * are.
 */
export type SilentReplicas = readonly string[] | undefined;

interface Use {
  /** When the exception was accepted. */
  readonly since: string;
  readonly lastUsed?: string | undefined;
}

/** When an exception counts as unused unless something uses it, in milliseconds since 1970. */
export function unusedAt({ since, lastUsed = '' }: Use): number {
  return Date.parse(lastUsed > since ? lastUsed : since) + UNUSED_AFTER_MS;
}

/** The condition now; undefined: it stays as it is, because it is not known yet. */
export function useUpdate(use: Use, silent: SilentReplicas, now: number): UseUpdate | undefined {
  const end = unusedAt(use);
  if (now < Date.parse(use.lastUsed ?? '') + UNUSED_AFTER_MS) {
    const message = `requests used it in the last ${UNUSED_AFTER_DAYS} days`;
    return { status: 'True', reason: USE_REASONS.used, message };
  }
  if (now < end) {
    const message = `no request has used it yet; it counts as unused from ${timeText(end)} on`;
    return { status: 'Unknown', reason: USE_REASONS.early, message };
  }
  const since = `no request is known to have used it since ${timeText(end - UNUSED_AFTER_MS)}`;
  if (silent === undefined || silent.length === 0) {
    return silent && { status: 'False', reason: USE_REASONS.unused, message: since };
  }
  const message = `${since}, and these replicas are not connected: ${listed(silent, MAX_NAMES)}`;
  return { status: 'Unknown', reason: USE_REASONS.unknown, message };
}
