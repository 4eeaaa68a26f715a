// Whether a PolicyServer belongs to Portcullis, or to another controller with the same kinds, whose PolicyServers are
// never changed.
import {
  ANNOTATIONS,
  knownKind,
  type KubernetesObject,
  KUBEWARDEN_FINALIZERS,
  MANAGED_BY_SELECTOR,
  POLICY_SERVER_LABEL,
  POLICY_SERVERS,
  type PolicyServerObject,
} from '../../resources/index.ts';
import type { ObjectCache, SharedCaches } from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { withOwnFieldsOnly } from './applied-object.ts';
import { isObjectOf, policyServerObjectName } from '../certificates/policy-server-names.ts';

/**
 * Why a PolicyServer belongs to another controller; undefined if it is ours.
 *
 * The annotation `portcullis.dev/take-over` decides, if set. Otherwise a PolicyServer is ours if we already run it, and
 * foreign if another controller runs a Deployment of its name, or Kubewarden's finalizer is set. A PolicyServer with a
 * webhook configuration of ours is ours even if all its other objects are gone: it must be restored.
 *
 * @param deployment of our name for it, in the namespace of Portcullis, by any creator
 * @param hasWebhooks whether it has a webhook configuration of ours
 */
export function foreignReason(
  { metadata }: Pick<PolicyServerObject, 'metadata'>,
  deployment?: Pick<KubernetesObject, 'metadata'>,
  hasWebhooks = false,
): string | undefined {
  const name = metadata.name ?? '';
  const decision = metadata.annotations?.[ANNOTATIONS.takeOver];
  if (decision === 'true') {
    return undefined;
  }
  if (decision === 'false') {
    return `annotation ${ANNOTATIONS.takeOver} leaves it to another controller`;
  }
  if (deployment !== undefined) {
    return isObjectOf(deployment, name)
      ? undefined
      : `another controller runs Deployment ${deployment.metadata.namespace}/${deployment.metadata.name}`;
  }
  if (hasWebhooks) {
    return undefined;
  }
  const finalizer = kubewardenFinalizer({ metadata });
  return finalizer === undefined ? undefined : `it has the finalizer ${finalizer} of Kubewarden's controller`;
}

/** The finalizer of Kubewarden's controller, which still manages the PolicyServer, or once did. */
export function kubewardenFinalizer({ metadata }: Pick<PolicyServerObject, 'metadata'>): string | undefined {
  return metadata.finalizers?.find((one) => KUBEWARDEN_FINALIZERS.has(one));
}

/** `apps/v1` Deployment: the fields that are read. */
export interface Deployment extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly serviceAccountName?: string } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

/** All Deployments in the namespace of Portcullis: those of other creators may have any labels. */
export function deploymentsOf(caches: SharedCaches, namespace: string): ObjectCache<Deployment> {
  const type = knownKind<Deployment>('apps/v1', 'Deployment');
  return caches.cache(type, { namespace, transform: withOwnFieldsOnly });
}

export interface PolicyServerOwnershipOptions {
  readonly caches: SharedCaches;
  /** Namespace of Portcullis. */
  readonly namespace: string;
}

/** Ownership of the PolicyServers in the cluster. */
export class PolicyServerOwnership {
  readonly #servers: ObjectCache<PolicyServerObject>;
  readonly #deployments: ObjectCache<Deployment>;
  readonly #configurations: readonly ObjectCache[];
  readonly #namespace: string;

