// The table that all workers have: policies, their modules, and their numbers.
import { policyOwner } from '../../engine/definition/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { TableChange, TableEntry } from '../evaluation-protocol.ts';

/** Highest number of a policy: cells of shared memory have 32 bits. */
const LAST_NUMBER = 0x7fff_ffff;

/** The table of policies as it was published last. */
export class PublishedTable {
  readonly #entries = new Map<string, TableEntry>();
  readonly #modules = new Map<string, CompiledPolicyModule>();
  readonly #numbers = new Map<string, number>();
  readonly #ids = new Map<number, string>();
  #last = 0;

  /** Takes a change over. The numbers of its upserts: a policy keeps its number until it is removed. */
  apply({ upserts, removals, modules, retired }: TableChange): number[] {
    for (const digest of retired) {
      this.#modules.delete(digest);
    }
    for (const module of modules) {
      this.#modules.set(module.digest, module);
    }
    for (const id of removals) {
      this.#entries.delete(id);
      this.#ids.delete(this.#numbers.get(id) ?? 0);
      this.#numbers.delete(id);
    }
    return upserts.map((entry) => {
      this.#entries.set(entry.id, entry);
      return this.#numberOf(entry.id);
    });
  }

  /** The whole table as one change, for a new worker. */
  whole(): { readonly change: TableChange; readonly numbers: readonly number[] } {
    const upserts = [...this.#entries.values()];
    return {
      change: { upserts, removals: [], modules: [...this.#modules.values()], retired: [] },
      numbers: upserts.map(({ id }) => this.#numberOf(id)),
    };
  }

  get(id: string): TableEntry | undefined {
    return this.#entries.get(id);
  }

  /** The policy of a number; undefined when it was removed. */
  policyOf(number: number): string | undefined {
    return this.#ids.get(number);
  }

  /** See policyOwner. */
  ownerOf(id: string): string {
    return policyOwner(id, this.#entries.get(id)?.match?.namespace);
  }

  /** The owner of the only policy of an own bucket; undefined for shared buckets. */
  ownerOfBucket(bucket: string): string | undefined {
    const id = bucket.replace(/^(?:validating|mutating)\./, '');
    return this.#entries.has(id) ? this.ownerOf(id) : undefined;
  }

  /** The name of a member of a group by its position; undefined when the policy is none, or has no such member. */
  memberOf(id: string, position: number): string | undefined {
    const entry = this.#entries.get(id);
    return entry !== undefined && 'definition' in entry && entry.definition.kind === 'group'
      ? entry.definition.members[position]?.name
      : undefined;
  }

  /** Whether the bucket contains the policy. */
  isIn(id: string, bucket: string): boolean {
    const entry = this.#entries.get(id);
    return entry !== undefined && bucketsOf(entry).includes(bucket);
  }

  #numberOf(id: string): number {
    let number = this.#numbers.get(id);
    if (number === undefined) {
      do {
        this.#last = this.#last === LAST_NUMBER ? 1 : this.#last + 1;
      } while (this.#ids.has(this.#last));
      number = this.#last;
      this.#numbers.set(id, number);
      this.#ids.set(number, id);
    }
    return number;
  }
}

/** All buckets that contain the policy of an entry. */
function bucketsOf({ id, match, alsoIn = [] }: TableEntry): readonly string[] {
  return [...new Set([...(match === undefined ? [] : [match.bucket]), ...alsoIn, ...ownBucketsOf(id)])];
}

/** Own buckets of a policy: its id, with or without the type of the webhook (`ownBucket`). */
function ownBucketsOf(id: string): readonly string[] {
  return [id, `validating.${id}`, `mutating.${id}`];
}
