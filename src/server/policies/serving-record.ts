// Records on disk what serves, so that it serves again after a restart with an invalid policies file or unavailable
// sources.
import { resolve } from 'node:path';
import type { PolicyDefinition } from '../../engine/index.ts';
import { PRODUCT_VERSION } from '../../modules/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { KeptFile } from '../../files/index.ts';
import type { DeclaredPolicy } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';

/** A definition with the digests of its modules: serving, or recorded to serve again after a restart. */
export interface PinnedPolicy extends DeclaredPolicy {
  /** Digest by module reference, as in the definition. */
  readonly digests: Readonly<Record<string, string>>;
  /** The verification that each module satisfied, by reference; absent when none was required. */
  readonly verified?: Readonly<Record<string, string>>;
  /** When it began to serve, ISO 8601. */
  readonly since: string;
  /** Its PolicyRevision; absent for a policies file. */
  readonly revision?: RevisionName;
  /** The requests that it matches, for shared buckets. */
  readonly match?: PolicyMatch;
}

/** Identifies a PolicyRevision. */
export interface RevisionName {
  /** `metadata.name` of the PolicyRevision. */
  readonly name: string;
  readonly uid: string;
  readonly number: number;
}

/** Changes within this time are written once. Milliseconds. */
const WRITE_DELAY_MS = 100;
/** Version of the file's format; a file of another version is moved aside. */
const FORMAT = 2;

/** The file that records serving policies with the digests of their modules. */
export class ServingRecord {
  readonly #file: KeptFile;
  /** Absolute path of the policies file that is recorded; undefined for policies of a cluster. */
  #source: string | undefined;

  /** @param folder folder of the record; created when missing */
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
   * Reads the record: policies that served, by id. An invalid record is moved aside and logged.
   * @param source the current source of policies: a cluster, or the path of a policies file. Policies of another source are omitted
   */
  read(source: 'cluster' | { readonly file: string }): Map<string, PinnedPolicy> {
    this.#source = source === 'cluster' ? undefined : resolve(source.file);
    const { policies, file } = this.#file.read(recordOf) ?? { policies: [] };
    // Records of earlier versions do not say which file they are of.
    const isOfSource = file === undefined || this.#source === undefined || file === this.#source;
    const found = policies.filter(({ revision }) => isOfSource && (revision === undefined) === (source !== 'cluster'));
    return new Map(found.map((policy) => [policy.definition.id, policy]));
  }

  /** Writes the record soon; `current` is called at that time. */
  changed(current: () => readonly PinnedPolicy[]): void {
    this.#file.changed(() => contentOf(current(), this.#source));
  }

  /** Writes the record now; a failed write is only logged. */
  flush(policies: readonly PinnedPolicy[]): Promise<void> {
    return this.#file.write(contentOf(policies, this.#source));
  }
}

function contentOf(policies: readonly PinnedPolicy[], file: string | undefined): unknown {
  return { format: FORMAT, version: PRODUCT_VERSION, ...(file === undefined ? {} : { file }), policies };
}

interface RecordContent {
  readonly policies: readonly PinnedPolicy[];
  /** Absolute path of the policies file; absent for policies of a cluster, and in records of earlier versions. */
  readonly file?: string;
}

function recordOf(content: unknown): RecordContent {
  const { format, version, file, policies } = content as Record<string, unknown>;
  if (format !== FORMAT || !Array.isArray(policies) || !policies.every(isPinned)) {
    throw new Error(`expected format ${FORMAT}, got ${String(format)} or incomplete policies`);
  }
  return {
    policies: version === PRODUCT_VERSION ? policies : policies.map(withoutRevision),
    ...(typeof file === 'string' ? { file } : {}),
  };
}

/**
 * A recorded policy without its revision: read by another version of the product or with other settings, it may differ
 * from the revision. It may serve until the revision has been read again.
 */
export function withoutRevision(policy: PinnedPolicy): PinnedPolicy {
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
    (pinned.verified === undefined || (typeof pinned.verified === 'object' && pinned.verified !== null)) &&
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

/** Validates the fields that the main thread uses; the loader validates the others, per policy. */
function isDefinition(value: PolicyDefinition | undefined): value is PolicyDefinition {
  return (
    typeof value === 'object' &&
    typeof value.id === 'string' &&
    (value.kind === 'policy' || (value.kind === 'group' && Array.isArray(value.members)))
  );
}
