// Deletes objects (k8s.io/apiserver, pkg/registry/generic/registry/store.go and pkg/registry/rest/delete.go).
import { setImmediate } from 'node:timers/promises';
import { ApiError, ObjectSelection } from '../../../cluster/index.ts';
import type { DeleteOptions, SelectionOptions } from '../../../cluster/index.ts';
import { timeText } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject, ObjectKey, ResourceType } from '../../../resources/index.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../../resources/validation/index.ts';
import { CRD_COLLECTION, CRD_FINALIZER, terminating } from '../kinds/custom-resources.ts';
import { authorize, servedResource } from './cluster-context.ts';
import type { Caller, ClusterContext } from './cluster-context.ts';
import { PROTECTED_NAMESPACES } from './namespace-lifecycle.ts';
import { requireStored } from './object-reads.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';
import { thaw } from '../store/thaw.ts';
import { TimeSlice } from '../../../threads/index.ts';

/** A deletion in progress. */
interface Deletion {
  readonly served: RegisteredResource;
  readonly caller: Caller;
  readonly options: DeleteOptions;
}

/** Deletes objects of a cluster. */
export class ObjectDeleter {
  readonly #context: ClusterContext;

  constructor(context: ClusterContext) {
    this.#context = context;
  }

  /** Deletes an object. Returns the terminating object while it has finalizers; undefined when it is deleted. */
  async delete(
    caller: Caller,
    type: ResourceType,
    key: ObjectKey,
    options: DeleteOptions,
  ): Promise<KubernetesObject | undefined> {
    const served = servedResource(this.#context, type);
    const namespace = type.namespaced ? key.namespace : undefined;
    authorize(this.#context, caller, 'delete', type, { namespace, name: key.name });
    requireStored(served, 'delete');
    return this.#delete({ served, caller, options }, namespace ?? '', key.name);
  }

  async deleteCollection(caller: Caller, type: ResourceType, options: DeleteOptions & SelectionOptions): Promise<void> {
    const served = servedResource(this.#context, type);
    const selection = new ObjectSelection(served.definition, options);
    authorize(this.#context, caller, 'deletecollection', type, { namespace: options.namespace });
    requireStored(served, 'deletecollection');
    const objects = [...this.#context.store.collection(served.collection).list(options.namespace)];
    const slice = new TimeSlice();
    for (const stored of objects) {
      if (!selection.matches(stored)) {
        continue;
      }
      const { namespace = '', name = '' } = stored.metadata;
      await slice.yield();
      try {
        await this.#delete({ served, caller, options }, namespace, name);
      } catch (error) {
        // Another client deleted it first.
        if (!(error instanceof ApiError && error.reason === 'NotFound')) {
          throw error;
        }
      }
    }
  }

  async #delete(deletion: Deletion, namespace: string, name: string): Promise<KubernetesObject | undefined> {
    const { served, caller, options } = deletion;
    const { definition, collection } = served;
    const { store, admission } = this.#context;
    for (;;) {
      options.signal?.throwIfAborted();
      const stored = store.get(collection, namespace, name);
      if (collection === 'namespaces' && PROTECTED_NAMESPACES.includes(name)) {
        throw new ApiError(403, 'Forbidden', `namespaces "${name}" is forbidden: this namespace may not be deleted`, {
          name,
          kind: 'namespaces',
        });
      }
      if (stored === undefined) {
        throw ApiError.notFound(definition, name);
      }
      const live = served.inServedVersion(stored);
      requirePreconditions(served, live, options);
      const request = {
        user: caller.user,
        operation: 'DELETE',
        definition,
        subresource: undefined,
        namespace: namespace === '' ? (collection === 'namespaces' ? name : undefined) : namespace,
        name,
        object: null,
        oldObject: live,
        dryRun: options.dryRun === true,
        options: admissionOptions(collection === 'namespaces' ? withUidPrecondition(options, live) : options),
      } as const;
      const onWarning = options.onWarning ?? (() => {});
      await admission.mutate(request, onWarning, options.signal);
      await admission.validate(request, onWarning, options.signal);
      const marked = markedForDeletion(served, live, options, this.#context.now());
      if (options.dryRun === true) {
        return marked;
      }
      if (marked === live && store.get(collection, namespace, name) === stored) {
        return live;
      }
      if (marked !== live) {
        const written = store.commit([
          marked === undefined
            ? { type: 'remove', collection, expected: stored }
            : { type: 'put', collection, object: served.stored(marked as MutableObject), expected: stored },
        ])?.[0];
        if (written !== undefined) {
          return marked === undefined ? undefined : served.inServedVersion(written);
        }
      }
      // After a conflict, the new version is deleted. Other work may run first.
      await setImmediate();
    }
  }
}

/** The object with its deletion timestamp and finalizers. The live object if it has them; undefined if no finalizer is left. */
function markedForDeletion(
  served: RegisteredResource,
  live: KubernetesObject,
  options: DeleteOptions,
  now: number,
): MutableObject | KubernetesObject | undefined {
  const finalizers = finalizersFor(live, options);
  const isNamespace = served.collection === 'namespaces';
  if (served.collection === CRD_COLLECTION) {
    return markedCustomResourceDefinition(live, finalizers, now);
  }
  if (finalizers.length === 0 && !isNamespace) {
    return undefined;
  }
  const { metadata } = live;
  const isSame = finalizers.join(',') === (metadata.finalizers ?? []).join(',');
  if (metadata.deletionTimestamp !== undefined && isSame) {
    return isNamespace && isFinalized(live) ? undefined : live;
  }
  const marked = thaw(live) as MutableObject;
  marked.metadata['finalizers'] = finalizers;
  if (finalizers.length === 0) {
    delete marked.metadata['finalizers'];
  }
  if (metadata.deletionTimestamp === undefined) {
    marked.metadata['deletionTimestamp'] = timeText(now);
    if ((metadata.generation ?? 0) > 0) {
      marked.metadata['generation'] = (metadata.generation ?? 0) + 1;
    }
  }
  if (isNamespace) {
    marked['status'] = { ...(marked['status'] as JsonObject | undefined), phase: 'Terminating' };
  } else {
    marked.metadata['deletionGracePeriodSeconds'] = 0;
  }
  return marked;
}

/** Marks a CustomResourceDefinition. Its finalizer keeps it until the objects of its kind are deleted. */
function markedCustomResourceDefinition(
  live: KubernetesObject,
  finalizers: readonly string[],
  now: number,
): MutableObject | KubernetesObject {
  if (live.metadata.deletionTimestamp !== undefined) {
    return live;
  }
  const marked = thaw(live) as MutableObject;
  marked.metadata['finalizers'] = [...new Set([...finalizers, CRD_FINALIZER])];
  marked.metadata['deletionTimestamp'] = timeText(now);
  marked['status'] = terminating(live['status'], now);
  return marked;
}

/** Whether the namespace controller has finalized a namespace. */
function isFinalized({ metadata, spec }: KubernetesObject): boolean {
  const { finalizers = [] } = (spec ?? {}) as { finalizers?: readonly string[] };
  return finalizers.length === 0 && (metadata.finalizers ?? []).length === 0;
}

/** The finalizers of an object with the propagation policy. */
function finalizersFor({ metadata }: KubernetesObject, { propagationPolicy }: DeleteOptions): readonly string[] {
  const existing = metadata.finalizers ?? [];
  if (propagationPolicy === undefined) {
    return existing;
  }
  const others = existing.filter((one) => one !== ORPHAN_FINALIZER && one !== FOREGROUND_FINALIZER);
  switch (propagationPolicy) {
    case 'Background':
      return others;
    case 'Orphan':
      return [...others, ORPHAN_FINALIZER];
    case 'Foreground':
      return [...others, FOREGROUND_FINALIZER];
    default:
      throw ApiError.badRequest(`no propagation policy: ${String(propagationPolicy)}`);
  }
}

/** Adds the uid of the live object as a precondition, as API servers do for Namespaces. */
function withUidPrecondition(options: DeleteOptions, { metadata: { uid = '' } }: KubernetesObject): DeleteOptions {
  return { ...options, preconditions: { uid, ...options.preconditions } };
}

function requirePreconditions(
  served: RegisteredResource,
  live: KubernetesObject,
  { preconditions }: DeleteOptions,
): void {
  const { uid, resourceVersion } = preconditions ?? {};
  const name = live.metadata.name ?? '';
  if (uid !== undefined && uid !== live.metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${live.metadata.uid}). The object might have been deleted and then recreated`;
    throw conflictOfKind(served, name, why);
  }
  if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${live.metadata.resourceVersion}). The object might have been modified`;
    throw conflictOfKind(served, name, why);
  }
}

/** The message of a failed precondition names the kind, where other conflicts name the resource. */
function conflictOfKind({ definition: { group, kind } }: RegisteredResource, name: string, why: string): ApiError {
  return ApiError.conflict({ group, resource: kind }, name, why);
}

function admissionOptions({ dryRun, gracePeriodSeconds, propagationPolicy, preconditions }: DeleteOptions): JsonObject {
  return {
    apiVersion: 'meta.k8s.io/v1',
    kind: 'DeleteOptions',
    ...(dryRun === true ? { dryRun: ['All'] } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined ? {} : { preconditions: { ...preconditions } }),
  };
}
