// The steps of an installation, and of an upgrade, which is the same.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type KubernetesCluster, unlessGone } from '../../cluster/index.ts';
import { foreignReason, policyServerObjectName } from '../../lifecycle/index.ts';
import { keyOf, type KubernetesObject, POLICY_SERVERS, type ResourceType } from '../../resources/index.ts';
import { applyObject } from '../cluster/apply-object.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { deploymentProgress, policyServerProgress, type Progressing } from './installed-state.ts';
import { chosenParts, type InstallPart, installObjects } from './install-objects.ts';
import { CRDS, DEPLOYMENTS, NAMESPACES, typeOf } from './kinds.ts';
import { CONTROLLER, DEFAULT_POLICY_SERVER, type InstallContext, PRODUCT_LABELS } from './objects/naming.ts';
import { checkKubewarden, checkNamespace, checkRights, checkVersion, rightsToApply } from './preflight.ts';
import { withOtherVersions } from './kept-versions.ts';

/** The label that says whose a namespace is. */
const PART_OF = 'app.kubernetes.io/part-of';
/** Who owns the fields that this sets. */
const FIELD_MANAGER = 'portcullis-install';
/**
 * Every part of an API server serves a new kind, and every node leads a Service to new pods, within seconds, and not at once: tried
 * again for half a minute. Milliseconds.
 */
const RETRY_MS = 500;
const ATTEMPTS = 60;
/** Parts of our own kinds: nothing takes them before the controller answers. */
const AFTER_CONTROLLER: ReadonlySet<string> = new Set(['policy-server', 'recommended-policies']);

interface InstallationOptions {
  /** Have the server check everything, and store nothing. */
  readonly isDryRun: boolean;
  readonly isBesideKubewarden: boolean;
  /** Until the controller and the default PolicyServer are ready. */
  readonly waits: boolean;
  /** Of each wait. */
  readonly timeoutMs: number;
}

/** Writes what it does to standard output, line by line, and what it waits for to standard error. */
export class Installation {
  readonly #cluster: KubernetesCluster;
  readonly #context: InstallContext;
  readonly #options: InstallationOptions;
  readonly #progress = new Progress();
  /** One of ours was applied: it becomes ready. */
  #hasPolicyServer = false;

  constructor(cluster: KubernetesCluster, context: InstallContext, options: InstallationOptions) {
    this.#cluster = cluster;
    this.#context = context;
    this.#options = options;
  }

