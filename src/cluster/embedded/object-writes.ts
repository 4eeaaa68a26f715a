// Creating and changing objects, in the order in which an API server does it (k8s.io/apiserver, pkg/endpoints/handlers and
// pkg/registry/generic/registry/store.go).
import { randomUUID } from 'node:crypto';
import {
  apiVersionOf,
  goText,
  groupResourceOf,
  invalid,
  isSameJson,
  jsonText,
  keepManagerTimes,
  timeText,
  trackUpdate,
} from '../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject, ObjectKey, ResourceType } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';
import type { Patch, SubresourceOptions, WriteOptions } from '../cluster.ts';
import { forbiddenError } from './authorization/forbidden.ts';
import { generatedName } from './generated-name.ts';
import { authorize, servedResource } from './machine.ts';
import type { Caller, Machine } from './machine.ts';
import { requireNamespace } from './namespace-lifecycle.ts';
import { requireStored, subresourceView } from './object-reads.ts';
import { appliedObject, patchedObject } from './patched-object.ts';
import { received, receivedObject, tooDeep } from './received-object.ts';
import type { AdmissionRequest } from './request.ts';
import type { ServedResource } from './resource-registry.ts';
import { withScale } from './scale.ts';
import { isTooDeep, thaw } from './store/deep-freeze.ts';
import {
  beginStatus,
  countGeneration,
  countsGenerations,
  CREATED_BY_UPDATE,
  hideInitialState,
  isGone,
  keepWhatClientsCannotChange,
  requireName,
  requireSubresource,
  resetStatus,
  VERSION_REQUIRED,
} from './write-rules.ts';

/** How often a change is made anew on an object that somebody else was faster to change; as API servers do. */
const MAX_ATTEMPTS = 5;

/** How often another name is made when a generated one is taken; as API servers do. */
const MAX_NAME_ATTEMPTS = 8;

/** What clients are told when they change another version than the newest. */
export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export type ObjectWriteOptions = WriteOptions & SubresourceOptions;

/** A write while it is made. */
interface Write {
  readonly served: ServedResource;
  readonly caller: Caller;
  readonly namespace: string | undefined;
  readonly options: ObjectWriteOptions;
  readonly verb: 'create' | 'update' | 'patch' | 'apply';
  /** Of a strategic merge patch: itself, as messages about it have it. */
  readonly patchText?: string;
}

/** How an object becomes another. `live` is undefined where there is none yet. Gets and gives whole objects, never Scales. */
type Change = (live: KubernetesObject | undefined) => MutableObject;

