// Where a policy server has its policies from, and what becomes of them: a file, or the revisions of a cluster.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ObjectReference, PolicyDefinition } from '../../engine/index.ts';
import type { CompiledPolicyModule, FindResult, Loader, TableChange, WatchedChange } from '../../evaluation/index.ts';
import type { Logger } from '../../log/index.ts';
import type { PoliciesView } from '../status/operations-endpoint.ts';
import type { ChangeResult } from './policy-registry.ts';
import type { PhaseChange } from './registry-entry.ts';
import type { PolicyPhase, PolicyStatus } from '../status/policy-status.ts';
import type { ServingRecord } from './serving-record.ts';

/** Whether it is known which policies there are in buckets: there never are any, that is not known yet, or it is. */
export type BucketKnowledge = 'none' | 'unknown' | 'known';

/** What a source of policies has of its server. */
export interface PolicyHost {
  readonly loader: Loader;
  readonly record: ServingRecord;
  /** The folder of what is kept for the next start. */
  readonly dataDir: string;
  /** How long readiness waits for first versions. Milliseconds. */
  readonly readyWaitMs: number;
  readonly log: Logger;
  /**
   * Changes the table of every worker; resolves when all have changed over.
   * @param staged what is loaded beside the table now, by policy, where that may be something else than before
   */
  publish(change: TableChange, staged?: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void>;
  /** Sends changes of watched objects to every worker. */
  publishWatched(change: WatchedChange): void;
  /** A policy is in another phase, or in it for another reason; undefined when the policy is gone. */
  phaseChanged(id: string, change: PhaseChange | undefined): void;
  changeEnded(result: ChangeResult): void;
  /** What was declared anew serves or has failed, after this time. Milliseconds. */
  reloadTook(ms: number): void;
}

/** The policies of one server, as the rest of it sees them. */
export interface PolicySource {
  /**
   * Begins to follow what is declared. Resolves when every policy has served or failed once, or readiness has waited for
   * them long enough. Workers must be there.
   */
  start(): Promise<void>;
  /** Looks now at what is declared; resolves when that is known, whether it serves already or not. */
  check(): Promise<void>;
  /** Tries again what failed, without waiting for its next retry. */
  retryNow(): void;
  /** Resolves when every policy has served or failed once, or readiness has waited for them long enough. */
  settledInTime(): Promise<void>;
  /** Why there is nothing to be ready with; undefined when there is. */
  notReady(): string | undefined;
  /** Whether a policy that is not in the table may be there soon. */
  isLoading(id: string): boolean;
  /** What is known of policies that API servers ask about together, bucket by bucket. */
  buckets(): BucketKnowledge;
  /** See WorkerPoolOptions. */
  find(object: ObjectReference): Promise<FindResult>;
  view(): PoliciesView;
  /** What is known of one policy; undefined when none of that id is declared. */
  status(id: string): PolicyStatus | undefined;
  /** The phase of every policy, for metrics. */
  phases(): Iterable<readonly [id: string, phase: PolicyPhase]>;
  /** Compiled modules that serve or are about to: a loader thread that starts later begins with them. */
  modules(): readonly CompiledPolicyModule[];
  /** A worker could not take up a version that the loader found good. */
  activationFailed(id: string, message: string): void;
  /** Begins nothing more; what serves is left alone. */
  stop(): Promise<void>;
  /** After the last review: writes down what served. */
  close(): Promise<void>;
}

/** Resolves with `settled`, or after this time. */
export async function settledWithin(settled: Promise<void>, ms: number): Promise<void> {
  const waiting = new AbortController();
  const patience = sleep(ms, undefined, { signal: waiting.signal, ref: false });
  try {
    await Promise.race([settled, patience]);
  } finally {
    patience.catch(() => undefined);
    waiting.abort();
  }
}
