// The steps of an uninstallation. Each leaves the cluster without a webhook of ours that nobody answers, whatever the next one
// does; each can be done again.
import { ApiError, type KubernetesCluster, listAll, unlessGone } from '../../cluster/index.ts';
import {
  keyOf,
  type KubernetesObject,
  OWN_KINDS,
  POLICIES_GROUP,
  POLICY_SERVERS,
  type ResourceType,
} from '../../resources/index.ts';
import { LEASES } from '../../runtime/index.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { waitUntilGone } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import {
  CLUSTER_BINDINGS,
  CLUSTER_ROLES,
  CRDS,
  DEPLOYMENTS,
  NAMESPACES,
  OWNED_KINDS,
  PODS,
  ROLE_BINDINGS,
  WEBHOOK_CONFIGURATIONS,
} from './kinds.ts';
import { kubewardenControllers } from './kubewarden.ts';
import { PASSED_ON } from './objects/access-objects.ts';
import { CONTROLLER } from './objects/naming.ts';
import { isOurConfiguration } from './our-configurations.ts';
import { removeKubewardenFinalizers } from './remove-finalizers.ts';
import { checkNamespace, checkRights } from './preflight.ts';
import { type Right, rightsTo } from './rights.ts';

/** What is ours: what was installed, and what the controller made. */
const INSTALLED = 'app.kubernetes.io/part-of=portcullis';
const MADE = 'app.kubernetes.io/managed-by=portcullis';
const CONTROLLER_PODS = 'app.kubernetes.io/name=portcullis,app.kubernetes.io/component=controller';
/** Kinds that hold what the controller keeps, and nobody writes by hand. */
const RECORDS = OWN_KINDS.filter(({ group }) => group !== POLICIES_GROUP);
const POLICIES = OWN_KINDS.filter(({ group }) => group === POLICIES_GROUP);
/** How often webhooks are looked for again: what a controller was writing when its rights went comes once. */
const SWEEPS = 5;

interface RemovalOptions {
  readonly isDryRun: boolean;
  /** Nothing but webhooks, and what would put them back. */
  readonly webhooksOnly: boolean;
  /** Also policies and PolicyServers, all of them. */
  readonly policies: boolean;
  /** Also the kinds. */
  readonly definitions: boolean;
  readonly keepsNamespace: boolean;
  /** Of each wait. */
  readonly timeoutMs: number;
}

/** Writes what it does to standard output, line by line, and what is left to standard error. */
export class Removal {
  readonly #cluster: KubernetesCluster;
  readonly #namespace: string;
  readonly #options: RemovalOptions;
  readonly #progress = new Progress();
  /** What is there still in a dry run, though it was told to go. */
  readonly #told = new Set<string>();

