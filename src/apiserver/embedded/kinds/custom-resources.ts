// CustomResourceDefinitions: names, conditions, and served versions (k8s.io/apiextensions-apiserver).
import { isConditionTrue, isJsonObject, setCondition } from '../../../resources/index.ts';
import type { Condition, JsonObject, KubernetesObject } from '../../../resources/index.ts';
import { acceptNames } from '../../custom-resources/custom-resource-names.ts';
import { applyCustomResourceDefaults, definitionsOfCustomResource } from '../../custom-resources/custom-resource.ts';
import type { KindBehaviour, KindWrite } from './kind-behaviour.ts';
import type { CustomResource, ResourceRegistry } from './resource-registry.ts';
import type { CollectionStore } from '../store/collection-store.ts';

export const CRD_COLLECTION = 'customresourcedefinitions.apiextensions.k8s.io';

/** The finalizer of a CustomResourceDefinition. It is removed when all objects of the kind are deleted. */
export const CRD_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** Serves the kinds of CustomResourceDefinitions as soon as the definitions are stored. */
export class CustomResources implements KindBehaviour {
  readonly #store: CollectionStore;
  readonly #registry: ResourceRegistry;
  readonly #now: () => number;
  /** The state of each served definition that its kinds were computed from, by name. */
  readonly #served = new Map<string, { readonly spec: unknown; readonly isTerminating: boolean }>();

  constructor(store: CollectionStore, registry: ResourceRegistry, now: () => number) {
    this.#store = store;
    this.#registry = registry;
    this.#now = now;
  }

  /** Serves the stored definitions, and follows their changes. */
  start(): void {
    for (const definition of this.#store.collection(CRD_COLLECTION).list()) {
      this.#serve(definition);
    }
    this.#store.onChange((collection, { type, object }) => {
      if (collection !== CRD_COLLECTION) {
        return;
      }
      if (type === 'DELETED') {
        this.#remove(object);
      } else {
        this.#serve(object);
      }
    });
  }

  /** Sets the accepted names and the conditions of a definition. API servers do this asynchronously, in a controller. */
  prepare({ object, subresource }: KindWrite): void {
    if (subresource !== undefined) {
      return;
    }
    applyCustomResourceDefaults(object);
    const definition = object;
    const { names, status, reason, message } = acceptNames(definition, this.#store.collection(CRD_COLLECTION).list());
    const before = isJsonObject(object['status']) ? object['status'] : {};
    let conditions = conditionsOf(definition);
    const now = this.#now();
    conditions = setCondition(conditions, { type: 'NamesAccepted', status, reason, message }, now);
    if (status === 'True') {
      conditions = setCondition(
        conditions,
        {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
        now,
      );
    } else if (!isConditionTrue(conditions, 'Established')) {
      conditions = setCondition(
        conditions,
        { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
        now,
      );
    }
    object['status'] = {
      ...before,
      acceptedNames: withoutEmpty({ ...names }),
      conditions,
      storedVersions: withStorageVersion(definition, before['storedVersions']),
    };
  }

  /** Whether no other definition has taken the names since `prepare`. */
  stillHolds(definition: KubernetesObject, old: KubernetesObject | undefined): boolean {
    // `prepare` put the names into the status, where they would count as accepted already.
    const requested = { ...definition, status: old?.['status'] } as KubernetesObject;
    const accepted = acceptNames(requested, this.#store.collection(CRD_COLLECTION).list());
    return accepted.status === 'True' || !isConditionTrue(conditionsOf(definition), 'NamesAccepted');
  }

  #serve(definition: KubernetesObject): void {
    const { name = '', deletionTimestamp } = definition.metadata;
    const isTerminating = deletionTimestamp !== undefined;
    const served = this.#served.get(name);
    if (!isConditionTrue(conditionsOf(definition), 'Established')) {
      return;
    }
    if (served?.spec === definition['spec'] && served?.isTerminating === isTerminating) {
      return;
    }
    this.#served.set(name, { spec: definition['spec'], isTerminating });
    this.#registry.setCustom(name, customResource(definition, isTerminating));
  }

  #remove(definition: KubernetesObject): void {
    const { name = '' } = definition.metadata;
    if (this.#served.delete(name)) {
      this.#registry.setCustom(name, undefined);
      this.#store.collection(collectionOf(definition)).wake();
    }
  }
}

/** The collection with the objects of a definition's kind. */
export function collectionOf(definition: KubernetesObject): string {
  return definition.metadata.name ?? '';
}

function customResource(definition: KubernetesObject, isTerminating: boolean): CustomResource {
  return {
    definitions: definitionsOfCustomResource(definition),
    storedVersion: storageVersion(definition),
    isTerminating,
  };
}

function versionsOf({ spec }: KubernetesObject): readonly JsonObject[] {
  const versions = isJsonObject(spec) ? spec['versions'] : undefined;
  return Array.isArray(versions) ? versions.filter(isJsonObject) : [];
}

function storageVersion(definition: KubernetesObject): string {
  const version = versionsOf(definition).find(({ storage }) => storage === true)?.['name'];
  return typeof version === 'string' ? version : '';
}

function withStorageVersion(definition: KubernetesObject, stored: unknown): readonly string[] {
  const versions = Array.isArray(stored) ? stored.filter((one) => typeof one === 'string') : [];
  const current = storageVersion(definition);
  return current === '' || versions.includes(current) ? versions : [...versions, current];
}

function conditionsOf({ status }: KubernetesObject): readonly Condition[] {
  const conditions = isJsonObject(status) ? status['conditions'] : undefined;
  return Array.isArray(conditions) ? (conditions as unknown as readonly Condition[]) : [];
}

/** Removes empty names and lists, as `omitempty` of Go does. */
function withoutEmpty(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== '' && (value as unknown[]).length !== 0),
  );
}

/** The status of a definition during its deletion. */
export function terminating(status: unknown, now: number): object {
  const before = isJsonObject(status) ? status : {};
  const conditions = setCondition(
    before['conditions'] as readonly Condition[] | undefined,
    {
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    },
    now,
  );
  return { ...before, conditions };
}
