// A module as it travels from the loader to the evaluation workers.
import type { ContextAwareResource } from '../resources/index.ts';
import type { PolicyCode } from '../modules/index.ts';

/**
 * A module that was fetched, verified, rewritten and compiled, or a builtin one; can be posted to another thread without
 * a recompile. `digest` is the `sha256:…` of the original bytes, or a builtin module's version.
 */
export type CompiledPolicyModule = PolicyCode & {
  readonly digest: string;
  /** The host capabilities that its metadata name. */
  readonly hostCapabilities?: readonly string[];
  /** The kinds that it reads, by its metadata. */
  readonly contextAwareResources?: readonly ContextAwareResource[];
  /** Whether it changes objects, by its metadata. */
  readonly isMutating?: true;
  /** Memory that an instance held after the settings were checked. Absent before, and for builtin modules. */
  readonly instanceBytes?: number;
};
