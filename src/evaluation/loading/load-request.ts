import type { PolicyDefinition } from '../../engine/index.ts';
import type { ExecutionMode } from '../../modules/index.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { PolicyReason } from './policy-reason.ts';

/** A definition and what identifies it: hashes are taken where files are parsed, off the main thread. */
export interface DeclaredPolicy {
  readonly definition: PolicyDefinition;
  /** Hash of the whole definition. */
  readonly hash: string;
  /** Hash of its settings. */
  readonly settingsHash: string;
}

/** An entry of a policies file as an object, untrusted. */
export interface PolicyEntry {
  readonly id: string;
  readonly entry: unknown;
}

/** What an entry declares, or what is wrong with it. */
export type ReadEntry = DeclaredPolicy | { readonly id: string; readonly problems: readonly string[] };

/** A module that is not fetched. */
export interface ProvidedModule {
  readonly bytes: Uint8Array;
  /** The execution mode, when the metadata have none. */
  readonly chosenMode?: ExecutionMode;
}

/** Steps of a load: `compile` (after fetching), `start` (an instance is made), `check` (of the settings). */
export const STAGES = ['compile', 'start', 'check'] as const;
export type Stage = (typeof STAGES)[number];

/** Where a load failed. */
export interface FailedStage {
  readonly stage: Stage;
  /** The reference of the module for `compile`, else the id of the policy or `group/member`. */
  readonly unit: string;
  /** Whether it was ended because its time was over. */
  readonly isOverdue?: boolean;
}

/** One thing that the loader is to try. */
export interface LoadRequest {
  readonly id: string;
  readonly definition: PolicyDefinition;
  /** Take these very modules, by reference, whatever the source has by now. Default: those that the definition names. */
  readonly digests?: Readonly<Record<string, string>>;
  /**
   * `cache`: ask no source. `source`: what the source has now, for references without a digest; the cache does not stand in
   * for it. Default: the source, or the cache when that is down.
   */
  readonly from?: 'cache' | 'source';
  /** Whether it is a policy of people who do not run this server, see `isForTenant` of the module store. Default: no. */
  readonly isForTenant?: boolean;
  /**
   * Modules of the policy's author, by reference. They need no `protocolVersion` in their metadata yet. Default: all modules
   * are fetched.
   */
  readonly provided?: Readonly<Record<string, ProvidedModule>>;
}

/** What became of a {@link LoadRequest}. */
export type LoadOutcome =
  | {
      readonly ok: true;
      readonly digests: Readonly<Record<string, string>>;
      readonly modules: readonly CompiledPolicyModule[];
      /** Why a module came from the cache although its source was asked. */
      readonly sourceError?: string;
    }
  | {
      readonly ok: false;
      readonly reason: PolicyReason;
      readonly message: string;
      /** Whether trying the same again may end differently. */
      readonly transient: boolean;
      /** Digest by module reference, when the modules were fetched and something else failed. */
      readonly digests?: Readonly<Record<string, string>>;
      readonly at?: FailedStage;
    };
