// Reads the objects that Policies depend on, with the rights of a user.
import { ApiError, type ApiResource, type Cluster, isNotFound, listAll } from '../../cluster/index.ts';
import {
  type DependencyLookup,
  type DependencyObject,
  isGovernancePolicyKind,
  objectId,
  type Requirement,
} from '../dependencies/index.ts';
import { rootOfCopy, type PolicyGraph } from './policy-graph.ts';
import { GOVERNANCE_GROUP, groupVersionOf, type KubernetesObject } from '../../resources/index.ts';

/** Requests at the same time: more would only wait in the API server's queue for this user. */
const CONCURRENCY = 8;

type Listed = ReadonlyMap<string, KubernetesObject> | DependencyObject;

export class DependencyReader {
  readonly #cluster: Cluster;
  readonly #policies: PolicyGraph;
  /** By {@link objectId}. */
  readonly #found = new Map<string, DependencyObject>();
  /** The kinds of governance by namespace, listed because Policies depend on many of their objects. */
  readonly #lists = new Map<string, Promise<Listed>>();

  constructor(cluster: Cluster, policies: PolicyGraph) {
    this.#cluster = cluster;
    this.#policies = policies;
  }

  /** Computes with a lookup; again after reading what was looked up, until everything was read. */
  async resolve<T>(compute: (lookup: DependencyLookup) => T): Promise<T> {
    for (;;) {
      const missing = new Map<string, Requirement>();
      const result = compute((requirement) => {
        const id = objectId(requirement);
        const found = this.#found.get(id);
        if (found === undefined) {
          missing.set(id, requirement);
        }
        return found ?? { type: 'not-found' };
      });
      if (missing.size === 0) {
        return result;
      }
      const queue = missing.entries();
      await Promise.all(Array.from({ length: CONCURRENCY }, async () => await this.#readAll(queue)));
    }
  }

  /** Reads what is left in a queue that others read from as well. */
  async #readAll(queue: Iterable<[string, Requirement]>): Promise<void> {
    for (const [id, requirement] of queue) {
      this.#found.set(id, await this.#read(requirement));
    }
  }

  async #read(requirement: Requirement): Promise<DependencyObject> {
    const { apiVersion, kind, namespace, name } = requirement;
    if (name === '') {
      return { type: 'not-found' };
    }
    try {
      const type = await this.#cluster.discovery.find(apiVersion, kind);
      if (type === undefined) {
        return { type: 'no-such-kind' };
      }
      if (isGovernancePolicyKind(requirement)) {
        return await this.#policy(type, requirement);
      }
      if (groupVersionOf(apiVersion).group === GOVERNANCE_GROUP) {
        return await this.#listed(type, namespace, name);
      }
      const key = type.namespaced ? { namespace, name } : { name };
      return { type: 'found', object: await this.#cluster.get(type, key) };
    } catch (error) {
      return failureOf(error);
    }
  }

  /** A copy; for a user who may not read copies, the Policy itself, whose status is a summary. */
  async #policy(type: ApiResource, { namespace, name }: Requirement): Promise<DependencyObject> {
    const root = rootOfCopy(this.#policies, name);
    if (root?.status !== undefined && root.status.observedGeneration !== root.metadata.generation) {
      return { type: 'outdated' };
    }
    const copy = await this.#listed(type, namespace, name);
    return copy.type === 'forbidden' && root !== undefined ? { type: 'found', object: root } : copy;
  }

  async #listed(type: ApiResource, namespace: string, name: string): Promise<DependencyObject> {
    const id = `${type.resource} ${type.version} ${namespace}`;
    const list = this.#lists.get(id) ?? this.#list(type, namespace);
    this.#lists.set(id, list);
    const listed = await list;
    if ('type' in listed) {
      return listed;
    }
    const object = listed.get(name);
    return object === undefined ? { type: 'not-found' } : { type: 'found', object };
  }

  async #list(type: ApiResource, namespace: string): Promise<Listed> {
    try {
      const { items } = await listAll(this.#cluster, type, { namespace });
      return new Map(items.map((object) => [object.metadata.name ?? '', object]));
    } catch (error) {
      return failureOf(error);
    }
  }
}

/** @throws errors that are no answers */
function failureOf(error: unknown): DependencyObject {
  if (!(error instanceof ApiError)) {
    throw error;
  }
  if (isNotFound(error)) {
    return { type: 'not-found' };
  }
  return { type: error.code === 403 ? 'forbidden' : 'failed', message: error.message };
}
