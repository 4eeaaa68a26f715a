import type { Cluster } from '../../cluster/index.ts';
import { SERVED_KINDS } from '../builtin-kinds/served-kinds.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { WebhookAdmission } from './admission/webhook-admission.ts';
import type { ServiceResolver } from './admission/webhook-target.ts';
import { Authenticator } from './authentication/authenticator.ts';
import type { StaticToken } from './authentication/authenticator.ts';
import { Reviews } from './authentication/reviews.ts';
import { SigningKey } from './authentication/signing-key.ts';
import { checkEscalation } from './authorization/escalation.ts';
import { RbacAuthorizer } from './authorization/rbac-authorizer.ts';
import { bootstrapObjects } from './bootstrap.ts';
import { Controllers } from './controllers/controllers.ts';
import { CRD_COLLECTION, CustomResources } from './custom-resources.ts';
import { EmbeddedState } from './embedded-state.ts';
import type { KindBehaviour } from './kind-behaviour.ts';
import { KindRules } from './kind-rules.ts';
import type { Machine } from './machine.ts';
import { ObjectDeleter } from './object-deletion.ts';
import { BOOKMARK_INTERVAL_MS } from './object-watch.ts';
import { ObjectWriter } from './object-writes.ts';
import type { Authorizer, ClusterState, UserInfo } from './request.ts';
import { ResourceRegistry, ServedResource } from './resource-registry.ts';
import { ServiceAddresses } from './service-addresses.ts';
import { MemoryJournal } from './store/journal.ts';
import type { Journal } from './store/journal.ts';
import { ObjectStore } from './store/object-store.ts';
import { SqliteJournal } from './store/sqlite-journal.ts';
import type { Recovery } from './store/sqlite-journal.ts';
import { SubresourceCreator } from './subresource-creator.ts';
import { UserCluster } from './user-cluster.ts';
import type { UserClusterParts } from './user-cluster.ts';
import { WebhookConfigurations } from './webhook-configurations.ts';

/** How an embedded cluster is opened. */
export interface EmbeddedClusterOptions {
  /** The SQLite file that holds it. Absent: it is in memory, and gone when it is closed. */
  readonly file?: string;
  /**
   * `normal` (default): everything acknowledged survives the end of the process, however it ends; when the machine loses
   * power the newest changes may be lost, and nothing is torn. `full`: survives that as well, at about a tenth of the speed.
   */
  readonly durability?: 'normal' | 'full';
  /** Whether a damaged file is kept aside, and an empty cluster begins. Default: true. If not, it is an error. */
  readonly isRecovering?: boolean;
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
  /** Bearer tokens, and whose they are. Default: none. */
  readonly tokens?: readonly StaticToken[];
  /** Who issues the tokens of service accounts. Default: `https://kubernetes.default.svc.cluster.local`. */
  readonly issuer?: string;
  /** Where Services are that webhooks name: there are no nodes that would know. Default: at their cluster IP. */
  readonly resolveService?: ServiceResolver;
  /** Told about webhooks that fail and whose failures are ignored. Default: nobody is. */
  readonly onIgnoredFailure?: (webhook: string, error: Error) => void;
  /** Told what keeps the controllers inside from collecting garbage or emptying a namespace; they try again. Default: nobody is. */
  readonly onControllerError?: (error: unknown) => void;
}

/** Who the owner of the cluster is: everything is allowed. */
export const ADMIN_USER: UserInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };

/** Owner of fields when neither the request nor the client names one. */
const DEFAULT_FIELD_MANAGER = 'portcullis';

