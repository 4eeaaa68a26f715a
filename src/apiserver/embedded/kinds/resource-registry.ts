// The served kinds: the builtin ones, and those of CustomResourceDefinitions.
import { apiVersionOf, groupResourceOf } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { isSameJson } from '../../../resources/structured-merge/index.ts';
import { convertEvent } from '../../builtin-kinds/printers/event-conversion.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { deepFreeze } from '../../../values/index.ts';
import { KindRules } from './kind-rules.ts';
import { thaw } from '../store/thaw.ts';

/** A kind in one version, and the collection of its objects. */
export class RegisteredResource {
  readonly definition: ResourceDefinition;
  /** The name of the collection. All versions of a kind share it. */
  readonly collection: string;
  readonly rules: KindRules;
  /** Whether the CustomResourceDefinition is being deleted, which prevents new objects. */
  readonly isTerminating: boolean;
  readonly #apiVersion: string;
  readonly #storedApiVersion: string;
  readonly #conversions = new WeakMap<KubernetesObject, KubernetesObject>();

  constructor(definition: ResourceDefinition, storedVersion: string, rules: KindRules, isTerminating = false) {
    this.isTerminating = isTerminating;
    this.definition = definition;
    this.rules = rules;
    this.#apiVersion = apiVersionOf(definition);
    if (definition.group === 'events.k8s.io') {
      // `v1` and `events.k8s.io` share one collection of events.
      this.collection = 'events';
      this.#storedApiVersion = 'v1';
    } else {
      this.collection = groupResourceOf(definition);
      this.#storedApiVersion = apiVersionOf({ group: definition.group, version: storedVersion });
    }
  }

  /** Converts a stored object to this version. Custom resources are pruned, and get defaults, by the current schema. */
  inServedVersion(stored: KubernetesObject): KubernetesObject {
    const isCustom = this.definition.origin === 'custom';
    if (stored.apiVersion === this.#apiVersion && !isCustom) {
      return stored;
    }
    // Only stored objects are frozen. Others may change, so what becomes of them is not cached.
    const isFinal = Object.isFrozen(stored);
    const known = isFinal ? this.#conversions.get(stored) : undefined;
    if (known !== undefined) {
      return known;
    }
    const converted = isCustom ? this.#upgraded(stored) : this.#converted(stored);
    if (isFinal) {
      this.#conversions.set(stored, converted);
      this.#conversions.set(converted, converted);
    }
    return converted;
  }

  /** Converts an object of this version to the stored version. */
  stored(object: MutableObject): MutableObject {
    if (this.collection === 'events' && this.#storedApiVersion !== this.#apiVersion) {
      return convertEvent(object, 'v1') as MutableObject;
    }
    if (this.#storedApiVersion !== this.#apiVersion) {
      return { ...object, apiVersion: this.#storedApiVersion };
    }
    // A written object conforms to the current schema, so nothing is to be converted.
    const stored = object as KubernetesObject;
    this.#conversions.set(stored, stored);
    return object;
  }

  #converted(stored: KubernetesObject): KubernetesObject {
    return Object.freeze(
      this.collection === 'events'
        ? convertEvent(stored, 'events.k8s.io/v1')
        : { ...stored, apiVersion: this.#apiVersion },
    );
  }

  /** Applies the current schema to an object that was stored with an older one. */
  #upgraded(stored: KubernetesObject): KubernetesObject {
    const object = thaw(stored) as MutableObject;
    object.apiVersion = this.#apiVersion;
    this.rules.prune(object);
    this.rules.applyDefaults(object);
    const upgraded = object as KubernetesObject;
    return isSameJson(upgraded as JsonObject, stored as JsonObject) ? stored : deepFreeze(upgraded);
  }
}

/** The kinds of a CustomResourceDefinition. */
export interface CustomResource {
  /** One per served version. */
  readonly definitions: readonly ResourceDefinition[];
  readonly storedVersion: string;
  readonly isTerminating: boolean;
}

export class ResourceRegistry {
  readonly #builtin: readonly RegisteredResource[];
  readonly #custom = new Map<string, readonly RegisteredResource[]>();
  readonly #byResource = new Map<string, RegisteredResource>();
  readonly #byKind = new Map<string, RegisteredResource>();
  readonly #listeners = new Set<() => void>();
  #all: readonly RegisteredResource[] = [];

  constructor(builtin: readonly RegisteredResource[]) {
    this.#builtin = builtin;
    this.#index();
  }

  all(): readonly RegisteredResource[] {
    return this.#all;
  }

  find(group: string, version: string, resource: string): RegisteredResource | undefined {
    return this.#byResource.get(`${group}/${version}/${resource}`);
  }

  findKind(apiVersion: string, kind: string): RegisteredResource | undefined {
    return this.#byKind.get(`${apiVersion}/${kind}`);
  }

  /** Any version of a collection's kind. */
  ofCollection(collection: string): RegisteredResource | undefined {
    return this.#all.find((served) => served.collection === collection);
  }

  /** Replaces the kinds of a CustomResourceDefinition; undefined removes them. */
  setCustom(crdName: string, custom: CustomResource | undefined): void {
    if (custom === undefined) {
      this.#custom.delete(crdName);
    } else {
      const served = custom.definitions.map(
        (definition) =>
          new RegisteredResource(definition, custom.storedVersion, new KindRules(definition), custom.isTerminating),
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
