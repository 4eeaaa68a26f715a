// Writes and reads objects of a cluster, embedded or not, as an administrator.
import { type Cluster, isNotFound } from '../../src/cluster/index.ts';
import { parseYaml } from '../../src/values/yaml/index.ts';
import {
  ALL_KINDS,
  type Condition,
  isJsonObject,
  type JsonObject,
  keyOf,
  kubernetesKind,
  type KubernetesObject,
  type Policy,
  type ResourceType,
} from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';

const FIELD_MANAGER = 'lab';

/** An object, of which tests read any field. */
export type LabObject = KubernetesObject & {
  readonly spec?: JsonObject;
  readonly status?: LabStatus;
  readonly data?: JsonObject;
};

export interface LabStatus {
  readonly compliant?: string;
  readonly history?: readonly { readonly message: string }[];
  readonly conditions?: readonly Condition[];
  readonly observedGeneration?: number;
  readonly [field: string]: unknown;
}

/** The fields of an event that tests read. */
export interface LabEvent {
  readonly reason?: string;
  readonly note?: string;
  readonly message?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string };
}

/** An object of a cluster: its kind as in `kubectl get`, and `namespace/name` or `name`. */
export interface LabReference {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly name: string;
}

/** The objects of a cluster. */
export class LabObjects {
  readonly #admin: Cluster;

  constructor(admin: Cluster) {
    this.#admin = admin;
  }

  /** Applies objects, or YAML with any number of them, as `kubectl apply --server-side` does. */
  async apply(...manifests: readonly (string | object)[]): Promise<void> {
    const objects = manifests.flatMap((manifest) => (typeof manifest === 'string' ? parseYaml(manifest) : [manifest]));
    for (const object of objects.filter(isJsonObject) as (JsonObject & KubernetesObject)[]) {
      const type = await this.#type(object.apiVersion, object.kind);
      const options = { fieldManager: FIELD_MANAGER };
      await this.#admin.patch(type, keyOf(object), { type: 'apply', body: object, force: true }, options);
    }
  }

  async namespace(...names: readonly string[]): Promise<void> {
    await this.apply(...names.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })));
  }

  /** Changes fields by a merge patch. */
  async merge(reference: LabReference, body: JsonObject): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.#admin.patch(type, key, { type: 'merge', body });
  }

  /** Writes the status of an object, as its own controller would. */
  async setStatus(reference: LabReference, status: JsonObject): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.#admin.patch(type, key, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async delete(reference: LabReference): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.#admin.delete(type, key);
  }

  /** An object of the cluster; undefined if it does not exist. */
  async get(reference: LabReference): Promise<LabObject | undefined> {
    const { type, key } = await this.#find(reference);
    try {
      return await this.#admin.get(type, key);
    } catch (error) {
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /** All objects of a kind, by name. */
  async list(kind: string, apiVersion?: string): Promise<readonly LabObject[]> {
    const { type } = await this.#find({ kind, name: '', ...(apiVersion === undefined ? {} : { apiVersion }) });
    const { items } = await this.#admin.list(type);
    return items;
  }

  /** Events with a reason, of any object. */
  async events(reason: string): Promise<readonly LabEvent[]> {
    const events = (await this.list('Event', 'events.k8s.io/v1')) as readonly (LabObject & LabEvent)[];
    return events.filter((event) => event.reason === reason);
  }

  /** The Policy `namespace/name`, or a copy. */
  async policy(name: string): Promise<Policy | undefined> {
    return (await this.get({ kind: 'Policy', name })) as Policy | undefined;
  }

  /** Waits until a condition holds for an object, or for undefined if it does not exist. */
  async sees(reference: LabReference, holds: (object: LabObject | undefined) => boolean): Promise<LabObject> {
    let object: LabObject | undefined;
    await until(
      async () => holds((object = await this.get(reference))),
      () => `${reference.kind} ${reference.name} to be as expected, last ${JSON.stringify(object, null, 1)}`,
    );
    return object as LabObject;
  }

  /** Waits until an object exists. */
  async appears(reference: LabReference): Promise<LabObject> {
    return await this.sees(reference, (object) => object !== undefined);
  }

  /** Waits until an object does not exist. */
  async disappears(reference: LabReference): Promise<void> {
    await this.sees(reference, (object) => object === undefined);
  }

  /** Waits until a Policy, or its copy, has a compliance. */
  async reaches(name: string, compliant: string): Promise<Policy> {
    const policy = await this.sees({ kind: 'Policy', name }, (object) => object?.status?.compliant === compliant);
    return policy as unknown as Policy;
  }

  async #find({ apiVersion, kind, name }: LabReference) {
    const [first = '', second] = name.split('/');
    const key = second === undefined ? { name: first } : { namespace: first, name: second };
    const own = ALL_KINDS.find((one) => one.kind === kind && apiVersion === undefined);
    const type = own ?? (await this.#type(apiVersion ?? 'v1', kind));
    return { type: type as ResourceType<LabObject>, key };
  }

  async #type(apiVersion: string, kind: string): Promise<ResourceType> {
    const type = kubernetesKind(apiVersion, kind) ?? (await this.#admin.discovery.find(apiVersion, kind));
    if (type === undefined) {
      throw new Error(`the cluster has no kind ${kind} in ${apiVersion}`);
    }
    return type;
  }
}
