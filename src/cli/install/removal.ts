// The steps of an uninstallation. After each step, even if the next one fails, no webhook of ours is without a server that
// answers. Each step can be repeated.
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { REPORT_SELECTOR } from '../../audit/access-rules/index.ts';
import { ApiError, type KubernetesCluster, listAll, unlessForbidden, unlessGone } from '../../cluster/index.ts';
import { isRunning } from '../../governance/index.ts';
import { OTHER_CONTROLLERS } from '../../governance/access-rules/index.ts';
import {
  ALL_KINDS,
  CONFIGURATION_POLICIES,
  GOVERNANCE_KINDS,
  keyOf,
  type KubernetesObject,
  KUBEWARDEN_FINALIZERS,
  NETWORK_POLICY_KINDS,
  OWN_KINDS,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  POLICY_SERVERS,
  PRUNE_FINALIZER,
  REPORT_FORMATS,
  type ResourceType,
  UNINSTALLED,
} from '../../resources/index.ts';
import { StatusRemoval } from '../../network-policy/index.ts';
import { LEASES } from '../../runtime/index.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { waitUntilGone } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { writeLastStatuses } from './last-statuses.ts';
import {
  ACCESS_GUARDS,
  AUDITOR,
  CLUSTER_BINDINGS,
  CLUSTER_ROLES,
  CONTROLLER,
  CRDS,
  DEPLOYMENTS,
  isForeignGovernanceKind,
  isInstalledObject,
  isOurConfiguration,
  kubewardenControllers,
  NAMESPACES,
  OWNED_KINDS,
  PODS,
  type Right,
  rightsTo,
  ROLE_BINDINGS,
  WEBHOOK_CONFIGURATIONS,
} from '../../installation/index.ts';
import { AUDITED_KINDS, PASSED_ON } from '../../installation/objects/index.ts';
import { removeFinalizers } from './remove-finalizers.ts';
import { checkNamespace, checkRights } from './preflight.ts';

/** Selects objects of the installation. */
const INSTALLED = 'app.kubernetes.io/part-of=portcullis';
/** Selects objects that the controller created. */
const MANAGED = 'app.kubernetes.io/managed-by=portcullis';
const REPORT_KINDS: readonly ResourceType[] = Object.values(REPORT_FORMATS).flatMap(({ reports, clusterReports }) => [
  reports,
  clusterReports,
]);
const CONTROLLER_PODS = 'app.kubernetes.io/name=portcullis,app.kubernetes.io/component=controller';
/** Kinds that only the controller writes. */
const RECORDS = OWN_KINDS.filter((kind) => kind.group !== POLICIES_GROUP && kind !== POLICY_EXCEPTIONS);
/** The finalizers of governance. */
const PRUNE_FINALIZERS: ReadonlySet<string> = new Set([PRUNE_FINALIZER]);
const POLICIES = OWN_KINDS.filter(({ group }) => group === POLICIES_GROUP);
/** Kinds whose objects stay, or are those of others. */
const KEPT = [...POLICIES, POLICY_EXCEPTIONS, ...GOVERNANCE_KINDS, ...NETWORK_POLICY_KINDS];
/** Names of the guards of these kinds begin so, and are in the messages of refusals. */
const RECORD_GUARD = "ValidatingAdmissionPolicy 'portcullis-";
/** Delay before a refused deletion is repeated: API servers read policies every second. Milliseconds. */
const GUARD_RETRY_MS = 200;
/** Attempts to find no webhooks: a write that the controller began before it lost its rights may add one more. */
const SWEEPS = 5;

interface RemovalOptions {
  readonly isDryRun: boolean;
  /** Only webhooks, and the controller, which would create them again. */
  readonly webhooksOnly: boolean;
  /** Also all policies and PolicyServers. */
  readonly policies: boolean;
  /** Also the CustomResourceDefinitions. */
  readonly definitions: boolean;
  readonly keepsNamespace: boolean;
  /** For each wait. */
  readonly timeoutMs: number;
}

/** Prints each deleted object on standard output, and what remains on standard error. */
export class Removal {
  readonly #cluster: KubernetesCluster;
  readonly #namespace: string;
  readonly #options: RemovalOptions;
  readonly #progress = new Progress();
  /** Names of deleted objects: in a dry run they still exist, and are found again. */
  readonly #deleted = new Set<string>();