/** Creates and changes objects of a cluster. */
export class ObjectWriter {
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  async create(
    caller: Caller,
    type: ResourceType,
    given: KubernetesObject,
    options: ObjectWriteOptions,
  ): Promise<KubernetesObject> {
    const served = servedResource(this.#machine, type);
    const object = receivedObject(given, apiVersionOf(served.definition), served.definition.kind);
    const namespace = namespaceOf(type, object);
    authorize(this.#machine, caller, 'create', type, { namespace });
    requireStored(served, 'create');
    if (type.namespaced && namespace === undefined) {
      throw ApiError.badRequest('an empty namespace may not be set during creation');
    }
    const write: Write = { served, caller, namespace, options, verb: 'create' };
    this.#checkFields(write, object);
    return this.#create(write, object);
  }

  async update(
    caller: Caller,
    type: ResourceType,
    given: KubernetesObject,
    options: ObjectWriteOptions,
  ): Promise<KubernetesObject> {
    const served = servedResource(this.#machine, type);
    const { subresource } = options;
    const isScale = subresource === 'scale';
    const object = isScale
      ? received(given)
      : receivedObject(given, apiVersionOf(served.definition), served.definition.kind);
    const name = nameOf(object);
    const namespace = namespaceOf(type, object);
    authorize(this.#machine, caller, 'update', type, { namespace, name, subresource });
    requireStored(served, 'update');
    if (name === '') {
      throw ApiError.badRequest('the name of the object ( based on URL) was undeterminable: name must be provided');
    }
    const write: Write = { served, caller, namespace, options, verb: 'update' };
    if (!isScale) {
      this.#checkFields(write, object);
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
    const served = servedResource(this.#machine, type);
    const { subresource } = options;
    const namespace = type.namespaced ? key.namespace : undefined;
    authorize(this.#machine, caller, 'patch', type, { namespace, name: key.name, subresource });
    requireStored(served, 'patch');
    const isApply = patch.type === 'apply';
    const write: Write = {
      served,
      caller,
      namespace,
      options,
      verb: isApply ? 'apply' : 'patch',
      ...(patch.type === 'strategic' ? { patchText: goText(patch.body) } : {}),
    };
    const now = this.#machine.now();
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
            schemaOf: (apiVersion) => this.#machine.registry.findKind(apiVersion, type.kind)?.definition.schema(),
          })
        : patchedObject({ served, live, patch, subresource });
      if (isTooDeep(next)) {
        throw tooDeep();
      }
      this.#checkFields(write, next);
      return next;
    });
  }

  /** Stores what `change` makes of the object, however often somebody else is faster. */
  async #modify(write: Write, key: ObjectKey, isCreatable: boolean, change: Change): Promise<KubernetesObject> {
    const { served, namespace, options } = write;
    requireSubresource(served, options.subresource);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      options.signal?.throwIfAborted();
      const stored = this.#machine.store.get(served.collection, namespace ?? '', key.name);
      if (stored === undefined) {
        if (!isCreatable) {
          throw ApiError.notFound(served.definition, key.name);
        }
        return this.#createInstead(write, key, change);
      }
      const live = served.view(stored);
      const next = change(live);
      requireName(key, namespace, next);
      const result = await this.#replace(write, stored, live, next);
      if (result !== undefined) {
        return subresourceView(served, served.view(result), options.subresource);
      }
    }
    throw ApiError.conflict(served.definition, key.name, MODIFIED);
  }

  /** The object that an update or apply is for does not exist, and may be made. */
  async #createInstead(write: Write, key: ObjectKey, change: Change): Promise<KubernetesObject> {
    const { served, namespace, caller } = write;
    authorize(this.#machine, caller, 'create', served.definition, { namespace, name: key.name });
    const object = change(undefined);
    requireName(key, namespace, object);
    if ((object.metadata['uid'] ?? '') !== '') {
      const why = `uid mismatch: the provided object specified uid ${String(object.metadata['uid'])}, and no existing object was found`;
      throw ApiError.conflict(served.definition, key.name, why);
    }
    return this.#create(write, object);
  }

  async #create(write: Write, object: MutableObject): Promise<KubernetesObject> {
    const { served, namespace, options, caller } = write;
    const { definition, rules } = served;
    const name = nameOf(object);
    if ((object.metadata['resourceVersion'] ?? '') !== '') {
      throw new ApiError(500, 'Unknown', 'resourceVersion should not be set on objects to be created');
    }
    requireNamespace(this.#machine, definition, namespace, name, 'CREATE');
    if (served.isTerminating) {
      throw forbiddenError(definition, name, 'create not allowed while custom resource definition is terminating');
    }
    if (namespace === undefined) {
      delete object.metadata['namespace'];
    } else {
      object.metadata['namespace'] = namespace;
    }
    beginStatus(definition, object);
    const before = { ...object, spec: { ...(object['spec'] as object | undefined) } };
    rules.applyDefaults(object);
    hideInitialState(served, object, before);
    if (write.verb !== 'apply') {
      this.#trackFields(write, undefined, object);
    }
    const request = this.#admissionRequest(write, 'CREATE', object, null);
    let next = await this.#mutate(write, request, object);
    resetStatus(definition, next);
    for (let attempt = 0; ; attempt++) {
      this.#initialise(write, next);
      if (definition.hasStatus) {
        // The first status, and what is made of the name and the uid: kinds without a status have neither.
        rules.applyDefaults(next);
      }
      this.#behave(write, next, undefined);
      const created = next as unknown as KubernetesObject;
      this.#machine.checkEscalation(caller.user, definition, created, undefined);
      this.#requireValid(write, created, undefined);
      await this.#machine.admission.validate(
        { ...request, name: created.metadata.name ?? '', object: created },
        onWarning(options),
        options.signal,
      );
      if (options.dryRun === true) {
        this.#requireAbsent(write, created);
        return created;
      }
      const stored = this.#machine.store.commit([
        { type: 'put', collection: served.collection, object: served.stored(next), expected: undefined },
      ])?.[0];
      if (stored !== undefined) {
        return served.view(stored);
      }
      if (name !== '' || attempt + 1 === MAX_NAME_ATTEMPTS) {
        throw this.#alreadyExists(write, created, name === '');
      }
      next = thaw(next);
      next.metadata['name'] = '';
    }
  }

  /** Undefined when somebody else was faster. */
  async #replace(
    write: Write,
    stored: KubernetesObject,
    live: KubernetesObject,
    next: MutableObject,
  ): Promise<KubernetesObject | undefined> {
    const { served, namespace, options, caller } = write;
    this.#requireVersion(write, live, next);
    requireNamespace(this.#machine, served.definition, namespace, live.metadata.name ?? '', 'UPDATE');
    served.rules.applyDefaults(next);
    if (write.verb !== 'apply') {
      this.#trackFields(write, live, next);
    }
    const request = this.#admissionRequest(write, 'UPDATE', next, live);
    const admitted = await this.#mutate(write, request, next);
    keepWhatClientsCannotChange(served, live, admitted, options.subresource);
    if (options.subresource !== undefined) {
      // What was put back may be what was there before it had all its defaults.
      served.rules.applyDefaults(admitted);
    }
    countGeneration(served, live, admitted);
    this.#behave(write, admitted, live);
    const updated = admitted as unknown as KubernetesObject;
    this.#machine.checkEscalation(caller.user, served.definition, updated, live);
    this.#requireValid(write, updated, live);
    const view = subresourceView(served, updated, options.subresource);
    await this.#machine.admission.validate({ ...request, object: view }, onWarning(options), options.signal);
    if (this.#machine.store.get(served.collection, namespace ?? '', live.metadata.name ?? '') !== stored) {
      return undefined;
    }
    const settled = keepManagerTimes(live, updated);
    if (isSameJson(settled as unknown as JsonObject, live as unknown as JsonObject)) {
      return stored;
    }
    if (options.dryRun === true) {
      return settled;
    }
    if (isGone(settled, live)) {
      const removed = this.#machine.store.commit([{ type: 'remove', collection: served.collection, expected: stored }]);
      return removed === undefined ? undefined : settled;
    }
    return this.#machine.store.commit([
      {
        type: 'put',
        collection: served.collection,
        object: served.stored(settled as unknown as MutableObject),
        expected: stored,
      },
    ])?.[0];
  }

  /** Makes sure that the object can be one of its kind. Removes fields that the kind does not have, and says so as asked. */
  #checkFields(write: Write, object: MutableObject): void {
    const { served, options, verb } = write;
    const { kind, version } = served.definition;
    const prefix = `${kind} in version "${version}" cannot be handled as a ${kind}: `;
    const refusal = (why: string): ApiError =>
      verb === 'patch'
        ? // A patch is refused together with what it makes of the object.
          ApiError.invalid({ group: '', kind: '' }, '', [invalid('patch', write.patchText ?? jsonText(object), why)])
        : ApiError.badRequest(prefix + why);
    const problem = served.rules.decodeError(object);
    if (problem !== undefined) {
      throw refusal(problem.startsWith(prefix) ? problem.slice(prefix.length) : problem);
    }
    const isStrict = options.fieldValidation === 'Strict';
    const unknown = isStrict ? served.rules.unknownFields(object) : served.rules.prune(object);
    if (unknown.length === 0 || options.fieldValidation === 'Ignore') {
      return;
    }
    const texts = unknown.map((path) => `unknown field "${path}"`);
    if (isStrict) {
      throw refusal(`strict decoding error: ${texts.join(', ')}`);
    }
    for (const text of texts) {
      options.onWarning?.(text);
    }
  }

  /** The object as admission wants it. Of a Scale, the object that it scales. */
  async #mutate(write: Write, request: AdmissionRequest, object: MutableObject): Promise<MutableObject> {
    const { served, options } = write;
    const admitted = await this.#machine.admission.mutate(request, onWarning(options), options.signal);
    if (admitted === null || admitted === request.object) {
      return object;
    }
    const copy = received(admitted);
    const { scale } = served.definition;
    if (options.subresource === 'scale' && scale !== undefined) {
      return withScale(object, scale, copy);
    }
    const problem = served.rules.decodeError(copy);
    if (problem !== undefined) {
      throw ApiError.internal(problem);
    }
    served.rules.prune(copy);
    served.rules.applyDefaults(copy);
    return copy;
  }

  #admissionRequest(
    write: Write,
    operation: 'CREATE' | 'UPDATE',
    object: MutableObject,
    oldObject: KubernetesObject | null,
  ): AdmissionRequest {
    const { served, namespace, options, caller } = write;
    return {
      user: caller.user,
      operation,
      definition: served.definition,
      subresource: options.subresource,
      namespace: namespace ?? (served.collection === 'namespaces' ? nameOf(object) : undefined),
      name: nameOf(object),
      object: subresourceView(served, object, options.subresource),
      oldObject: oldObject === null ? null : subresourceView(served, oldObject, options.subresource),
      dryRun: options.dryRun === true,
      options: admissionOptions(write, operation),
    };
  }

  /** What every object gets when it is made. */
  #initialise({ served }: Write, { metadata }: MutableObject): void {
    for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink', 'resourceVersion']) {
      delete metadata[field];
    }
    if (
      (metadata['name'] ?? '') === '' &&
      typeof metadata['generateName'] === 'string' &&
      metadata['generateName'] !== ''
    ) {
      metadata['name'] = generatedName(metadata['generateName']);
    }
    metadata['uid'] = randomUUID();
    metadata['creationTimestamp'] = timeText(this.#machine.now());
    delete metadata['generation'];
    if (countsGenerations(served)) {
      metadata['generation'] = 1;
    }
  }

  #behave({ served, options }: Write, object: MutableObject, old: KubernetesObject | undefined): void {
    this.#machine.behaviours.get(served.collection)?.({ object, old, subresource: options.subresource });
  }

  #requireValid({ served }: Write, object: KubernetesObject, old: KubernetesObject | undefined): void {
    const errors = served.rules.errors(object, old);
    if (errors.length > 0) {
      throw ApiError.invalid(served.definition, object.metadata.name ?? '', errors);
    }
  }

  #requireAbsent(write: Write, object: KubernetesObject): void {
    const { namespace = '', name = '' } = object.metadata;
    if (this.#machine.store.get(write.served.collection, namespace, name) !== undefined) {
      throw this.#alreadyExists(write, object, false);
    }
  }

  #alreadyExists({ served }: Write, object: KubernetesObject, isGenerated: boolean): ApiError {
    const name = object.metadata.name ?? '';
    if (!isGenerated) {
      return ApiError.alreadyExists(served.definition, name);
    }
    const { group, resource } = served.definition;
    return new ApiError(
      409,
      'AlreadyExists',
      `${groupResourceOf(served.definition)} "${name}" already exists, the server was not able to generate a unique name for the object`,
      { name, ...(group === '' ? {} : { group }), kind: resource, retryAfterSeconds: 1 },
    );
  }

  /** Makes sure that the change is one of the newest version, where it says which it is one of. */
  #requireVersion({ served, options }: Write, live: KubernetesObject, next: MutableObject): void {
    const { definition } = served;
    const name = live.metadata.name ?? '';
    const { resourceVersion = '', uid = '' } = next.metadata as { resourceVersion?: string; uid?: string };
    if (uid !== '' && uid !== live.metadata.uid) {
      const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid ?? ''}`;
      throw ApiError.conflict(definition, name, why);
    }
    if (resourceVersion === '') {
      const isUnconditional = definition.origin === 'builtin' && !VERSION_REQUIRED.has(served.collection);
      if (!isUnconditional && options.subresource !== 'scale') {
        throw ApiError.invalid({ group: definition.group, kind: definition.resource }, name, [
          {
            reason: 'FieldValueInvalid',
            field: 'metadata.resourceVersion',
            message: 'Invalid value: 0x0: must be specified for an update',
          },
        ]);
      }
    } else if (resourceVersion !== live.metadata.resourceVersion) {
      throw ApiError.conflict(definition, name, MODIFIED);
    }
  }

  /** Notes who has set which fields. */
  #trackFields({ served, caller, options }: Write, live: KubernetesObject | undefined, next: MutableObject): void {
    const { metadata } = trackUpdate({
      live,
      updated: next,
      definition: served.definition,
      subresource: options.subresource ?? '',
      manager: options.fieldManager ?? caller.fieldManager,
      now: this.#machine.now(),
      schemaOf: (apiVersion) =>
        this.#machine.registry.findKind(apiVersion, served.definition.kind)?.definition.schema(),
    });
    if (metadata.managedFields === undefined) {
      delete next.metadata['managedFields'];
    } else {
      next.metadata['managedFields'] = metadata.managedFields;
    }
  }
}

/** To admission, patches are updates, and what creates is a creation. */
function admissionOptions({ caller, options }: Write, operation: 'CREATE' | 'UPDATE'): JsonObject {
  return {
    apiVersion: 'meta.k8s.io/v1',
    kind: operation === 'CREATE' ? 'CreateOptions' : 'UpdateOptions',
    ...(options.dryRun === true ? { dryRun: ['All'] } : {}),
    fieldManager: options.fieldManager ?? caller.fieldManager,
    ...(options.fieldValidation === undefined ? {} : { fieldValidation: options.fieldValidation }),
  };
}

function onWarning({ onWarning = () => {} }: ObjectWriteOptions): (text: string) => void {
  return onWarning;
}

function namespaceOf(type: ResourceType, object: MutableObject): string | undefined {
  const { namespace } = object.metadata;
  return type.namespaced && typeof namespace === 'string' && namespace !== '' ? namespace : undefined;
}

/** Empty while a generated name is not made yet. */
function nameOf({ metadata: { name } }: MutableObject): string {
  return typeof name === 'string' ? name : '';
}
