// Specs of policies read as entries of a policies file are, off the main thread: many with one message.
import { isNamespacedPolicyId } from '../../resources/index.ts';
import type { AdmissionPolicyObject } from '../../resources/index.ts';
import type { Declared, DeclaredPolicy } from '../../evaluation/index.ts';
import { policyEntry } from '../../engine/index.ts';

/**
 * Characters of entries that are read together: some 2,000 ordinary policies. No more, because the entries of one text share
 * its limit of values in settings (2 million), which so many characters cannot reach.
 */
export const MAX_BATCH_LENGTH = 1024 * 1024;

/** A spec to read. */
export interface UnreadPolicy {
  readonly id: string;
  /** The policy's spec: untrusted. */
  readonly spec: unknown;
}

/** What a spec says, or why it cannot be understood. */
export type ReadPolicy = DeclaredPolicy | { readonly problem: string; readonly isTransient: boolean };

export interface RevisionReaderOptions {
  /** See PolicyEntryOptions. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that policies of namespaces may use. Default: all. */
  readonly namespacedPoliciesCapabilities?: readonly string[];
}

/** Reads specs. */
export class RevisionReader {
  readonly #parse: (text: string, name: string) => Promise<Declared>;
  readonly #options: RevisionReaderOptions;

  /** @param parse reads the text of a policies file */
  constructor(parse: (text: string, name: string) => Promise<Declared>, options: RevisionReaderOptions) {
    this.#parse = parse;
    this.#options = options;
  }

  /** In the order of the specs. What is wrong with one is told of that one. */
  async read(policies: readonly UnreadPolicy[]): Promise<ReadPolicy[]> {
    const results: ReadPolicy[] = [];
    const batches: Batch[] = [];
    for (const [index, policy] of policies.entries()) {
      try {
        add(batches, { index, id: policy.id, text: this.#entryText(policy) });
      } catch (error) {
        // Which field it is does not matter: the cluster's schema would have refused it.
        const problem =
          error instanceof RangeError
            ? "the policy's spec cannot be read: it is nested too deeply"
            : "the policy's spec cannot be read: expected a mapping with a module, or with policies that have one";
        results[index] = { problem, isTransient: false };
      }
    }
    await Promise.all(
      batches.map(async ({ entries }) => {
        for (const [index, result] of await this.#readBatch([...entries.values()])) {
          results[index] = result;
        }
      }),
    );
    return results;
  }

  #entryText({ id, spec }: UnreadPolicy): string {
    if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
      throw new TypeError('expected a mapping');
    }
    const { modulesUrl, namespacedPoliciesCapabilities } = this.#options;
    const hostCapabilities = isNamespacedPolicyId(id) ? namespacedPoliciesCapabilities : undefined;
    const options = {
      ...(modulesUrl === undefined ? {} : { modulesUrl }),
      ...(hostCapabilities === undefined ? {} : { hostCapabilities }),
    };
    return JSON.stringify(policyEntry({ spec: spec as AdmissionPolicyObject['spec'] }, options));
  }

  async #readBatch(entries: readonly Entry[]): Promise<[index: number, result: ReadPolicy][]> {
    try {
      const text = `{${entries.map(({ id, text: entry }) => `${JSON.stringify(id)}:${entry}`).join()}}`;
      const declared = await this.#parse(text, 'the revisions');
      const read = new Map(declared.policies.map((policy) => [policy.definition.id, policy]));
      return entries.map(({ index, id }) => [index, read.get(id) ?? problemOf(declared, id)]);
    } catch (error) {
      if (entries.length > 1) {
        // One of them is to blame, and only that one is to fail.
        const alone = await Promise.all(entries.map((entry) => this.#readBatch([entry])));
        return alone.flat();
      }
      const problem = error instanceof Error ? error.message : String(error);
      return entries.map(({ index }) => [index, { problem, isTransient: isThreadEnded(error) }]);
    }
  }
}

interface Entry {
  readonly index: number;
  readonly id: string;
  readonly text: string;
}

/** Entries of one text: each id once. */
interface Batch {
  readonly entries: Map<string, Entry>;
  length: number;
}

function add(batches: Batch[], entry: Entry): void {
  const length = entry.id.length + entry.text.length;
  let batch = batches.find((known) => known.length + length <= MAX_BATCH_LENGTH && !known.entries.has(entry.id));
  if (batch === undefined) {
    batch = { entries: new Map(), length: 0 };
    batches.push(batch);
  }
  batch.entries.set(entry.id, entry);
  batch.length += length;
}

function problemOf({ problems }: Declared, id: string): ReadPolicy {
  // Lines and columns would be those of a text that nobody has seen.
  const ofOne = problems.filter((problem) => problem.id === id);
  const texts = ofOne.map(({ field, message }) =>
    field === '' || message.startsWith(field) ? message : `${field}: ${message}`,
  );
  return { problem: texts.join('; ') || 'the policy is not understood', isTransient: false };
}

function isThreadEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'thread-ended';
}