/** Where the key is kept that signs tokens of service accounts. */
const SIGNING_KEY = 'signing-key';

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
  /** Says whose requests are. */
  readonly authenticator: Authenticator;
  readonly #machine: Machine;
  readonly #parts: UserClusterParts;
  readonly #admission: WebhookAdmission;
  readonly #controllers: Controllers;
  readonly #closed = new AbortController();
  #definitions: readonly ResourceDefinition[] | undefined;

  private constructor(store: ObjectStore, journal: Journal, options: EmbeddedClusterOptions) {
    const { now = Date.now, authorization = 'rbac' } = options;
    const registry = new ResourceRegistry(builtinResources());
    const custom = new CustomResources(store, registry, now);
    const webhooks = new WebhookConfigurations();
    const state = new EmbeddedState(store);
    const rbac = new RbacAuthorizer(state);
    const isOpen = authorization === 'always-allow';
    this.state = state;
    this.authorizer = isOpen ? ALWAYS_ALLOW : rbac;
    this.authenticator = new Authenticator({
      state,
      authorizer: this.authorizer,
      key: SigningKey.open({
        load: () => journal.readSetting(SIGNING_KEY),
        save: (pem) => journal.writeSetting(SIGNING_KEY, pem),
      }),
      now,
      ...(options.tokens === undefined ? {} : { tokens: options.tokens }),
      ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
    });
    this.#admission = new WebhookAdmission({
      state,
      authorizer: this.authorizer,
      definitions: () => this.definitions(),
      convert: (object, apiVersion, kind) => registry.findKind(apiVersion, kind)?.view(object) ?? object,
      prepare: (object, { group, version, resource }) => {
        const rules = registry.find(group, version, resource)?.rules;
        rules?.prune(object);
        rules?.applyDefaults(object);
      },
      ...(options.resolveService === undefined ? {} : { resolveService: options.resolveService }),
      ...(options.onIgnoredFailure === undefined ? {} : { onIgnoredFailure: options.onIgnoredFailure }),
    });
    this.#machine = {
      store,
      registry,
      authorizer: this.authorizer,
      admission: this.#admission,
      behaviours: new Map<string, KindBehaviour>([
        [CRD_COLLECTION, custom],
        ['services', new ServiceAddresses(store)],
        ['mutatingwebhookconfigurations.admissionregistration.k8s.io', webhooks],
        ['validatingwebhookconfigurations.admissionregistration.k8s.io', webhooks],
      ]),
      checkEscalation: isOpen
        ? () => {}
        : (user, definition, object, old) =>
            checkEscalation(rbac, {
              user,
              definition,
              namespace: object.metadata.namespace,
              object,
              oldObject: old ?? null,
            }),
      now,
    };
    const deleter = new ObjectDeleter(this.#machine);
    this.#parts = {
      machine: this.#machine,
      writer: new ObjectWriter(this.#machine),
      deleter,
      creator: new SubresourceCreator(
        this.#machine,
        deleter,
        new Reviews({ state, rbac, authorizer: this.authorizer, authenticator: this.authenticator }),
      ),
      lifetime: {
        closed: this.#closed.signal,
        bookmarkIntervalMs: options.bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
      },
    };
    this.admin = this.as(ADMIN_USER);
    registry.onChange(() => (this.#definitions = undefined));
    custom.start();
    this.#controllers = new Controllers(
      this.#machine,
      (user) => new UserCluster(this.#parts, { user, fieldManager: 'kube-controller-manager', isInternal: true }),
      options.onControllerError ?? (() => {}),
    );
    this.#controllers.start();
  }

  /**
   * Opens the cluster in a file, or makes one.
   *
   * @throws ClusterError `database-unavailable` when the file cannot be opened, is in use, or is not one of ours;
   *   `database-corrupt` when it is damaged and shall not be kept aside.
   */
  static async open(options: EmbeddedClusterOptions = {}): Promise<EmbeddedCluster> {
    const { file, historySize, now = Date.now } = options;
    const journal = file === undefined ? new MemoryJournal() : SqliteJournal.open({ ...options, file });
    try {
      const store = new ObjectStore({ journal, ...(historySize === undefined ? {} : { historySize }) });
      if (store.revision === 0) {
        store.commit(bootstrapObjects(now()).map((made) => ({ type: 'put', ...made, expected: undefined })));
      }
      return new EmbeddedCluster(store, journal, options);
    } catch (error) {
      journal.close();
      throw error;
    }
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
    return new UserCluster(this.#parts, { user, fieldManager });
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

  /** Resolves when the controllers of the cluster have nothing left to do but what failed and waits. */
  async idle(): Promise<void> {
    await this.#controllers.idle();
  }

  /** Ends all watches and lets go of the file. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) {
      return;
    }
    this.#closed.abort();
    await this.#controllers.close();
    this.#admission.close();
    this.#machine.store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const ALWAYS_ALLOW: Authorizer = { authorize: () => ({ allowed: true, reason: '' }) };

function builtinResources(): readonly ServedResource[] {
  return SERVED_KINDS.map(
    (definition) => new ServedResource(definition, definition.version, new KindRules(definition)),
  );
}
