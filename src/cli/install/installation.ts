// The steps of an installation. An upgrade has the same steps.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type KubernetesCluster, listAll, unlessGone } from '../../cluster/index.ts';
import { foreignReason } from '../../lifecycle/index.ts';
import { policyServerObjectName } from '../../lifecycle/access-rules/index.ts';
import {
  apiVersionOf,
  DEFAULT_POLICY_SERVER,
  keyOf,
  type KubernetesObject,
  POLICIES_GROUP,
  POLICY_KINDS,
  POLICY_SERVERS,
  REPORT_FORMATS,
  reportDefinitions,
  type ResourceType,
  textsOf,
  valueAt,
} from '../../resources/index.ts';
import { applyObject } from '../cluster/apply-object.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import {
  chosenParts,
  CLUSTER_ROLES,
  CONTROLLER,
  CRDS,
  deploymentProgress,
  DEPLOYMENTS,
  installObjects,
  type InstallPart,
  isForeignGovernanceKind,
  isInstalledObject,
  NAMESPACES,
  policyServerProgress,
  type Progressing,
  takeOverHint,
} from '../../installation/index.ts';
import { typeOf } from './type-of.ts';
import { changesText } from './changes-text.ts';
import { formerObjects, rightsToRemoveFormer, typesOf } from './former-objects.ts';
import { type InstallationPlan, withKept } from './installation-plan.ts';
import { valuesText } from './kept-values.ts';
import { checkOwners } from './owners.ts';
import { checkKubewarden, checkNamespace, checkRights, checkVersion, rightsToApply } from './preflight.ts';
import { withOtherVersions } from './kept-versions.ts';

const FIELD_MANAGER = 'portcullis-install';
/** Delay before a write is tried again. Milliseconds. */
const RETRY_MS = 500;
/** Half a minute: API servers serve a new kind, and nodes route a Service to new pods, a few seconds late. */
const ATTEMPTS = 60;
/** Objects of our own kinds, which the webhook of the controller validates. */
const AFTER_CONTROLLER: ReadonlySet<string> = new Set(['policy-server', 'recommended-policies']);

interface InstallationOptions {
  /** The API server validates everything and stores nothing. */
  readonly isDryRun: boolean;
  readonly isBesideKubewarden: boolean;
  /** Whether to wait until the controller and the default PolicyServer are ready. */
  readonly waits: boolean;
  /** For each wait. */
  readonly timeoutMs: number;
}

/** Prints each applied object on standard output, and what it waits for on standard error. */
export class Installation {
  readonly #cluster: KubernetesCluster;
  readonly #plan: InstallationPlan;
  readonly #options: InstallationOptions;
  readonly #progress = new Progress();
  /** Numbers of objects by outcome. */
  readonly #counts = new Map<string, number>();
  /** Whether a PolicyServer was applied, which becomes ready. */
  #hasPolicyServer = false;

  constructor(cluster: KubernetesCluster, plan: InstallationPlan, options: InstallationOptions) {
    this.#cluster = cluster;
    this.#plan = plan;
    this.#options = options;
  }

