// One Pod that is bound to the node: its volumes, its containers, and what its status says of them.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Container, type ContainerCommand } from './container.ts';
import { type ContainerSpec, type EnvironmentVariable, fieldOf, type Pod, portNumber } from './pod.ts';
import { PodVolumes, type VolumeContents } from './pod-volumes.ts';

/** Until a Pod that cannot start is tried again. Milliseconds. */
const RETRY_MS = 200;
/** What Kubernetes gives a Pod that says nothing. Seconds. */
const GRACE_SECONDS = 30;
/** Where a container finds its service account. */
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface RunningPodOptions {
  readonly pod: Pod;
  readonly address: string;
  /** Of this Pod alone. */
  readonly folder: string;
  readonly contents: VolumeContents;
  /** The command that an image is, for this Pod; undefined when there is no such image. */
  readonly image: (image: string, pod: Pod) => readonly string[] | undefined;
  /** What every container has in its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Stores the status. Throws when the Pod is gone, or cannot be reached. */
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

  /** Starts it at once. */
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

  /** What its containers printed. */
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

  /** Kills its processes as a lack of memory would; they are started again. */
  async kill(): Promise<void> {
    await Promise.all(this.#containers.map((container) => container.kill()));
  }

  /** Stops its processes where they are, as a machine that hangs would, until the end of the scope. */
  suspend(): Disposable {
    const resumes = this.#containers.map((container) => container.suspend());
    return { [Symbol.dispose]: () => resumes.forEach((resume) => resume()) };
  }

  /** A Secret or a ConfigMap has changed: its files do. */
  async refill(kind: 'secret' | 'configMap', name: string): Promise<void> {
    if (this.#volumes.uses(kind, name)) {
      // What was deleted stays as it was.
      await this.#volumes.fill().catch(() => undefined);
    }
  }

  /** Ends it: its containers are told, have their time (default: what the Pod says), and are killed. */
  async stop(graceSeconds?: number): Promise<void> {
    this.#stopping.abort();
    const impatience = graceSeconds === undefined ? undefined : setTimeout(() => void this.kill(), graceSeconds * 1000);
    await Promise.all(this.#containers.map((container) => container.stop()));
    clearTimeout(impatience);
    await this.#clear();
  }

  /** Kills its processes for good. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#containers.map((container) => container.end()));
    await this.#clear();
  }

  /** Waits for the end of its containers, and deletes its folder. */
  async #clear(): Promise<void> {
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
          this.#changed();
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
      onChange: () => this.#changed(),
    });
  }

  #command(spec: ContainerSpec): ContainerCommand {
    const { image, folder, env } = this.#options;
    const [program, ...words] = image(spec.image, this.pod) ?? [];
    if (program === undefined) {
      throw new Error(`image ${spec.image} not found`);
    }
    const mounts = spec.volumeMounts ?? [];
    const mapped = (text: string): string => this.#volumes.mapped(text, mounts);
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

  /** @throws Error that says what is missing */
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

  /** Stores the status soon; once for several changes at once. */
  #changed(): void {
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
        // The API server is away, or the Pod is; in the second case the node ends this soon.
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

/** As Kubernetes writes times: whole seconds. */
function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}
