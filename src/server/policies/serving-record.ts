// What served last, kept on disk: after a restart with a broken policies file or unreachable sources it serves again.
import type { PolicyDefinition } from '../../engine/index.ts';
import { PRODUCT_VERSION } from '../../modules/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { KeptFile } from '../../files/index.ts';
import type { DeclaredPolicy } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';

/** A definition with the digests of its modules: what serves, and what is kept to serve again after a restart. */
export interface PinnedPolicy extends DeclaredPolicy {
  /** Digest by module reference, as the definition writes it. */
  readonly digests: Readonly<Record<string, string>>;
  /** When it began to serve, ISO 8601. */
  readonly since: string;
  /** The PolicyRevision that it is of; absent for a file. */
  readonly revision?: RevisionName;
  /** Which requests it is for, where API servers ask about many policies at once. */
  readonly match?: PolicyMatch;
}

/** Which PolicyRevision something is of. */
export interface RevisionName {
  /** `metadata.name` of the PolicyRevision. */
  readonly name: string;
  readonly uid: string;
  readonly number: number;
}

/** Changes within this time are written once. Milliseconds. */
const WRITE_DELAY_MS = 100;
/** The layout of the file; a file of another layout is set aside. */
const FORMAT = 1;

/** The file in which a server keeps the policies that serve, each with its modules' digests. */
export class ServingRecord {
  readonly #file: KeptFile;

  /** @param folder where the record lies; created when missing. */
  constructor(folder: string, log: (entry: LogEntry) => void) {
    this.#file = new KeptFile({
      folder,
      name: 'serving.json',
      delayMs: WRITE_DELAY_MS,
      unwritable: 'cannot keep a record of what serves; a restart will need the policies file and its sources',
      unreadable: 'the record of what served cannot be read and was set aside',
      log,
    });
  }

  /**
   * What served when the record was last written, by id. A record that cannot be read is set aside, which is logged.
   * @param source where policies come from now; what was of the other source is left out
   */
  read(source: 'file' | 'cluster'): Map<string, PinnedPolicy> {
    const policies = this.#file.read(policiesOf) ?? new Map<string, PinnedPolicy>();
    return new Map([...policies].filter(([, { revision }]) => (revision === undefined) === (source === 'file')));
  }

  /** Writes the record soon; the set is asked for when it is written. */
  changed(current: () => readonly PinnedPolicy[]): void {
    this.#file.changed(() => contentOf(current()));
  }

  /** Writes the record now; a write that fails is logged, serving goes on. */
  flush(policies: readonly PinnedPolicy[]): Promise<void> {
    return this.#file.write(contentOf(policies));
  }
}

function contentOf(policies: readonly PinnedPolicy[]): unknown {
  return { format: FORMAT, version: PRODUCT_VERSION, policies };
}

function policiesOf(content: unknown): Map<string, PinnedPolicy> {
  const { format, version, policies } = content as { format: unknown; version: unknown; policies: PinnedPolicy[] };
  if (format !== FORMAT || !Array.isArray(policies) || !policies.every(isPinned)) {
    throw new Error(`expected format ${FORMAT}, got ${String(format)} or incomplete policies`);
  }
  const isOurs = version === PRODUCT_VERSION;
  return new Map(policies.map((policy) => [policy.definition.id, isOurs ? policy : ofOtherVersion(policy)]));
}

/**
 * A policy that another version of the product read, or one with other settings. It may serve, but it is not taken for the revision: that is read anew,
 * and may mean something else by now.
 */
export function ofOtherVersion(policy: PinnedPolicy): PinnedPolicy {
  return policy.revision === undefined
    ? policy
    : { ...policy, revision: { ...policy.revision, uid: `${policy.revision.uid} of another version` } };
}

function isPinned(value: unknown): value is PinnedPolicy {
  const pinned = value as Partial<PinnedPolicy> | null;
  return (
    typeof pinned === 'object' &&
    pinned !== null &&
    isDefinition(pinned.definition) &&
    typeof pinned.hash === 'string' &&
    typeof pinned.settingsHash === 'string' &&
    typeof pinned.digests === 'object' &&
    pinned.digests !== null &&
    typeof pinned.since === 'string' &&
    (pinned.revision === undefined || isRevisionName(pinned.revision))
  );
}

function isRevisionName(value: unknown): boolean {
  const revision = value as PinnedPolicy['revision'] | null;
  return (
    typeof revision === 'object' &&
    revision !== null &&
    typeof revision.name === 'string' &&
    typeof revision.uid === 'string' &&
    typeof revision.number === 'number'
  );
}

/** As far as the main thread relies on it; the loader looks at the rest, and fails that policy only. */
function isDefinition(value: PolicyDefinition | undefined): value is PolicyDefinition {
  return (
    typeof value === 'object' &&
    typeof value.id === 'string' &&
    (value.kind === 'policy' || (value.kind === 'group' && Array.isArray(value.members)))
  );
}
