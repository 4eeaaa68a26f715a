// What an embedded cluster serves: builtin kinds, which never change, and custom ones, which come and go.
import { apiVersionOf, groupResourceOf } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject } from '../../resources/index.ts';
import { isSameJson } from '../../resources/structured-merge/index.ts';
import { convertEvent } from '../builtin-kinds/event-conversion.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { KindRules } from './kind-rules.ts';
import { deepFreeze, thaw } from './store/deep-freeze.ts';

/** A kind in one version, and where its objects are. */
export class ServedResource {
  readonly definition: ResourceDefinition;
  /** Name of the collection that holds its objects, those of its other versions included. */
  readonly collection: string;
  readonly rules: KindRules;
  /** Whether the kind is going away: nothing new of it is made. */
  readonly isTerminating: boolean;
  readonly #apiVersion: string;
  readonly #storedApiVersion: string;
  readonly #views = new WeakMap<KubernetesObject, KubernetesObject>();

  constructor(definition: ResourceDefinition, storedVersion: string, rules: KindRules, isTerminating = false) {
    this.isTerminating = isTerminating;
    this.definition = definition;
    this.rules = rules;
    this.#apiVersion = apiVersionOf(definition);
    if (definition.group === 'events.k8s.io') {
      // Two groups show the same events.
      this.collection = 'events';
      this.#storedApiVersion = 'v1';
    } else {
      this.collection = groupResourceOf(definition);
      this.#storedApiVersion = apiVersionOf({ group: definition.group, version: storedVersion });
    }
  }

  /** A stored object in this version. Of custom kinds with the defaults and without the fields that it has now. */
  view(stored: KubernetesObject): KubernetesObject {
    const isCustom = this.definition.origin === 'custom';
    if (stored.apiVersion === this.#apiVersion && !isCustom) {
      return stored;
    }
    // What is not frozen is still on its way into the store, and changes.
    const isFinal = Object.isFrozen(stored);
    const known = isFinal ? this.#views.get(stored) : undefined;
    if (known !== undefined) {
      return known;
    }
    const view = isCustom ? this.#settled(stored) : this.#converted(stored);
    if (isFinal) {
      this.#views.set(stored, view);
      this.#views.set(view, view);
    }
    return view;
  }

  /** An object of this version as it is stored. */
  stored(object: MutableObject): MutableObject {
    if (this.collection === 'events' && this.#storedApiVersion !== this.#apiVersion) {
      return convertEvent(object, 'v1') as unknown as MutableObject;
    }
    if (this.#storedApiVersion !== this.#apiVersion) {
      return { ...object, apiVersion: this.#storedApiVersion };
    }
    // It was completed by the rules that there are now.
    const stored = object as unknown as KubernetesObject;
    this.#views.set(stored, stored);
    return object;
  }

  #converted(stored: KubernetesObject): KubernetesObject {
    return Object.freeze(
      this.collection === 'events'
        ? convertEvent(stored, 'events.k8s.io/v1')
        : { ...stored, apiVersion: this.#apiVersion },
    );
  }

  /** What was stored before the definition changed gets what new objects get. */
  #settled(stored: KubernetesObject): KubernetesObject {
    const object = thaw(stored) as unknown as MutableObject;
    object.apiVersion = this.#apiVersion;
    this.rules.prune(object);
    this.rules.applyDefaults(object);
    const settled = object as unknown as KubernetesObject;
    return isSameJson(settled as unknown as JsonObject, stored as unknown as JsonObject) ? stored : deepFreeze(settled);
  }
}

/** A custom resource as its CustomResourceDefinition makes it. */
export interface CustomResource {
  /** One per served version. */
  readonly definitions: readonly ResourceDefinition[];
  readonly storedVersion: string;
  readonly isTerminating: boolean;
}

export class ResourceRegistry {
  readonly #builtin: readonly ServedResource[];
  readonly #custom = new Map<string, readonly ServedResource[]>();
  readonly #byResource = new Map<string, ServedResource>();
  readonly #byKind = new Map<string, ServedResource>();
  readonly #listeners = new Set<() => void>();
  #all: readonly ServedResource[] = [];

  constructor(builtin: readonly ServedResource[]) {
    this.#builtin = builtin;
    this.#index();
  }

  all(): readonly ServedResource[] {
    return this.#all;
  }

  find(group: string, version: string, resource: string): ServedResource | undefined {
    return this.#byResource.get(`${group}/${version}/${resource}`);
  }

  findKind(apiVersion: string, kind: string): ServedResource | undefined {
    return this.#byKind.get(`${apiVersion}/${kind}`);
  }

  /** One version of each collection. */
  ofCollection(collection: string): ServedResource | undefined {
    return this.#all.find((served) => served.collection === collection);
  }

  /** Serves the kinds of a CustomResourceDefinition instead of what it defined before; nothing when there are none. */
  setCustom(crdName: string, custom: CustomResource | undefined): void {
    if (custom === undefined) {
      this.#custom.delete(crdName);
    } else {
      const served = custom.definitions.map(
        (definition) =>
          new ServedResource(definition, custom.storedVersion, new KindRules(definition), custom.isTerminating),
      );
      this.#custom.set(crdName, served);
    }
    this.#index();
    for (const listener of this.#listeners) {
      listener();
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #index(): void {
    this.#all = [...this.#builtin, ...[...this.#custom.values()].flat()];
    this.#byResource.clear();
    this.#byKind.clear();
    for (const served of this.#all) {
      const { group, version, resource, kind } = served.definition;
      this.#byResource.set(`${group}/${version}/${resource}`, served);
      this.#byKind.set(`${apiVersionOf(served.definition)}/${kind}`, served);
    }
  }
}