  constructor(cluster: KubernetesCluster, namespace: string, options: RemovalOptions) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#options = options;
  }

  /** @throws CliError when rights are missing or it is elsewhere (nothing was changed), or something does not go; ApiError, ClusterError */
  async run(): Promise<void> {
    const { webhooksOnly } = this.#options;
    await this.#check();
    await this.#removeWebhooks(1);
    // Without rights a controller puts nothing back, also one that does not end: on a node that cannot be reached.
    await this.#remove(CLUSTER_BINDINGS, { name: CONTROLLER });
    await this.#remove(ROLE_BINDINGS, { namespace: this.#namespace, name: CONTROLLER });
    // Before the roles that it is put together from: Kubernetes writes it anew when one of those goes, and so may make it again.
    await this.#remove(CLUSTER_ROLES, { name: PASSED_ON });
    await this.#removeController();
    await this.#removeWebhooks(SWEEPS);
    if (!webhooksOnly) {
      await this.#removeTheRest();
    }
  }

  async #removeTheRest(): Promise<void> {
    await this.#removeLabelled(CLUSTER_BINDINGS);
    await this.#removeLabelled(DEPLOYMENTS, this.#namespace);
    await this.#remove(LEASES, { namespace: this.#namespace, name: CONTROLLER });
    for (const type of OWNED_KINDS) {
      await this.#removeLabelled(type, this.#namespace);
    }
    for (const type of RECORDS) {
      await this.#removeAll(type, await this.#labelled(type, this.#namespace));
    }
    await this.#removeLabelled(CLUSTER_ROLES);
    await this.#removePolicies();
    await this.#removeDefinitions();
    await this.#removeNamespace();
    await this.#tellWhatIsLeft();
  }

  async #check(): Promise<void> {
    const { policies, definitions, keepsNamespace } = this.#options;
    await checkNamespace(this.#cluster, this.#namespace);
    const verbs = ['list', 'delete'];
    if (this.#options.webhooksOnly) {
      // All that is to be done: a controller that goes on puts back what is removed.
      const rights: Right[] = [
        ...WEBHOOK_CONFIGURATIONS.flatMap((type) => rightsTo(verbs, type)),
        ...rightsTo(['delete'], CLUSTER_BINDINGS, undefined, CONTROLLER),
        ...rightsTo(['delete'], ROLE_BINDINGS, this.#namespace, CONTROLLER),
        ...rightsTo(['delete'], CLUSTER_ROLES, undefined, PASSED_ON),
        ...rightsTo(['delete'], DEPLOYMENTS, this.#namespace, CONTROLLER),
        ...rightsTo(['get', 'list', 'watch'], PODS, this.#namespace),
      ];
      await checkRights(this.#cluster, rights, 'remove the webhooks and stop the controller');
      return;
    }
    const rights: Right[] = [
      ...[...WEBHOOK_CONFIGURATIONS, CLUSTER_BINDINGS, CLUSTER_ROLES].flatMap((type) => rightsTo(verbs, type)),
      ...[DEPLOYMENTS, ...OWNED_KINDS, ...RECORDS].flatMap((type) => rightsTo(verbs, type, this.#namespace)),
      ...rightsTo(['delete'], LEASES, this.#namespace),
      ...rightsTo(['get', 'list', 'watch'], PODS, this.#namespace),
      ...(policies ? POLICIES.flatMap((type) => rightsTo([...verbs, 'patch'], type)) : []),
      ...(definitions ? rightsTo(['get', 'delete'], CRDS) : []),
      ...(keepsNamespace ? [] : rightsTo(['get', 'delete'], NAMESPACES)),
    ];
    await checkRights(this.#cluster, rights, 'uninstall');
    if (policies) {
      const [kubewarden] = await kubewardenControllers(this.#cluster);
      if (kubewarden !== undefined) {
        throw new CliError(
          `Kubewarden's controller runs in namespace ${kubewarden.metadata.namespace}: policies and PolicyServers may be its own`,
          { hint: 'Nothing was changed. Leave out --delete-policies, or remove Kubewarden first.' },
        );
      }
    }
  }

  /** Until none is there: one that a controller was writing comes back. */
  async #removeWebhooks(sweeps: number): Promise<void> {
    for (let sweep = 1; sweep <= sweeps; sweep++) {
      let removed = 0;
      for (const type of WEBHOOK_CONFIGURATIONS) {
        const ours = (await this.#labelled(type)).filter((one) => isOurConfiguration(one, this.#namespace));
        await this.#removeAll(type, ours);
        removed += ours.length;
      }
      if (removed === 0 || this.#options.isDryRun) {
        return;
      }
    }
  }

  async #removeController(): Promise<void> {
    await this.#remove(DEPLOYMENTS, { namespace: this.#namespace, name: CONTROLLER });
    if (this.#options.isDryRun) {
      return;
    }
    const pods = await this.#labelled(PODS, this.#namespace, CONTROLLER_PODS);
    const deadline = AbortSignal.timeout(this.#options.timeoutMs);
    await this.#progress.during(`Waiting for ${pods.length} pods of the controller to end`, async () => {
      for (const pod of pods) {
        try {
          await waitUntilGone(this.#cluster, PODS, keyOf(pod), deadline, pod.metadata.uid);
        } catch (error) {
          if (!deadline.aborted) {
            throw error;
          }
          this.#progress.line(
            `Warning: pod ${pod.metadata.name} does not end. It has no rights any more; its node may be gone.`,
          );
        }
      }
    });
  }

  /** How many were deleted: all of a kind that have one of the labels of ours. */
  async #removeLabelled(type: ResourceType, namespace?: string): Promise<number> {
    const found = new Map<string, KubernetesObject>();
    for (const selector of [INSTALLED, MADE]) {
      for (const object of await this.#labelled(type, namespace, selector)) {
        found.set(object.metadata.name ?? '', object);
      }
    }
    await this.#removeAll(type, found.values());
    return found.size;
  }

  async #removeAll(type: ResourceType, objects: Iterable<KubernetesObject>): Promise<void> {
    for (const object of objects) {
      await this.#remove(type, keyOf(object));
    }
  }

  /** None where the kind is not served: it may never have been installed. */
  async #labelled(type: ResourceType, namespace?: string, selector?: string): Promise<readonly KubernetesObject[]> {
    const scope = namespace === undefined ? {} : { namespace };
    const list = listAll(this.#cluster, type, {
      ...scope,
      ...(selector === undefined ? {} : { labelSelector: selector }),
    });
    return (await unlessGone(list))?.items ?? [];
  }

  async #remove(type: ResourceType, key: { readonly namespace?: string; readonly name: string }): Promise<void> {
    const { isDryRun } = this.#options;
    const name = objectName(type, key.name);
    if (isDryRun && this.#told.has(name)) {
      return;
    }
    this.#told.add(name);
    try {
      await this.#cluster.delete(type, key, { propagationPolicy: 'Background', dryRun: isDryRun });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) {
        return;
      }
      throw error;
    }
    process.stdout.write(`${name} deleted${isDryRun ? ' (dry run)' : ''}\n`);
  }

  async #removePolicies(): Promise<void> {
    if (!this.#options.policies) {
      return;
    }
    // PolicyServers last, as somebody may watch whose policies they have.
    for (const type of POLICIES.toSorted((a, b) => Number(a === POLICY_SERVERS) - Number(b === POLICY_SERVERS))) {
      for (const object of await this.#labelled(type)) {
        if (!this.#options.isDryRun) {
          // Its controller is not there to take them away.
          await removeKubewardenFinalizers(this.#cluster, type, object);
        }
        await this.#remove(type, keyOf(object));
      }
    }
  }

  async #removeDefinitions(): Promise<void> {
    if (!this.#options.definitions) {
      return;
    }
    for (const { resource, group } of OWN_KINDS) {
      const key = { name: `${resource}.${group}` };
      await this.#remove(CRDS, key);
      await this.#gone(CRDS, key);
    }
  }

  async #removeNamespace(): Promise<void> {
    const key = { name: this.#namespace };
    const live = this.#options.keepsNamespace ? undefined : await unlessGone(this.#cluster.get(NAMESPACES, key));
    if (live === undefined) {
      return;
    }
    if (live.metadata.labels?.['app.kubernetes.io/part-of'] !== 'portcullis') {
      this.#progress.line(`Left: namespace ${this.#namespace}, which somebody else made.`);
      return;
    }
    await this.#remove(NAMESPACES, key);
    await this.#gone(NAMESPACES, key);
  }

  async #gone(type: ResourceType, key: { readonly name: string }): Promise<void> {
    if (this.#options.isDryRun) {
      return;
    }
    const name = objectName(type, key.name);
    const deadline = AbortSignal.timeout(this.#options.timeoutMs);
    await this.#progress.during(`Waiting until ${name} is gone`, async () => {
      try {
        await waitUntilGone(this.#cluster, type, key, deadline);
      } catch (error) {
        if (!deadline.aborted) {
          throw error;
        }
        throw new CliError(
          `${name} is not gone after ${this.#options.timeoutMs / 1000} s: something in it has a finalizer`,
          {
            hint: 'No webhook of Portcullis is left, and nothing of it runs. It goes when the finalizers do; kubectl describe shows them.',
            cause: error,
          },
        );
      }
    });
  }

  async #tellWhatIsLeft(): Promise<void> {
    const { isDryRun, policies, definitions } = this.#options;
    if (isDryRun) {
      this.#progress.line('Nothing was changed (dry run).');
      return;
    }
    if (!policies) {
      const counts = await Promise.all(POLICIES.map(async (type) => (await this.#labelled(type)).length));
      const left = POLICIES.flatMap(({ resource }, index) =>
        (counts[index] ?? 0) > 0 ? [`${counts[index]} ${resource}`] : [],
      );
      if (left.length > 0) {
        this.#progress.line(`Left: ${left.join(', ')}. Nobody is asked about them; their status is what it was.`);
      }
    }
    if (!definitions) {
      this.#progress.line(
        'Left: the CustomResourceDefinitions. --delete-policies --delete-crds deletes them, with every policy.',
      );
    }
    this.#progress.line('No webhook of Portcullis is left.');
  }
}
