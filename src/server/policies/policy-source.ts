// The sources of a server's policies: a policies file, or the revisions of a cluster.
import { setTimeout as sleep } from 'node:timers/promises';
import type { MonitoredVerdict, ObjectReference, PolicyDefinition } from '../../engine/index.ts';
import type {
  CompiledPolicyModule,
  FindResult,
  Loader,
  PolicyMemory,
  TableChange,
  WatchedChange,
} from '../../evaluation/index.ts';
import type { Logger } from '../../log/index.ts';
import type { PoliciesAnswer } from '../status/operations-routes.ts';
import type { ChangeResult } from './policy-registry.ts';
import type { PhaseChange } from './registry-entry.ts';
import type { ServedPolicyPhase, ServedPolicyStatus } from '../status/served-policy-status.ts';
import type { ServingRecord } from './serving-record.ts';

/** Whether the policies of buckets are known: `none` without buckets, `unknown` until the source was read. */
export type BucketKnowledge = 'none' | 'unknown' | 'known';

/** What a server provides to its source of policies. */
export interface PolicyHost {
  readonly loader: Loader;
  readonly record: ServingRecord;
  /**
   * Accounts the memory of the source's policies.
   * @param ownerOf the namespace of a policy, or CLUSTER_OWNER
   */
  accountMemory(ownerOf: (id: string) => string): PolicyMemory;
  /** Folder of records for the next start. */
  readonly dataDir: string;
  /** How long readiness waits for first versions. Milliseconds. */
  readonly readyWaitMs: number;
  readonly log: Logger;
  /**
   * Changes the table of every worker; resolves when all have applied it.
   * @param staged definitions that are loaded beside the table, by policy, where these may have changed
   */
  publish(change: TableChange, staged?: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void>;
  /** Sends changes of watched objects to every worker. */
  publishWatched(change: WatchedChange): void;
  /** Called when the phase of a policy or its reason changes; undefined when the policy was removed. */
  phaseChanged(id: string, change: PhaseChange | undefined): void;
  changeEnded(result: ChangeResult): void;
  /** Called when a changed declaration serves or has failed, with the time it took. Milliseconds. */
  reloadTook(ms: number): void;
}

/** A source of policies. */
export interface PolicySource {
  /**
   * Begins to follow the source. Resolves when every policy has served or failed once, or the wait of readiness is
   * over. Workers must have started.
   */
  start(): Promise<void>;
  /** Reads the source now; resolves when its content is known, before it serves. */
  check(): Promise<void>;
  /** Retries failures now. */
  retryNow(): void;
  /** Resolves when every policy has served or failed once, or the wait of readiness is over. */
  settledInTime(): Promise<void>;
  /** Why the server is not ready; undefined when it is. */
  notReady(): string | undefined;
  /** Whether a policy that is not in the table may still be loaded. */
  isLoading(id: string): boolean;
  /** What is known about the policies of buckets. */
  buckets(): BucketKnowledge;
  /** See WorkerPoolOptions. */
  find(object: ObjectReference): Promise<FindResult>;
  policiesAnswer(): PoliciesAnswer;
  /** The status of one policy; undefined when it is not declared. */
  status(id: string): ServedPolicyStatus | undefined;
  /** The phase of every policy, for metrics. */
  phases(): Iterable<readonly [id: string, phase: ServedPolicyPhase]>;
  /** Modules of serving and staged versions, with which a new loader thread starts. */
  modules(): readonly CompiledPolicyModule[];
  /** Called when a worker could not activate a version that was loaded. */
  activationFailed(id: string, message: string): void;
  /** Called with what a policy in monitor mode would have rejected or changed. */
  monitored(verdict: MonitoredVerdict): void;
  /** Called with the exceptions that a request used, by `metadata.uid`. */
  excepted(uids: readonly string[]): void;
  /** Stops following the source; serving versions stay. */
  stop(): Promise<void>;
  /** Called after the last review: records what served. */
  close(): Promise<void>;
}

/** Resolves when `settled` does, or after this time. */
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
