// What the webhook of a policy is. Writer, planner, status and metrics have these words for it, and no others.
import { Waiting } from '../../runtime/index.ts';

/** Delay before a policy is tried again whose webhook cannot be written; it is also requeued after a write. Milliseconds. */
const BLOCKED_RETRY_MS = 60_000;

/** The last write failed. The writer of configurations retries it, not the policy. */
export interface WebhookFailure {
  readonly state: 'Failing';
  readonly reason: string;
  readonly message: string;
}

/** What the webhook of a policy is, by the configurations as they were read back. */
export type WebhookState =
  /** API servers send it no request, and are not to; or, of a policy that is removed, its own webhook is gone. */
  | { readonly state: 'Absent' }
  /** A write is to come. */
  | { readonly state: 'Pending' }
  | WebhookFailure
  /** API servers send all of its requests. */
  | {
      readonly state: 'Covered';
      /** Of the webhooks that cover it; Fail where they differ: what API servers do when they reach no replica. */
      readonly failurePolicy: 'Fail' | 'Ignore';
    };

export const ABSENT: WebhookState = { state: 'Absent' };
export const PENDING: WebhookState = { state: 'Pending' };
/** By the failurePolicy of the webhooks. */
export const COVERED = {
  Fail: { state: 'Covered', failurePolicy: 'Fail' },
  Ignore: { state: 'Covered', failurePolicy: 'Ignore' },
} as const;

/** Whether API servers send all requests of a policy. */
export function isCovered({ webhook }: { readonly webhook: WebhookState }): boolean {
  return webhook.state === 'Covered';
}

/** What a policy waits for whose webhook cannot be written. */
export function waitingFor({ reason, message }: WebhookFailure): Waiting {
  return new Waiting(reason, BLOCKED_RETRY_MS, message);
}
