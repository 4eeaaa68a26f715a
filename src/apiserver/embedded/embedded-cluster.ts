import type { Cluster } from '../../cluster/index.ts';
import type { MutableObject } from '../../resources/index.ts';
import { withNetworkPolicyStatus } from '../builtin-kinds/network-policy-status.ts';
import { SERVED_KINDS } from '../builtin-kinds/served-kinds.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { GuardedAdmission } from './admission/guarded-admission.ts';
import type { AdmissionGuard } from './admission/guarded-admission.ts';
import { WebhookAdmission } from './admission/webhook-admission.ts';
import type { WebhookIdentity } from './admission/webhook-client.ts';
import type { ServiceResolver } from './admission/webhook-target.ts';
import { Authenticator } from './authentication/authenticator.ts';
import type { StaticToken } from './authentication/authenticator.ts';
import { Reviews } from './authentication/reviews.ts';
import { SigningKey } from './authentication/signing-key.ts';
import { checkEscalation } from './authorization/escalation.ts';
import { RbacAuthorizer } from './authorization/rbac-authorizer.ts';
import { bootstrapObjects } from './bootstrap.ts';
import { Controllers } from './controllers/controllers.ts';
import { CRD_COLLECTION, CustomResources } from './kinds/custom-resources.ts';
import { EmbeddedState } from './embedded-state.ts';
import type { KindBehaviour } from './kinds/kind-behaviour.ts';
import { KindRules } from './kinds/kind-rules.ts';
import type { ClusterContext } from './objects/cluster-context.ts';
import { ObjectDeleter } from './objects/object-deletion.ts';
import { BOOKMARK_INTERVAL_MS } from './objects/object-watch.ts';
import { ObjectWrites } from './objects/object-writes.ts';
import type { Authorizer, ClusterState, UserInfo } from './request/request.ts';
import { ResourceRegistry, RegisteredResource } from './kinds/resource-registry.ts';
import { ServiceAddresses } from './service-addresses.ts';
import { MemoryJournal } from './store/journal.ts';
import type { Journal } from './store/journal.ts';
import { CollectionStore } from './store/collection-store.ts';
import { SqliteJournal } from './store/sqlite-journal.ts';
import type { Recovery } from './store/sqlite-journal.ts';
import { thaw } from './store/thaw.ts';
import { SubresourceCreator } from './subresource-creator.ts';
import { UserCluster } from './user-cluster.ts';
import type { UserClusterParts } from './user-cluster.ts';
import { WebhookConfigurationBehaviour } from './webhook-configurations.ts';

/** Options of {@link EmbeddedCluster.open}. */
export interface EmbeddedClusterOptions {
  /** The SQLite file. Default: none, the objects are in memory and lost when the cluster is closed. */
  readonly file?: string;
  /**
   * `normal` (default): acknowledged writes survive a crash of the process. A power failure may lose the newest ones, but does
   * not corrupt the file. `full`: they also survive a power failure, at about a tenth of the speed.
   */
  readonly durability?: 'normal' | 'full';
  /** Whether to rename a damaged file and start with an empty cluster. If false, a damaged file is an error. Default: true. */
  readonly isRecovering?: boolean;
  /** Called after a damaged file was renamed. */
  readonly onRecovery?: (recovery: Recovery) => void;
  /** Maximum size of the file, in pages of 4 KiB. Default: no limit but the disk. */
  readonly maxPages?: number;
  /** Minimum number of changes of a resource that are kept for watches. Default: 2,048. */
  readonly historySize?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
  /** Interval of bookmarks on watches without events. Milliseconds. Default: 60,000. */
  readonly bookmarkIntervalMs?: number;
  /** `rbac` (default), or `always-allow`: no authorization. */
  readonly authorization?: 'rbac' | 'always-allow';
  /** Static bearer tokens. Default: none. */
  readonly tokens?: readonly StaticToken[];
  /** Issuer of service account tokens. Default: `https://kubernetes.default.svc.cluster.local`. */
  readonly issuer?: string;
  /** Resolves the Services of webhooks to addresses, because there is no cluster network. Default: their cluster IPs. */
  readonly resolveService?: ServiceResolver;
  /** The client certificate with which webhooks are called. Default: none. */
  readonly webhookIdentity?: WebhookIdentity;
  /** Whether NetworkPolicy has the subresource `status` of KEP-2943. If false, stored ones are removed. Default: false. */
  readonly networkPolicyStatus?: boolean;
  /** Checks writes before validating webhooks, also those of administrators. Default: none. */
  readonly guard?: AdmissionGuard;
  /** Called for failures of webhooks whose failurePolicy is Ignore. */
  readonly onIgnoredFailure?: (webhook: string, error: Error) => void;
  /** Called for errors of the cluster's own controllers. They retry. */
  readonly onControllerError?: (error: unknown) => void;
}

/** The administrator, who has all rights. */
export const ADMIN_USER: UserInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };

/** The field manager of writes for which neither the request nor the client names one. */
const DEFAULT_FIELD_MANAGER = 'portcullis';

/** The setting with the key that signs service account tokens. */
const SIGNING_KEY = 'signing-key';

/**
 * A Kubernetes cluster without nodes, in this process: the objects, rules and watches of an API server, in memory or in an
 * SQLite file. docs/embedded.md lists the differences from a real cluster.
 */
