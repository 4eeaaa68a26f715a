// Creates and changes objects with the steps of an API server, in the same order (k8s.io/apiserver, pkg/endpoints/handlers).
import { setImmediate } from 'node:timers/promises';
import { valueText } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import type { Patch } from '../../../cluster/index.ts';
import { apiVersionOf } from '../../../resources/index.ts';
import type { KubernetesObject, MutableObject, ObjectKey, ResourceType } from '../../../resources/index.ts';
import { authorize, servedResource } from './cluster-context.ts';
import type { Caller, ClusterContext } from './cluster-context.ts';
import { createObject } from './object-creation.ts';
import { requireStored, objectOfSubresource } from './object-reads.ts';
import { replaceObject } from './object-replacement.ts';
import { appliedObject, patchedObject } from './patched-object.ts';
import { received, receivedObject, tooDeep } from '../kinds/received-object.ts';
import { withScale } from './scale.ts';
import { isTooDeep, thaw } from '../store/thaw.ts';
import { CREATED_BY_UPDATE, requireName, requireSubresource } from './write-rules.ts';
import { checkFields } from './write-steps.ts';
import { nameOf, namespaceOf } from './write.ts';
import type { ObjectWriteOptions, Write } from './write.ts';

/** Computes the new version of an object from the live one, which is undefined at creation. Neither is ever a Scale. */
type Change = (live: KubernetesObject | undefined) => MutableObject;

/** Creates and changes objects of a cluster. */
export class ObjectWrites {
  readonly #context: ClusterContext;

  constructor(context: ClusterContext) {
    this.#context = context;
  }

  async create(
    caller: Caller,
    type: ResourceType,
    given: KubernetesObject,
    options: ObjectWriteOptions,
  ): Promise<KubernetesObject> {
    const served = servedResource(this.#context, type);
    const object = receivedObject(given, apiVersionOf(served.definition), served.definition.kind);
    const namespace = namespaceOf(type, object);
    authorize(this.#context, caller, 'create', type, { namespace });
    requireStored(served, 'create');
    if (type.namespaced && namespace === undefined) {
      throw ApiError.badRequest('an empty namespace may not be set during creation');
    }
    const write: Write = { context: this.#context, served, caller, namespace, options, verb: 'create' };
    checkFields(write, object);
    return createObject(write, object);
  }

  async update(
    caller: Caller,
    type: ResourceType,
    given: KubernetesObject,
    options: ObjectWriteOptions,
  ): Promise<KubernetesObject> {
    const served = servedResource(this.#context, type);
    const { subresource } = options;
    const isScale = subresource === 'scale';
    const object = isScale
      ? received(given)
      : receivedObject(given, apiVersionOf(served.definition), served.definition.kind);
    const name = nameOf(object);
    const namespace = namespaceOf(type, object);
    authorize(this.#context, caller, 'update', type, { namespace, name, subresource });
    requireStored(served, 'update');
    if (name === '') {
      throw ApiError.badRequest('the name of the object ( based on URL) was undeterminable: name must be provided');
    }
    const write: Write = { context: this.#context, served, caller, namespace, options, verb: 'update' };
    if (!isScale) {
      checkFields(write, object);
    }
    const isCreatable = CREATED_BY_UPDATE.has(served.collection) && subresource === undefined;
    return this.#modify(write, { name }, isCreatable, (live) => {
      const { scale } = served.definition;
      return isScale && live !== undefined && scale !== undefined ? withScale(live, scale, object) : thaw(object);
    });
  }

  async patch(
    caller: Caller,
    type: ResourceType,
    key: ObjectKey,
    patch: Patch,
    options: ObjectWriteOptions,
  ): Promise<KubernetesObject> {
    const served = servedResource(this.#context, type);
    const { subresource } = options;
    const namespace = type.namespaced ? key.namespace : undefined;
    authorize(this.#context, caller, 'patch', type, { namespace, name: key.name, subresource });
    requireStored(served, 'patch');
    const isApply = patch.type === 'apply';
    const write: Write = {
      context: this.#context,
      served,
      caller,
      namespace,
      options,
      verb: isApply ? 'apply' : 'patch',
      ...(patch.type === 'strategic' ? { patchText: valueText(patch.body) } : {}),
    };
    const now = this.#context.now();
    return this.#modify(write, key, isApply && subresource === undefined, (live) => {
      const next = isApply
        ? appliedObject({
            served,
            live,
            key,
            body: patch.body,
            force: patch.force === true,
            manager: options.fieldManager ?? '',
            subresource,
            now,
            schemaOf: (apiVersion) => this.#context.registry.findKind(apiVersion, type.kind)?.definition.schema(),
          })
        : patchedObject({ served, live, patch, subresource });
      if (isTooDeep(next)) {
        throw tooDeep();
      }
      checkFields(write, next);
      return next;
    });
  }

  /**
   * Stores the result of `change`, and retries after conflicts. This ends, because each conflict means that another write has
   * succeeded.
   */
  async #modify(write: Write, key: ObjectKey, isCreatable: boolean, change: Change): Promise<KubernetesObject> {
    const { served, options } = write;
    requireSubresource(served, options.subresource);
    for (;;) {
      options.signal?.throwIfAborted();
      const stored = this.#stored(write, key);
      if (stored === undefined && !isCreatable) {
        throw ApiError.notFound(served.definition, key.name);
      }
      const result =
        stored === undefined
          ? await this.#createInstead(write, key, change)
          : await replace(write, key, stored, change);
      if (result !== undefined) {
        return objectOfSubresource(served, served.inServedVersion(result), options.subresource);
      }
      // Other work may run between retries.
      await setImmediate();
    }
  }

  /** Creates the object that an update or apply did not find. Undefined when another client created it first. */
  async #createInstead(write: Write, key: ObjectKey, change: Change): Promise<KubernetesObject | undefined> {
    const { served, namespace, caller } = write;
    authorize(this.#context, caller, 'create', served.definition, { namespace, name: key.name });
    const object = change(undefined);
    requireName(key, namespace, object);
    if ((object.metadata['uid'] ?? '') !== '') {
      const why = `uid mismatch: the provided object specified uid ${String(object.metadata['uid'])}, and no existing object was found`;
      throw ApiError.conflict(served.definition, key.name, why);
    }
    try {
      return await createObject(write, object);
    } catch (error) {
      const exists = error instanceof ApiError && error.reason === 'AlreadyExists';
      if (exists && this.#stored(write, key) !== undefined) {
        return undefined;
      }
      throw error;
    }
  }

  #stored({ served, namespace = '' }: Write, { name }: ObjectKey): KubernetesObject | undefined {
    return this.#context.store.get(served.collection, namespace, name);
  }
}

async function replace(write: Write, key: ObjectKey, stored: KubernetesObject, change: Change) {
  const live = write.served.inServedVersion(stored);
  const next = change(live);
  requireName(key, write.namespace, next);
  return replaceObject(write, stored, live, next);
}
