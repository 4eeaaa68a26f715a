// Revisions that failed for parameters, and what these are now: the controller tries such a revision again when they change.
import { isDeepStrictEqual } from 'node:util';
import { INVALID_PARAMETERS, type RevisionReport } from '../../control/index.ts';
import type { WatchedChange } from '../../evaluation/index.ts';
import { objectNeeds } from '../../evaluation/object-feeds/index.ts';
import { namespaceOfPolicyId } from '../../resources/index.ts';
import type { WaitingRevision, WantedChanges } from '../policies/wanted-policy.ts';
import { CHECK_DELAY_MS } from './parameter-checks.ts';
import { namespacesOfFingerprint, parametersFingerprint } from './parameters-fingerprint.ts';

export interface ParameterWaitsOptions {
  /** All watched objects. */
  readonly objects: () => readonly WatchedChange[];
  /** Called with all reports, when one has changed. */
  readonly changed: (reports: readonly RevisionReport[]) => void;
  /** Default: {@link CHECK_DELAY_MS}. */
  readonly delayMs?: number;
}

/** Reports fingerprints of the parameters for which revisions wait. */
export class ParameterWaits {
  readonly #options: ParameterWaitsOptions;
  /** By policy id. */
  readonly #waiting = new Map<string, WaitingRevision>();
  /** Kinds whose objects were all read at least once. */
  readonly #listed = new Set<string>();
  #reports: readonly RevisionReport[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: ParameterWaitsOptions) {
    this.#options = options;
  }

  /** Updates which revisions wait; `isFirst`: these are all policies. */
  want(changes: WantedChanges, isFirst: boolean): void {
    if (isFirst) {
      this.#waiting.clear();
    }
    for (const [id, wanted] of changes) {
      this.#waiting.delete(id);
      if (wanted?.waiting !== undefined) {
        this.#waiting.set(id, wanted.waiting);
      }
    }
    this.#schedule();
  }

  /** Takes a change of watched objects. */
  apply({ apiVersion, kind, isAll }: WatchedChange): void {
    if (isAll) {
      this.#listed.add(kindText({ apiVersion, kind }));
    }
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Reports soon, once for the changes of a moment. */
  #schedule(): void {
    if (!this.#isStopped && this.#waiting.size + this.#reports.length > 0) {
      this.#timer ??= setTimeout(() => this.#report(), this.#options.delayMs ?? CHECK_DELAY_MS).unref();
    }
  }

  #report(): void {
    this.#timer = undefined;
    const objects = this.#options.objects();
    const reports = [...this.#waiting].flatMap(([policy, one]) => this.#reportOf(policy, one, objects));
    if (!isDeepStrictEqual(reports, this.#reports)) {
      this.#reports = reports;
      this.#options.changed(reports);
    }
  }

  /** Nothing before the parameters are known. */
  #reportOf(
    policy: string,
    { name, uid, revision, snapshot, tried }: WaitingRevision,
    objects: readonly WatchedChange[],
  ): readonly RevisionReport[] {
    const { kinds, readsNamespaces } = objectNeeds([snapshot]);
    const needed = [...kinds, ...(readsNamespaces ? [{ apiVersion: 'v1', kind: 'Namespace' }] : [])];
    const parameters = needed.every((kind) => this.#listed.has(kindText(kind)))
      ? parametersFingerprint(snapshot, namespaceOfPolicyId(policy), objects, namespacesOfFingerprint(tried))
      : undefined;
    const state = { state: 'Failed', reason: INVALID_PARAMETERS } as const;
    return parameters === undefined ? [] : [{ name, uid, policy, revision, ...state, parameters }];
  }
}

function kindText({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  return `${apiVersion} ${kind}`;
}