  constructor(cluster: KubernetesCluster, namespace: string, options: RemovalOptions) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#options = options;
  }

  /**
   * @throws CliError when rights are missing or Portcullis is in another namespace (nothing was changed), or when an object is
   *   not deleted in time; ApiError, ClusterError
   */
  async run(): Promise<void> {
    const { webhooksOnly } = this.#options;
    await this.#check();
    await this.#removeWebhooks(1);
    // Without rights, even a controller that cannot be stopped, on an unreachable node, creates nothing again.
    await this.#remove(CLUSTER_BINDINGS, { name: CONTROLLER });
    await this.#remove(ROLE_BINDINGS, { namespace: this.#namespace, name: CONTROLLER });
    // Before the roles that it aggregates: Kubernetes writes it when one of those is deleted, and might create it again.
    await this.#remove(CLUSTER_ROLES, { name: PASSED_ON });
    await this.#removeAuditor();
    await this.#removeController();
    await this.#removeWebhooks(SWEEPS);
    // Once no controller can write them again.
    await this.#writeLastStatuses();
    if (!webhooksOnly) {
      await this.#removeOthers();
    }
  }

  /** Says on what stays that nothing enforces it. What may not be written is named, and does not stop the removal. */
  async #writeLastStatuses(): Promise<void> {
    const { isDryRun, policies } = this.#options;
    if (policies) {
      return;
    }
    const isGovernedElsewhere = (await unlessForbidden(this.#isGovernedElsewhere())) ?? true;
    const { written, problems } = await writeLastStatuses(this.#cluster, { isDryRun, isGovernedElsewhere });
    if (written > 0) {
      const would = isDryRun ? 'would say' : 'say';
      this.#progress.line(`${written} statuses ${would} that nothing is enforced any more (reason ${UNINSTALLED}).`);
    }
    for (const problem of problems) {
      this.#progress.line(`Warning: not written, and so out of date, is the status of ${problem}.`);
    }
  }

  /** Deletes the statuses of NetworkPolicies, also in annotations, which nobody maintains. */
  async #removeNetworkPolicyStatuses(): Promise<void> {
    if (this.#options.isDryRun) {
      return;
    }
    const removal = new StatusRemoval({ cluster: this.#cluster, log: pino({ level: 'silent' }) });
    try {
      await removal.remove(AbortSignal.timeout(this.#options.timeoutMs));
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      if (error.code !== 404) {
        this.#progress.line(`Warning: statuses of NetworkPolicies are left over: ${oneLine(error.message)}`);
      }
    }
  }

  /** Deletes the reports of the auditor, which nobody keeps current. */
  async #removeReports(): Promise<void> {
    for (const type of REPORT_KINDS) {
      await this.#removeAll(type, await this.#labelled(type, undefined, REPORT_SELECTOR));
    }
  }

  async #removeOthers(): Promise<void> {
    await this.#removeNetworkPolicyStatuses();
    await this.#removeReports();
    await this.#removeLabelled(CLUSTER_BINDINGS);
    await this.#removeLabelled(DEPLOYMENTS, this.#namespace);
    for (const name of [CONTROLLER, AUDITOR]) {
      await this.#remove(LEASES, { namespace: this.#namespace, name });
    }
    for (const type of OWNED_KINDS) {
      await this.#removeLabelled(type, this.#namespace);
    }
    await this.#removeLabelled(CLUSTER_ROLES);
    for (const type of ACCESS_GUARDS) {
      await this.#removeLabelled(type);
    }
    await this.#removeRecords();
    await this.#removePolicies();
    await this.#removeGovernance();
    await this.#removeDefinitions();
    await this.#removeNamespace();
    await this.#printRemaining();
  }

  async #check(): Promise<void> {
    const { policies, definitions, keepsNamespace } = this.#options;
    await checkNamespace(this.#cluster, this.#namespace);
    const verbs = ['list', 'delete'];
    if (this.#options.webhooksOnly) {
      // Also those for stopping the controller, which would create the webhooks again.
      const rights: Right[] = [
        ...WEBHOOK_CONFIGURATIONS.flatMap((type) => rightsTo(verbs, type)),
        ...rightsTo(['delete'], CLUSTER_BINDINGS, undefined, CONTROLLER),
        ...rightsTo(['delete'], ROLE_BINDINGS, this.#namespace, CONTROLLER),
        ...rightsTo(['delete'], CLUSTER_ROLES, undefined, PASSED_ON),
        ...rightsTo(['delete'], DEPLOYMENTS, this.#namespace, CONTROLLER),
        ...rightsTo(['delete'], CLUSTER_BINDINGS, undefined, AUDITOR),
        ...rightsTo(['delete'], CLUSTER_ROLES, undefined, AUDITED_KINDS),
        ...rightsTo(['delete'], DEPLOYMENTS, this.#namespace, AUDITOR),
        ...rightsTo(['get', 'list', 'watch'], PODS, this.#namespace),
      ];
      await checkRights(this.#cluster, rights, 'remove the webhooks and stop the controller');
      return;
    }
    const rights: Right[] = [
      ...[...WEBHOOK_CONFIGURATIONS, CLUSTER_BINDINGS, CLUSTER_ROLES, ...ACCESS_GUARDS].flatMap((type) =>
        rightsTo(verbs, type),
      ),
      ...REPORT_KINDS.flatMap((type) => rightsTo(verbs, type)),
      ...[DEPLOYMENTS, ...OWNED_KINDS, ...RECORDS].flatMap((type) => rightsTo(verbs, type, this.#namespace)),
      ...rightsTo(['delete'], LEASES, this.#namespace),
      ...rightsTo(['get', 'list', 'watch'], PODS, this.#namespace),
      ...(policies ? [...POLICIES, ...GOVERNANCE_KINDS].flatMap((type) => rightsTo([...verbs, 'patch'], type)) : []),
      ...(policies ? [...rightsTo(['get'], CRDS), ...rightsTo(['list'], DEPLOYMENTS)] : []),
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

  /** Deletes webhooks until none is found. */
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

  /** It would write into the last statuses of policies. */
  async #removeAuditor(): Promise<void> {
    await this.#remove(CLUSTER_BINDINGS, { name: AUDITOR });
    await this.#remove(CLUSTER_ROLES, { name: AUDITED_KINDS });
    await this.#remove(DEPLOYMENTS, { namespace: this.#namespace, name: AUDITOR });
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
            `Warning: pod ${pod.metadata.name} does not end, maybe because its node is gone. It has no rights any more.`,
          );
        }
      }
    });
  }

  /** Deletes all objects of a kind with one of our labels. Returns how many. */
  async #removeLabelled(type: ResourceType, namespace?: string): Promise<number> {
    const found = new Map<string, KubernetesObject>();
    for (const selector of [INSTALLED, MANAGED]) {
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

  /** Empty when the cluster does not serve the kind. */
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
    if (isDryRun && this.#deleted.has(name)) {
      return;
    }
    this.#deleted.add(name);
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

  /** Deletes what only the controller may delete. API servers notice some moments late that the guards are gone. */
  async #removeRecords(): Promise<void> {
    const deadline = AbortSignal.timeout(this.#options.timeoutMs);
    for (const type of RECORDS) {
      for (const object of await this.#labelled(type, this.#namespace)) {
        while (!(await this.#removeUnguarded(type, keyOf(object)))) {
          deadline.throwIfAborted();
          await sleep(GUARD_RETRY_MS);
        }
      }
    }
  }

  /** @returns whether no guard refuses the deletion. A dry run, where the guards still exist, ignores them. */
  async #removeUnguarded(type: ResourceType, key: ReturnType<typeof keyOf>): Promise<boolean> {
    try {
      await this.#remove(type, key);
    } catch (error) {
      if (!(error instanceof ApiError && error.message.includes(RECORD_GUARD))) {
        throw error;
      }
      if (!this.#options.isDryRun) {
        return false;
      }
      process.stdout.write(`${objectName(type, key.name)} deleted (dry run)\n`);
    }
    return true;
  }

  async #removePolicies(): Promise<void> {
    if (!this.#options.policies) {
      return;
    }
    // PolicyServers last: policies refer to them.
    for (const type of POLICIES.toSorted((a, b) => Number(a === POLICY_SERVERS) - Number(b === POLICY_SERVERS))) {
      for (const object of await this.#labelled(type)) {
        if (!this.#options.isDryRun) {
          // Kubewarden's controller, which would remove them, does not run.
          await removeFinalizers(this.#cluster, type, object, KUBEWARDEN_FINALIZERS);
        }
        await this.#remove(type, keyOf(object));
      }
    }
  }

  /** Deletes governance policies without what they made: the controller, which would prune it, does not run. */
  async #removeGovernance(): Promise<void> {
    const { policies, isDryRun } = this.#options;
    if (!policies) {
      return;
    }
    if (await this.#isGovernedElsewhere()) {
      this.#progress.line('Kept: Policies and the kinds of their templates, which are of Open Cluster Management.');
      return;
    }
    let deleted = 0;
    for (const type of GOVERNANCE_KINDS) {
      for (const object of await this.#labelled(type)) {
        if (!isDryRun) {
          await removeFinalizers(this.#cluster, type, object, PRUNE_FINALIZERS);
        }
        await this.#remove(type, keyOf(object));
        deleted += 1;
      }
    }
    if (deleted > 0) {
      this.#progress.line('Kept: what Policies made, and the namespace with their copies. Nothing was pruned.');
    }
  }

  /** Whether governance policies may be those of Open Cluster Management. */
  async #isGovernedElsewhere(): Promise<boolean> {
    const definitions = await Promise.all(
      GOVERNANCE_KINDS.map(({ resource, group }) =>
        unlessGone(this.#cluster.get(CRDS, { name: `${resource}.${group}` })),
      ),
    );
    const foreign = definitions.some((one) => one !== undefined && isForeignGovernanceKind(one));
    const deployments = (await this.#labelled(DEPLOYMENTS)).filter(
      (one) => OTHER_CONTROLLERS.includes(one.metadata.name ?? '') && isRunning(one),
    );
    return foreign || deployments.length > 0;
  }

  async #removeDefinitions(): Promise<void> {
    if (!this.#options.definitions) {
      return;
    }
    for (const { resource, group } of ALL_KINDS) {
      const key = { name: `${resource}.${group}` };
      const live = await unlessGone(this.#cluster.get(CRDS, key));
      if (live !== undefined && isForeignGovernanceKind(live)) {
        this.#progress.line(`Kept: ${objectName(CRDS, key.name)}, which is of Open Cluster Management.`);
        continue;
      }
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
    if (!isInstalledObject(live)) {
      this.#progress.line(`Kept: namespace ${this.#namespace}, which the installation did not create.`);
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
          `${name} still exists after ${this.#options.timeoutMs / 1000} s: an object in it has a finalizer`,
          {
            hint: 'Nothing of Portcullis runs, and it has no webhooks. The deletion ends when the finalizers are removed; kubectl describe shows them.',
            cause: error,
          },
        );
      }
    });
  }

  /** Deletions of these objects wait for a controller. */
  async #printFinalizers(): Promise<void> {
    const templates = (await this.#labelled(CONFIGURATION_POLICIES)).filter(
      ({ metadata }) => metadata.finalizers?.includes(PRUNE_FINALIZER) === true,
    );
    if (templates.length > 0) {
      this.#progress.line(
        `Kept: ${templates.length} configurationpolicies with the finalizer ${PRUNE_FINALIZER}. Their deletion waits for a controller of governance; --delete-policies deletes them without pruning.`,
      );
    }
  }

  async #printRemaining(): Promise<void> {
    const { isDryRun, policies, definitions } = this.#options;
    if (isDryRun) {
      this.#progress.line('Nothing was changed (dry run).');
      return;
    }
    if (!policies) {
      const counts = await Promise.all(KEPT.map(async (type) => (await this.#labelled(type)).length));
      const left = KEPT.flatMap(({ resource }, index) =>
        (counts[index] ?? 0) > 0 ? [`${counts[index]} ${resource}`] : [],
      );
      if (left.length > 0) {
        this.#progress.line(`Kept: ${left.join(', ')}. They are not enforced any more, as their status says.`);
      }
      await this.#printFinalizers();
    }
    if (!definitions) {
      this.#progress.line(
        'Kept: the CustomResourceDefinitions. --delete-policies --delete-crds deletes them, with every policy.',
      );
    }
    this.#progress.line('Portcullis has no webhooks any more.');
  }
}
