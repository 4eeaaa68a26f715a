import { KUBERNETES_KINDS } from '../../resources/index.ts';
import type { ResourceDefinition } from '../../resources/index.ts';
import type { Cluster } from '../cluster.ts';
import { RbacAuthorizer } from './authorization/rbac-authorizer.ts';
import { bootstrapObjects } from './bootstrap.ts';
import { EmbeddedState } from './embedded-state.ts';
import { KindRules } from './kind-rules.ts';
import { namespaceBehaviour } from './kind-behaviour.ts';
import type { Caller, Machine } from './machine.ts';
import { ObjectDeleter } from './object-deletion.ts';
import { BOOKMARK_INTERVAL_MS } from './object-watch.ts';
import { ObjectWriter } from './object-writes.ts';
import type { Admission, Authorizer, ClusterState, UserInfo } from './request.ts';
import { ResourceRegistry, ServedResource } from './resource-registry.ts';
import { MemoryJournal } from './store/journal.ts';
import { ObjectStore } from './store/object-store.ts';
import { SqliteJournal } from './store/sqlite-journal.ts';
import type { Recovery } from './store/sqlite-journal.ts';
import { SubresourceCreator } from './subresource-creator.ts';
import { UserCluster } from './user-cluster.ts';
import type { UserClusterParts } from './user-cluster.ts';

/** How an embedded cluster is opened. */
export interface EmbeddedClusterOptions {
  /** The SQLite file that holds it. Absent: it is in memory, and gone when it is closed. */
  readonly file?: string;
  /**
   * `normal` (default): everything acknowledged survives the end of the process, however it ends; when the machine loses
   * power the newest changes may be lost, and nothing is torn. `full`: survives that as well, at about a tenth of the speed.
   */
  readonly durability?: 'normal' | 'full';
  /** Called when the file was damaged: it is kept aside, and an empty cluster begins. */
  readonly onRecovery?: (recovery: Recovery) => void;
  /** Most pages of 4 KiB that the file may have. Default: no limit but the disk's. */
  readonly maxPages?: number;
  /** How many changes of a resource watchers can go back to, at least. Default: 2,048. */
  readonly historySize?: number;
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number;
  /** How often a quiet watch tells its version, where that is wanted. Default: 60,000. */
  readonly bookmarkIntervalMs?: number;
  /** `rbac` (default) or nobody is asked what they may do. */
  readonly authorization?: 'rbac' | 'always-allow';
}

/** Who the owner of the cluster is: everything is allowed. */
export const ADMIN_USER: UserInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };

/** Owner of fields when neither the request nor the client names one. */
const DEFAULT_FIELD_MANAGER = 'portcullis';

/**
 * A Kubernetes cluster without nodes, inside this process: an API server's objects, rules and watches, in memory or in one
 * SQLite file. docs/embedded.md says what differs from a real one.
 */
export class EmbeddedCluster implements AsyncDisposable {
  /** What the owner sees. */
  readonly admin: Cluster;
  /** What authorisation and admission read, at once. */
  readonly state: ClusterState;
  readonly authorizer: Authorizer;
  readonly #machine: Machine;
  readonly #parts: UserClusterParts;
  readonly #closed = new AbortController();
  #definitions: readonly ResourceDefinition[] | undefined;

  private constructor(machine: Machine, state: ClusterState, bookmarkIntervalMs: number) {
    this.#machine = machine;
    this.state = state;
    this.authorizer = machine.authorizer;
    this.#parts = {
      machine,
      writer: new ObjectWriter(machine),
      deleter: new ObjectDeleter(machine),
      creator: new SubresourceCreator(),
      lifetime: { closed: this.#closed.signal, bookmarkIntervalMs },
    };
    this.admin = this.as(ADMIN_USER);
    machine.registry.onChange(() => (this.#definitions = undefined));
  }

  static async open(options: EmbeddedClusterOptions = {}): Promise<EmbeddedCluster> {
    const { now = Date.now, bookmarkIntervalMs = BOOKMARK_INTERVAL_MS } = options;
    const journal =
      options.file === undefined ? new MemoryJournal() : SqliteJournal.open({ ...options, file: options.file });
    const store = new ObjectStore({
      journal,
      ...(options.historySize === undefined ? {} : { historySize: options.historySize }),
    });
    const registry = new ResourceRegistry(
      KUBERNETES_KINDS.map((definition) => new ServedResource(definition, definition.version, new KindRules(definition))),
    );
    const state = new EmbeddedState(store);
    const machine: Machine = {
      store,
      registry,
      authorizer: options.authorization === 'always-allow' ? ALWAYS_ALLOW : new RbacAuthorizer(state),
      admission: NO_ADMISSION,
      behaviours: new Map([['namespaces', namespaceBehaviour]]),
      now,
    };
    if (store.revision === 0) {
      store.commit(
        bootstrapObjects(now()).map(({ collection, object }) => ({ type: 'put', collection, object, expected: undefined })),
      );
    }
    return new EmbeddedCluster(machine, state, bookmarkIntervalMs);
  }

  /** Names this cluster, for as long as it exists. */
  get uid(): string {
    return this.state.get({ group: '', resource: 'namespaces' }, undefined, 'kube-system')?.metadata.uid ?? '';
  }

  /** The newest resourceVersion. */
  get revision(): number {
    return this.#machine.store.revision;
  }

  /** The cluster as a user sees it. `fieldManager` owns the fields of requests that name nobody. */
  as(user: UserInfo, { fieldManager = DEFAULT_FIELD_MANAGER }: { readonly fieldManager?: string } = {}): Cluster {
    const caller: Caller = { user, fieldManager };
    return new UserCluster(this.#parts, caller);
  }

  /** All that is served; the same list as long as nothing of it changes. */
  definitions(): readonly ResourceDefinition[] {
    this.#definitions ??= this.#machine.registry.all().map(({ definition }) => definition);
    return this.#definitions;
  }

  /** Calls the listener whenever other kinds are served than before. Returns how to stop that. */
  onDefinitionsChange(listener: () => void): () => void {
    return this.#machine.registry.onChange(listener);
  }

  /** Resolves when the controllers of the cluster have nothing left to do. */
  async idle(): Promise<void> {
    await Promise.resolve();
  }

  /** Ends all watches and lets go of the file. */
  async close(): Promise<void> {
    if (!this.#closed.signal.aborted) {
      this.#closed.abort();
      this.#machine.store.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const ALWAYS_ALLOW: Authorizer = { authorize: () => ({ allowed: true, reason: '' }) };

const NO_ADMISSION: Admission = {
  mutate: async ({ object }) => object,
  validate: async () => {},
};
