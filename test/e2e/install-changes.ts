// Records the writes to an installation: the number of writes of each object, and all statuses.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import {
  type KubernetesObject,
  kubernetesKind,
  POLICY_KINDS,
  POLICY_SERVERS,
  type ResourceType,
} from '../../src/resources/index.ts';
import { type ObjectCache, SharedCaches } from '../../src/runtime/index.ts';
import { type InstallLab, NAMESPACE } from './install-lab.ts';

/** Kinds that the controllers write. */
const WRITTEN = [
  ['admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'],
  ['admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'],
  ['apps/v1', 'Deployment'],
  ['v1', 'Secret'],
  ['v1', 'Service'],
  ['rbac.authorization.k8s.io/v1', 'Role'],
] as const;

/** Kinds whose status the controllers write. */
const WITH_STATUS: readonly ResourceType[] = [POLICY_SERVERS, ...POLICY_KINDS];

/** An annotation that the Deployment controller of Kubernetes writes. */
const FOREIGN_ANNOTATION = 'deployment.kubernetes.io/revision';

/** A status, with the fields that tests read. */
export interface SeenStatus {
  readonly phase?: string;
  readonly reason?: string;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly lastTransitionTime: string;
  }[];
}

/** Records changes from its start until it is disposed. */
export class InstallChanges implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #client: KubernetesCluster;
  readonly #caches: SharedCaches;
  readonly #written = new Map<string, number>();
  readonly #statuses = new Map<string, SeenStatus[]>();
  #running: Promise<void> = Promise.resolve();

  private constructor({ cluster }: InstallLab) {
    const credentials = tokenCredentials(cluster.adminToken);
    this.#client = new KubernetesCluster({
      server: cluster.url,
      ca: readFileSync(cluster.caFile, 'utf8'),
      credentials,
    });
    this.#caches = new SharedCaches({ cluster: this.#client, log: pino({ enabled: false }) });
  }

  static async start(lab: InstallLab): Promise<InstallChanges> {
    const changes = new InstallChanges(lab);
    const written = WRITTEN.map(([apiVersion, kind]) => changes.#cacheOf(kubernetesKind(apiVersion, kind)));
    const told = WITH_STATUS.map((type) => changes.#cacheOf(type));
    changes.#running = changes.#caches.start(changes.#stop.signal);
    await changes.#caches.ready;
    for (const cache of written) {
      cache.subscribe(({ before, after }) => {
        if (!isDeepStrictEqual(contentOf(before), contentOf(after))) {
          const name = nameOf(after ?? before);
          changes.#written.set(name, (changes.#written.get(name) ?? 0) + 1);
        }
      });
    }
    for (const cache of told) {
      cache.list().forEach((object) => changes.#record(object));
      cache.subscribe(({ after }) => {
        if (after !== undefined) {
          changes.#record(after);
        }
      });
    }
    return changes;
  }

  /** The number of writes by `Kind name` since the last call. Objects that were not written are absent. */
  writes(): Readonly<Record<string, number>> {
    const writes = Object.fromEntries(this.#written);
    this.#written.clear();
    return writes;
  }

  /** All statuses of an object since the last call. The first one is the status at that time. */
  statuses(kind: string, name: string): readonly SeenStatus[] {
    const seen = this.#statuses.get(`${kind} ${name}`) ?? [];
    this.#statuses.set(`${kind} ${name}`, seen.slice(-1));
    return seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#client.close();
  }

  #cacheOf(type: ResourceType | undefined): ObjectCache {
    if (type === undefined) {
      throw new Error('a kind that is to be followed is not among the builtin ones');
    }
    return type.kind === 'Deployment' || type.kind === 'Secret' || type.kind === 'Service' || type.kind === 'Role'
      ? this.#caches.cache(type, { namespace: NAMESPACE })
      : this.#caches.cache(type);
  }

  #record(object: KubernetesObject): void {
    const { status } = object as KubernetesObject & { readonly status?: SeenStatus };
    const name = nameOf(object);
    const seen = this.#statuses.get(name) ?? [];
    if (status !== undefined && !isDeepStrictEqual(seen.at(-1), status)) {
      this.#statuses.set(name, [...seen, status]);
    }
  }
}

/** The phases in statuses of a policy, without repetitions. */
export function phasesOf(statuses: readonly SeenStatus[]): readonly string[] {
  const phases = statuses.map(({ phase = '' }) => phase);
  return phases.filter((phase, index) => phase !== phases[index - 1]);
}

function nameOf(object: KubernetesObject | undefined): string {
  return `${object?.kind} ${object?.metadata.name}`;
}

/** The fields of an object that a controller sets, without those that the server sets. */
function contentOf(object: KubernetesObject | undefined): unknown {
  if (object === undefined) {
    return undefined;
  }
  const { metadata, status: _status, ...content } = object as KubernetesObject & { readonly status?: unknown };
  const { [FOREIGN_ANNOTATION]: _revision, ...annotations } = metadata.annotations ?? {};
  return [metadata.uid, metadata.labels ?? {}, annotations, content];
}