export class EmbeddedCluster implements AsyncDisposable {
  /** The cluster as the administrator. */
  readonly admin: Cluster;
  /** Synchronous reads for authorization and admission. */
  readonly state: ClusterState;
  readonly authorizer: Authorizer;
  /** Authenticates requests. */
  readonly authenticator: Authenticator;
  readonly #context: ClusterContext;
  readonly #parts: UserClusterParts;
  readonly #admission: WebhookAdmission;
  readonly #controllers: Controllers;
  readonly #closed = new AbortController();
  #definitions: readonly ResourceDefinition[] | undefined;

  private constructor(store: CollectionStore, journal: Journal, options: EmbeddedClusterOptions) {
    const { now = Date.now, authorization = 'rbac' } = options;
    const registry = new ResourceRegistry(builtinResources(options));
    const custom = new CustomResources(store, registry, now);
    const webhooks = new WebhookConfigurationBehaviour();
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
      convert: (object, apiVersion, kind) => registry.findKind(apiVersion, kind)?.inServedVersion(object) ?? object,
      prepare: (object, { group, version, resource }) => {
        const rules = registry.find(group, version, resource)?.rules;
        rules?.prune(object);
        rules?.applyDefaults(object);
      },
      ...(options.resolveService === undefined ? {} : { resolveService: options.resolveService }),
      ...(options.webhookIdentity === undefined ? {} : { webhookIdentity: options.webhookIdentity }),
      ...(options.onIgnoredFailure === undefined ? {} : { onIgnoredFailure: options.onIgnoredFailure }),
    });
    this.#context = {
      store,
      registry,
      authorizer: this.authorizer,
      admission: options.guard === undefined ? this.#admission : new GuardedAdmission(options.guard, this.#admission),
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
    const deleter = new ObjectDeleter(this.#context);
    this.#parts = {
      context: this.#context,
      writer: new ObjectWrites(this.#context),
      deleter,
      creator: new SubresourceCreator(
        this.#context,
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
      this.#context,
      (user) => new UserCluster(this.#parts, { user, fieldManager: 'kube-controller-manager', isInternal: true }),
      options.onControllerError ?? (() => {}),
    );
    this.#controllers.start();
  }

  /**
   * Opens the cluster in a file, or creates a new one.
   *
   * @throws ClusterError `database-unavailable` when the file cannot be opened, is in use, or was not written by Portcullis;
   *   `database-corrupt` when it is damaged and `isRecovering` is false.
   */
  static async open(options: EmbeddedClusterOptions = {}): Promise<EmbeddedCluster> {
    const { file, historySize, now = Date.now } = options;
    const journal = file === undefined ? new MemoryJournal() : SqliteJournal.open({ ...options, file });
    try {
      const store = new CollectionStore({ journal, ...(historySize === undefined ? {} : { historySize }) });
      if (store.revision === 0) {
        store.commit(bootstrapObjects(now()).map((made) => ({ type: 'put', ...made, expected: undefined })));
      }
      if (options.networkPolicyStatus !== true) {
        removeStatuses(store, NETWORK_POLICIES);
      }
      return new EmbeddedCluster(store, journal, options);
    } catch (error) {
      journal.close();
      throw error;
    }
  }

  /** The cluster's unique ID, which stays the same after a restart. */
  get uid(): string {
    return this.state.get({ group: '', resource: 'namespaces' }, undefined, 'kube-system')?.metadata.uid ?? '';
  }

  /** The newest resourceVersion. */
  get revision(): number {
    return this.#context.store.revision;
  }

  /** The cluster as a user. `fieldManager` is the default of its writes. */
  as(user: UserInfo, { fieldManager = DEFAULT_FIELD_MANAGER }: { readonly fieldManager?: string } = {}): Cluster {
    return new UserCluster(this.#parts, { user, fieldManager });
  }

  /** All served kinds. Returns the same array until a kind changes. */
  definitions(): readonly ResourceDefinition[] {
    this.#definitions ??= this.#context.registry.all().map(({ definition }) => definition);
    return this.#definitions;
  }

  /** Resolves when the cluster's controllers are idle, except for retries. */
  async idle(): Promise<void> {
    await this.#controllers.idle();
  }

  /** Ends all watches and closes the file. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) {
      return;
    }
    this.#closed.abort();
    await this.#controllers.close();
    this.#admission.close();
    this.#context.store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const ALWAYS_ALLOW: Authorizer = { authorize: () => ({ allowed: true, reason: '' }) };

function builtinResources({ networkPolicyStatus = false }: EmbeddedClusterOptions): readonly RegisteredResource[] {
  const kinds = networkPolicyStatus ? withNetworkPolicyStatus(SERVED_KINDS) : SERVED_KINDS;
  return kinds.map((definition) => new RegisteredResource(definition, definition.version, new KindRules(definition)));
}

const NETWORK_POLICIES = 'networkpolicies.networking.k8s.io';

/** Removes the statuses that were stored while the kind had one. */
function removeStatuses(store: CollectionStore, collection: string): void {
  const stored = [...store.collection(collection).list()].filter(({ status }) => status !== undefined);
  if (stored.length > 0) {
    store.commit(
      stored.map((expected) => {
        const object = thaw(expected) as MutableObject;
        delete object['status'];
        return { type: 'put', collection, object, expected };
      }),
    );
  }
}
