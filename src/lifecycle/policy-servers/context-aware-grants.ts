// Grants the processes of PolicyServers access to the kinds that their context-aware policies declare, within the
// rights of the controller.
import { type Discovery, isForbidden } from '../../cluster/index.ts';
import type { JsonObject, PolicyServerObject } from '../../resources/index.ts';
import type { AppliedObjects } from './applied-objects.ts';
import type { ContextAwareGrant } from './context-aware-grant.ts';
import type { ContextAwareKinds } from './context-aware-kinds.ts';
import { contextAwareAccess, contextAwareRules, type KindAccess } from './context-aware-rules.ts';
import { policyServerObjects } from './policy-server-objects.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';

export interface ContextAwareGrantsOptions {
  readonly objects: Pick<AppliedObjects, 'apply'>;
  readonly kinds: Pick<ContextAwareKinds, 'of'>;
  readonly discovery: Pick<Discovery, 'find'>;
  readonly settings: PolicyServerSettings;
  /** Delay before a forbidden rule is tried again, unless declarations change. Milliseconds. */
  readonly retryMs: number;
}

/** The result of an attempt to grant rules that were partly forbidden. */
interface GrantAttempt {
  readonly wanted: string;
  /** When it expires. Milliseconds since 1970. */
  readonly until: number;
  readonly granted: ReadonlySet<string>;
}

export class ContextAwareGrants {
  readonly #options: ContextAwareGrantsOptions;
  /** By PolicyServer. */
  readonly #attempts = new Map<string, GrantAttempt>();

  constructor(options: ContextAwareGrantsOptions) {
    this.#options = options;
  }

  /** Writes the ClusterRole of a PolicyServer if it differs. @throws NameTaken, ApiError, ClusterError */
  async grant(server: PolicyServerObject, signal: AbortSignal): Promise<ContextAwareGrant> {
    const name = server.metadata.name ?? '';
    const { discovery, kinds } = this.#options;
    const { known, unknown } = await contextAwareAccess(kinds.of(name), discovery, signal);
    const wanted = JSON.stringify(contextAwareRules(known));
    const before = this.#attempts.get(name);
    if (before === undefined || before.wanted !== wanted || before.until <= Date.now()) {
      this.#attempts.delete(name);
      try {
        await this.#apply(server, known, signal);
        return { granted: known, refused: [], unknown };
      } catch (error) {
        // Without context-aware rules, the controller itself lacks rights.
        if (!isForbidden(error) || known.length === 0) {
          throw error;
        }
      }
      const granted = await this.#grantable(server, known, signal);
      this.#attempts.set(name, { wanted, until: Date.now() + this.#options.retryMs, granted });
    }
    const isGranted = (access: KindAccess): boolean => this.#attempts.get(name)?.granted.has(textOf(access)) === true;
    const granted = known.filter(isGranted);
    await this.#apply(server, granted, signal);
    return { granted, refused: known.filter((access) => !isGranted(access)), unknown };
  }

  forget(policyServer: string): void {
    this.#attempts.delete(policyServer);
  }

  /**
   * The rules that the cluster lets the controller grant. Each is tried alone, so that a forbidden one does not block
   * others.
   */
  async #grantable(
    server: PolicyServerObject,
    known: readonly KindAccess[],
    signal: AbortSignal,
  ): Promise<ReadonlySet<string>> {
    const granted = new Set<string>();
    for (const access of known) {
      try {
        await this.#apply(server, [access], signal, { dryRun: true });
        granted.add(textOf(access));
      } catch (error) {
        if (!isForbidden(error)) {
          throw error;
        }
      }
    }
    return granted;
  }

  async #apply(
    server: PolicyServerObject,
    access: readonly KindAccess[],
    signal: AbortSignal,
    options?: { readonly dryRun: boolean },
  ): Promise<void> {
    const { objects, settings } = this.#options;
    const role: JsonObject = policyServerObjects(server, settings, contextAwareRules(access)).ClusterRole;
    await objects.apply('ClusterRole', server.metadata.name ?? '', role, signal, options);
  }
}

function textOf({ rule }: KindAccess): string {
  return JSON.stringify(rule);
}
