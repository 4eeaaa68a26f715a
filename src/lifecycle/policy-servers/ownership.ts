// Whose a PolicyServer is: Portcullis', or another controller's that has the same kinds. What is another's is never touched.
import {
  ANNOTATIONS,
  type KubernetesObject,
  kubernetesKind,
  POLICY_SERVER_LABEL,
  POLICY_SERVERS,
  type PolicyServer,
  type ResourceType,
} from '../../resources/index.ts';
import type { ObjectCache, SharedCaches } from '../../runtime/index.ts';
import { MANAGED_BY_SELECTOR } from '../managed-by.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import { withOwnFieldsOnly } from './applied-object.ts';
import { isObjectOf, policyServerObjectName } from './policy-server-names.ts';

/** What Kubewarden's controller puts on each PolicyServer that it reconciles. */
export const KUBEWARDEN_FINALIZERS: readonly string[] = ['kubewarden.io/finalizer', 'kubewarden'];

/**
 * Why a PolicyServer is another controller's; undefined when it is ours.
 *
 * The annotation `portcullis.dev/take-over` decides, whichever way. Else it is ours if we run it already; and another's if
 * somebody else runs a Deployment of its name, or Kubewarden's finalizer is on it. What API servers are told to ask is ours to
 * bring back, also when all that ran for it is gone.
 *
 * @param deployment of the name of ours, in the namespace of the product, whoever made it
 * @param isAsked whether a webhook configuration of ours is there for it
 */
export function foreignReason(
  { metadata }: Pick<PolicyServer, 'metadata'>,
  deployment?: Pick<KubernetesObject, 'metadata'>,
  isAsked = false,
): string | undefined {
  const name = metadata.name ?? '';
  const decision = metadata.annotations?.[ANNOTATIONS.takeOver];
  if (decision === 'true') {
    return undefined;
  }
  if (decision === 'false') {
    return `annotation ${ANNOTATIONS.takeOver} says that it is left to others`;
  }
  if (deployment !== undefined) {
    return isObjectOf(deployment, name)
      ? undefined
      : `somebody else runs Deployment ${deployment.metadata.namespace}/${deployment.metadata.name}`;
  }
  if (isAsked) {
    return undefined;
  }
  const finalizer = metadata.finalizers?.find((one) => KUBEWARDEN_FINALIZERS.includes(one));
  return finalizer === undefined ? undefined : `it has the finalizer ${finalizer} of Kubewarden's controller`;
}

/** Whether a PolicyServer is Portcullis' to run. See {@link foreignReason}. */
export function isOurs(
  server: Pick<PolicyServer, 'metadata'>,
  deployment?: Pick<KubernetesObject, 'metadata'>,
): boolean {
  return foreignReason(server, deployment) === undefined;
}

/** `apps/v1` Deployment, as far as it is looked at. */
export interface Deployment extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly serviceAccountName?: string } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

/** All Deployments in the namespace of the product: one that somebody else made may have any labels. */
export function deploymentsOf(caches: SharedCaches, namespace: string): ObjectCache<Deployment> {
  const type = kubernetesKind('apps/v1', 'Deployment') as ResourceType<Deployment>;
  return caches.cache(type, { namespace, transform: withOwnFieldsOnly });
}

export interface PolicyServerOwnershipOptions {
  readonly caches: SharedCaches;
  /** Of the product. */
  readonly namespace: string;
}

/** Whose the PolicyServers of a cluster are, now. */
export class PolicyServerOwnership {
  readonly #servers: ObjectCache<PolicyServer>;
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

  /** False only when there is a PolicyServer of this name, and it is another controller's. */
  isOurs(policyServer: string): boolean {
    const server = this.#servers.get({ name: policyServer });
    return server === undefined || this.foreignReason(server) === undefined;
  }

  /** See the function of the same name. */
  foreignReason(server: Pick<PolicyServer, 'metadata'>): string | undefined {
    const { name = '' } = server.metadata;
    const key = { namespace: this.#namespace, name: policyServerObjectName(name) };
    return foreignReason(server, this.#deployments.get(key), this.#isAsked(name));
  }

  #isAsked(name: string): boolean {
    return this.#configurations.some((cache) => cache.list().some((configuration) => askedBy(configuration) === name));
  }

  /** The PolicyServers that processes of ours run for: those that are ours, and those that are gone and still needed. */
  names(): readonly string[] {
    const ours = this.#servers
      .list()
      .filter((server) => this.foreignReason(server) === undefined)
      .map(({ metadata }) => metadata.name ?? '');
    const running = this.#deployments.list().flatMap((deployment) => serverOf(deployment) ?? []);
    return [...new Set([...ours, ...running])].toSorted();
  }

  /** The service accounts that processes of ours run as, in the namespace of the product. */
  serviceAccounts(): readonly string[] {
    const ours = this.#deployments.list().filter((deployment) => serverOf(deployment) !== undefined);
    return [...new Set(ours.flatMap((deployment) => accountOf(deployment) ?? []))].toSorted();
  }

  /**
   * Tells when {@link names}, {@link isOurs} or {@link serviceAccounts} may answer otherwise, with the PolicyServer that it is
   * about. Returns what ends it.
   */
  subscribe(listener: (policyServer: string) => void): () => void {
    const states = new Map<string, string>();
    const look = (name: string): void => {
      const state = this.#stateOf(name);
      if (states.get(name) !== state) {
        states.set(name, state);
        listener(name);
      }
    };
    const ends = [
      this.#servers.subscribe(({ before, after }) => look((after ?? before)?.metadata.name ?? '')),
      this.#deployments.subscribe(({ before, after }) => {
        const deployment = after ?? before;
        const own = deployment === undefined ? undefined : serverOf(deployment);
        if (own !== undefined) {
          look(own);
        }
        for (const { metadata } of this.#servers.list()) {
          if (policyServerObjectName(metadata.name ?? '') === deployment?.metadata.name) {
            look(metadata.name ?? '');
          }
        }
      }),
      ...this.#configurations.map((cache) =>
        cache.subscribe(({ before, after }) => {
          const configuration = after ?? before;
          const name = configuration === undefined ? undefined : askedBy(configuration);
          if (name !== undefined) {
            look(name);
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

/** The PolicyServer that we made a Deployment for. A copy under another name is not ours, whatever its labels say. */
function serverOf(deployment: Deployment): string | undefined {
  const { labels, name } = deployment.metadata;
  const server = labels?.[POLICY_SERVER_LABEL];
  const isOurs = server !== undefined && name === policyServerObjectName(server) && isObjectOf(deployment, server);
  return isOurs ? server : undefined;
}

function accountOf({ spec }: Deployment): string | undefined {
  return spec?.template?.spec?.serviceAccountName;
}

/** The PolicyServer that a webhook configuration of ours asks. */
function askedBy({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.[POLICY_SERVER_LABEL];
}