  /** @throws CliError when a requirement is not met, before the first change; ApiError, ClusterError */
  async run(): Promise<void> {
    const isBeside = await this.#check();
    this.#printKept();
    const parts = chosenParts(this.#plan.context).filter(({ name }) => !(isBeside && name === 'policy-server'));
    const [definitions, others] = partition(parts, ({ name }) => name === 'crds');
    await this.#applyParts(definitions);
    const [last, first] = partition(others, ({ name }) => AFTER_CONTROLLER.has(name));
    await this.#applyParts(first);
    await this.#removeFormer((type) => type.group !== POLICIES_GROUP);
    await this.#wait(DEPLOYMENTS, { namespace: this.#plan.context.namespace, name: CONTROLLER }, deploymentProgress);
    await this.#applyParts(last);
    await this.#removeFormer((type) => type.group === POLICIES_GROUP);
    if (this.#hasPolicyServer) {
      await this.#wait(POLICY_SERVERS, { name: DEFAULT_POLICY_SERVER }, policyServerProgress);
    }
    this.#printResult(isBeside);
  }

  /** Deletes what an earlier installation created, and the values do not want any more. */
  async #removeFormer(isOwn: (type: ResourceType) => boolean): Promise<void> {
    const wanted = installObjects(this.#plan.context);
    for (const { type, object } of await formerObjects(this.#cluster, this.#plan.context, wanted, FIELD_MANAGER)) {
      if (isOwn(type)) {
        await this.#remove(type, object);
      }
    }
  }

  async #remove(type: ResourceType, object: KubernetesObject): Promise<void> {
    const { isDryRun } = this.#options;
    const name = objectName(type, object.metadata.name ?? '');
    const users = type.resource === POLICY_SERVERS.resource ? await this.#usersOf(object) : 0;
    if (users > 0) {
      this.#progress.line(
        `${name} was not deleted: ${users} policies name it. Delete them, or let them name another one.`,
      );
      return;
    }
    await unlessGone(this.#cluster.delete(type, keyOf(object), { dryRun: isDryRun }));
    this.#print(name, 'deleted');
  }

  /** The number of policies that name a PolicyServer. */
  async #usersOf({ metadata }: KubernetesObject): Promise<number> {
    const lists = await Promise.all(POLICY_KINDS.map(async (type) => (await listAll(this.#cluster, type, {})).items));
    return lists.flat().filter(({ spec }) => (spec.policyServer ?? DEFAULT_POLICY_SERVER) === metadata.name).length;
  }

  /** @throws CliError when a ClusterRole for Policies does not exist */
  async #checkGovernanceRoles(): Promise<void> {
    const { told } = this.#plan;
    // A role that was granted before, and deleted since, is no reason to refuse everything else.
    for (const name of textsOf(valueAt(told, 'governance', 'roles'))) {
      if ((await unlessGone(this.#cluster.get(CLUSTER_ROLES, { name }))) === undefined) {
        throw new CliError(`there is no ClusterRole ${name}, which Policies should have the rights of`, {
          hint: 'Nothing was changed. Create it first, or name another one with --governance-role.',
        });
      }
    }
  }

  /** Checks the requirements. Returns whether Kubewarden runs in the same cluster. */
  async #check(): Promise<boolean> {
    const { isBesideKubewarden } = this.#options;
    await checkVersion(this.#cluster);
    await checkNamespace(this.#cluster, this.#plan.context.namespace);
    const isBeside = await checkKubewarden(this.#cluster, isBesideKubewarden);
    const rights = [
      ...(await rightsToApply(this.#cluster, installObjects(this.#plan.context))),
      ...(await rightsToRemoveFormer(this.#cluster, this.#plan.context)),
    ];
    await checkRights(this.#cluster, rights, 'install');
    await this.#checkOwners();
    await this.#checkGovernanceRoles();
    return isBeside;
  }

  /** @throws CliError when another tool installs the objects. Kinds, namespaces and PolicyServers may be from anywhere. */
  async #checkOwners(): Promise<void> {
    const wanted = installObjects(this.#plan.context);
    const types = await typesOf(this.#cluster, wanted);
    for (const object of wanted) {
      const type = types.find((one) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion);
      if (type !== undefined && !isShared(type)) {
        const live = await unlessGone(this.#cluster.get(type, keyOf(object)));
        checkOwners(live === undefined ? [] : [{ ...live, kind: type.kind }]);
      }
    }
  }

  async #applyParts(parts: readonly InstallPart[]): Promise<void> {
    for (const part of parts) {
      for (const object of part.objects(this.#plan.context)) {
        await this.#apply(withKept(object, this.#plan));
      }
    }
  }

  async #apply(wanted: KubernetesObject): Promise<void> {
    const type = await typeOf(this.#cluster, wanted);
    const name = objectName(type, wanted.metadata.name ?? '');
    const live = await this.#live(type, wanted);
    const reason = live === undefined ? undefined : await this.#whyNotOurs(type, live);
    if (reason !== undefined) {
      this.#progress.line(`${name} was not changed: ${reason}`);
      return;
    }
    const object = live !== undefined && type.resource === CRDS.resource ? withOtherVersions(wanted, live) : wanted;
    const { isDryRun } = this.#options;
    if (isDryRun && (await this.#isUncheckable(type, object))) {
      process.stdout.write(`${name} would be created (not validated: its kind or namespace does not exist yet)\n`);
      return;
    }
    const { outcome, before, object: after } = await this.#applied(type, object);
    this.#hasPolicyServer ||= type.resource === POLICY_SERVERS.resource;
    this.#print(name, outcome);
    if (isDryRun && before !== undefined && outcome === 'configured') {
      process.stdout.write(changesText(before, after));
    }
    if (type.resource === CRDS.resource && !isDryRun) {
      await this.#established(object);
    }
  }

  /** The existing object, if it may not be overwritten as a whole because others may have created it. */
  async #live(type: ResourceType, object: KubernetesObject): Promise<KubernetesObject | undefined> {
    return isShared(type) ? await unlessGone(this.#cluster.get(type, keyOf(object))) : undefined;
  }

  /** Why an existing object is not changed; undefined when it belongs to Portcullis. */
  async #whyNotOurs(type: ResourceType, live: KubernetesObject): Promise<string | undefined> {
    if (type.resource === NAMESPACES.resource) {
      // With our labels, pods of others in it would have to meet our Pod Security Standard, and uninstall would delete them.
      return isInstalledObject(live)
        ? undefined
        : 'it existed before. If all of its pods allow it, set the label pod-security.kubernetes.io/enforce=restricted.';
    }
    if (type.resource === POLICY_SERVERS.resource) {
      const reason = await foreignReasonIn(this.#cluster, this.#plan.context.namespace, live);
      return reason === undefined ? undefined : `${reason}. docs/migration.md describes how to take it over.`;
    }
    if (type.resource === CRDS.resource && isForeignGovernanceKind(live)) {
      return `it is of Open Cluster Management. ${takeOverHint(live)}`;
    }
    if (type.resource === CRDS.resource && isOfOtherReports(live)) {
      return 'it existed before.';
    }
    return undefined;
  }

  /** Whether a dry run cannot apply the object, because its kind or namespace would come with the installation. */
  async #isUncheckable(type: ResourceType, { apiVersion, kind, metadata }: KubernetesObject): Promise<boolean> {
    if ((await this.#cluster.discovery.find(apiVersion, kind)) === undefined) {
      return true;
    }
    const { namespace } = metadata;
    return (
      type.namespaced &&
      namespace !== undefined &&
      (await unlessGone(this.#cluster.get(NAMESPACES, { name: namespace }))) === undefined
    );
  }

  async #applied(type: ResourceType, object: KubernetesObject): ReturnType<typeof applyObject> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await applyObject(this.#cluster, type, object, {
          fieldManager: FIELD_MANAGER,
          // An upgrade must not stop half-way at a field of another manager.
          force: true,
          dryRun: this.#options.isDryRun,
          onWarning: (text) => this.#progress.line(`Warning: ${oneLine(text)}`),
        });
      } catch (error) {
        if (!isTemporary(error) || attempt === ATTEMPTS) {
          throw error;
        }
        await sleep(RETRY_MS);
      }
    }
  }

  async #established(definition: KubernetesObject): Promise<void> {
    await this.#wait(CRDS, keyOf(definition), (object) => {
      const conditions = (object?.['status'] as { conditions?: readonly { type: string; status: string }[] })
        ?.conditions;
      const isEstablished =
        conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false;
      return { done: isEstablished, text: 'established' };
    });
  }

  async #wait(
    type: ResourceType,
    key: { readonly namespace?: string; readonly name: string },
    progressOf: (object: KubernetesObject | undefined) => Progressing,
  ): Promise<void> {
    const { isDryRun, waits, timeoutMs } = this.#options;
    if (isDryRun || !(waits || type === CRDS)) {
      return;
    }
    const name = objectName(type, key.name);
    const deadline = AbortSignal.timeout(timeoutMs);
    let last = 'it does not exist';
    await this.#progress.during(`Waiting for ${name}`, async (update) => {
      try {
        await waitFor(
          this.#cluster,
          type,
          key,
          (object) => {
            const { done, text } = progressOf(object);
            last = text;
            update(`Waiting for ${name}: ${text}`);
            return done;
          },
          deadline,
        );
      } catch (error) {
        if (!deadline.aborted) {
          throw error;
        }
        throw new CliError(`${name} is not ready after ${timeoutMs / 1000} s: ${last}`, {
          hint: '`portcullis doctor` looks for the reason. Run this command again to continue; what was applied stays.',
          cause: error,
        });
      }
    });
    if (type !== CRDS) {
      process.stdout.write(`${name} ready\n`);
    }
  }

  #print(name: string, outcome: string): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
    process.stdout.write(`${name} ${outcome}${this.#options.isDryRun ? ' (dry run)' : ''}\n`);
  }

  /** Values of the installation before that this one was not told. */
  #printKept(): void {
    const kept = valuesText(this.#plan.kept);
    if (kept.length > 0) {
      this.#progress.line(
        `Kept from the last installation: ${oneLine(kept.join(', '))}. --reset-values returns to the defaults.`,
      );
    }
  }

  #printResult(isBeside: boolean): void {
    const { isDryRun } = this.#options;
    const { namespace } = this.#plan.context;
    const counts = [...this.#counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ');
    this.#progress.line(`${counts}${isDryRun ? '. Nothing was changed (dry run).' : '.'}`);
    if (isDryRun) {
      return;
    }
    if (isBeside) {
      this.#progress.line(
        "Kubewarden still manages its PolicyServers and their policies. No PolicyServer was created: create one under another name, with the annotation portcullis.dev/take-over: 'true'.",
      );
    }
    this.#progress.line(
      `Portcullis is installed in namespace ${namespace}. portcullis doctor -n ${namespace} checks it.`,
    );
  }
}

/** Whether a later try may succeed: the kind was just created, or the pods of the webhook for our own kinds just started. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof ApiError)) {
    return false;
  }
  const isUnknownKind = error.code === 404 && error.details?.name === undefined;
  return isUnknownKind || (error.code === 500 && error.message.includes('own-kinds.portcullis.dev'));
}

/** Whether objects of this type may be of others, also under the names of an installation. */
function isShared({ resource }: ResourceType): boolean {
  return [CRDS, NAMESPACES, POLICY_SERVERS].some((type) => type.resource === resource);
}

/** Whether a kind of reports is there that no installation brought. */
function isOfOtherReports(live: KubernetesObject): boolean {
  const names = Object.values(REPORT_FORMATS).flatMap((format) =>
    reportDefinitions(format).map(({ metadata }) => metadata.name),
  );
  return names.includes(live.metadata.name) && !isInstalledObject(live);
}

/** Why the controller would not manage a PolicyServer. One whose Deployment it already manages is ours. */
async function foreignReasonIn(
  cluster: KubernetesCluster,
  namespace: string,
  server: KubernetesObject,
): Promise<string | undefined> {
  const name = policyServerObjectName(server.metadata.name ?? '');
  return foreignReason(server, await unlessGone(cluster.get(DEPLOYMENTS, { namespace, name })));
}

function partition<T>(all: readonly T[], is: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(is), all.filter((one) => !is(one))];
}
