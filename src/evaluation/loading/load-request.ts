import type { PolicyDefinition } from '../../engine/index.ts';
import { policyOwner } from '../../engine/definition/index.ts';
import type { ExecutionMode } from '../../modules/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { PolicyReason } from './policy-reason.ts';
import type { WatchedChange } from '../watched-objects.ts';

/** A definition and its hashes, which the loader computes off the main thread. */
export interface DeclaredPolicy {
  readonly definition: PolicyDefinition;
  /** Hash of the whole definition. */
  readonly hash: string;
  /** Hash of its settings. */
  readonly settingsHash: string;
}

/** A policy from its source, untrusted: an entry of a policies file, or the spec of a revision. */
export interface UnreadPolicy {
  readonly id: string;
  readonly spec: unknown;
}

/** A policy that was read, or what is wrong with it. `isTransient`: nothing is, but reading it ended the thread. */
export type ReadPolicy =
  | DeclaredPolicy
  | { readonly id: string; readonly problems: readonly string[]; readonly isTransient?: boolean };

/** A module that is not fetched. */
export interface ProvidedModule {
  readonly bytes: Uint8Array;
  /** The execution mode, when the metadata have none. */
  readonly chosenMode?: ExecutionMode;
}

/** Steps of a load: `compile` (after fetching), `start` (an instance is made), `check` (of the settings). */
export const STAGES = ['compile', 'start', 'check'] as const;
export type Stage = (typeof STAGES)[number];

/**
 * Limit of a compilation with all the time of its definition: a longer one is treated as an attack on the compiler. A module of 77 MB
 * takes 2 s. Processor time, in milliseconds.
 */
export const COMPILE_TIMEOUT_MS = 20_000;

/** Where a load failed. */
export interface FailedStage {
  readonly stage: Stage;
  /** The reference of the module for `compile`, else the id of the policy or `group/member`. */
  readonly unit: string;
  /** Whether it was ended at its timeout. */
  readonly isOverdue?: boolean;
}

/** A policy to load. */
export interface LoadRequest {
  readonly id: string;
  readonly definition: PolicyDefinition;
  /** Digests of the modules, by reference: no other module is loaded. Default: those in the definition. */
  readonly digests?: Readonly<Record<string, string>>;
  /** Verifications that held for these digests before, by reference: `verifiedBy` of the module store. Default: none. */
  readonly verified?: Readonly<Record<string, string>>;
  /**
   * `cache`: only from the cache. `source`: only from the source, for references without a digest. Default: from the source,
   * or from the cache when the source is down.
   */
  readonly from?: 'cache' | 'source';
  /** Whether the policy belongs to a tenant, see `isForTenant` of the module store. Default: no. */
  readonly isForTenant?: boolean;
  /** The namespace of the policy, whose loads take turns with those of others. Default: none. */
  readonly namespace?: string | undefined;
  /**
   * Modules of the policy's author, by reference. They need no `protocolVersion` in their metadata yet. Default: all modules
   * are fetched.
   */
  readonly provided?: Readonly<Record<string, ProvidedModule>>;
  /** Default: the policy is not tried with parameters. */
  readonly trial?: ParameterTrial;
}

/** Whose turn a load takes, see policyOwner. */
export function loadOwner({ id, namespace }: LoadRequest): string {
  return policyOwner(id, namespace);
}

/** Parameters that exist, with which a policy is tried. */
export interface ParameterTrial {
  /** All objects that parameters are in, and the namespaces. */
  readonly objects: readonly WatchedChange[];
  /** Namespaces whose requests are tried; empty for one without. */
  readonly namespaces: readonly string[];
  /**
   * Whether namespaces without parameters count, too, where `notFound` denies their requests. Then objects that are not in
   * {@link objects} do not exist. Default: only invalid parameters count.
   */
  readonly countsMissing?: boolean;
}

/** Namespaces whose requests a policy would refuse for their parameters. */
export interface RefusedNamespaces {
  /** Number of namespaces that were tried. */
  readonly tried: number;
  readonly refused: readonly RefusedNamespace[];
}

/** One for each member of a group that refuses the parameters. */
export interface RefusedNamespace {
  /** Empty for requests without one. */
  readonly namespace: string;
  /** The id of the policy, or `group/member`. */
  readonly unit: string;
  /** Shortened. */
  readonly message: string;
}

/** Result of a {@link LoadRequest}. */
export type LoadOutcome =
  | {
      readonly ok: true;
      readonly digests: Readonly<Record<string, string>>;
      /** Digests of the manifests of modules from registries, by reference. */
      readonly manifests?: Readonly<Record<string, string>>;
      /** The verification that held, by reference; absent when none is required. */
      readonly verified?: Readonly<Record<string, string>>;
      readonly modules: readonly CompiledPolicyModule[];
      /** Why the policy may reject requests although it was loaded. */
      readonly warnings?: readonly string[];
      /** Absent without a trial. */
      readonly refused?: RefusedNamespaces;
      /** Why a module came from the cache instead of its source. */
      readonly sourceError?: string;
      /** Whether a module could not be written to the cache. Default: false. */
      readonly isUncached?: boolean;
    }
  | {
      readonly ok: false;
      readonly reason: PolicyReason;
      readonly message: string;
      /** Whether a retry may succeed. */
      readonly transient: boolean;
      /** A retry before this time fails again. Milliseconds. Default: none. */
      readonly retryAfterMs?: number;
      /** Digest by module reference, when the modules were fetched and something else failed. */
      readonly digests?: Readonly<Record<string, string>>;
      readonly at?: FailedStage;
    };
