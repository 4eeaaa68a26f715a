// What served last, kept on disk: after a restart with a broken policies file or unreachable sources it serves again.
import { mkdirSync, readFileSync, renameSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PolicyDefinition } from '../engine/index.ts';
import { PRODUCT_VERSION } from '../modules/index.ts';
import type { LogMessage } from './evaluation-protocol.ts';
import type { PinnedPolicy } from './policy-registry.ts';

/** Changes within this time are written once. Milliseconds. */
const WRITE_DELAY_MS = 100;
/** The layout of the file; a file of another layout is set aside. */
const FORMAT = 1;

/** The file in which a server keeps the policies that serve, each with its modules' digests. */
export class ServingRecord {
  readonly #path: string;
  readonly #log: (entry: LogMessage) => void;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param folder where the record lies; created when missing. */
  constructor(folder: string, log: (entry: LogMessage) => void) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, 'serving.json');
    this.#log = log;
  }

  /** What served when the record was last written, by id. A record that cannot be read is set aside and said. */
  read(): Map<string, PinnedPolicy> {
    try {
      const record = JSON.parse(readFileSync(this.#path, 'utf8')) as {
        format: unknown;
        version: unknown;
        policies: PinnedPolicy[];
      };
      if (record.format !== FORMAT || !Array.isArray(record.policies) || !record.policies.every(isPinned)) {
        throw new Error(`expected format ${FORMAT}, got ${String(record.format)} or incomplete policies`);
      }
      const isOurs = record.version === PRODUCT_VERSION;
      return new Map(record.policies.map((policy) => [policy.definition.id, isOurs ? policy : ofOtherVersion(policy)]));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#setAside(error);
      }
      return new Map();
    }
  }

  /** Writes the record soon; the set is asked for when it is written. */
  changed(current: () => readonly PinnedPolicy[]): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.flush(current());
    }, WRITE_DELAY_MS).unref();
  }

  /** Writes the record now; a write that fails is logged, serving goes on. */
  flush(policies: readonly PinnedPolicy[]): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = JSON.stringify({ format: FORMAT, version: PRODUCT_VERSION, policies });
    this.#writing = this.#writing.then(async () => {
      const temporary = `${this.#path}.${process.pid}.new`;
      try {
        const file = await open(temporary, 'w', 0o600);
        await file.writeFile(text);
        await file.sync();
        await file.close();
        await rename(temporary, this.#path);
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => undefined);
        this.#log({
          level: 'error',
          message: 'cannot keep a record of what serves; a restart will need the policies file and its sources',
          fields: { folder: dirname(this.#path), error: String(error) },
        });
      }
    });
    return this.#writing;
  }

  #setAside(error: unknown): void {
    const aside = `${this.#path}.unreadable`;
    try {
      renameSync(this.#path, aside);
    } catch {
      // Nothing to keep, then.
    }
    this.#log({
      level: 'warn',
      message: 'the record of what served cannot be read and was set aside',
      fields: { file: aside, error: String(error) },
    });
  }
}

/**
 * A policy that another version of the product read. It may serve, but it is not taken for the revision: that is read anew,
 * and may mean something else by now.
 */
function ofOtherVersion(policy: PinnedPolicy): PinnedPolicy {
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
