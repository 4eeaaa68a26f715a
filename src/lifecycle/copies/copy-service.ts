// What every controller runs for copies of modules: the keeper, the port that gives them out, and the object with its address.
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { type ControlTls, CopiesEndpoint } from '../../control/index.ts';
import { hostText } from '../../https/index.ts';
import { ModuleCopies, PRODUCT_VERSION } from '../../modules/index.ts';
import {
  CONTROLLER_REPLICAS,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
  type ControllerReplica,
  timeText,
} from '../../resources/index.ts';
import { ObjectCache, type Runnable, type SharedCaches } from '../../runtime/index.ts';
import { type ControllerIdentity, registerController } from './controller-registration.ts';
import { CopyDirectory } from './copy-directory.ts';
import { ModuleKeeper } from './module-keeper.ts';
import { PolicyCopies } from './policy-copies.ts';
import { WantedCopies } from './wanted-copies.ts';

/** Space for copies by default: as large as the cache of a policy server. Bytes. */
export const DEFAULT_COPIES_BYTES = 1024 * 1024 * 1024;

/** Where a controller keeps copies, and how others reach them. */
export interface CopySettings {
  /** Folder of this process only. */
  readonly folder: string;
  /** Space for copies. Bytes. */
  readonly maxBytes: number;
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  /** The host for others. Default: `host`. */
  readonly advertise?: string;
  readonly identity: ControllerIdentity;
}

export interface CopyServiceOptions extends CopySettings {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The namespace of the product. */
  readonly namespace: string;
  readonly tls: ControlTls;
  readonly log: Logger;
}

export class CopyService implements Runnable {
  readonly name = 'module copies';
  /** Resolves when the port listens. */
  readonly ready: Promise<void>;
  /** What the leader knows about the copies of all controllers. */
  readonly directory: CopyDirectory;
  /** The same, for the status of policies. */
  readonly ofPolicies: PolicyCopies;
  /** The controllers. Their kind may be missing during an upgrade, which nothing else waits for. */
  readonly #controllers: ObjectCache<ControllerReplica>;
  readonly #options: CopyServiceOptions;
  readonly #keeper: ModuleKeeper;
  readonly #listening = Promise.withResolvers<void>();

  constructor(options: CopyServiceOptions) {
    const { caches, cluster, namespace, folder, maxBytes, tls, log } = options;
    this.#options = options;
    this.ready = this.#listening.promise;
    this.ready.catch(() => undefined);
    const wanted = new WantedCopies();
    const controllers = new ObjectCache({ cluster, type: CONTROLLER_REPLICAS, namespace, log });
    this.#controllers = controllers;
    this.directory = new CopyDirectory({ cluster, controllers, tls, log });
    this.ofPolicies = new PolicyCopies({ directory: this.directory, wanted });
    this.#keeper = new ModuleKeeper({
      revisions: caches.cache(POLICY_REVISIONS, { namespace }),
      replicas: caches.cache(POLICY_SERVER_REPLICAS, { namespace }),
      namespace,
      wanted,
      copies: new ModuleCopies(folder),
      maxBytes,
      tls,
      log,
    });
  }

  /** Runs until `signal` is aborted. @throws HttpsError 'port-busy', 'tls-invalid' */
  async start(signal: AbortSignal): Promise<void> {
    const { cluster, namespace, host, port, advertise = host, identity, tls, log } = this.#options;
    const endpoint = new CopiesEndpoint({ host, port, tls, source: this.#keeper, log });
    try {
      const controlAddress = `${hostText(advertise)}:${await endpoint.start()}`;
      this.#listening.resolve();
      // Policy servers that see the object ask for modules again.
      await this.#keeper.open(signal);
      const controllers = this.#controllers;
      const started = { controlAddress, version: PRODUCT_VERSION, startedAt: timeText(Date.now()) };
      const registered = { cluster, namespace, identity, ...started, controllers, log };
      await Promise.all([
        controllers.start(signal),
        registerController(registered, signal),
        this.#keeper.start(signal),
      ]);
    } catch (error) {
      this.#listening.reject(error);
      throw error;
    } finally {
      await endpoint.stop();
    }
  }
}
