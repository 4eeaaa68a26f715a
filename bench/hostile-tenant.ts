// A tenant who may write policies, config maps and pods in one namespace.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesCluster } from '../src/cluster/index.ts';
import { inTurns } from './scene.ts';

const POLICIES = '/apis/policies.kubewarden.io/v1';
/** Objects that are written or deleted at once. */
const AT_ONCE = 16;
/** Time until the policies of a tenant are deleted. Milliseconds. */
const GONE_MS = 60_000;
const GONE_POLL_MS = 250;
/** Characters of a reason in the table. */
const MAX_REASON = 90;

interface PolicyItem {
  readonly metadata: { readonly name: string };
  readonly status?: { readonly phase?: string; readonly reason?: string };
}

/** Policies are for config maps by default. */
export interface PolicySpec {
  readonly module?: string;
  readonly settings?: object;
  readonly parameters?: object;
  readonly matchConditions?: readonly object[];
}

export class Tenant {
  readonly namespace: string;
  readonly #cluster: KubernetesCluster;
  readonly #folder: string;
  #applied = 0;
  #refusals: string[] = [];
  #answers = new Map<string, number>();

  constructor(namespace: string, cluster: KubernetesCluster, folder: string) {
    this.namespace = namespace;
    this.#cluster = cluster;
    this.#folder = folder;
  }

  /** Offers a module in the folder for modules. Returns its reference. */
  offer(name: string, bytes: Uint8Array): string {
    writeFileSync(join(this.#folder, `${name}.wasm`), bytes);
    return `file://./${name}.wasm`;
  }

  /** Creates a policy, and records what the answer was. */
  async apply(name: string, spec: PolicySpec): Promise<void> {
    const object = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'AdmissionPolicy',
      metadata: { name, namespace: this.namespace },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE', 'UPDATE'] }],
        ...spec,
      },
    };
    try {
      await this.#cluster.request('POST', this.#path, { body: object });
      this.#applied += 1;
    } catch (error) {
      this.#refusals.push(error instanceof Error ? error.message : String(error));
    }
  }

  /** Sends a dry-run create of a config map. */
  async ask(data: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.#request('POST', `${this.#configMaps}?dryRun=All`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'asked' },
      data,
    });
  }

  /** Creates a config map, or replaces its data. */
  async write(name: string, data: Readonly<Record<string, string>>): Promise<void> {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
    const status = await this.#request('PUT', `${this.#configMaps}/${name}`, object);
    if (status === 404) {
      await this.#request('POST', this.#configMaps, object);
    }
  }

  /** What became of its policies: how many were applied, refused and why, and the phases of the others. */
  async outcome(): Promise<string> {
    const items = await this.#items();
    const phases = counted(
      items.map(({ status }) => [status?.phase ?? 'no status', status?.reason].filter(Boolean).join(' ')),
    );
    const refusals = counted(this.#refusals.map(shortReason));
    const total = this.#applied + this.#refusals.length;
    return total === 0
      ? ''
      : [`${this.#refusals.length} of ${total} refused`, refusals, phases].filter(Boolean).join('; ');
  }

  /** The answers to its requests, by status. */
  get answers(): string {
    return [...this.#answers].map(([status, count]) => `${count} × ${status}`).join(', ');
  }

  /** Deletes its policies and config maps, and waits until they are gone. */
  async clear(): Promise<void> {
    const deadline = performance.now() + GONE_MS;
    for (let items = await this.#items(); items.length > 0; items = await this.#items()) {
      if (performance.now() > deadline) {
        throw new Error(`${items.length} policies of ${this.namespace} are still there after ${GONE_MS / 1000} s`);
      }
      await inTurns(items, AT_ONCE, ({ metadata }) => this.#request('DELETE', `${this.#path}/${metadata.name}`));
      await sleep(GONE_POLL_MS);
    }
    await this.#request('DELETE', this.#configMaps);
    this.#applied = 0;
    this.#refusals = [];
    this.#answers = new Map();
  }

  get #path(): string {
    return `${POLICIES}/namespaces/${this.namespace}/admissionpolicies`;
  }

  get #configMaps(): string {
    return `/api/v1/namespaces/${this.namespace}/configmaps`;
  }

  async #items(): Promise<readonly PolicyItem[]> {
    const answer = (await this.#cluster.request('GET', this.#path)).json() as { items: readonly PolicyItem[] };
    return answer.items;
  }

  /** Returns the status of the answer; 0: none. */
  async #request(method: string, path: string, body?: object): Promise<number> {
    let status: number;
    try {
      ({ status } = await this.#cluster.request(method, path, body === undefined ? {} : { body }));
    } catch (error) {
      status = error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : 0;
    }
    this.#answers.set(String(status), (this.#answers.get(String(status)) ?? 0) + 1);
    return status;
  }
}

/** What follows the names of webhook and policy. */
function shortReason(message: string): string {
  const text = message.replace(/^.*denied the request: /s, '').replaceAll(/[a-z]+-\d+/g, '…');
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text;
}

function counted(values: readonly string[]): string {
  return [...Map.groupBy(values, (value) => value)].map(([value, { length }]) => `${length} ${value}`).join(', ');
}
