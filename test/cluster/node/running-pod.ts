// A Pod that is bound to the node: its volumes, its containers, and its status.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Container, type ContainerCommand } from './container.ts';
import { type ContainerSpec, type EnvironmentVariable, fieldOf, type Pod, portNumber } from './pod.ts';
import { type PodMount, PodVolumes, type VolumeContents } from './pod-volumes.ts';

/** Delay before a Pod that could not start is tried again. Milliseconds. */
const RETRY_MS = 200;
/** The default grace period in Kubernetes. Seconds. */
const GRACE_SECONDS = 30;
/** The mount path of the service account. */
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface RunningPodOptions {
  readonly pod: Pod;
  readonly address: string;
  /** A folder for the files of this Pod. */
  readonly folder: string;
  readonly contents: VolumeContents;
  /** Returns the command that runs an image in this Pod. Undefined when the image does not exist. */
  readonly image: (image: string, pod: Pod, mounts: readonly PodMount[]) => readonly string[] | undefined;
  /** Whether that command mounts volumes. Otherwise their folders replace mount paths in arguments and variables. */
  readonly hasMounts: boolean;
  /** Environment variables of all containers. */
  readonly env: Readonly<Record<string, string>>;
  /** Writes the status. Throws when the Pod does not exist, or the API server cannot be reached. */
  readonly report: (status: object) => Promise<void>;
}

type ConditionType = 'PodScheduled' | 'Initialized' | 'ContainersReady' | 'Ready';

export class RunningPod {
  readonly pod: Pod;
  readonly address: string;
  readonly #options: RunningPodOptions;
  readonly #volumes: PodVolumes;
  readonly #stopping = new AbortController();
  readonly #startTime = timestamp();
  readonly #conditions = new Map<ConditionType, { readonly isTrue: boolean; readonly since: string }>();
  readonly #life: Promise<void>;
  #containers: readonly Container[] = [];
  #waitingFor: string | undefined;
  #isDirty = false;
  #reporting: Promise<void> | undefined;

  /** Starts the Pod. */
  constructor(options: RunningPodOptions) {
    const { pod, address, folder, contents } = options;
    this.#options = options;
    this.pod = pod;
    this.address = address;
    mkdirSync(join(folder, 'root'), { recursive: true });
    this.#volumes = new PodVolumes({ pod, address, contents, folder: join(folder, 'volumes') });
    this.#life = this.#live();
  }

  get name(): string {
    return this.pod.metadata.name ?? '';
  }

  /** The output of its containers. */
  get log(): string {
    const logs = this.#containers.map(({ log }) => log).join('\n');
    return this.#waitingFor === undefined ? logs : `${logs}waiting: ${this.#waitingFor}\n`;
  }

  get isReady(): boolean {
    return this.#containers.length > 0 && this.#containers.every(({ isReady }) => isReady);
  }

  get restarts(): number {
    return this.#containers.reduce((sum, { restarts }) => sum + restarts, 0);
  }