  constructor({ caches, namespace }: PolicyServerOwnershipOptions) {
    const labelSelector = MANAGED_BY_SELECTOR;
    this.#servers = caches.cache(POLICY_SERVERS);
    this.#configurations = [
      caches.cache<KubernetesObject>(VALIDATING_WEBHOOKS, { labelSelector }),
      caches.cache<KubernetesObject>(MUTATING_WEBHOOKS, { labelSelector }),
    ];
    this.#deployments = deploymentsOf(caches, namespace);
    this.#namespace = namespace;
  }

  /** False only if the PolicyServer exists and belongs to another controller. */
  isOurs(policyServer: string): boolean {
    const server = this.#servers.get({ name: policyServer });
    return server === undefined || this.foreignReason(server) === undefined;
  }

  /** See {@link foreignReason}. */
  foreignReason(server: Pick<PolicyServerObject, 'metadata'>): string | undefined {
    const { name = '' } = server.metadata;
    const key = { namespace: this.#namespace, name: policyServerObjectName(name) };
    return foreignReason(server, this.#deployments.get(key), this.#hasWebhooks(name));
  }

  #hasWebhooks(name: string): boolean {
    return this.#configurations.some((cache) =>
      cache.list().some((configuration) => policyServerOf(configuration) === name),
    );
  }

  /** The PolicyServers that we run: our own, and deleted ones that policies still need. */
  names(): readonly string[] {
    const ours = this.#servers
      .list()
      .filter((server) => this.foreignReason(server) === undefined)
      .map(({ metadata }) => metadata.name ?? '');
    const running = this.#deployments.list().flatMap((deployment) => serverOf(deployment) ?? []);
    return [...new Set([...ours, ...running])].toSorted();
  }

  /** The service accounts of our processes, in the namespace of Portcullis. */
  serviceAccounts(): readonly string[] {
    const ours = this.#deployments.list().filter((deployment) => serverOf(deployment) !== undefined);
    return [...new Set(ours.flatMap((deployment) => accountOf(deployment) ?? []))].toSorted();
  }

  /**
   * Calls `listener` with a PolicyServer when {@link names}, {@link isOurs} or {@link serviceAccounts} may have changed
   * for it. Returns a function that unsubscribes.
   */
  subscribe(listener: (policyServer: string) => void): () => void {
    const states = new Map<string, string>();
    const check = (name: string): void => {
      const state = this.#stateOf(name);
      if (states.get(name) !== state) {
        states.set(name, state);
        listener(name);
      }
    };
    const ends = [
      this.#servers.subscribe(({ before, after }) => check((after ?? before)?.metadata.name ?? '')),
      this.#deployments.subscribe(({ before, after }) => {
        const deployment = after ?? before;
        const own = deployment === undefined ? undefined : serverOf(deployment);
        if (own !== undefined) {
          check(own);
        }
        for (const { metadata } of this.#servers.list()) {
          if (policyServerObjectName(metadata.name ?? '') === deployment?.metadata.name) {
            check(metadata.name ?? '');
          }
        }
      }),
      ...this.#configurations.map((cache) =>
        cache.subscribe(({ before, after }) => {
          const configuration = after ?? before;
          const name = configuration === undefined ? undefined : policyServerOf(configuration);
          if (name !== undefined) {
            check(name);
          }
        }),
      ),
    ];
    return () => {
      for (const end of ends) {
        end();
      }
    };
  }

  #stateOf(name: string): string {
    const key = { namespace: this.#namespace, name: policyServerObjectName(name) };
    const server = this.#servers.get({ name });
    const deployment = this.#deployments.get(key);
    const isRunning = deployment !== undefined && serverOf(deployment) === name;
    const account = isRunning ? accountOf(deployment) : undefined;
    return `${server === undefined ? 'none' : (this.foreignReason(server) ?? 'ours')} ${isRunning} ${account ?? ''}`;
  }
}

/** The PolicyServer of one of our Deployments. A copy under another name does not count, even with our labels. */
function serverOf(deployment: Deployment): string | undefined {
  const { labels, name } = deployment.metadata;
  const server = labels?.[POLICY_SERVER_LABEL];
  const isOurs = server !== undefined && name === policyServerObjectName(server) && isObjectOf(deployment, server);
  return isOurs ? server : undefined;
}

function accountOf({ spec }: Deployment): string | undefined {
  return spec?.template?.spec?.serviceAccountName;
}

/** The PolicyServer of a webhook configuration of ours. */
function policyServerOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.[POLICY_SERVER_LABEL];
}