  /** @throws CliError when it cannot be done, before anything was changed where that can be told; ApiError, ClusterError */
  async run(): Promise<void> {
    const isBeside = await this.#check();
    const parts = chosenParts(this.#context).filter(({ name }) => !(isBeside && name === 'policy-server'));
    const [definitions, others] = partition(parts, ({ name }) => name === 'crds');
    await this.#applyParts(definitions);
    const [last, first] = partition(others, ({ name }) => AFTER_CONTROLLER.has(name));
    await this.#applyParts(first);
    await this.#wait(DEPLOYMENTS, { namespace: this.#context.namespace, name: CONTROLLER }, deploymentProgress);
    await this.#applyParts(last);
    if (this.#hasPolicyServer) {
      await this.#wait(POLICY_SERVERS, { name: DEFAULT_POLICY_SERVER }, policyServerProgress);
    }
    this.#farewell(isBeside);
  }

  /** Whether Kubewarden goes on beside. */
  async #check(): Promise<boolean> {
    const { isBesideKubewarden } = this.#options;
    await checkVersion(this.#cluster);
    await checkNamespace(this.#cluster, this.#context.namespace);
    const isBeside = await checkKubewarden(this.#cluster, isBesideKubewarden);
    await checkRights(this.#cluster, await rightsToApply(this.#cluster, installObjects(this.#context)), 'install');
    return isBeside;
  }

  async #applyParts(parts: readonly InstallPart[]): Promise<void> {
    for (const part of parts) {
      for (const object of part.objects(this.#context)) {
        await this.#apply(object);
      }
    }
  }

  async #apply(wanted: KubernetesObject): Promise<void> {
    const type = await typeOf(this.#cluster, wanted);
    const name = objectName(type, wanted.metadata.name ?? '');
    const live = await this.#live(type, wanted);
    const reason = live === undefined ? undefined : await this.#whyLeft(type, live);
    if (reason !== undefined) {
      this.#progress.line(`${name} is left as it is: ${reason}`);
      return;
    }
    const object = live !== undefined && type.resource === CRDS.resource ? withOtherVersions(wanted, live) : wanted;
    const { isDryRun } = this.#options;
    if (isDryRun && (await this.#isUncheckable(type, object))) {
      process.stdout.write(`${name} would be created (not checked: its kind or namespace is not there yet)\n`);
      return;
    }
    const { outcome } = await this.#applied(type, object);
    this.#hasPolicyServer ||= type.resource === POLICY_SERVERS.resource;
    process.stdout.write(`${name} ${outcome}${isDryRun ? ' (dry run)' : ''}\n`);
    if (type.resource === CRDS.resource && !isDryRun) {
      await this.#established(object);
    }
  }

  /** What is there: of an object that somebody else may have made, and is not to be overwritten as a whole. */
  async #live(type: ResourceType, object: KubernetesObject): Promise<KubernetesObject | undefined> {
    const isShared = [CRDS, NAMESPACES, POLICY_SERVERS].some(({ resource }) => resource === type.resource);
    return isShared ? await unlessGone(this.#cluster.get(type, keyOf(object))) : undefined;
  }

  /** Why an object that is there is not touched; undefined when it is ours to make as it shall be. */
  async #whyLeft(type: ResourceType, live: KubernetesObject): Promise<string | undefined> {
    if (type.resource === NAMESPACES.resource) {
      // With our labels, what else is in it would have to keep to our standard, and would go with it at the end.
      return live.metadata.labels?.[PART_OF] === PRODUCT_LABELS[PART_OF]
        ? undefined
        : 'somebody else made it. Give it the label pod-security.kubernetes.io/enforce=restricted where everything in it can do with that.';
    }
    if (type.resource === POLICY_SERVERS.resource) {
      const reason = await foreignReasonIn(this.#cluster, this.#context.namespace, live);
      return reason === undefined ? undefined : `${reason}. docs/migration.md says how to take it over.`;
    }
    return undefined;
  }

  /** A dry run makes no kinds and no namespaces that objects could be in. */
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
          // What is installed is as this says: an upgrade must not stop half-way at a field that somebody else has set.
          force: true,
          dryRun: this.#options.isDryRun,
          onWarning: (text) => this.#progress.line(`Warning: ${oneLine(text)}`),
        });
      } catch (error) {
        if (!passesOver(error) || attempt === ATTEMPTS) {
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
    let last = 'it is not there';
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
          hint: 'Everything so far stays. `portcullis doctor` looks for the reason; run this command again to go on.',
          cause: error,
        });
      }
    });
    if (type !== CRDS) {
      process.stdout.write(`${name} ready\n`);
    }
  }

  #farewell(isBeside: boolean): void {
    const { isDryRun } = this.#options;
    const { namespace } = this.#context;
    if (isDryRun) {
      return;
    }
    if (isBeside) {
      this.#progress.line(
        "Kubewarden goes on beside: its PolicyServers and their policies are its own. No PolicyServer was created; yours need another name, and the annotation portcullis.dev/take-over: 'true'.",
      );
    }
    this.#progress.line(
      `Portcullis is installed in namespace ${namespace}. portcullis doctor -n ${namespace} looks at it.`,
    );
  }
}

/** Whether it is refused for now: the kind was just made, or the webhook for our own kinds, whose pods have just started. */
function passesOver(error: unknown): boolean {
  if (!(error instanceof ApiError)) {
    return false;
  }
  const isUnknownKind = error.code === 404 && error.details?.name === undefined;
  return isUnknownKind || (error.code === 500 && error.message.includes('own-kinds.portcullis.dev'));
}

/** As the controller sees it: what runs for it already counts. */
async function foreignReasonIn(
  cluster: KubernetesCluster,
  namespace: string,
  server: KubernetesObject,
): Promise<string | undefined> {
  const name = policyServerObjectName(server.metadata.name ?? '');
  return foreignReason(server, await unlessGone(cluster.get(DEPLOYMENTS, { namespace, name })));
}

/** Those that are, and those that are not. */
function partition<T>(all: readonly T[], is: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(is), all.filter((one) => !is(one))];
}