  /** Kills its processes, as an out-of-memory kill does. They are restarted. */
  async kill(): Promise<void> {
    await Promise.all(this.#containers.map((container) => container.kill()));
  }

  /** Suspends its processes until the end of the scope, as if the machine hung. */
  suspend(): Disposable {
    const resumes = this.#containers.map((container) => container.suspend());
    return { [Symbol.dispose]: () => resumes.forEach((resume) => resume()) };
  }

  /** Updates the files of a changed Secret or ConfigMap. */
  async updateVolumes(kind: 'secret' | 'configMap', name: string): Promise<void> {
    if (this.#volumes.uses(kind, name)) {
      // As in a kubelet, files of a deleted source stay.
      await this.#volumes.fill().catch(() => undefined);
    }
  }

  /** Ends its containers with SIGTERM, and kills them after the grace period, by default that of the Pod. */
  async stop(graceSeconds?: number): Promise<void> {
    this.#stopping.abort();
    const impatience = graceSeconds === undefined ? undefined : setTimeout(() => void this.kill(), graceSeconds * 1000);
    await Promise.all(this.#containers.map((container) => container.stop()));
    clearTimeout(impatience);
    await this.#cleanUp();
  }

  /** Kills its processes. They are not restarted. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#containers.map((container) => container.end()));
    await this.#cleanUp();
  }

  /** Waits for the end of its containers, and deletes its folder. */
  async #cleanUp(): Promise<void> {
    await this.#life;
    await this.#reporting;
    rmSync(this.#options.folder, { recursive: true, force: true });
  }

  async #live(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#volumes.fill();
        this.#containers = this.pod.spec.containers.map((spec) => this.#container(spec));
        break;
      } catch (error) {
        const { message } = error as Error;
        if (this.#waitingFor !== message) {
          this.#waitingFor = message;
          this.#scheduleReport();
        }
        await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    if (!signal.aborted) {
      this.#waitingFor = undefined;
      await Promise.all(this.#containers.map((container) => container.run()));
    }
  }

  #container(spec: ContainerSpec): Container {
    const { pod, address } = this;
    const { namespace, name } = pod.metadata;
    return new Container({
      spec,
      address,
      command: this.#command(spec),
      port: (port) => portNumber(pod, port),
      restartPolicy: pod.spec.restartPolicy ?? 'Always',
      graceSeconds: pod.spec.terminationGracePeriodSeconds ?? GRACE_SECONDS,
      logFile: join(this.#options.folder, '..', `${namespace}_${name}_${spec.name}.log`),
      onChange: () => this.#scheduleReport(),
    });
  }

  #command(spec: ContainerSpec): ContainerCommand {
    const { image, hasMounts, folder, env } = this.#options;
    const mounts = spec.volumeMounts ?? [];
    const [program, ...words] = image(spec.image, this.pod, this.#volumes.mounted(mounts)) ?? [];
    if (program === undefined) {
      throw new Error(`image ${spec.image} not found`);
    }
    const mapped = (text: string): string => (hasMounts ? text : this.#volumes.withMountPaths(text, mounts));
    const own = Object.fromEntries((spec.env ?? []).map((variable) => [variable.name, this.#value(spec, variable)]));
    const expanded = (text: string): string =>
      text.replaceAll(/\$\(([\w.-]+)\)/g, (whole, name: string) => own[name] ?? whole);
    const mountedTmp = mounts.some(({ mountPath }) => mountPath === '/tmp');
    return {
      program,
      args: [...words, ...(spec.args ?? []).map((arg) => mapped(expanded(arg)))],
      cwd: join(folder, 'root'),
      env: {
        ...env,
        HOSTNAME: this.name,
        PORTCULLIS_TEST_POD_ADDRESS: this.address,
        PORTCULLIS_SERVICE_ACCOUNT_DIR: mapped(SERVICE_ACCOUNT_FOLDER),
        ...(mountedTmp ? { TMPDIR: mapped('/tmp') } : {}),
        ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, mapped(expanded(value))])),
      },
    };
  }

  /** The value of an environment variable. @throws Error that names a missing source */
  #value(container: ContainerSpec, { name, value, valueFrom }: EnvironmentVariable): string {
    const { namespace } = this.pod.metadata;
    if (valueFrom === undefined) {
      return value ?? '';
    }
    const { fieldRef, secretKeyRef, configMapKeyRef, resourceFieldRef } = valueFrom;
    if (fieldRef !== undefined) {
      return fieldOf(this.pod, fieldRef.fieldPath, this.address) ?? '';
    }
    if (resourceFieldRef !== undefined) {
      return container.resources?.limits?.[resourceFieldRef.resource.replace(/^limits\./, '')] ?? '0';
    }
    const { contents } = this.#options;
    const found =
      secretKeyRef === undefined
        ? contents.configMap(namespace, configMapKeyRef?.name ?? '')
        : contents.secret(namespace, secretKeyRef.name);
    const reference = secretKeyRef ?? configMapKeyRef;
    const content = found?.get(reference?.key ?? '');
    if (content === undefined && reference?.optional !== true) {
      throw new Error(`environment variable ${name}: ${reference?.name} has no key ${reference?.key}`);
    }
    return content?.toString() ?? '';
  }

  /** Writes the status soon. Changes in quick succession need one write. */
  #scheduleReport(): void {
    this.#isDirty = true;
    this.#reporting ??= this.#reportChanges().finally(() => (this.#reporting = undefined));
  }

  async #reportChanges(): Promise<void> {
    while (this.#isDirty) {
      this.#isDirty = false;
      try {
        await this.#options.report(this.#status());
      } catch {
        if (this.#stopping.signal.aborted) {
          return;
        }
        // The API server cannot be reached, or the Pod was deleted. In the second case, the node ends it soon.
        this.#isDirty = true;
        await sleep(RETRY_MS);
      }
    }
  }

  #status(): object {
    const exits = this.#containers.map(({ exitCode }) => exitCode);
    const isOver = exits.length > 0 && exits.every((code) => code !== undefined);
    const phase = isOver ? (exits.every((code) => code === 0) ? 'Succeeded' : 'Failed') : undefined;
    const isReady = this.isReady;
    this.#set('PodScheduled', true);
    this.#set('Initialized', this.#containers.length > 0);
    this.#set('ContainersReady', isReady);
    this.#set('Ready', isReady);
    return {
      phase: phase ?? (this.#containers.length > 0 ? 'Running' : 'Pending'),
      hostIP: '127.0.0.1',
      podIP: this.address,
      podIPs: [{ ip: this.address }],
      startTime: this.#startTime,
      conditions: [...this.#conditions].map(([type, { isTrue, since }]) => ({
        type,
        status: isTrue ? 'True' : 'False',
        lastTransitionTime: since,
      })),
      containerStatuses:
        this.#containers.length > 0
          ? this.#containers.map(({ status }) => status)
          : this.pod.spec.containers.map(({ name, image }) => ({
              name,
              image,
              imageID: '',
              ready: false,
              restartCount: 0,
              state: { waiting: { reason: 'ContainerCreating', message: this.#waitingFor ?? '' } },
            })),
    };
  }

  #set(type: ConditionType, isTrue: boolean): void {
    if (this.#conditions.get(type)?.isTrue !== isTrue) {
      this.#conditions.set(type, { isTrue, since: timestamp() });
    }
  }
}

/** The current time as Kubernetes writes it, in whole seconds. */
function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}
