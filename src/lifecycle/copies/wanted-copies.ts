// Which modules PolicyRevisions need, by PolicyServer and digest.
import { type Digest, isDigest } from '../../modules/index.ts';
import {
  namespaceOfPolicyId,
  type PolicyRevision,
  revisionMismatch,
  type RevisionState,
} from '../../resources/index.ts';
import type { Change } from '../../runtime/index.ts';

/** The owner of what policies of the cluster need. No namespace has this name. */
export const CLUSTER = '';

/** States in which a revision serves, or is about to. */
const LIVE: ReadonlySet<RevisionState | undefined> = new Set(['Validated', 'Staged', 'Serving']);

/** A module of a PolicyServer. */
export interface CopyKey {
  readonly policyServer: string;
  readonly digest: Digest;
}

/** A revision that needs a module. */
interface User {
  readonly policyId: string;
  readonly isLive: boolean;
}

/** A module, and the revisions that need it. */
export class WantedCopy implements CopyKey {
  readonly policyServer: string;
  readonly digest: Digest;
  /** By the name of the revision. */
  readonly users = new Map<string, User>();

  constructor({ policyServer, digest }: CopyKey) {
    this.policyServer = policyServer;
    this.digest = digest;
  }

  /** Whether a revision that serves, or is about to, needs it. Otherwise only former revisions do. */
  get isLive(): boolean {
    return this.users.values().some(({ isLive }) => isLive);
  }

  /** Whose share of the space it takes: that of the cluster if one of its policies needs it, else that of one namespace. */
  get owner(): string {
    const live = [...this.users.values()].filter(({ isLive }) => isLive);
    const owners = live.map(({ policyId }) => namespaceOfPolicyId(policyId) ?? CLUSTER);
    return owners.toSorted()[0] ?? CLUSTER;
  }

  /** The ids of the policies that need it now. */
  get policies(): ReadonlySet<string> {
    return new Set([...this.users.values()].filter(({ isLive }) => isLive).map(({ policyId }) => policyId));
  }
}

/** The modules of all revisions, kept up to date by their changes. */
export class WantedCopies {
  readonly #byKey = new Map<string, WantedCopy>();

  get(key: CopyKey): WantedCopy | undefined {
    return this.#byKey.get(copyKeyText(key));
  }

  /** @param text as {@link copyKeyText} */
  byText(text: string): WantedCopy | undefined {
    return this.#byKey.get(text);
  }

  /** Returns the modules whose users differ. Those without users are gone. */
  apply({ before, after }: Change<PolicyRevision>): readonly WantedCopy[] {
    const name = (after ?? before)?.metadata.name ?? '';
    const changed = new Set<WantedCopy>();
    for (const key of before === undefined ? [] : modulesOf(before)) {
      const wanted = this.get(key);
      if (wanted?.users.delete(name) === true) {
        changed.add(wanted);
      }
    }
    for (const key of after === undefined ? [] : modulesOf(after)) {
      const wanted = this.get(key) ?? new WantedCopy(key);
      this.#byKey.set(copyKeyText(key), wanted);
      wanted.users.set(name, { policyId: after?.spec.policyId ?? '', isLive: LIVE.has(after?.status?.state) });
      changed.add(wanted);
    }
    for (const wanted of changed) {
      if (wanted.users.size === 0) {
        this.#byKey.delete(copyKeyText(wanted));
      }
    }
    return [...changed];
  }
}

/** The WebAssembly modules of a revision: builtin ones need no copies. None for what the controller did not write. */
function modulesOf(revision: PolicyRevision): readonly CopyKey[] {
  const { policyServer } = revision.spec;
  const digests = (revision.status?.modules ?? []).map(({ digest }) => digest).filter((digest) => isDigest(digest));
  return digests.length === 0 || revisionMismatch(revision) !== undefined
    ? []
    : [...new Set(digests)].map((digest) => ({ policyServer, digest }));
}

/** The key as one text. */
export function copyKeyText({
  policyServer,
  digest,
}: {
  readonly policyServer: string;
  readonly digest: string;
}): string {
  return `${policyServer}/${digest}`;
}
