// The policies of a cluster as the policies file of a policy server on the same machine.
import { rename, writeFile } from 'node:fs/promises';
import type { PolicyServer, PolicyStatus } from '../server/index.ts';

/** What a policy server says of a policy, and of which generation of it. */
export interface ServedPolicy {
  /** `metadata.generation` of the policy as the server was told of it last. */
  readonly generation: number;
  readonly status: PolicyStatus;
}

/** A policy to be served: its entry in a policies file, and the generation that it was made of. */
export interface WantedPolicy {
  readonly id: string;
  readonly entry: object;
  readonly generation: number;
}

/** Where controllers put policies to be served, and read what came of it. */
export interface PolicySet {
  /** Declares these and no others: at the start, so that what served before is never taken away for a moment. */
  replace(policies: readonly WantedPolicy[]): Promise<void>;
  /** Declares a policy; resolves when the server knows of it, whether it serves already or not. */
  put(policy: WantedPolicy): Promise<void>;
  /** Resolves when the server knows that it is gone. */
  remove(id: string): Promise<void>;
  /** Undefined while the server has not been told of it. */
  get(id: string): ServedPolicy | undefined;
}

/** What is needed of the server. */
type ToldServer = Pick<PolicyServer, 'readPolicies' | 'policy'> & {
  policies(): { readonly source: Pick<ReturnType<PolicyServer['policies']>['source'], 'error'> };
};

interface Declared {
  readonly text: string;
  readonly generation: number;
}

/** Keeps a policies file as the controllers want it, and has the server read it. Many changes at once are one write. */
export class FilePolicySet implements PolicySet {
  readonly #file: string;
  readonly #server: ToldServer;
  readonly #wanted = new Map<string, Declared>();
  #told: ReadonlyMap<string, Declared> = new Map();
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(file: string, server: ToldServer) {
    this.#file = file;
    this.#server = server;
  }

  async replace(policies: readonly WantedPolicy[]): Promise<void> {
    this.#wanted.clear();
    for (const { id, entry, generation } of policies) {
      this.#wanted.set(id, { text: JSON.stringify(entry), generation });
    }
    await this.#write();
  }

  async put({ id, entry, generation }: WantedPolicy): Promise<void> {
    const text = JSON.stringify(entry);
    const known = this.#wanted.get(id);
    this.#wanted.set(id, { text, generation });
    if (known?.text !== text || this.#told.get(id)?.text !== text) {
      await this.#write();
    } else if (known.generation !== generation) {
      // What the server was told is as good for this generation.
      this.#told = new Map([...this.#told, [id, { text, generation }]]);
    }
  }

  async remove(id: string): Promise<void> {
    if (this.#wanted.delete(id) || this.#told.has(id)) {
      await this.#write();
    }
  }

  get(id: string): ServedPolicy | undefined {
    const told = this.#told.get(id);
    const status = told === undefined ? undefined : this.#server.policy(id);
    return told === undefined || status === undefined ? undefined : { generation: told.generation, status };
  }

  /** Begins a write when the one that runs is done; whoever asks meanwhile shares it. */
  #write(): Promise<void> {
    this.#next ??= this.#writing
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#writing = this.#writeNow();
        return this.#writing;
      });
    return this.#next;
  }

  async #writeNow(): Promise<void> {
    const told = new Map(this.#wanted);
    const lines = [...told].map(([id, { text }]) => `${JSON.stringify(id)}: ${text}`);
    const temporary = `${this.#file}.new`;
    // A policy and its settings are for whoever may read them in the cluster.
    await writeFile(temporary, `{${lines.join(',\n')}}\n`, { mode: 0o600 });
    await rename(temporary, this.#file);
    await this.#server.readPolicies();
    const { error } = this.#server.policies().source;
    if (error !== null) {
      throw new Error(`the policy server did not take the policies: ${error}`);
    }
    this.#told = told;
  }
}
